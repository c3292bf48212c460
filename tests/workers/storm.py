#!/usr/bin/env python3
"""The example workers against the sandbox: killed at random, beside runs of tieout that are killed
at random, at a PSP that loses answers and carries calls out late.

    storm.py --language python|ruby --database sqlite|postgres --channel status|outbox
             --tieout PROGRAM [--situation storm|late|superseded|lines|sidekiq|deliver]
             [--keys long|short] [--payments 200] [--seed N]

`storm`  everything at once; `late`  hand-backs lie about for longer than they and the idempotency
keys live, and some of the money turns up meanwhile; `superseded`  the same, but tieout finds that
money first, and ends those hand-backs before the workers come; `lines`  the worker is killed at
each of its lines in turn; `sidekiq`  the storm, with a real Redis and a real Sidekiq that is
killed, which loses the jobs that it had; `deliver`  the storm, with events by `tieout deliver`,
which is killed too and calls the worker once an event. With short keys the PSP forgets them before anybody is
handed back, so that each further call is a further payment. PostgreSQL is the server of
TEST_POSTGRES_URL. At the end each intended payment was captured exactly once, was declined, or
waits for a person. Prints the figures as JSON; exits 1 and says what is wrong where anything is.
"""

import argparse
import collections
import contextlib
import datetime
import json
import os
import pathlib
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
KEY = "sk_test_workers"
SEND_WITHIN, ANSWER_WITHIN = 0.6, 1.0
IN_FLIGHT_MAX = 7


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def rule(method, per_mille, action):
    matches = {"method": method, "turn": {"per_mille": per_mille}}
    return {"matches": matches, "action": action}


def uuid7():
    number = int(time.time() * 1000) << 80 | 7 << 76 | random.getrandbits(76)
    return str(uuid.UUID(int=number & ~(3 << 62) | 2 << 62))


def status(code):
    return {"status": {"code": code}}


STORM = [
    rule("POST", 120, {"act_then": "reset"}),
    rule("POST", 90, {"act_late": {"after_ms": 1500, "meanwhile": "no_answer"}}),
    rule("POST", 50, {"act_late": {"after_ms": 800, "meanwhile": status(500)}}),
    rule("POST", 50, {"act_then": status(500)}),
    rule("POST", 120, status(500)),
    rule("POST", 60, status(429)),
    rule("POST", 20, {"html": {"code": 200}}),
    rule("POST", 30, {"delay": {"ms": 1500}}),
    rule("POST", 20, {"truncated_json": {"keep_per_mille": 600}}),
    rule("POST", 4, {"refuse_connections": {"for_ms": 200}}),
    rule("GET", 40, status(503)),
    rule("GET", 30, "reset"),
    rule("GET", 20, {"html": {"code": 200}}),
    rule("GET", 20, {"truncated_json": {"keep_per_mille": 700}}),
    rule("GET", 20, "end_early"),
    rule("GET", 20, status(429)),
]
# Half of all sends never arrive, and are not known to.
LOST = [rule("POST", 500, status(500)), rule("POST", 200, {"act_then": "reset"})]


def method_of(number):
    if number % 25 == 3:
        return "pm_sandbox_decline.stolen_card"
    if number % 10 == 5:
        return "pm_sandbox_decline.processing_error.try_again_later"
    return "pm_card_visa"


# --------------------------------------------------------------------------------- the places


class Database:
    """The harness's own connection; one lock, so that threads may share it."""

    def __init__(self, kind, folder):
        self.kind, self.lock = kind, threading.Lock()
        if kind == "sqlite":
            self.url = f"sqlite:{folder / 'shop.db'}"
            self.connection = sqlite3.connect(
                folder / "shop.db", timeout=60, isolation_level=None, check_same_thread=False
            )
            self.connection.execute("pragma journal_mode = wal")
        else:
            import psycopg

            server = os.environ["TEST_POSTGRES_URL"]
            name = f"workers_{os.getpid()}_{random.randrange(10**9)}"
            with psycopg.connect(server, autocommit=True) as admin:
                admin.execute(f"create database {name}")
            self.url = server.rsplit("/", 1)[0] + "/" + name
            self.connection = psycopg.connect(self.url, autocommit=True)
        schema = (EXAMPLES / "charges" / f"{kind}.sql").read_text()
        for statement in schema.split(";\n"):
            if statement.strip():
                self.all(statement)

    def all(self, sql):
        with self.lock:
            cursor = self.connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def one(self, sql):
        return self.all(sql)[0][0]

    def at(self, seconds):
        moment = datetime.datetime.now(datetime.timezone.utc)
        moment += datetime.timedelta(seconds=seconds)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Sandbox:
    def __init__(self, program, seed):
        self.process = subprocess.Popen(
            [program, "sandbox", "--port", "0", "--seed", str(seed)],
            stdout=subprocess.PIPE, text=True,
        )
        self.url = self.process.stdout.readline().split()[1]
        # What it still prints must never stop it.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def call(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def intents(self):
        found = self.call("/_sandbox/objects?kind=intent")
        return found["objects"] if isinstance(found, dict) else found

    def captures(self):
        """Row id → references of what was captured under its tag."""
        captures = collections.defaultdict(list)
        for intent in self.intents():
            if intent.get("amount_received"):
                captures[intent["metadata"].get("charge_id", "-")].append(intent["id"])
        return captures


class Shop:
    def __init__(self, options, folder, stack):
        self.options, self.folder = options, folder
        self.chance = random.Random(options.seed)
        self.sandbox = Sandbox(options.tieout, options.seed)
        stack.callback(self.sandbox.process.kill)
        self.db = Database(options.database, folder)
        stack.callback(self.db.connection.close)
        self.env = {
            **os.environ,
            "DATABASE_URL": self.db.url,
            "STRIPE_KEY": KEY,
            "PSP_URL": self.sandbox.url,
            "CHARGE_CHANNEL": options.channel,
            "CHARGE_SEND_WITHIN": str(SEND_WITHIN),
            "CHARGE_ANSWER_WITHIN": str(ANSWER_WITHIN),
            "CHARGE_IDLE": "0.05",
        }
        if options.database == "sqlite":
            self.env["DATABASE_URL"] = self.db.url
        self.errors = open(folder / "workers.err", "a")
        stack.callback(self.errors.close)
        self.runs = collections.Counter()
        self.write_words()
        self.tieout("db", "migrate")

    def write_words(self):
        text = (EXAMPLES / "charges" / f"{self.options.channel}.toml").read_text()
        at_psp = (
            f'base_url = "{self.sandbox.url}"\ndeadline = "2s"\nconnect_timeout = "1s"\n'
            f'retries = 1\nrequests_per_second = 500\nbreaker_pause = "1s"\n'
        )
        late = self.options.situation == "late"
        if late or self.options.keys == "short":
            life = 60 if late else 3
            at_psp += f'key_life = "{life}s"\n'
            self.sandbox.call("/_sandbox/behaviour", {"idempotency_ttl_secs": life}, "PATCH")
        text = text.replace('psp = "stripe"\n', 'psp = "stripe"\n' + at_psp)
        policy = {
            "in_flight_max": f'"{IN_FLIGHT_MAX}s"', "stuck_after": f'"{IN_FLIGHT_MAX}s"',
            "recheck_after": '"1s"', "object_before_row": '"30min"', "max_handbacks": 100000,
            "max_retries": 50, "watch": '["5s", "15s", "40s", "90s", "2min", "1h"]',
        }
        if late:
            policy |= {"charge_before": '"1min"', "take_within": '"1min"'}
        text += "\n[policy]\n" + "".join(f"{k} = {v}\n" for k, v in policy.items())
        if self.options.situation == "deliver":
            text += (
                '\n[[sink]]\nname = "worker"\nkind = "command"\n'
                f"command = {json.dumps(self.program('events'))}\n"
                '[delivery]\nafter_run = "0s"\nbackoff_first = "1s"\nbackoff_cap = "2s"\n'
            )
        (self.folder / "tieout.toml").write_text(text)

    def tieout(self, *words, kill_after=None):
        """One call of the program; its exit code, or None where it was killed."""
        process = subprocess.Popen(
            [self.options.tieout, *words], cwd=self.folder, env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        try:
            out, err = process.communicate(timeout=kill_after or 300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            if kill_after is None:
                raise AssertionError(f"tieout {words} did not end") from None
            return None
        if process.returncode not in (0, 3):
            raise AssertionError(f"tieout {words} ended {process.returncode}: {err}{out}")
        return process.returncode

    def run(self, kill_after=None):
        run_id = uuid7()
        code = self.tieout("run", "--run-id", run_id, kill_after=kill_after)
        self.runs[code] += 1
        if code is None:
            # As two minutes later: what the killed run held is free again.
            past = self.db.at(-600)
            self.db.all(
                f"update tieout_runs set started_at = '{past}', heartbeat_at = '{past}' "
                f"where id = '{run_id}' and state = 'running'"
            )
            self.db.all(
                f"update tieout_checks set lease_until = '{past}' where lease_run = '{run_id}'"
            )

    def loses_jobs(self):
        return self.options.situation == "sidekiq"

    def hours_pass(self):
        """What is planned for later is due."""
        past = self.db.at(-1)
        self.db.all(
            f"update tieout_checks set next_check_at = '{past}' "
            f"where state in ('open', 'watch') and lease_run is null"
        )
        self.db.all(
            f"update tieout_handbacks set not_before = '{past}' "
            f"where not_before > '{past}' and taken_at is null and ended_at is null"
        )
        # An event that was given to its sinks before waits there, by a time of its own.
        self.db.all(
            f"update tieout_deliveries set next_attempt_at = '{past}' "
            f"where state = 'waiting' and next_attempt_at > '{past}'"
        )

    # ---------------------------------------------------------------------------- workers

    def program(self, *words):
        suffix = {"python": "py", "ruby": "rb"}[self.options.language]
        runner = {"python": "/usr/bin/python3", "ruby": "ruby"}[self.options.language]
        return [runner, str(EXAMPLES / self.options.language / f"charge_worker.{suffix}"), *words]

    def sidekiq(self):
        job = EXAMPLES / "ruby" / "sidekiq_job.rb"
        return ["sidekiq", "-r", str(job), "-q", "billing", "-c", "4"]

    def start(self, *words, **more):
        more.setdefault("stdout", subprocess.DEVNULL)
        errors = subprocess.DEVNULL if more.pop("quiet", False) else self.errors
        program = self.sidekiq() if words == ("sidekiq",) else self.program(*words)
        return subprocess.Popen(program, env=self.env, stderr=errors, **more)

    def intend(self, count, method=method_of):
        first = self.db.one("select coalesce(max(id), 0) + 1 from charges")
        values = ", ".join(
            f"('sub_{n}', '2026-11', {1000 + n}, 'EUR', '{method(n)}')"
            for n in range(first, first + count)
        )
        self.db.all(
            "insert into charges (subscription_id, period, amount_cents, currency, "
            f"payment_method) values {values}"
        )

    def intend_twice(self):
        """Two processes at once that mean the same payment get the same row."""
        both = [
            self.start("intend", "sub_twice", "2026-11", "777", "EUR", "pm_card_visa",
                       stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        ids = {process.communicate()[0].strip() for process in both}
        assert len(ids) == 1 and ids != {""}, f"one payment, several rows: {ids}"
        other = self.start("intend", "sub_twice", "2026-11", "778", "EUR", "pm_card_visa",
                           quiet=True)
        assert other.wait() != 0, "the same payment with another amount was taken"

    def unsettled(self):
        return self.db.all(
            "select c.id, c.status from charges c where c.status not in ('paid', 'failed') "
            "and not exists (select 1 from tieout_cases k where k.subject = cast(c.id as text) "
            "and k.state = 'open') order by c.id"
        )


class Pool:
    """Workers that are started again whenever they are killed."""

    def __init__(self, shop, words, stack):
        self.shop, self.words, self.kills = shop, words, 0
        self.running = [shop.start(*each) for each in words]
        stack.callback(self.stop)

    def kill_one(self, chance):
        at = chance.randrange(len(self.running))
        assert self.running[at].poll() is None, "a worker ended by itself; see workers.err"
        self.running[at].kill()
        self.running[at].wait()
        self.kills += 1
        self.running[at] = self.shop.start(*self.words[at])

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()
        self.running = []


class Deliverer:
    """Delivers what is staged as `tieout deliver` may at worst: each event at least once, in
    lots to two processes at once, killed half-way, and old events again and again."""

    def __init__(self, shop):
        self.shop, self.done, self.kills = shop, set(), 0
        self.delivered = collections.Counter()
        self.chance = random.Random(shop.options.seed + 1)

    def staged(self):
        return self.shop.db.all(
            "select event_id, payload, table_name, key, version from tieout_outbox "
            "order by staged_at, version, event_id"
        )

    def turn(self, kills=True):
        """One lot; whether anything is left that was never handled."""
        events = {row[0]: row for row in self.staged()}
        open_rows, lot = set(), []
        for row in events.values():
            if row[0] not in self.done and row[2:4] not in open_rows:
                open_rows.add(row[2:4])  # the elder of a row first
                lot.append(row)
        left = bool(lot)
        lot = lot[:25]
        old = [events[i] for i in self.done if i in events]
        lot += self.chance.sample(old, min(len(old), 5))
        if not lot:
            return False
        processes = []
        for _ in range(2):
            self.chance.shuffle(lot)
            process = self.shop.start(
                "events", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            lines = "".join(row[1].replace("\n", " ") + "\n" for row in lot)
            after = self.chance.uniform(0.05, 0.8) if kills and self.chance.random() < 0.4 else 120
            processes.append((process, lines, after))
        threads = [threading.Thread(target=self.hear, args=each) for each in processes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return left

    def hear(self, process, lines, after):
        timer = threading.Timer(after, process.kill)
        timer.start()
        out = ""
        with contextlib.suppress(BrokenPipeError):
            out, _ = process.communicate(lines)
        timer.cancel()
        self.kills += process.returncode == -signal.SIGKILL
        assert process.returncode in (0, 75, -signal.SIGKILL), process.returncode
        for line in out.splitlines():
            event, _, what = line.partition(" ")
            self.delivered[what] += 1
            self.done.add(event)


class Delivery:
    """`tieout deliver` itself: it calls the worker once an event, and is killed half-way."""

    def __init__(self, shop):
        self.shop, self.kills = shop, 0
        self.delivered = collections.Counter()
        self.chance = random.Random(shop.options.seed + 1)

    def turn(self, kills=True):
        is_killed = kills and self.chance.random() < 0.4
        after = self.chance.uniform(0.05, 0.8) if is_killed else None
        code = self.shop.tieout("deliver", "--now", kill_after=after)
        self.delivered["killed" if code is None else f"exit {code}"] += 1
        if code is None:
            self.kills += 1
            # As two minutes later: the sink that it held is free again.
            past = self.shop.db.at(-600)
            self.shop.db.all(
                f"update tieout_sinks set lease_until = '{past}' where lease_owner is not null"
            )
        else:
            self.delivered["taken"] = self.shop.db.one(
                "select count(*) from tieout_deliveries where state = 'delivered'"
            )


class Redis:
    """A server of its own, and as much of its protocol as pushing takes."""

    def __init__(self, folder, stack):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--dir", str(folder)], stdout=subprocess.DEVNULL,
        )
        stack.callback(self.process.kill)
        for _ in range(500):
            try:
                self.line = socket.create_connection(("127.0.0.1", self.port))
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        self.answers = self.line.makefile("rb")

    def tell(self, *words):
        words = [str(word).encode() for word in words]
        parts = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.line.sendall(b"*%d\r\n%s" % (len(words), parts))
        answer = self.answers.readline()
        assert answer.startswith(b":"), answer
        return int(answer[1:])


class Queue:
    """Events as `tieout deliver` pushes them, some of them twice, and the application's own."""

    def __init__(self, shop, stack):
        self.shop, self.redis = shop, Redis(shop.folder, stack)
        self.chance = random.Random(shop.options.seed + 1)
        self.pushed, self.enqueued, self.delivered = set(), 0, collections.Counter()
        self.redis.tell("SADD", "queues", "billing")

    def push(self, name, *args):
        now = time.time()
        job = {"retry": True, "queue": "billing", "class": name, "args": args,
               "jid": self.chance.randbytes(12).hex(), "created_at": now, "enqueued_at": now}
        self.redis.tell("LPUSH", "queue:billing", json.dumps(job))
        self.delivered[name] += 1

    def turn(self, kills=True):
        del kills
        for row, in self.shop.db.all(
            f"select id from charges where id > {self.enqueued} order by id"
        ):
            self.push("ChargeJob", row)
            self.enqueued = row
        for event, payload in self.shop.db.all(
            "select event_id, payload from tieout_outbox order by staged_at, version"
        ):
            again = event in self.pushed and self.chance.random() < 0.03
            if event not in self.pushed or again:
                self.push("TieoutEventJob", json.loads(payload))
                self.pushed.add(event)
        if self.chance.random() < 0.3 or self.redis.tell("LLEN", "queue:billing") == 0:
            self.push("ChargeSweepJob")


# -------------------------------------------------------------------------------- situations


def threads_until(deadline, *loops):
    """Runs each again and again until then; the first that fails is raised."""
    failed = []

    def loop(work):
        try:
            while time.monotonic() < deadline and not failed:
                work()
        except BaseException as error:  # noqa: BLE001: handed on below
            failed.append(error)

    threads = [threading.Thread(target=loop, args=(work,)) for work in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def pool_of(shop, stack):
    if shop.loses_jobs():
        return Pool(shop, [["sidekiq"]], stack)
    kinds = {"status": [["work"], ["work"]], "outbox": [["work", "new"]]}
    return Pool(shop, kinds[shop.options.channel], stack)


def storm(shop, stack):
    if not shop.loses_jobs():
        shop.intend_twice()
    left = shop.options.payments - 1
    # They come one by one, so that something is always under way when something is killed.
    pace = shop.options.storm * 0.8 / left
    shop.sandbox.call("/_sandbox/faults", STORM)
    if shop.loses_jobs():
        deliverer = Queue(shop, stack)
        shop.env["REDIS_URL"] = f"redis://127.0.0.1:{deliverer.redis.port}/0"
    elif shop.options.situation == "deliver":
        deliverer = Delivery(shop)
    else:
        deliverer = Deliverer(shop)
    pool = pool_of(shop, stack)
    seeds = [random.Random(shop.options.seed + n) for n in range(2, 6)]

    def runs(chance):
        shop.run(chance.uniform(0.02, 0.3) if chance.random() < 0.4 else None)
        time.sleep(0.2)

    def customers():
        nonlocal left
        time.sleep(pace)
        if left:
            left -= 1
            shop.intend(1)

    def deaths(chance):
        # A Sidekiq takes a second or two to come up.
        time.sleep(chance.uniform(2, 6) if shop.loses_jobs() else chance.uniform(0.1, 0.7))
        pool.kill_one(chance)

    def flies():
        time.sleep(0.7)
        shop.hours_pass()

    def deliveries():
        deliverer.turn()
        time.sleep(0.2)

    loops = [
        lambda: runs(seeds[0]), lambda: runs(seeds[1]), lambda: deaths(seeds[2]),
        flies, customers,
    ]
    if shop.options.channel == "outbox":
        loops.append(deliveries)
    # On a machine that has other work few things die at the right moment.
    for _again in range(4):
        threads_until(time.monotonic() + shop.options.storm, *loops)
        if shop.db.all("select 1 from tieout_handbacks where taken_at is not null limit 1"):
            break
        left += shop.options.payments
    if left:
        shop.intend(left)
    say("the storm is over:", dict(shop.runs), pool.kills, "workers killed")
    shop.sandbox.call("/_sandbox/faults", method="DELETE")
    calm(shop, deliverer)
    kills = pool.kills + getattr(deliverer, "kills", 0)
    return {"workers_killed": kills, "events": deliverer.delivered}


def calm(shop, deliverer, most=300):
    """Until everything is settled; newer payments show that the tag still arrives."""
    until = time.monotonic() + most
    while left := shop.unsettled():
        if time.monotonic() > until:
            words = shop.db.all(
                "select key, at, outcome, reason, applied, text from tieout_journal "
                f"where key in ({', '.join(repr(str(row[0])) for row in left[:5])}) "
                "order by key, at desc limit 20"
            )
            words = "\n".join(map(str, words))
            raise AssertionError(f"not settled after {most} s: {left}\n{words}")
        shop.intend(1, lambda _: "pm_card_visa")
        shop.run()
        shop.hours_pass()
        if shop.options.channel == "outbox":
            deliverer.turn(kills=False)
        time.sleep(0.3)


def late(shop, stack):
    """Hand-backs that nobody comes for until they, and the keys, are long dead."""
    shop.sandbox.call("/_sandbox/faults", LOST)
    shop.intend(shop.options.payments, lambda _: "pm_card_visa")
    first = shop.options.payments
    workers = [shop.start("work", "new") for _ in range(2)]
    while shop.db.one("select count(*) from charges where status = 'new'"):
        time.sleep(0.2)
    time.sleep(SEND_WITHIN + ANSWER_WITHIN + 1)
    for process in workers:
        process.kill()
        process.wait()
    shop.sandbox.call("/_sandbox/faults", method="DELETE")
    # A witness, newer than all of them.
    time.sleep(1)
    shop.intend(1, lambda _: "pm_card_visa")
    witness = shop.start("work", "new")
    while shop.unsettled()[-1][0] > first:
        time.sleep(0.1)
    witness.kill()
    witness.wait()
    lost = [row for row, _ in shop.unsettled()]
    while shop.db.one("select count(*) from tieout_handbacks") == 0 or still(shop):
        time.sleep(2)
        shop.run()
        shop.hours_pass()
    made = shop.db.one("select count(*) from tieout_handbacks")
    say(f"{len(lost)} lost, {made} handed back; now nobody comes for them")
    is_late = shop.options.situation == "late"
    deliverer = Deliverer(shop)
    early_lot = deliverer.staged()
    while is_late and shop.db.one(
        f"select count(*) from tieout_handbacks where charge_before > '{shop.db.at(0)}'"
    ):
        time.sleep(1)
    before = len(shop.sandbox.intents())
    # Of every third one the money turns up after all: carried out late by the PSP.
    handed = [row[0] for row in shop.db.all("select distinct key from tieout_handbacks")]
    handed = sorted(int(key) for key in handed)
    surprises = handed[::3]
    for key in surprises:
        amount, at = shop.db.all(
            f"select amount_cents, cast(last_attempted_at as text) from charges where id = {key}"
        )[0]
        made_at = datetime.datetime.fromisoformat(at.replace("Z", "+00:00")[:32].replace(" ", "T")
                                                  if shop.db.kind == "sqlite" else at)
        shop.sandbox.call("/_sandbox/objects", [{
            "created": int(made_at.timestamp()), "amount": amount, "currency": "eur",
            "metadata": {"charge_id": str(key)},
        }])
    ended = "select count(*) from tieout_handbacks where ended_at is not null"
    while not is_late and shop.db.one(ended) < len(surprises):
        shop.run()
        shop.hours_pass()
        time.sleep(0.5)
    # The workers come back, and the sink: everything that is old is delivered, twice.
    pool = pool_of(shop, stack)
    chance = random.Random(shop.options.seed)
    until = time.monotonic() + 8
    while time.monotonic() < until:
        if shop.options.channel == "outbox":
            deliverer.done.clear()
            deliverer.turn()
        else:
            time.sleep(1)
            pool.kill_one(chance)
    charged = len(shop.sandbox.intents()) - before - len(surprises)
    # Some were taken by a worker that was killed before it sent.
    most = 0 if is_late else len(handed) - len(surprises)
    assert charged <= most, f"{charged} objects were made where {most} hand-backs could be taken"
    calm(shop, deliverer)
    return {
        "lost": len(lost), "handed_back": made, "turned_up_later": len(surprises),
        "old_events": len(early_lot), "events": deliverer.delivered,
        "workers_killed": pool.kills + deliverer.kills,
    }


def still(shop):
    """Rows of which tieout has not said its first word of end."""
    return shop.db.one(
        "select count(*) from charges c where c.status = 'processing' and not exists "
        "(select 1 from tieout_handbacks h where h.key = cast(c.id as text)) and not exists "
        "(select 1 from tieout_outbox o where o.key = cast(c.id as text))"
    )


def lines(shop, stack):
    """The worker dies at its first line, at its second, … until it has run through; then the
    same for taking hand-backs, which the rows of the first round become."""
    deliverer, deaths = Deliverer(shop), {}
    for what in ("new", "handbacks"):
        if what == "handbacks" and shop.options.channel == "outbox":
            what = "events"
        at, survived = 0, 0
        while survived < 3:
            at += 1
            if what == "new":
                shop.intend(1, lambda _: "pm_card_visa")
            line = ""
            if what == "events":
                open_ones = shop.db.all(
                    "select o.payload from tieout_outbox o join tieout_handbacks h "
                    "on h.key = o.key and h.number = o.handback_number "
                    "where h.taken_at is null and h.ended_at is null order by o.staged_at"
                )
                if not open_ones:
                    break
                line = open_ones[0][0] + "\n"
            elif what == "handbacks" and not shop.db.one(
                "select count(*) from charges where status = 'retryable'"
            ):
                break
            suffix = {"python": "py", "ruby": "rb"}[shop.options.language]
            program = shop.program(what)
            wrapper = str(ROOT / "tests" / "workers" / f"killed_at.{suffix}")
            process = subprocess.run(
                [program[0], wrapper, str(at), program[1], what], env=shop.env, input=line,
                stdout=subprocess.DEVNULL, stderr=shop.errors, text=True,
            )
            assert process.returncode in (0, -signal.SIGKILL), (what, at, process.returncode)
            survived = survived + 1 if process.returncode == 0 else 0
        deaths[what] = at - survived
        say(f"{what}: killed at {deaths[what]} lines")
        if what == "new":
            # All of them get stuck, and what never arrived is handed back: never what did.
            time.sleep(IN_FLIGHT_MAX)
            shop.intend(1, lambda _: "pm_card_visa")
            witness = shop.start("work", "new")
            while shop.db.one("select count(*) from charges where status = 'new'"):
                time.sleep(0.1)
            witness.kill()
            witness.wait()
            while still(shop):
                shop.run()
                shop.hours_pass()
                time.sleep(1.5)
    pool = pool_of(shop, stack)
    calm(shop, deliverer)
    return {"killed_at_lines": deaths, "workers_killed": pool.kills}


# ---------------------------------------------------------------------------------- the truth


def settled(shop):
    """The sandbox's books against what the shop believes."""
    captures = shop.sandbox.captures()
    cases = dict(shop.db.all(
        "select subject, reason from tieout_cases where state = 'open' and subject_kind = 'row'"
    ))
    wrong = [f"captured without a tag: {captures['-']}"] if "-" in captures else []
    counts = collections.Counter()
    for row, state, reference in shop.db.all(
        "select id, status, provider_payment_id from charges order by id"
    ):
        found, case = captures.get(str(row), []), cases.get(str(row))
        if len(found) > 1:
            wrong.append(f"{row} ({state}): captured {len(found)} times: {found}, case {case}")
        elif case:
            counts[f"case {case}"] += 1
        elif state == "paid" and len(found) == 1 and reference == found[0]:
            counts["paid"] += 1
        elif state == "failed" and not found:
            counts["declined"] += 1
        else:
            wrong.append(f"{row} ({state}, {reference}): captured {found}, no case")
    shop.tieout("audit", "verify")
    intents = shop.sandbox.intents()
    return wrong, {
        "payments": sum(counts.values()), **counts, "objects_at_the_psp": len(intents),
        "hand_backs": dict(shop.db.all(
            "select retry || case when taken_at is not null then ' taken' "
            "when ended_at is not null then ' ended' else ' open' end, count(*) "
            "from tieout_handbacks group by 1"
        )),
        "runs": {("killed" if code is None else code): n for code, n in shop.runs.items()},
    }


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--language", choices=["python", "ruby"], required=True)
    options.add_argument("--database", choices=["sqlite", "postgres"], required=True)
    options.add_argument("--channel", choices=["status", "outbox"], required=True)
    options.add_argument("--situation", default="storm",
                         choices=["storm", "late", "superseded", "lines", "sidekiq", "deliver"])
    options.add_argument("--keys", choices=["long", "short"], default="long")
    options.add_argument("--tieout", required=True)
    options.add_argument("--payments", type=int, default=200)
    options.add_argument("--storm", type=float, default=30, help="seconds of storm")
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    options.add_argument("--keep", action="store_true", help="keeps the folder")
    options = options.parse_args()
    began = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tieout-workers-"))
    say(f"seed {options.seed}, folder {folder}")
    with contextlib.ExitStack() as stack:
        shop = Shop(options, folder, stack)
        situations = {"storm": storm, "sidekiq": storm, "deliver": storm, "late": late,
                      "superseded": late, "lines": lines}
        more = situations[options.situation](shop, stack)
        wrong, figures = settled(shop)
    errors = (folder / "workers.err").read_text()
    figures = {
        "language": options.language, "database": options.database, "channel": options.channel,
        "situation": options.situation, "keys": options.keys, "seed": options.seed,
        **figures, **more,
        "complaints_of_workers": len(errors.splitlines()),
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(figures))
    if wrong or options.keep:
        say(f"kept: {folder}\n" + errors[-2000:])
    else:
        subprocess.run(["rm", "-rf", str(folder)], check=True)
    for line in wrong:
        say(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
