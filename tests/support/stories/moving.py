"""Stories of messages that go elsewhere: as they expire, by a rule of their queue, by hand."""

from __future__ import annotations

from typing import Any

from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.brokers.log_writer import Script, ScriptSession
from support.messages.selections import of_queue
from support.random_logs.random_ends import timed_message
from support.random_logs.random_groups import options
from support.scripts.verbs import message_of


def expiring_to(destination: str) -> op.Settings:
    """Settings with an expiry destination."""
    return given_settings({"expiry_destination": destination})


def wandering() -> tuple[Script, op.PutMessage]:
    """One message goes from queue to queue as it expires; others wait where it comes."""
    script = Script()
    session = script.session()
    session.send(op.CreateQueue, queue="late")
    session.send(op.CreateTopic, topic="over", settings=expiring_to("queue:late"))
    session.send(op.CreateQueue, queue="old", settings=expiring_to("topic:over"))
    session.send(op.CreateQueue, queue="q", settings=expiring_to("queue:old"))
    session.subscribe("over", 1, subscription="s", durable=True, shared=True)
    session.put("old", "waits")
    session.put("late", "waits")
    message = timed_message(script, (1_000, 0, 0))
    session.send(op.Put, destination="queue:q", messages=[message])
    script.wait(2)
    session.put("old", "comes after it")
    session.consumer("old", 2, credit=2)
    session.recover(2)
    session.send(op.AlterQueueManager, maximum_lifetime_ms=5_000)
    script.wait(6)
    session.send(op.Alive)
    session.close()
    script.wait(6)
    script.add(op.Tick(worker="w"))
    last = script.session()
    last.consumer("late", credit=1)
    by_hand(last)
    return script, message


def by_hand(session: ScriptSession) -> None:
    """Of three messages one is deleted, one moved and one copied; there is nowhere for the rest."""
    session.put("old", "deleted", "moved", "copied")
    who = {"actor": "op", "reason": "test"}
    session.send(administration.DeleteMessages, selection=of_queue("old", 3), **who)
    to: dict[str, Any] = {**who, "target": "queue:q"}
    session.send(administration.MoveMessages, selection=of_queue("old", 4), **to)
    session.send(administration.CopyMessages, selection=of_queue("old", 5), **to)
    to["target"] = "queue:none"
    session.send(administration.MoveMessages, selection=of_queue("old", 0, 7), **to)


def parked_and_sent_back() -> tuple[Script, dict[str, bytes]]:
    """Two messages come back too often: one is parked, sent back and removed, one is dropped.

    Returns their ids, too, by their queues.
    """
    script = Script()
    session = script.session()
    session.send(op.CreateQueue, queue="dead")
    settings = {
        "limited": {"redelivery_limit": 0, "error_destination": "queue:dead"},
        "lossy": {"redelivery_limit": 0},
    }
    messages = {}
    for number, queue in enumerate(settings, 1):
        session.send(op.CreateQueue, queue=queue, settings=given_settings(settings[queue]))
        message = script.message()
        messages[queue] = message["message_id"]
        session.send(op.Put, destination=f"queue:{queue}", messages=[message])
        session.consumer(queue, number, credit=1)
    session.recover(1, 2)
    who = {"actor": "op", "reason": "mended"}
    moved: dict[str, Any] = {"selection": of_queue("dead"), "target": "", "to_origin": True}
    session.send(administration.MoveMessages, **moved, **who)
    session.send(administration.DeleteMessages, selection=of_queue("limited", 1), **who)
    return script, messages


def copied_again() -> Script:
    """A message that stands twice on its queue is copied once."""
    script = Script()
    session = script.session()
    for name in ("r", "s"):
        session.send(op.CreateQueue, queue=name)
    session.put("q", "one", "two")
    who = {"actor": "a", "reason": "r"}
    first = of_queue("q") | {"limit": 1}
    session.send(administration.CopyMessages, selection=first, **who, target="queue:s")
    back = {"selection": of_queue("s"), "target": "queue:q"}
    session.send(administration.MoveMessages, **back, **who)
    session.send(administration.CopyMessages, selection=first, **who, target="queue:r")
    return script


def copied_to_a_topic() -> tuple[Script, int]:
    """Messages of a group are copied to a topic; wherever else they come they are in it still.

    With the position behind which what was copied comes elsewhere.
    """
    script = Script()
    session = script.session()
    for name in ("old", "r", "twice"):
        session.send(op.CreateQueue, queue=name)
    session.subscribe("t", 1, subscription="s", durable=True, shared=True)
    group = [message_of(f"Y{one}{{g=Y.{one}}}") for one in (1, 2)]
    session.send(op.Put, destination="queue:q", messages=group)
    who = {"actor": "a", "reason": "r"}
    for target in ("topic:t", "queue:twice"):
        session.send(administration.CopyMessages, selection=of_queue("q"), **who, target=target)
    places = ((2, "old"), (3, "r"), (4, "twice"))
    for number, name in places:
        session.consumer(name, number)
    copied_at = len(script.entries) - 1
    from_topic = of_queue("q") | {"source": "topic:t", "subscription": "s", "durable": True}
    for source, target in ((of_queue("q"), "queue:old"), (from_topic, "queue:r")):
        session.send(administration.MoveMessages, selection=source, **who, target=target)
    for number, _ in places:
        asked = options(logical_order=True, all_messages_available=True)
        session.send(op.Get, consumer=number, credit=9, options=asked)
    return script, copied_at


def copied_to_a_topic_that_nobody_wants() -> Script:
    """Messages of a group are copied to a topic that sends them back: there they are in no group.

    So none of them waits for another that waits for its redelivery delay.
    """
    script = Script()
    session = script.session("CLIENT", redelivery_delay_ms=5_000)
    kept = given_settings({"keeps_group_order": True})
    session.send(op.CreateQueue, queue="q", settings=kept)
    back = given_settings({"error_destination": "queue:q"})
    session.send(op.CreateTopic, topic="t", settings=back, moves_unrouted=True)
    group = [message_of(f"Y{one}{{g=Y.{one}}}") for one in (1, 2)]
    session.send(op.Put, destination="queue:q", messages=group)
    who = {"actor": "a", "reason": "r"}
    session.send(administration.CopyMessages, selection=of_queue("q"), **who, target="topic:t")
    session.consumer("q", 1, credit=3)
    session.recover((1, 3))
    session.get(1)
    return script


def copied_before_it_went_to_a_topic() -> tuple[Script, int]:
    """One of a group is copied; the group goes to a topic, the copy, alone in it, elsewhere.

    With the position behind which they go.
    """
    script = Script()
    session = script.session()
    for name in ("twice", "r"):
        session.send(op.CreateQueue, queue=name)
    group = [message_of(f"Y{one}{{g=Y.{one}}}") for one in (1, 2)]
    session.send(op.Put, destination="queue:q", messages=group)
    who = {"actor": "a", "reason": "r"}
    copied = {"selection": of_queue("q") | {"limit": 1}, "target": "queue:twice"}
    session.send(administration.CopyMessages, **copied, **who)
    session.subscribe("t", 1, subscription="s", durable=True, shared=True)
    session.consumer("r", 2)
    copied_at = len(script.entries) - 1
    for source, target in (("q", "topic:t"), ("twice", "queue:r")):
        moved = {"selection": of_queue(source), "target": target}
        session.send(administration.MoveMessages, **moved, **who)
    asked = options(logical_order=True, all_messages_available=True)
    session.send(op.Get, consumer=2, credit=9, options=asked)
    return script, copied_at
