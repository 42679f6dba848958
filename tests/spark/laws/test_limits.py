"""Laws of redelivery, expiry and quotas: quiet on the log as it was, and each finds what breaks it.

What is changed of a small log is in what its operations say, or in what the fold states of it.
"""

from collections import defaultdict

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from ledgermq_spark.laws import times
from ledgermq_spark.laws.limits import quotas, redelivery
from support.audits.engines import duck_engine
from support.audits.testimonies import COLUMNS, Logs
from support.brokers.log_writer import Script, color_header

LAWS = (times.LAW, redelivery.LAW, quotas.LAW)


def tick(script, seconds):
    """Let time pass, and an entry tell of it; return its position."""
    script.wait(seconds)
    return script.add(op.Tick(worker="w"))


def come_back(script, admin):
    """A message comes back too often, and another one from a session that is lost."""
    admin.send(op.CreateQueue, queue="dead")
    settings = {"redelivery_limit": 1, "redelivery_delay_override_ms": 1_000}
    settings |= {"error_destination": "queue:dead"}
    admin.send(op.CreateQueue, queue="q", settings=given_settings(settings))
    admin.put("q", "a")
    getter = script.session()
    getter.consumer("q", credit=1)
    getter.recover(1)
    tick(script, 2)
    getter.get(1)
    getter.recover(2)
    tick(script, 2)
    getter.close()
    lost = script.session()
    lost.consumer("q", credit=1)
    admin.put("q", "b")
    script.add(op.Suspect(worker="w", sessions=[lost.handle]))
    tick(script, 2)


def expire(script, admin):
    """A message expires; return the position of an entry before its time was over."""
    header = color_header("red") | {"time_to_live_ms": 1_000}
    admin.send(op.Put, destination="queue:r", messages=[script.message("c", 4, header)])
    early = script.add(op.Tick(worker="w"))
    tick(script, 2)
    return early


def outlive_a_leap(script, admin):
    """A message is put while time stands still, and is there when that is over."""
    header = color_header("red") | {"time_to_live_ms": 5_000}
    script.wait(70)
    admin.send(op.Put, destination="queue:s", messages=[script.message("p", 4, header)])
    script.add(op.TimeAgreed(worker="w", writer_time=script.now_us))
    getter = script.session()
    getter.consumer("s", credit=1)
    getter.acknowledge(1)
    getter.close()


def wait_for_room(script, admin):
    """Puts wait for a quota: one is put in the end, one times out; a getter may hold two."""
    settings = given_settings({"messages_max": 2})
    admin.send(op.CreateQueue, queue="full", settings=settings)
    admin.send(op.CreateQueue, queue="few", unacknowledged_max=2)
    admin.put("full", "d", "e")
    sender = script.session()
    for body, blocking_ms in (("f", 50_000), ("g", 1_000)):
        messages = [script.message(body)]
        where = "queue:full"
        sender.send(op.Put, destination=where, messages=messages, blocking_ms=blocking_ms)
    admin.put("few", "h", "i", "j")
    marks = {"settings": given_settings({"messages_max": 4}), "messages_resume": 2}
    admin.send(op.CreateQueue, queue="marked", **marks)
    admin.put("marked", "k", "l", "m", "n")
    messages = [script.message("o")]
    where = "queue:marked"
    sender.send(op.Put, destination=where, messages=messages, blocking_ms=50_000)
    drainer = script.session("CLIENT")
    drainer.consumer("marked", credit=4)
    drainer.acknowledge(1)
    drainer.acknowledge(2)
    # It times out at the entry that sends it again.
    messages = [script.message("late")]
    put = {"destination": "queue:full", "messages": messages, "blocking_ms": 1_000}
    late = script.session()
    late.send(op.Put, **put)
    script.wait(2)
    late.again(op.Put, 1, **put, answered_through=1)
    tick(script, 2)
    admin.consumer("full", 1, credit=1)
    admin.acknowledge(1)
    admin.consumer("few", 2, credit=3)


def small_log():
    """Everything that is judged here; with the position of an entry before a message expired."""
    script = Script()
    admin = script.session()
    come_back(script, admin)
    outlive_a_leap(script, admin)
    early = expire(script, admin)
    wait_for_room(script, admin)
    return script.entries, early


ENTRIES, EARLY = small_log()
# What is changed: a frame, the row of it by some of its values, other values or None (no such row),
# and words of what is found.
TAMPERED = {
    "a delay of its own": ("moves", {"after": "delayed"}, {"until_us": 1}, "redelivery delay"),
    "no end of what came too often": (
        "moves",
        {"before": "delayed", "cause": "moved"},
        {"after": "available", "cause": ""},
        "redelivery limit",
    ),
    "a loss that counts": (
        "moves",
        {"before": "unacknowledged", "uncounted": 1},
        {"uncounted": 0},
        "nobody saw",
    ),
    "a message that does not expire": ("moves", {"cause": "expired"}, None, "stays though"),
    "a message that expires early": (
        "moves",
        {"cause": "expired"},
        {"position": EARLY},
        "before its time",
    ),
    "more than the quota": (
        "operations",
        {"kind": "CreateQueue", "target": "full"},
        {"settings": '{"messages_max":1}'},
        "went above the quota",
    ),
    "a put that does not stay behind": (
        "operations",
        {"kind": "Put", "number": 50_000},
        {"target": "queue:few"},
        "passed an earlier one",
    ),
    "a put that goes on before the mark": (
        "operations",
        {"kind": "CreateQueue", "target": "marked"},
        {"settings": '{"messages_max":4,"messages_resume":1}'},
        "drained to the resume mark",
    ),
    "a put that waits for nothing": (
        "operations",
        {"kind": "CreateQueue", "target": "full"},
        {"settings": '{"messages_max":9}'},
        "though there was room",
    ),
    "a put that is refused too early": (
        "operations",
        {"kind": "Put", "number": 1_000},
        {"number": 9_000},
        "time out",
    ),
    "more than a session may hold": (
        "operations",
        {"kind": "CreateQueue", "target": "few"},
        {"unacknowledged_max": 1},
        "than it may hold",
    ),
}


def tampered(name):
    """Return the log with a change."""
    which, told, values, _ = TAMPERED[name]
    logs = Logs()
    logs.fold(name, ENTRIES)
    names = [column for column, _ in COLUMNS[which]]
    rows = [dict(zip(names, row, strict=True)) for row in logs.rows[which]]
    at = next(at for at, row in enumerate(rows) if all(row[key] == told[key] for key in told))
    changed = [] if values is None else [tuple((rows[at] | values).values())]
    logs.rows[which][at : at + 1] = changed
    return logs


@pytest.fixture(scope="module")
def judged(spark):
    """Return what is found in each log: all are judged in one run."""
    logs = Logs()
    logs.fold("as it was", ENTRIES)
    for name in TAMPERED:
        logs.add(tampered(name))
    found = defaultdict(list)
    for row in logs.facts(duck_engine()).judge(LAWS):
        found[row["queue_manager"]].append(row["summary"])
    return found


def test_the_log_as_it_was_breaks_no_law(judged):
    """What is changed in it is all that is wrong with the others."""
    assert judged["as it was"] == []


@pytest.mark.parametrize("name", TAMPERED)
def test_what_breaks_a_law_is_found_by_it(judged, name):
    """Each way to break a law is found (D10)."""
    words = TAMPERED[name][-1]
    assert any(words in one for one in judged[name]), judged[name]
