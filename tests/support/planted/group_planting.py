"""Plants deliveries that groups do not allow, one to a queue, to be found by the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Refused
from support.brokers.log_writer import Script, ScriptSession
from support.planted.planting import Recorded, deliver_put
from support.random_logs.random_groups import group_header, options, place, put_group


def _session(script: Script, queue: str, **asked: Any) -> ScriptSession:
    """A session of its own connection with a consumer, and credit for one message."""
    session = script.session("CLIENT", connection=script.identifier())
    session.consumer(queue)
    session.send(op.Get, consumer=1, credit=1, options=options(**asked))
    return session


def group_of_three(script: Script, queue: str, *, whole: bool = True) -> None:
    """Y1, Y2, A, and Y3 as the last if the group is to be whole; each in a Put of its own."""
    producer = script.session("CLIENT", connection=script.identifier())
    producer.send(op.CreateQueue, queue=queue, group_affinity=queue == "bonded")
    put_group(producer, queue, place("Y"))
    put_group(producer, queue, place("Y", 2))
    producer.put(queue, "A")
    if whole:
        put_group(producer, queue, place("Y", 3, last_in_group=True))


def inside(script: Script, queue: str) -> None:
    """A consumer in logical order got the first of a group."""
    group_of_three(script, queue)
    _session(script, queue, logical_order=True)


def outside(script: Script, queue: str) -> None:
    """A consumer that asks for whole groups got what is in none."""
    group_of_three(script, queue, whole=False)
    _session(script, queue, all_messages_available=True)


def beside(script: Script, queue: str) -> None:
    """One consumer is in a group, which is kept for it or bonded to it; another got the rest."""
    group_of_three(script, queue)
    _session(script, queue, logical_order=queue == "kept")
    _session(script, queue)


def deliver(number: int) -> Callable[[Recorded, str, Script], str]:
    """Delivers the message of that number to who got of the queue last."""

    def plant(recorded: Recorded, queue: str, script: Script) -> str:
        return deliver_put(script, recorded, queue, number)

    return plant


# Queue, what goes before, and what to plant: a delivery that is unexpected.
GROUP_PLANTS: tuple[
    tuple[str, Callable[[Script, str], None], Callable[[Recorded, str, Script], str]], ...
] = (
    ("inside", inside, deliver(3)),
    ("other", inside, deliver(2)),
    ("incomplete", outside, deliver(0)),
    ("kept", beside, deliver(1)),
    ("bonded", beside, deliver(1)),
)


def forget_refusals(recorded: Recorded) -> int:
    """Lets every refusal for the sake of groups name another reason; returns how many there are."""
    reasons = ("group-clash", "unit-of-work-inconsistent", "match-options-invalid", "group-invalid")
    count = 0
    for entry in recorded:
        for at, one in enumerate(entry):
            told = one.outcome
            if isinstance(told, Refused) and told.reason in reasons:
                fields = {name: getattr(told, name) for name in told.__dataclass_fields__}
                other = Refused(**{**fields, "reason": "queue-unknown"})
                entry[at] = one._replace(outcome=other)
                count += 1
    return count


def clashes(script: Script) -> dict[int, str]:
    """Puts and Gets that are refused for the sake of groups; why, by position."""
    plain = script.session("CLIENT")
    unit = script.session("TRANSACTED")
    put_group(plain, "q", place("Y"))
    refused = {put_group(plain, "q", place("Y")): "group-clash"}
    put_group(unit, "q", place("Y", 2))
    refused[put_group(unit, "q", place("Y", 2), place("Y", 3))] = "group-clash"
    refused[put_group(unit, "q", place("Y", 3, logical_order=True))] = "unit-of-work-inconsistent"
    unit.commit()
    refused[put_group(plain, "q", place("Y", 2))] = "group-clash"
    refused[put_group(plain, "q", place("Y", 0))] = "group-invalid"
    refused[put_group(unit, "q", place("Y", 2))] = "group-clash"
    put_group(unit, "q", place("Y", 3))
    unit.rollback()
    put_group(unit, "q", place("Y", 3))
    unit.commit()
    plain.consumer("q")
    plain.send(op.Get, consumer=1, credit=1, options=options(logical_order=True))
    wrong = options(logical_order=True, group_sequence=3)
    refused[plain.send(op.Get, consumer=1, credit=1, options=wrong)] = "match-options-invalid"
    plain.acknowledge(1)
    put_group(plain, "q", place("Y"))
    message = script.message("x", 4, group_header(place("Y")))
    refused[plain.send(op.Put, destination="topic:t", messages=[message])] = "group-not-allowed"
    wrong = options(offset=-5)
    refused[plain.send(op.Get, consumer=1, credit=1, options=wrong)] = "options-invalid"
    return refused
