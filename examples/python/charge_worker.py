#!/usr/bin/env python3
"""A worker that charges, and may be killed at any line.

    charge_worker.py intend SUBSCRIPTION PERIOD CENTS CURRENCY PAYMENT_METHOD
    charge_worker.py work [new|handbacks]     does what there is to do, for ever
    charge_worker.py events                   one event of tieout a line on standard input

Environment: DATABASE_URL (postgres://… or sqlite:FILE), STRIPE_KEY, CHARGE_CHANNEL (status or
outbox, as `channel` in tieout.toml). docs/charging-worker.md says why each step stands where it
stands.
"""

import base64
import collections
import datetime
import http.client
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import urllib.parse



def usage(why):
    """Ends a call that cannot be meant so, before anything was done."""
    print(f"{why}\n\n{__doc__}", file=sys.stderr)
    sys.exit(2)


def seconds(name, default):
    value = os.environ.get(name, default)
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", value):
        usage(f"{name}: expected a number of seconds, as {default}")
    return float(value)


TABLE = "charges"
PSP = os.environ.get("PSP_URL", "https://api.stripe.com")
CHANNEL = os.environ.get("CHARGE_CHANNEL", "status")
if CHANNEL not in ("status", "outbox"):
    usage("CHARGE_CHANNEL: expected status or outbox")
# The status of a row that is handed back: with the outbox it does not move.
HANDED_BACK = {"status": "retryable", "outbox": "processing"}[CHANNEL]

# From the moment before an attempt is written to its send, in seconds: later, nothing is sent.
SEND_WITHIN = seconds("CHARGE_SEND_WITHIN", "5")
# From its send until it is given up; both together stay far below in_flight_max (15 min).
ANSWER_WITHIN = seconds("CHARGE_ANSWER_WITHIN", "20")
# Between looks where there is nothing to do.
IDLE = seconds("CHARGE_IDLE", "1")
# How often one attempt is sent where the PSP says that it did nothing.
SENDS = 3

# One send that is committed: `stamp` is its last_attempted_at, `object` what is to be confirmed.
Attempt = collections.namedtuple(
    "Attempt", "id amount currency method attempt stamp object started"
)


def clock():
    """Seconds that go on while the machine sleeps, so that no call wakes up hours later."""
    # Linux's own; elsewhere that is what the monotonic clock does, or nothing does.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


# ------------------------------------------------------------------------------- the database


class Postgres:
    """Each statement commits by itself, but within `transaction`."""

    # Not now(), which stands still while a transaction waits for a lock.
    now = "clock_timestamp()"
    over = "clock_timestamp() + make_interval(secs => %(life)s)"
    lock = "for update skip locked"

    def __init__(self, url):
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True)

    def transaction(self):
        return self.connection.transaction()

    def row(self, sql, **values):
        return self.connection.execute(sql, values).fetchone()


class Sqlite:
    now = "strftime('%%Y-%%m-%%dT%%H:%%M:%%f000Z', 'now')"
    over = "strftime('%%Y-%%m-%%dT%%H:%%M:%%f000Z', 'now', '+' || %(life)s || ' seconds')"
    lock = ""  # who began with `begin immediate` holds the whole database

    def __init__(self, path):
        import sqlite3

        self.connection = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.connection.execute("pragma synchronous = full")

    def transaction(self):
        return SqliteTransaction(self.connection)

    def row(self, sql, **values):
        sql = (sql % {name: ":" + name for name in values}).replace("%%", "%")
        rows = self.connection.execute(sql, values).fetchall()
        return rows[0] if rows else None


class SqliteTransaction:
    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        self.connection.execute("begin immediate")

    def __exit__(self, error, *_):
        self.connection.execute("rollback" if error else "commit")


def open_database(url):
    scheme, _, rest = url.partition(":")
    return Sqlite(rest.removeprefix("//")) if scheme == "sqlite" else Postgres(url)


# --------------------------------------------------------------------------- rule 1: one row


class OtherAmount(Exception):
    """The payment is intended already, and not so."""


def intend(db, subscription, period, cents, currency, method):
    """The row of a payment: made once, and the same one ever after."""
    key = {"subscription": subscription, "period": period}
    db.row(
        "insert into charges (subscription_id, period, amount_cents, currency, payment_method) "
        "values (%(subscription)s, %(period)s, %(cents)s, %(currency)s, %(method)s) "
        "on conflict (subscription_id, period) do nothing returning id",
        cents=cents, currency=currency, method=method, **key,
    )
    found = db.row(
        "select id, amount_cents, currency from charges "
        "where subscription_id = %(subscription)s and period = %(period)s",
        **key,
    )
    if tuple(found[1:]) != (cents, currency):
        raise OtherAmount(f"{subscription} {period} is intended with another amount: {found}")
    return found[0]


# ----------------------------------------------------- rule 3: committed before every send


def begin_attempt(db, started, more, row, object=None):
    """Writes the attempt, within the caller's transaction: nothing is sent before its commit."""
    taken = db.row(
        f"update charges set status = 'processing', attempt = attempt + %(more)s, "
        f"last_attempted_at = {db.now} where id = %(id)s "
        f"returning id, amount_cents, currency, payment_method, attempt, "
        f"cast(last_attempted_at as text)",
        more=more, id=row,
    )
    return Attempt(*taken, object, started)


def take_new(db):
    """The oldest row that was never sent."""
    started = clock()
    with db.transaction():
        row = db.row(f"select id from charges where status = 'new' order by id limit 1 {db.lock}")
        return begin_attempt(db, started, 1, row[0]) if row else None


def send_again(db, attempt):
    """A further send of the same attempt, which is a send like any other."""
    started = clock()
    mine = db.row(
        f"update charges set last_attempted_at = {db.now} where id = %(id)s "
        f"and status = 'processing' and attempt = %(attempt)s "
        f"and cast(last_attempted_at as text) = %(stamp)s "
        f"returning cast(last_attempted_at as text)",
        id=attempt.id, attempt=attempt.attempt, stamp=attempt.stamp,
    )
    return attempt._replace(stamp=mine[0], started=started) if mine else None


# --------------------------------------------------- rule 5: a hand-back is taken just once

# Open, in time for a call to be over before it ends, and decided after the last send.
TAKEABLE = """h.table_name = 'charges' and h.key = cast(c.id as text)
    and h.taken_at is null and h.ended_at is null and h.charge_before > {over}
    and (h.not_before is null or h.not_before <= {now})
    and (c.last_attempted_at is null or h.at > c.last_attempted_at)"""


def next_handed_back(db):
    """The row of a hand-back that is there to take, or none."""
    takeable = TAKEABLE.format(now=db.now, over=db.over)
    row = db.row(
        f"select c.id from tieout_handbacks h join charges c on {takeable} "
        f"where c.status = %(status)s order by h.at limit 1",
        status=HANDED_BACK, life=SEND_WITHIN + ANSWER_WITHIN,
    )
    return row[0] if row else None


def take_handed_back(db, row, number=None):
    """Takes the hand-back of a row, or of an event; none where it is not there to take."""
    started = clock()
    with db.transaction():
        # The row first, the hand-back after it: tieout takes its locks in the same order, and
        # what it did before we had the row is seen by the next statement.
        mine = db.row(
            f"select id from charges where id = %(id)s and status = %(status)s {db.lock}",
            id=row, status=HANDED_BACK,
        )
        takeable = TAKEABLE.format(now=db.now, over=db.over)
        found = mine and db.row(
            f"select h.number, h.retry, h.psp_reference from tieout_handbacks h join charges c "
            f"on {takeable} where c.id = %(id)s",
            id=row, life=SEND_WITHIN + ANSWER_WITHIN,
        )
        if not found or number not in (None, found[0]):
            return None
        number, retry, reference = found
        if CHANNEL == "outbox" and not db.row(
            f"update tieout_handbacks set taken_at = {db.now} where table_name = 'charges' "
            f"and key = %(key)s and number = %(number)s and taken_at is null "
            f"and ended_at is null returning number",
            key=str(row), number=number,
        ):
            return None
        # The same key means the same attempt; anything else needs a key that was never used.
        more = 0 if retry == "same_key" else 1
        return begin_attempt(db, started, more, row, reference if retry == "same_object" else None)


# ---------------------------------------------------- rules 2 and 4: the call, and its answer


def charge(db, attempt):
    """Sends an attempt, and writes what is certain."""
    for _ in range(SENDS):
        answer = send(attempt)
        if answer is None or answer[0] != 429:
            break
        # Turned away at the door: nothing was done. To knock again is to send again.
        time.sleep(0.2)
        attempt = send_again(db, attempt)
        if attempt is None:
            return "not ours any more"
    return settle(db, attempt, answer)


def send(attempt):
    """One send: its status and its JSON, or None. Whatever is no clear answer is none."""
    if attempt.object:
        path = f"/v1/payment_intents/{attempt.object}/confirm"
        form = {"payment_method": attempt.method}
    else:
        path = "/v1/payment_intents"
        form = {
            "amount": attempt.amount,
            "currency": attempt.currency.lower(),
            "payment_method": attempt.method,
            "metadata[charge_id]": attempt.id,  # the tag
            "confirm": "true",
            "off_session": "true",
        }
    headers = {
        "authorization": "Basic " + base64.b64encode(
            (os.environ["STRIPE_KEY"] + ":").encode()).decode(),
        "content-type": "application/x-www-form-urlencoded",
        "idempotency-key": f"charge-{attempt.id}-{attempt.attempt}",
    }
    place = urllib.parse.urlsplit(PSP)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    # One connection for one send: one that lay about may be dead, and tempt to send twice.
    connection = kind(place.hostname, place.port, timeout=ANSWER_WITHIN)
    alarm = None
    try:
        connection.connect()
        # After all that may take time, and right before the send.
        if clock() - attempt.started > SEND_WITHIN:
            return None
        # The time-out is one of each step; this one is of them all.
        alarm = threading.Timer(ANSWER_WITHIN, hang_up, [connection.sock])
        alarm.daemon = True
        alarm.start()
        connection.request("POST", path, urllib.parse.urlencode(form), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except Exception:
        # An answer may break its reader in any way, and says nothing by that: nested too deep,
        # longer than it says, no JSON.
        return None
    finally:
        if alarm:
            alarm.cancel()
        connection.close()


def hang_up(line):
    try:
        line.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it ended by itself


def settle(db, attempt, answer):
    """A success and a definite decline end the payment. All else leaves it processing."""
    status, body = answer or (None, None)
    body = body if isinstance(body, dict) else {}
    error = body.get("error") if isinstance(body.get("error"), dict) else {}
    reference = body.get("id")
    if status == 200 and body.get("status") == "succeeded" and is_text(reference):
        return end(db, attempt, "paid", reference=reference)
    if status == 402 and error.get("type") == "card_error":
        codes = [error.get("decline_code"), error.get("code")]
        return end(db, attempt, "failed", code=next(filter(is_text, codes), None))
    return "processing"


# No zero byte and no half of a character, which JSON may escape; nor what ends a line.
TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def is_text(value):
    """Whether it is a text that a database can hold, on one line."""
    return isinstance(value, str) and TEXT.fullmatch(value) is not None


def end(db, attempt, status, reference=None, code=None):
    """Only while the attempt is still the row's own."""
    done = db.row(
        "update charges set status = %(status)s, decline_code = %(code)s, "
        "provider_payment_id = coalesce(%(reference)s, provider_payment_id) "
        "where id = %(id)s and status = 'processing' and attempt = %(attempt)s returning id",
        status=status, reference=reference, code=code, id=attempt.id, attempt=attempt.attempt,
    )
    return status if done else "not ours any more"


# --------------------------------------------------------------------------- tieout's events


def next_unheard(db):
    """An end that this row was not told of: its event got lost, or nobody delivers."""
    row = db.row(
        "select o.payload from charges c join tieout_outbox o on o.table_name = 'charges' "
        "and o.key = cast(c.id as text) where c.status = 'processing' "
        "and o.kind in ('transaction.succeeded', 'transaction.failed') "
        "and o.staged_at > c.last_attempted_at order by o.staged_at limit 1"
    )
    return json.loads(row[0]) if row else None


class TooEarly(Exception):
    """The event is to be delivered again later."""


class Refused(Exception):
    """What is no event of ours, however often it comes."""


def read_event(line):
    """The event of a line, as far as it is one."""
    try:
        # Not bytes: of those JSON would guess the encoding.
        text = line.decode("utf-8")
        event = json.loads(text, parse_constant=no_json, parse_int=whole_number)
    except (ValueError, RecursionError):
        raise Refused("an event: expected one JSON object a line") from None
    checked(isinstance(event, dict), "an event", "a JSON object")
    return event


def whole_number(digits):
    """Python reads no number of thousands of digits; no field that a worker needs has so many."""
    return int(digits) if len(digits) < 1_000 else digits


def no_json(word):
    """NaN and Infinity, which Python reads and JSON has not."""
    raise ValueError(word)


def checked(is_so, name, expected):
    if not is_so:
        raise Refused(f"{name}: expected {expected}")


def text(event, name):
    """A field of an event that a database can hold."""
    value = event.get(name)
    checked(is_text(value), name, "a text")
    return value


def id_of(event):
    """The event's own name, which is printed as one word."""
    value = event.get("id")
    is_word = isinstance(value, str) and re.fullmatch("[!-~]+", value)
    checked(is_word, "id", "one word of ASCII")
    return value


def number(value, name, most):
    is_number = isinstance(value, int) and not isinstance(value, bool)
    checked(is_number and 0 < value <= most, name, f"a number from 1 to {most}")
    return value


def row_of(event):
    key = text(event, "key")
    # As the database writes it: another writing of a number names no hand-back.
    checked(re.fullmatch("[1-9][0-9]{0,18}", key), "key", "the id of a row")
    return number(int(key), "key", 2**63 - 1)


def hand_back_of(event):
    hand_back = event.get("hand_back")
    checked(isinstance(hand_back, dict), "hand_back", "a JSON object")
    for name in ("same_key_until", "not_before", "charge_before"):
        if hand_back.get(name) is not None:
            time_of(hand_back, name)
    return number(hand_back.get("number"), "hand_back.number", 2**31 - 1)


def reference_of(event):
    return None if event.get("psp_reference") is None else text(event, "psp_reference")


TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.\d{6}Z", re.ASCII)


def time_of(event, name):
    at = event.get(name)
    found = TIME.fullmatch(at) if isinstance(at, str) else None
    checked(found, name, "a time as tieout writes it")
    try:
        datetime.datetime(*map(int, found.groups()))
    except ValueError:
        raise Refused(f"{name}: expected a time that there is") from None
    return at


def on_event(db, event):
    """Does what an event says, once, however often it is delivered."""
    schema = event.get("schema")
    checked(schema == "tieout.event/1", "schema", f"tieout.event/1, and it is {schema!r}")
    id_of(event)
    kind = text(event, "type")
    if text(event, "table") != TABLE:
        return "another table's"
    row = row_of(event)
    decided_at = time_of(event, "decided_at")
    if kind == "transaction.retryable":
        handed_back = hand_back_of(event)
        attempt = take_handed_back(db, row, handed_back)
        if attempt:
            return charge(db, attempt)
        return early(db, row, handed_back) or "taken, ended or too late"
    if kind == "transaction.succeeded":
        # Money is money: this holds whatever came after.
        done = db.row(
            "update charges set status = 'paid', "
            "provider_payment_id = coalesce(provider_payment_id, %(reference)s) "
            "where id = %(id)s and status in ('processing', 'retryable') returning id",
            id=row, reference=reference_of(event),
        )
        return "paid" if done else "no news"
    if kind == "transaction.failed":
        # Of an earlier attempt where the row was sent since: that one decides.
        done = db.row(
            "update charges set status = 'failed', decline_code = %(reason)s "
            "where id = %(id)s and status = 'processing' "
            f"and last_attempted_at < {moment(db, '%(decided_at)s')} returning id",
            id=row, reason=text(event, "reason"), decided_at=decided_at,
        )
        return "failed" if done else "no news"
    checked(kind == "transaction.review", "type", "one that this worker knows")
    return "a person looks at it"


def moment(db, value):
    return f"cast({value} as timestamptz)" if isinstance(db, Postgres) else value


def early(db, row, number):
    """Raises where the hand-back only is not due yet, or its row is held by somebody else."""
    waits = db.row(
        f"select 1 from tieout_handbacks h join charges c on h.key = cast(c.id as text) "
        f"where h.table_name = 'charges' and c.id = %(id)s and h.number = %(number)s "
        f"and c.status = %(status)s and h.taken_at is null and h.ended_at is null "
        f"and h.charge_before > {db.over} "
        f"and (c.last_attempted_at is null or h.at > c.last_attempted_at)",
        id=row, number=number, status=HANDED_BACK, life=SEND_WITHIN + ANSWER_WITHIN,
    )
    if waits:
        raise TooEarly(f"hand-back {number} of {row} is not due yet")


# --------------------------------------------------------------------------------- commands


def work_once(db, what):
    """One payment, where there is one."""
    attempt = None
    if what in ("handbacks", "both"):
        row = next_handed_back(db)
        attempt = take_handed_back(db, row) if row is not None else None
        event = next_unheard(db) if CHANNEL == "outbox" and attempt is None else None
        if event and (done := on_event(db, event)) != "no news":
            return int(event["key"]), done
    if attempt is None and what in ("new", "both"):
        attempt = take_new(db)
    if attempt is None:
        return None
    return attempt.id, charge(db, attempt)


def work(db, what):
    while True:
        done = work_once(db, what)
        if done:
            print(*done, flush=True)
        else:
            time.sleep(IDLE)


def events(db):
    """What is printed was handled. Exit 75: again later; 65: not this one, however often."""
    # Where it is closed there is none, and so no event.
    for line in sys.stdin.buffer if sys.stdin else ():
        try:
            event = read_event(line)
            print(event.get("id"), on_event(db, event), flush=True)
        except TooEarly as why:
            print(why, file=sys.stderr)
            return 75
        except Refused as why:
            print(f"refused: {why}", file=sys.stderr)
            return 65
    return 0


def main(words):
    command, rest = (words or [""])[0], words[1:]
    if command not in ("intend", "work", "events"):
        usage("expected intend, work or events")
    if not os.environ.get("DATABASE_URL"):
        usage("DATABASE_URL: expected postgres://… or sqlite:FILE")
    if command == "intend":
        return main_intend(rest)
    if not os.environ.get("STRIPE_KEY"):
        usage("STRIPE_KEY: expected the key that charges")
    if rest and (command, rest) not in (("work", ["new"]), ("work", ["handbacks"])):
        usage("expected work, work new, work handbacks or events, and no other word")
    db = open_database(os.environ["DATABASE_URL"])
    return work(db, rest[0] if rest else "both") if command == "work" else events(db)


def main_intend(words):
    if len(words) != 5 or not all(map(is_text, words)):
        usage("intend: expected its five words, each a text")
    subscription, period, cents, currency, method = words
    if not re.fullmatch("[1-9][0-9]{0,17}", cents):
        usage("intend: expected CENTS as a whole number from 1")
    if not re.fullmatch("[A-Za-z]{3}", currency):
        usage("intend: expected CURRENCY as three letters, as EUR")
    db = open_database(os.environ["DATABASE_URL"])
    try:
        print(intend(db, subscription, period, int(cents), currency, method))
    except OtherAmount as why:
        print(why, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # Ctrl-C is a kill like any other, and no mistake to be read about.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    sys.exit(main(sys.argv[1:]))
