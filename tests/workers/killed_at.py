"""killed_at.py N SCRIPT new|handbacks|events: the worker, which kills itself before the Nth line
that it executes of its own; without a payment left, or past its last line, it ends by itself."""

import importlib.util
import os
import signal
import sys

count, script, what = int(sys.argv[1]), sys.argv[2], sys.argv[3]
spec = importlib.util.spec_from_file_location("charge_worker", script)
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
left = count


def trace(frame, event, _):
    global left
    if frame.f_code.co_filename != script:
        return None
    if event == "line":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace


db = worker.open_database(os.environ["DATABASE_URL"])
sys.settrace(trace)
if what == "events":
    ended = worker.events(db)
else:
    worker.work_once(db, what)
    ended = 0
sys.settrace(None)
sys.exit(ended)
