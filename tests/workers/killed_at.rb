# killed_at.rb N SCRIPT new|handbacks|events: the worker, which kills itself before the Nth line
# that it executes of its own; without a payment left, or past its last line, it ends by itself.

left, script, what = Integer(ARGV[0], 10), ARGV[1], ARGV[2]
ARGV.clear
require script

db = Charges.open
trace = TracePoint.new(:line) do |point|
  next unless point.path == script

  left -= 1
  Process.kill(:KILL, Process.pid) if left.zero?
end
ended = 0
trace.enable
what == "events" ? ended = Charges.events(db) : Charges.work_once(db, what)
trace.disable
exit ended
