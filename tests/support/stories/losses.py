"""Stories of sessions and replies that are lost, and of what is in doubt then (H20)."""

from __future__ import annotations

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script
from support.random_logs.random_doubts import lose
from support.random_logs.random_groups import SEGMENT, options, place, put_group


def two_losses() -> Script:
    """Two messages that a session had when it was lost, one of which fells the next one too."""
    script = Script()
    with_two = script.session(suspect_timeout_ms=1_000)
    with_two.put("q", "one", "two")
    with_two.consumer("q", 1, credit=2)
    lose(script, with_two)
    other = script.session(suspect_timeout_ms=1_000)
    other.consumer("q", 1, credit=2)
    other.send(op.Alive, handing=1)
    lose(script, other)
    return script


def inside_a_message_in_doubt() -> Script:
    """Segments are got complete twice and lost, then by one who is inside: one by one.

    Together the segments are handed over by one Alive, else each by its own (GRP-38).
    """
    script = Script()
    put_group(
        script.session(),
        "q",
        *(place("S", 1, SEGMENT * at, in_group=False, last_segment=at == 2) for at in range(3)),
    )
    complete, logical = options(complete_message=True), options(logical_order=True)
    for alive in (False, True):
        session = script.session(suspect_timeout_ms=1_000)
        session.consumer("q")
        session.send(op.Get, consumer=1, credit=1, options=complete)
        if alive:
            session.send(op.Alive, handing=3)
        lose(script, session)
    inside = script.session(suspect_timeout_ms=1_000)
    inside.consumer("q")
    inside.send(op.Get, consumer=1, credit=1, options=logical)
    inside.send(op.Alive, handing=1)
    both: op.GetOptions = {**logical, "complete_message": True}
    inside.send(op.Get, consumer=1, credit=2, options=both)
    lose(script, inside)
    return script


def handed_over_and_settled() -> Script:
    """Of three messages that were handed over the last one is settled; the session is lost."""
    script = Script()
    session = script.session("INDIVIDUAL", suspect_timeout_ms=1_000)
    session.put("q", "one", "two", "three")
    session.consumer("q", 1, credit=3)
    session.send(op.Alive, handing=3)
    session.acknowledge(3)
    lose(script, session)
    return script


def corrected_before_it_is_delivered() -> Script:
    """To release what waits is refused; then it is delivered, as the one before it was handed over.

    Both are in doubt, which are delivered one by one.
    """
    script = Script()
    lost, session = script.session(suspect_timeout_ms=1_000), script.session()
    lost.put("q", "one", "two")
    lost.consumer("q", 1, credit=2)
    lose(script, lost)
    session.consumer("q", 1, credit=2)
    session.handed = 1
    session.send(op.Correct, queue="q", sequence=1, action="RELEASE", actor="a", reason="r")
    return script


def written_again() -> Script:
    """A commit is written again when the next unit of work has begun, for its reply was lost."""
    script = Script()
    unit = script.session("TRANSACTED")
    unit.put("q", "one")
    unit.commit()
    second = {"destination": "queue:q", "messages": [script.message("two", 4)]}
    unit.send(op.Put, **second, answered_through=1)
    unit.again(op.Commit, 2, deliveries=[], puts=1, answered_through=1)
    unit.commit()
    return script
