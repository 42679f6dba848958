"""Plants one fault at a time in the recorded outcomes of a log, to be found by the audit."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from ledgermq.protocol.operations import Correct, DeleteQueue, OpenConsumer, Put
from ledgermq.protocol.outcomes import Addressed, Committed, Delivered
from ledgermq.wire.framing.codec import decode_operation
from support.brokers.log_writer import Script, ScriptSession, color_header
from support.random_logs.random_ends import timed_message

Recorded = list[list[Addressed]]


def conversation(script: Script, queue: str, *, settle: bool = True) -> ScriptSession:
    """Two messages put in a unit of work and a third outside, got and (but for one) settled.

    Returns the consuming session; its connection is its own.
    """
    producer = script.session("TRANSACTED", connection=script.identifier())
    producer.put(queue, "first", "second")
    producer.commit()
    consumer = script.session("TRANSACTED", connection=script.identifier())
    consumer.consumer(queue, credit=2)
    if settle:
        consumer.commit(1)
    plain = script.session("CLIENT", connection=script.identifier())
    plain.put(queue, "third")
    consumer.get(1)
    return consumer


def publication(script: Script, topic: str) -> ScriptSession:
    """Red, blue and red news to a shared subscription that wants red; one got, one waits.

    Before it another subscription, of all news, came and went with the first of them.
    Returns the consuming session; its connection is its own.
    """
    consumer = script.session("CLIENT", connection=script.identifier())
    publisher = script.session("CLIENT", connection=script.identifier())
    passing = script.session("CLIENT", connection=script.identifier())
    passing.subscribe(topic)
    publisher.publish(topic, "zero", color="blue")
    passing.close()
    wanted = {"selector": "color = 'red'", "shared": True, "subscription": "s" + topic}
    consumer.subscribe(topic, **wanted)
    publisher.publish(topic, "first", color="red")
    publisher.publish(topic, "second", color="blue")
    consumer.get(1)
    consumer.acknowledge(1)
    consumer.get(1)
    publisher.publish(topic, "third", color="red")
    return consumer


def selection(script: Script, queue: str) -> ScriptSession:
    """A red and a blue message, of which a consumer wants the red ones and gets one."""
    producer = script.session("CLIENT", connection=script.identifier())
    for color in ("blue", "red"):
        message = script.message(color, header=color_header(color))
        producer.send(Put, destination="queue:" + queue, messages=[message])
    consumer = script.session("CLIENT", connection=script.identifier())
    consumer.send(OpenConsumer, consumer=1, destination="queue:" + queue, selector="color = 'red'")
    consumer.get(1)
    return consumer


def departure(script: Script, queue: str) -> ScriptSession:
    """Of three messages the first and third are got; before that the second one went.

    It is removed by hand where the queue is named so; otherwise it expires. Returns the consuming
    session; its connection is its own.
    """
    consumer = script.session("CLIENT", connection=script.identifier())
    producer = script.session("CLIENT", connection=script.identifier())
    consumer.consumer(queue, credit=1)
    for times in ((50_000, 0, 0), (1_000, 0, 0), (0, 0, 0)):
        messages = [timed_message(script, times)]
        producer.send(Put, destination="queue:" + queue, messages=messages)
    if queue == "removed":
        producer.send(Correct, queue=queue, sequence=1, action="REMOVE", actor="op", reason="test")
    script.wait(2)
    producer.send(DeleteQueue, queue=queue, purge=True)
    consumer.get(1)
    return consumer


def find(recorded: Recorded, queue: str, nth: int = 0) -> tuple[int, int, Delivered]:
    """The nth Delivered outcome of a queue, or of topic:NAME: position, place, outcome."""
    destination = queue if queue.startswith("topic:") else "queue:" + queue
    found = [
        (position, at, one.outcome)
        for position, entry in enumerate(recorded)
        for at, one in enumerate(entry)
        if isinstance(one.outcome, Delivered) and one.outcome.destination == destination
    ]
    return found[nth]


def change(recorded: Recorded, position: int, at: int, **fields: Any) -> None:
    """Replaces fields of a recorded outcome."""
    one = recorded[position][at]
    recorded[position][at] = one._replace(outcome=replace(one.outcome, **fields))


def both(recorded: Recorded, queue: str) -> str:
    """The two messages that one unit of work put to a queue."""
    return ", ".join(one["message_id"].hex() for one in find(recorded, queue)[2].messages)


def alter(recorded: Recorded, queue: str) -> str:
    """One field of one delivered message says something else."""
    position, at, outcome = find(recorded, queue)
    messages = deepcopy(outcome.messages)
    messages[1]["enqueued_at"] += 1
    change(recorded, position, at, messages=messages)
    return messages[1]["message_id"].hex()


def alter_content(recorded: Recorded, queue: str) -> str:
    """The content of one delivered message is another."""
    position, at, outcome = find(recorded, queue)
    messages = deepcopy(outcome.messages)
    messages[0]["content"] += b"!"
    change(recorded, position, at, messages=messages)
    return messages[0]["message_id"].hex()


def lose(recorded: Recorded, queue: str) -> str:
    """The last delivery is not on the lanes."""
    position, at, outcome = find(recorded, queue, -1)
    del recorded[position][at]
    return outcome.messages[0]["message_id"].hex()


def lose_one_of_two(recorded: Recorded, queue: str) -> str:
    """A delivered outcome lacks one of its messages."""
    position, at, outcome = find(recorded, queue)
    change(recorded, position, at, messages=outcome.messages[:1])
    return outcome.messages[1]["message_id"].hex()


def duplicate(recorded: Recorded, queue: str) -> str:
    """A message that is held is delivered once more."""
    _, _, first = find(recorded, queue)
    position, at, last = find(recorded, queue, -1)
    one = recorded[position][at]
    again = replace(
        last,
        index=last.index + 1,
        first_delivery=last.first_delivery + 1,
        messages=[deepcopy(first.messages[1])],
    )
    extra = one._replace(previous_position=position, previous_index=last.index, outcome=again)
    recorded[position].insert(at + 1, extra)
    return first.messages[1]["message_id"].hex()


def invent(recorded: Recorded, queue: str) -> str:
    """A message is delivered that was never put."""
    position, at, last = find(recorded, queue, -1)
    one = recorded[position][at]
    message = deepcopy(last.messages[0])
    message |= {"put_index": 77, "sequence": 99, "message_id": b"I" * 16}
    again = replace(
        last, index=last.index + 1, first_delivery=last.first_delivery + 1, messages=[message]
    )
    extra = one._replace(previous_position=position, previous_index=last.index, outcome=again)
    recorded[position].insert(at + 1, extra)
    return (b"I" * 16).hex()


def reorder(recorded: Recorded, queue: str) -> str:
    """Two messages of one outcome change places."""
    position, at, outcome = find(recorded, queue)
    first, second = outcome.messages
    change(recorded, position, at, messages=[second, first])
    return first["message_id"].hex()


def tear(recorded: Recorded, queue: str) -> str:
    """A commit is recorded with a part of what its unit of work put."""
    for position, entry in enumerate(recorded):
        for at, one in enumerate(entry):
            runs = one.outcome.enqueued if isinstance(one.outcome, Committed) else []
            if any(run["destination"] == "queue:" + queue for run in runs):
                torn = deepcopy(runs)
                torn[0]["count"] -= 1
                change(recorded, position, at, enqueued=torn)
                return both(recorded, queue)
    raise AssertionError(f"nothing was committed to {queue}")


def break_chain(recorded: Recorded, queue: str) -> str:
    """A chunk names another outcome before it than the one that was."""
    position, at, outcome = find(recorded, queue, -1)
    one = recorded[position][at]
    recorded[position][at] = one._replace(previous_index=one.previous_index + 7)
    return outcome.messages[0]["message_id"].hex()


def repeat_differently(recorded: Recorded, queue: str) -> str:
    """An outcome is on the lanes twice, the second time with another field."""
    position, at, outcome = find(recorded, queue)
    one = recorded[position][at]
    messages = deepcopy(outcome.messages)
    messages[0]["priority"] = 8
    recorded[position].insert(at + 1, one._replace(outcome=replace(outcome, messages=messages)))
    return messages[0]["message_id"].hex()


# Queue name, what to plant in it, which anomaly it is.
PLANTS: tuple[tuple[str, Callable[[Recorded, str], str], str], ...] = (
    ("altered", alter, "altered outcome"),
    ("content", alter_content, "altered outcome"),
    ("lost", lose, "lost"),
    ("half", lose_one_of_two, "lost"),
    ("duplicated", duplicate, "duplicated"),
    ("invented", invent, "unexpected"),
    ("reordered", reorder, "reordered"),
    ("torn", tear, "torn transaction"),
    ("chain", break_chain, "gap"),
    ("repeated", repeat_differently, "altered outcome"),
)


def _deliver(recorded: Recorded, store: str, message: Any) -> str:
    """After the last delivery of a queue or topic, its consumer gets one more."""
    position, at, last = find(recorded, store, -1)
    one = recorded[position][at]
    again = replace(
        last,
        index=last.index + 1,
        first_delivery=last.first_delivery + len(last.messages),
        messages=[message],
    )
    extra = one._replace(previous_position=position, previous_index=last.index, outcome=again)
    recorded[position].insert(at + 1, extra)
    return message["message_id"].hex()


def _put(script: Script, recorded: Recorded, store: str, sequence: int) -> Any:
    """The nth message put to a queue or topic, as a delivery would tell it."""
    destination = store if store.startswith("topic:") else "queue:" + store
    operations = [decode_operation(entry.value) for entry in script.entries]
    places = [
        (at, one.messages[0])
        for at, one in enumerate(operations)
        if isinstance(one, Put) and one.destination == destination
    ]
    position, message = places[sequence]
    return {
        **find(recorded, store)[2].messages[0],
        **message,
        "sequence": sequence,
        "put_position": position,
        "enqueued_at": script.entries[position].time_us,
    }


def deliver_put(script: Script, recorded: Recorded, queue: str, sequence: int) -> str:
    """The nth message put to a queue is delivered once more, to who got of it last."""
    return _deliver(recorded, queue, _put(script, recorded, queue, sequence))


def deliver_blue(recorded: Recorded, topic: str, script: Script) -> str:
    """The blue message that followed the red one is delivered to who wants red."""
    store = "topic:" + topic
    return _deliver(recorded, store, _put(script, recorded, store, 2))


def deliver_from_before(recorded: Recorded, topic: str, script: Script) -> str:
    """What only a subscription had that is gone is delivered."""
    store = "topic:" + topic
    return _deliver(recorded, store, _put(script, recorded, store, 0))


def deliver_again(recorded: Recorded, topic: str, script: Script) -> str:
    """A copy that its subscription consumed is delivered to it once more."""
    store = "topic:" + topic
    return _deliver(recorded, store, deepcopy(find(recorded, store)[2].messages[0]))


def lose_copy(recorded: Recorded, topic: str, script: Script) -> str:
    """The last copy that a subscription delivered is not on the lanes."""
    return lose(recorded, "topic:" + topic)


def deliver_unselected(recorded: Recorded, queue: str, script: Script) -> str:
    """The blue message before the red one is delivered to a consumer that wants red."""
    return _deliver(recorded, queue, _put(script, recorded, queue, 0))


def deliver_gone(recorded: Recorded, queue: str, script: Script) -> str:
    """The message between two that were got is delivered after them."""
    return _deliver(recorded, queue, _put(script, recorded, queue, 1))


# As PLANTS: a queue each.
END_PLANTS: tuple[tuple[str, Callable[[Recorded, str, Script], str], str], ...] = (
    ("removed", deliver_gone, "unexpected"),
    ("expired", deliver_gone, "unexpected"),
)
# As PLANTS: name of the topic, or of the queue where it begins so.
TOPIC_PLANTS: tuple[tuple[str, Callable[[Recorded, str, Script], str], str], ...] = (
    ("blue", deliver_blue, "unexpected"),
    ("before", deliver_from_before, "unexpected"),
    ("again", deliver_again, "duplicated"),
    ("lost", lose_copy, "lost"),
    ("queue-of-all", deliver_unselected, "unexpected"),
)
