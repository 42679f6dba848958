"""Plants one fault at a time in the recorded outcomes of a log, to be found by the audit."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from ledgermq.core.outcomes import Addressed, Committed, Delivered
from support.log_writer import Script, ScriptSession

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


def find(recorded: Recorded, queue: str, nth: int = 0) -> tuple[int, int, Delivered]:
    """The nth Delivered outcome of a queue: position, place in the entry, outcome."""
    found = [
        (position, at, one.outcome)
        for position, entry in enumerate(recorded)
        for at, one in enumerate(entry)
        if isinstance(one.outcome, Delivered) and one.outcome.destination == "queue:" + queue
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
