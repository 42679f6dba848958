"""What a session tells of itself when it is asked: why its consumers get nothing, and its unit."""

import pytest

from ledgermq.core.queries import questions
from support.scripts.play import play_lines

# Lines after which consumer 1 of the session that is opened first gets nothing, for one reason.
PAUSED = {
    "no-credit": "open\nconsumer 1 q",
    "suspected": "A: open timeout=1000\nA: consumer 1 q\nA: get 1\nsuspect A -> A: suspected",
    "unit-of-work-ended": """A: open TRANSACTED
        A: consumer 1 q
        A: put q M
        S: open
        rollback-transaction A -> accepted
        A: get 1""",
    "unacknowledged-max": """open
        consumer 1 q
        alter q unacked_max=1
        get 2
        put q M N -> enqueued 0..1; delivered M@0""",
    "stand-by": """A: open
        A: create q single_active=yes
        A: put q M -> enqueued 0..0
        S: open CLIENT
        S: consumer 1 q
        S: get 1 -> accepted; delivered M@0
        A: consumer 1 q
        A: get 1""",
    "gets-disabled": "open\nconsumer 1 q\nalter q gets_disabled=yes\nget 1",
}


def session_of(lines):
    """What the session that was opened first tells."""
    state = play_lines(*map(str.strip, lines.splitlines())).state
    ask = {"kind": "SESSION", "session": 0}
    return questions.answer(state, ask, "QM1", "w").document


@pytest.mark.parametrize("reason", PAUSED)
def test_a_consumer_tells_why_it_gets_nothing(reason):
    """Each reason by its name, and no other one (PROTOCOL.md §9)."""
    (consumer,) = session_of(PAUSED[reason])["consumer_list"]
    assert consumer["paused"] == [reason]


def test_a_consumer_that_nothing_holds_up_tells_no_reason():
    """It waits for a message that it may have."""
    (consumer,) = session_of("open\nconsumer 1 q\nget 1")["consumer_list"]
    assert consumer["paused"] == []


def test_a_unit_of_work_tells_what_it_holds():
    """Its puts by destination, and its deliveries; a session without one tells none."""
    held = session_of(
        """open TRANSACTED
        put q A -> accepted
        consumer 1 q
        put r B C"""
    )["unit_of_work"]
    puts = [(one["destination"], one["messages"]) for one in held["puts"]]
    assert puts == [("queue:q", 1), ("queue:r", 2)]
    assert session_of("open CLIENT\nput q A -> enqueued 0..0")["unit_of_work"] is None
