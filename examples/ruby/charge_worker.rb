#!/usr/bin/env ruby
# frozen_string_literal: true

# A worker that charges, and may be killed at any line.
#
#   charge_worker.rb intend SUBSCRIPTION PERIOD CENTS CURRENCY PAYMENT_METHOD
#   charge_worker.rb work [new|handbacks]     does what there is to do, for ever
#   charge_worker.rb events                   one event of tieout a line on standard input
#
# Environment: DATABASE_URL (postgres://… or sqlite:FILE), STRIPE_KEY, CHARGE_CHANNEL (status or
# outbox, as `channel` in tieout.toml). docs/charging-worker.md says why each step stands where it
# stands.

require "date"
require "json"
require "net/http"
require "timeout"
require "uri"

module Charges
  # Ends a call that cannot be meant so, before anything was done.
  def self.usage(why)
    words = File.readlines(__FILE__, encoding: "UTF-8")[3, 9].map { |line| line.sub(/^# ?/, "") }
    warn why, "", words.join
    exit 2
  end

  def self.seconds(name, default)
    value = ENV.fetch(name, default)
    return Float(value) if value.match?(/\A[0-9]{1,6}(\.[0-9]{1,6})?\z/)

    usage "#{name}: expected a number of seconds, as #{default}"
  end

  TABLE = "charges"
  PSP = ENV.fetch("PSP_URL", "https://api.stripe.com")
  CHANNEL = ENV.fetch("CHARGE_CHANNEL", "status")
  usage "CHARGE_CHANNEL: expected status or outbox" unless %w[status outbox].include?(CHANNEL)
  # The status of a row that is handed back: with the outbox it does not move.
  HANDED_BACK = { "status" => "retryable", "outbox" => "processing" }.fetch(CHANNEL)

  # From the moment before an attempt is written to its send, in seconds: later, nothing is sent.
  SEND_WITHIN = seconds("CHARGE_SEND_WITHIN", "5")
  # From its send until it is given up; both together stay far below in_flight_max (15 min).
  ANSWER_WITHIN = seconds("CHARGE_ANSWER_WITHIN", "20")
  # Between looks where there is nothing to do.
  IDLE = seconds("CHARGE_IDLE", "1")
  # How often one attempt is sent where the PSP says that it did nothing.
  SENDS = 3

  # One send that is committed: `stamp` is its last_attempted_at, `object` what is to be confirmed.
  Attempt = Struct.new(:id, :amount, :currency, :payment_method, :number, :stamp, :object, :started)

  # The event is to be delivered again later.
  class TooEarly < StandardError; end

  # What is no event of ours, however often it comes.
  class Refused < StandardError; end

  # The payment is intended already, and not so.
  class OtherAmount < StandardError; end

  # -------------------------------------------------------------------------- the database

  # Each statement commits by itself, but within `transaction`.
  class Postgres
    # Not now(), which stands still while a transaction waits for a lock.
    def now = "clock_timestamp()"
    def over = "clock_timestamp() + make_interval(secs => :life)"
    def moment(text) = "cast(#{text} as timestamptz)"
    def lock = "for update skip locked"

    def initialize(url)
      require "pg"
      @connection = PG.connect(url)
      @connection.type_map_for_results = PG::BasicTypeMapForResults.new(@connection)
    end

    def transaction(&work) = @connection.transaction { work.call }

    def row(sql, **values)
      names = []
      numbered = sql.gsub(/:([a-z_]+)/) do
        names |= [$1.to_sym]
        "$#{names.index($1.to_sym) + 1}"
      end
      @connection.exec_params(numbered, values.fetch_values(*names)).values.first
    end

    def close = @connection.close
  end

  class Sqlite
    def now = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"
    def over = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now', '+' || :life || ' seconds')"
    def moment(text) = text
    def lock = "" # who began with `begin immediate` holds the whole database

    def initialize(path)
      require "sqlite3"
      @connection = SQLite3::Database.new(path)
      # Up to half a minute. Not by busy_timeout, which lets no other thread of this process run
      # while it waits: nor the one that has the lock.
      @connection.busy_handler do |tries|
        sleep 0.01
        tries < 3_000
      end
      @connection.execute("pragma synchronous = full")
    end

    def transaction
      @connection.execute("begin immediate")
      done = yield
      @connection.execute("commit")
      done
    rescue StandardError
      @connection.execute("rollback") if @connection.transaction_active?
      raise
    end

    def row(sql, **values) = @connection.execute(sql, values).first

    def close = @connection.close
  end

  def self.open(url = ENV.fetch("DATABASE_URL"))
    scheme, rest = url.split(":", 2)
    db = scheme == "sqlite" ? Sqlite.new(rest.delete_prefix("//")) : Postgres.new(url)
    return db unless block_given?

    begin
      yield db
    ensure
      db.close
    end
  end

  # Seconds that go on while the machine sleeps, so that no call wakes up hours later: Linux's own;
  # elsewhere that is what the monotonic clock does, or nothing does.
  CLOCK =
    if Process.const_defined?(:CLOCK_BOOTTIME)
      Process::CLOCK_BOOTTIME
    else
      Process::CLOCK_MONOTONIC
    end

  def self.clock = Process.clock_gettime(CLOCK)

  # --------------------------------------------------------------------- rule 1: one row

  # The row of a payment: made once, and the same one ever after.
  def self.intend(db, subscription, period, cents, currency, method)
    db.row("insert into charges (subscription_id, period, amount_cents, currency, payment_method)
            values (:subscription, :period, :cents, :currency, :method)
            on conflict (subscription_id, period) do nothing returning id",
           subscription:, period:, cents:, currency:, method:)
    id, *found = db.row("select id, amount_cents, currency from charges
                          where subscription_id = :subscription and period = :period",
                        subscription:, period:)
    return id if found == [cents, currency]

    raise OtherAmount, "#{subscription} #{period} is intended with another amount: #{found}"
  end

  # ------------------------------------------------- rule 3: committed before every send

  # Writes the attempt, within the caller's transaction: nothing is sent before its commit.
  def self.begin_attempt(db, started, more, id, object = nil)
    taken = db.row("update charges set status = 'processing', attempt = attempt + :more,
                      last_attempted_at = #{db.now} where id = :id
                    returning id, amount_cents, currency, payment_method, attempt,
                      cast(last_attempted_at as text)", more:, id:)
    Attempt.new(*taken, object, started)
  end

  # A row that was never sent: this one, or the oldest.
  def self.take_new(db, id = nil)
    started = clock
    db.transaction do
      found = if id
                db.row("select id from charges where status = 'new' and id = :id #{db.lock}", id:)
              else
                db.row("select id from charges where status = 'new' order by id limit 1 #{db.lock}")
              end
      found && begin_attempt(db, started, 1, found[0])
    end
  end

  # A further send of the same attempt, which is a send like any other.
  def self.send_again(db, attempt)
    started = clock
    mine = db.row("update charges set last_attempted_at = #{db.now} where id = :id
                     and status = 'processing' and attempt = :number
                     and cast(last_attempted_at as text) = :stamp
                   returning cast(last_attempted_at as text)",
                  id: attempt.id, number: attempt.number, stamp: attempt.stamp)
    attempt.dup.tap { |again| again.stamp, again.started = mine[0], started } if mine
  end

  # ----------------------------------------------- rule 5: a hand-back is taken just once

  # Open, in time for a call to be over before it ends, and decided after the last send.
  def self.takeable(db)
    "h.table_name = 'charges' and h.key = cast(c.id as text)
       and h.taken_at is null and h.ended_at is null and h.charge_before > #{db.over}
       and (h.not_before is null or h.not_before <= #{db.now})
       and (c.last_attempted_at is null or h.at > c.last_attempted_at)"
  end

  LIFE = SEND_WITHIN + ANSWER_WITHIN

  # The row of a hand-back that is there to take, or none.
  def self.next_handed_back(db)
    found = db.row("select c.id from tieout_handbacks h join charges c on #{takeable(db)}
                     where c.status = :status order by h.at limit 1",
                   status: HANDED_BACK, life: LIFE)
    found&.first
  end

  # Takes the hand-back of a row, or of an event; none where it is not there to take.
  def self.take_handed_back(db, id, number = nil)
    started = clock
    db.transaction do
      # The row first, the hand-back after it: tieout takes its locks in the same order, and what
      # it did before we had the row is seen by the next statement.
      mine = db.row("select id from charges where id = :id and status = :status #{db.lock}",
                    id:, status: HANDED_BACK)
      found = mine && db.row("select h.number, h.retry, h.psp_reference
                                from tieout_handbacks h join charges c on #{takeable(db)}
                               where c.id = :id", id:, life: LIFE)
      next unless found && [nil, found[0]].include?(number)

      number, way, reference = found
      next if CHANNEL == "outbox" && !mark_taken(db, id, number)

      # The same key means the same attempt; anything else needs a key that was never used.
      more = way == "same_key" ? 0 : 1
      begin_attempt(db, started, more, id, way == "same_object" ? reference : nil)
    end
  end

  def self.mark_taken(db, id, number)
    db.row("update tieout_handbacks set taken_at = #{db.now} where table_name = 'charges'
              and key = :key and number = :number and taken_at is null and ended_at is null
            returning number", key: id.to_s, number:)
  end

  # -------------------------------------------------- rules 2 and 4: the call, and its answer

  # Sends an attempt, and writes what is certain.
  def self.charge(db, attempt)
    answer = nil
    SENDS.times do
      answer = send_once(attempt)
      break unless answer && answer[0] == 429

      # Turned away at the door: nothing was done. To knock again is to send again.
      sleep 0.2
      attempt = send_again(db, attempt)
      return "not ours any more" unless attempt
    end
    settle(db, attempt, answer)
  end

  # One send: its status and its JSON, or nil. Whatever is no clear answer is none.
  def self.send_once(attempt)
    place = URI(PSP)
    call = request(attempt)
    http = Net::HTTP.new(place.host, place.port, nil)
    http.use_ssl = place.scheme == "https"
    http.max_retries = 0 # who sends again by himself writes nothing before it
    http.open_timeout = http.write_timeout = http.read_timeout = ANSWER_WITHIN
    # One connection for one send: one that lay about may be dead, and tempt to send twice.
    http.start
    # After all that may take time, and right before the send.
    return nil if clock - attempt.started > SEND_WITHIN

    # The time-outs are of each step; this one is of them all.
    response = Timeout.timeout(ANSWER_WITHIN) { http.request(call) }
    [response.code.to_i, JSON.parse(response.body)]
  rescue StandardError
    # An answer may break its reader in any way, and says nothing by that: nested too deep, longer
    # than it says, no JSON. What is ours to get wrong is done by now.
    raise unless call

    nil
  ensure
    http.finish if http&.started?
  end

  def self.request(attempt)
    path, form =
      if attempt.object
        ["/v1/payment_intents/#{attempt.object}/confirm",
         { payment_method: attempt.payment_method }]
      else
        ["/v1/payment_intents", {
          amount: attempt.amount, currency: attempt.currency.downcase,
          payment_method: attempt.payment_method,
          "metadata[charge_id]" => attempt.id, # the tag
          confirm: true, off_session: true
        }]
      end
    request = Net::HTTP::Post.new(path)
    request.basic_auth(ENV.fetch("STRIPE_KEY"), "")
    request["idempotency-key"] = "charge-#{attempt.id}-#{attempt.number}"
    request.set_form_data(form)
    request
  end

  # A success and a definite decline end the payment. All else leaves it processing.
  def self.settle(db, attempt, answer)
    status, body = answer
    body = {} unless body.is_a?(Hash)
    error = body["error"].is_a?(Hash) ? body["error"] : {}
    if status == 200 && body["status"] == "succeeded" && text?(body["id"])
      finish(db, attempt, "paid", reference: body["id"])
    elsif status == 402 && error["type"] == "card_error"
      codes = error.values_at("decline_code", "code")
      finish(db, attempt, "failed", code: codes.find { |code| text?(code) })
    else
      "processing"
    end
  end

  # No zero byte and no half of a character, which JSON may escape; nor what ends a line.
  TEXT = /\A[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+\z/

  # Whether it is a text that a database can hold, on one line.
  def self.text?(value)
    value.is_a?(String) && value.valid_encoding? && value.match?(TEXT)
  end

  # Only while the attempt is still the row's own.
  def self.finish(db, attempt, status, reference: nil, code: nil)
    done = db.row("update charges set status = :status, decline_code = :code,
                     provider_payment_id = coalesce(:reference, provider_payment_id)
                   where id = :id and status = 'processing' and attempt = :number returning id",
                  status:, reference:, code:, id: attempt.id, number: attempt.number)
    done ? status : "not ours any more"
  end

  # -------------------------------------------------------------------------- tieout's events

  # An end that this row was not told of: its event got lost, or nobody delivers.
  def self.next_unheard(db)
    found = db.row("select o.payload from charges c join tieout_outbox o
                      on o.table_name = 'charges' and o.key = cast(c.id as text)
                     where c.status = 'processing'
                       and o.kind in ('transaction.succeeded', 'transaction.failed')
                       and o.staged_at > c.last_attempted_at order by o.staged_at limit 1")
    found && JSON.parse(found[0])
  end

  # Strings as JSON has them, and no slash beside them: the parser takes comments and other escapes.
  STRICT = %r{\A(?>[^"/]+|"(?>[^"\\]+|\\(?:["\\/bfnrt]|u\h{4}))*+")*+\z}

  # The event of a line, as far as it is one.
  def self.read_event(line)
    # Whatever the locale is, JSON is UTF-8.
    text = line.dup.force_encoding(Encoding::UTF_8)
    checked(text.valid_encoding?, "a line", "UTF-8")
    checked(text.match?(STRICT), "an event", "one JSON object a line")
    JSON.parse(text).tap { |event| checked(event.is_a?(Hash), "an event", "a JSON object") }
  rescue JSON::ParserError, EncodingError
    raise Refused, "an event: expected one JSON object a line"
  end

  def self.checked(is_so, name, expected)
    raise Refused, "#{name}: expected #{expected}" unless is_so
  end

  # A field of an event that a database can hold.
  def self.text(event, name)
    checked(text?(event[name]), name, "a text")
    event[name]
  end

  # The event's own name, which is printed as one word.
  def self.id_of(event)
    id = event["id"]
    checked(text?(id) && id.match?(/\A[!-~]+\z/), "id", "one word of ASCII")
    id
  end

  def self.number(value, name, most)
    checked(value.is_a?(Integer) && value.between?(1, most), name, "a number from 1 to #{most}")
    value
  end

  def self.row_of(event)
    key = text(event, "key")
    # As the database writes it: another writing of a number names no hand-back.
    checked(key.match?(/\A[1-9][0-9]{0,18}\z/), "key", "the id of a row")
    number(key.to_i, "key", (2**63) - 1)
  end

  def self.hand_back_of(event)
    hand_back = event["hand_back"]
    checked(hand_back.is_a?(Hash), "hand_back", "a JSON object")
    %w[same_key_until not_before charge_before].each do |name|
      time_of(hand_back, name) unless hand_back[name].nil?
    end
    number(hand_back["number"], "hand_back.number", (2**31) - 1)
  end

  def self.reference_of(event)
    event["psp_reference"].nil? ? nil : text(event, "psp_reference")
  end

  TIME = /\A([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\.[0-9]{6}Z\z/

  def self.time_of(event, name)
    at = event[name]
    found = text?(at) && TIME.match(at)
    checked(found, name, "a time as tieout writes it")
    year, month, day, hour, minute, second = found.captures.map { |digits| Integer(digits, 10) }
    is_day = year.positive? && Date.valid_date?(year, month, day, Date::GREGORIAN)
    is_time = is_day && hour < 24 && minute < 60 && second < 60
    checked(is_time, name, "a time that there is")
    at
  end

  # Does what an event says, once, however often it is delivered.
  def self.on_event(db, event)
    schema = event["schema"]
    checked(schema == "tieout.event/1", "schema", "tieout.event/1, and it is #{schema.inspect}")
    id_of(event)
    kind = text(event, "type")
    return "another table's" unless text(event, "table") == TABLE

    id = row_of(event)
    decided_at = time_of(event, "decided_at")
    case kind
    when "transaction.retryable" then on_hand_back(db, id, hand_back_of(event))
    when "transaction.succeeded" then on_success(db, id, reference_of(event))
    when "transaction.failed" then on_failure(db, id, text(event, "reason"), decided_at)
    else
      checked(kind == "transaction.review", "type", "one that this worker knows")
      "a person looks at it"
    end
  end

  def self.on_hand_back(db, id, number)
    attempt = take_handed_back(db, id, number)
    return charge(db, attempt) if attempt

    # Not due yet, or its row is held by somebody else.
    waits = db.row("select 1 from tieout_handbacks h join charges c on h.key = cast(c.id as text)
                     where h.table_name = 'charges' and c.id = :id and h.number = :number
                       and c.status = :status and h.taken_at is null and h.ended_at is null
                       and h.charge_before > #{db.over}
                       and (c.last_attempted_at is null or h.at > c.last_attempted_at)",
                   id:, number:, status: HANDED_BACK, life: LIFE)
    raise TooEarly, "hand-back #{number} of #{id} is not due yet" if waits

    "taken, ended or too late"
  end

  # Money is money: this holds whatever came after.
  def self.on_success(db, id, reference)
    done = db.row("update charges set status = 'paid',
                     provider_payment_id = coalesce(provider_payment_id, :reference)
                   where id = :id and status in ('processing', 'retryable') returning id",
                  id:, reference:)
    done ? "paid" : "no news"
  end

  # Of an earlier attempt where the row was sent since: that one decides.
  def self.on_failure(db, id, reason, decided_at)
    done = db.row("update charges set status = 'failed', decline_code = :reason
                    where id = :id and status = 'processing'
                      and last_attempted_at < #{db.moment(':decided_at')} returning id",
                  id:, reason:, decided_at:)
    done ? "failed" : "no news"
  end

  # -------------------------------------------------------------------------------- commands

  # One payment, where there is one.
  def self.work_once(db, what)
    if %w[handbacks both].include?(what)
      id = next_handed_back(db)
      attempt = take_handed_back(db, id) if id
      event = next_unheard(db) if CHANNEL == "outbox" && !attempt
      done = on_event(db, event) if event
      return [Integer(event["key"], 10), done] if done && done != "no news"
    end
    attempt ||= take_new(db) if %w[new both].include?(what)
    attempt && [attempt.id, charge(db, attempt)]
  end

  def self.work(db, what)
    loop do
      done = work_once(db, what)
      done ? puts(done.join(" ")) : sleep(IDLE)
    end
  end

  # What is printed was handled. Exit 75: again later; 65: not this one, however often.
  def self.events(db)
    $stdin.each_line do |line|
      event = read_event(line)
      puts "#{event['id']} #{on_event(db, event)}"
    rescue TooEarly => why
      warn why.message
      return 75
    rescue Refused => why
      warn "refused: #{why.message}"
      return 65
    end
    0
  end

  def self.main(words)
    $stdout.sync = true
    command, *rest = words
    usage "expected intend, work or events" unless %w[intend work events].include?(command)
    needed("DATABASE_URL", "postgres://… or sqlite:FILE")
    return main_intend(rest) if command == "intend"

    needed("STRIPE_KEY", "the key that charges")
    unless rest.empty? || (command == "work" && [%w[new], %w[handbacks]].include?(rest))
      usage "expected work, work new, work handbacks or events, and no other word"
    end
    open { |db| command == "work" ? work(db, rest.first || "both") : events(db) }
  end

  def self.needed(name, what)
    usage "#{name}: expected #{what}" if ENV.fetch(name, "").empty?
  end

  def self.main_intend(words)
    words = words.map { |word| word.dup.force_encoding(Encoding::UTF_8) }
    unless words.length == 5 && words.all? { |word| text?(word) }
      usage "intend: expected its five words, each a text"
    end
    subscription, period, cents, currency, method = words
    unless cents.match?(/\A[1-9][0-9]{0,17}\z/)
      usage "intend: expected CENTS as a whole number from 1"
    end
    unless currency.match?(/\A[A-Za-z]{3}\z/)
      usage "intend: expected CURRENCY as three letters, as EUR"
    end
    open { |db| puts intend(db, subscription, period, Integer(cents, 10), currency, method) }
    0
  rescue OtherAmount => why
    warn why.message
    1
  end
end

if $PROGRAM_NAME == __FILE__
  # Ctrl-C is a kill like any other, and no mistake to be read about.
  trap("INT") { exit!(130) }
  exit Charges.main(ARGV)
end
