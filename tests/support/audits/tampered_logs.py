"""A little log of everything, and the smallest thing that breaks each law in it."""

from __future__ import annotations

import json
from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import MoveMessages, Relocate
from support.audits.tampering import other, without
from support.audits.testimonies import COLUMNS, Logs
from support.brokers.log_writer import Script, color_header
from support.messages.selections import of_queue


def small_log() -> Script:
    """A little of everything: units of work, settlements of every kind, a topic, a delay, moves."""
    script = Script()
    sender = script.session("TRANSACTED")
    sender.put("q", "a", "b")
    sender.commit()
    sender.put("q", "c")
    sender.rollback()
    getter = script.session("CLIENT")
    getter.consumer("q", credit=2)
    getter.acknowledge(1)
    getter.recover(2)
    getter.get(1)
    getter.send(op.GiveBack, consumer=1, unseen=[{"first": 3, "last": 3}])
    getter.subscribe("t", 2, 0, subscription="s", durable=True, shared=True)
    getter.publish("t", "d")
    later = color_header("red") | {"delivery_delay_ms": 1_000}
    message = script.message("e", 4, later)
    put = getter.send(op.Put, destination="queue:r", messages=[message])
    copy = {
        "put_position": put,
        "put_index": 0,
        "places": [{"created_position": put, "sequence": 0}],
        "message": {name: message[name] for name in message if name != "header"},
        "header": [later],
    }
    getter.send(Relocate, messages=[copy], actor="op", reason="test")
    getter.send(op.CreateQueue, queue="dead")
    who = {"actor": "op", "reason": "test"}
    getter.send(MoveMessages, selection=of_queue("q"), **who, target="queue:dead")
    slow = script.session("TRANSACTED", unit_of_work_idle_limit_ms=1_000)
    slow.put("late", "f")
    script.wait(1.5)
    slow.commit()
    ended = script.session("AUTO")
    getter.send(op.EndSession, target_session=ended.handle, actor="op", reason="test")
    sender.again(op.Rollback, 4, seen=[])
    sender.again(op.Rollback, 9, seen=[])
    script.add(op.Suspect(worker="w", sessions=[sender.handle]))
    script.wait(2)
    script.add(op.Tick(worker="w"))
    for position in range(2):
        part = {"name": "kafka/orders", "partition": 0, "first": position, "last": position}
        message = script.message(str(position), 4)
        getter.send(op.Put, destination="queue:dead", messages=[message], source=part)
    window = {"deduplication_window_ms": 60_000, "deduplication_ids_max": 9}
    getter.send(op.CreateQueue, queue="once", **window)
    for name in "xxy":
        message = script.message(name, 4)
        getter.send(op.Put, destination="queue:once", messages=[message], deduplication_id=name)
    judge = script.session("CLIENT")
    judge.consumer("once", credit=2)
    for delivery, requeue in ((1, False), (2, True)):
        named = [{"first": delivery, "last": delivery}]
        judge.send(op.Reject, consumer=1, deliveries=named, requeue=requeue, reason="unreadable")
    getter.close()
    return script


NAMES_ANOTHER = {
    "kind": "MoveMessages",
    "target": "queue:dead",
    "actor": "op",
    "reason": "test",
    "selection": of_queue("q", 900),
}
LIMITED = {
    "kind": "Open",
    "settings": '{"unit_of_work_time_limit_ms":0,"unit_of_work_idle_limit_ms":1000}',
}
NEW, OPEN, GONE, OUT = "new", "uncommitted put", "gone", "unacknowledged"
# What is changed in what the fold states or the lanes say, and the law that it breaks.
TAMPERED: dict[str, tuple[str, tuple[str, Any]]] = {
    "a move that there is not": (
        "A",
        other("moves", {"before": NEW, "after": "published"}, after="delayed"),
    ),
    "a message that moves from where it was not": (
        "A",
        without("moves", before=OUT, after="available", delivery=2),
    ),
    "an open put that ends and never began": ("A", without("moves", after=OPEN)),
    "a sequence number left out": (
        "B",
        other("moves", {"destination": "queue:dead", "before": NEW}, sequence=1),
    ),
    "a delivery number left out": ("B", other("moves", {"after": OUT, "delivery": 3}, delivery=4)),
    "a put that did not come": ("C", without("moves", before=NEW, after=OPEN, put_index=1)),
    "another number than the writer was told": (
        "C",
        other("outcomes", {"kind": "Enqueued"}, number=7),
    ),
    "other numbers than a commit was told": (
        "C",
        other("outcomes", {"kind": "Committed"}, runs="queue:q 0+1"),
    ),
    "a torn unit of work": (
        "C",
        other("moves", {"before": OPEN, "after": "available", "sequence": 1}, position=6),
    ),
    "an open put that outlives its rollback": ("C", without("moves", cause="rolled back")),
    "an acknowledged message that was not consumed": ("D", without("moves", cause="consumed")),
    "a delivery that a recover left behind": (
        "D",
        without("moves", before=OUT, after="available", delivery=2),
    ),
    "a backout that nobody counted": (
        "D",
        other("moves", {"before": OUT, "delivery": 2}, backouts=0),
    ),
    "a delivery given back that did not return": (
        "D",
        without("moves", before=OUT, after="available", delivery=3),
    ),
    "a message that was not moved by hand": (
        "D",
        other("moves", {"cause": "moved"}, cause="removed"),
    ),
    "a delivery that nobody was told of": ("E", without("outcomes", kind="Delivered")),
    "a delivery told otherwise": (
        "E",
        other("outcomes", {"kind": "Delivered"}, sequences=[1, 0]),
    ),
    "deliveries that nobody asked for": ("F", other("operations", {"kind": "Get"}, number=0)),
    "a message told otherwise than it was put": (
        "E",
        other("outcomes", {"kind": "Delivered"}, priorities=[4, 5]),
    ),
    "another enqueue time": ("E", other("outcomes", {"kind": "Delivered"}, enqueued_ats=[1, 1])),
    "a loss that somebody saw": ("H", other("moves", {"before": OUT, "delivery": 2}, uncounted=1)),
    "a rejected message that stayed": (
        "H",
        other("moves", {"before": OUT, "cause": "dropped"}, after="available", cause=""),
    ),
    "a message put back that went": (
        "H",
        other("operations", {"kind": "Reject", "flag": False}, flag=True),
    ),
    "a rejection that nobody counted": (
        "D",
        other("moves", {"before": OUT, "cause": "dropped"}, backouts=0),
    ),
    "a part of a source that was taken twice": (
        "P",
        other("operations", {"kind": "Put", "source_first": 1}, source_first=0),
    ),
    "a part of a source that was left out": (
        "P",
        other("operations", {"kind": "Put", "source_first": 1}, source_first=2),
    ),
    "a put of an id that was remembered": (
        "Q",
        other("operations", {"deduplication_id": "y"}, deduplication_id="x"),
    ),
    "a put that vanished for another one": (
        "Q",
        other("outcomes", {"kind": "Enqueued", "count": 0}, number=7),
    ),
    "more than all queues may hold": (
        "K",
        other(
            "operations",
            {"kind": "Acknowledge"},
            kind="AlterQueueManager",
            settings='{"messages_max":1}',
        ),
    ),
    "puts answered otherwise than their session puts": (
        "C",
        other(
            "operations",
            {"kind": "Open", "acknowledge_mode": "CLIENT"},
            acknowledge_mode="TRANSACTED",
        ),
    ),
    "state time of its own": ("G", other("clock", {"position": 4}, time_us=1)),
    "a birth that did not come": ("G", without("moves", before="unborn")),
    "a message that left and did not arrive": (
        "I",
        without("moves", before=NEW, destination="queue:dead"),
    ),
    "another count of what was written again": (
        "I",
        other("outcomes", {"kind": "Administered"}, number=0),
    ),
    "a copy that is another message": (
        "M",
        other("operations", {"kind": "Relocate"}, priorities=[9]),
    ),
    "a body that stands where it is not": ("I", other("moves", {"before": "unborn"}, body_index=1)),
    "a body that was left behind": (
        "I",
        other("moves", {"before": NEW, "destination": "queue:dead"}, body_index=7),
    ),
    "a topic's message without copies": ("J", without("moves", kind="subscription", before=NEW)),
    "a copy that nobody wanted": (
        "J",
        other("operations", {"kind": "OpenConsumer", "consumer": 2}, selector="color = 'green'"),
    ),
    "a message that went elsewhere": (
        "I",
        other("moves", {"before": NEW, "destination": "queue:dead"}, destination="queue:r"),
    ),
    "a message that a session got for its unit of work": (
        "E",
        other("moves", {"after": OUT, "delivery": 2}, after="uncommitted get"),
    ),
    "a message that nobody named by hand": (
        "D",
        other("operations", {"kind": "MoveMessages"}, settings=json.dumps(NAMES_ANOTHER)),
    ),
    "time that does not begin": ("G", other("clock", {"position": 0}, time_us=-1)),
    "a segment too few": ("O", without("segments", is_active=False, live_messages=0)),
    "an outcome that names another one as the one before it": (
        "L",
        other("outcomes", {"kind": "Committed"}, previous_position=0),
    ),
    "a session that stays though it was ended": (
        "L",
        without("outcomes", kind="SessionEnded", reason="ENDED"),
    ),
    "a message that was never counted": (
        "N",
        other("standing", {"what": "moved"}, count=2),
    ),
    "more than a queue ever held": ("N", other("standing", {"what": "most"}, size_bytes=1)),
    "a segment that holds more than was put": ("O", other("segments", {}, live_bytes=1)),
    "a segment that is not the next one": (
        "O",
        other("moves", {"before": NEW, "destination": "queue:dead"}, segment=9_000_000),
    ),
    "a refusal without cause": (
        "M",
        other("outcomes", {"kind": "Returned"}, kind="Refused", reason="transacted"),
    ),
    "another reply to what was sent again": (
        "L",
        other("outcomes", {"kind": "Returned", "session_sequence": 4}, count=7),
    ),
    "a gap that is none": ("L", other("outcomes", {"reason": "session-sequence-gap"}, number=9)),
    "a suspicion that ends too late": ("L", other("outcomes", {"kind": "Suspected"}, number=7)),
    "a lost session that stays": ("L", without("outcomes", kind="SessionEnded", reason="LOST")),
    "a unit of work that outlives its limit": (
        "L",
        without("outcomes", kind="Returned", session_sequence=0),
    ),
    "a unit of work that ends and has no limit": ("L", other("operations", LIMITED, settings=None)),
    "an operation of what timed out, refused for another reason": (
        "M",
        other("outcomes", {"reason": "unit-of-work-timed-out"}, reason="unit-of-work-ended"),
    ),
    "a number that acts out of turn": (
        "L",
        other("operations", {"kind": "Recover"}, session_sequence=40),
    ),
}


def tampered_logs() -> Logs:
    """The little log as it is, under the name `as it was`, and once for each change in it."""
    logs = Logs()
    entries = small_log().entries
    logs.fold("as it was", entries)
    for name, (_, (which, change)) in TAMPERED.items():
        one = Logs()
        one.fold(name, entries)
        change(one.rows[which], [column for column, _ in COLUMNS[which]])
        logs.add(one)
    return logs
