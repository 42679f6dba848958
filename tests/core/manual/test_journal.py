"""The journal in the state: what pins the log, and that its invariants are not blind (§21)."""

from __future__ import annotations

import pytest

from ledgermq.core.queries import questions as query
from ledgermq.core.queries.manager_status import manager_status
from support.invariants import whole_state as invariants
from support.scripts.play import play_lines

# Position 1 turns it on; the message of position 2 is consumed at once.
JOURNALED = (
    "open",
    "alter-manager journaling=yes",
    "put q A -> enqueued 0..0",
    "consumer 1 q",
    "get 1 -> accepted; delivered A@0",
    "ack 1",
    "put q B -> enqueued 1..1",
)


def state_after(*lines: str):
    """The state after lines of a script."""
    return play_lines(*lines).state


def pins(*lines: str):
    """Where the journal, and all that lives, needs the log from."""
    told = query.answer(state_after(*lines), {"kind": "PINS", "limit": 9}, "QM1", "w").document
    return told["journal_position"], told["needed_position"]


def test_a_journal_pins_the_log_from_its_beginning_though_all_was_consumed():
    """Consumption has no say in it (DB-19); without a journal only what lives is needed."""
    assert pins(*JOURNALED) == (1, 1)
    assert pins("open", "open", *JOURNALED[2:]) == (None, 6)


def test_a_backup_unpins_what_has_expired_and_nothing_else():
    """What it kept is needed still, then only what lives is (DB-19)."""
    assert pins(*JOURNALED, "back-up-journal 7 6 5") == (5, 5)
    assert pins(*JOURNALED, "back-up-journal 7 7 7") == (7, 6)
    off = "alter-manager journaling=no"
    assert pins(*JOURNALED, off, "back-up-journal 8 8 8") == (None, 6)


def test_the_status_of_the_queue_manager_tells_of_the_journal():
    """On or off, how long, from where, and the last backup (DB-17)."""
    state = state_after(*JOURNALED, "back-up-journal 7 6 5 +1s")
    told = manager_status(state, "QM1", "w")
    assert told["journaling"] is True
    assert told["journal_lifetime_ms"] == 7 * 24 * 3600 * 1000
    assert (told["journal_from"], told["journal_needed_from"]) == (6, 5)
    assert told["journal_backup"] == {
        "position": 7,
        "time": state.time,
        "through": 7,
        "kept_from": 6,
        "needed_from": 5,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("intervals", [(3, 2), (5, -1)]),
        ("intervals", [(1, -1), (5, -1)]),
        ("intervals", [(4, 5), (3, -1)]),
        ("intervals", [(99, -1)]),
        ("intervals", [(1, 99)]),
        ("kept_from", 0),
        ("kept_from", 99),
        ("needed_from", -1),
    ],
)
def test_a_journal_that_cannot_be_is_found(name, value):
    """Intervals out of order or ahead of the log, and places that contradict each other."""
    state = state_after(*JOURNALED)
    invariants.check(state)
    setattr(state.journal, name, value)
    with pytest.raises(AssertionError, match="journal: "):
        invariants.check(state)


def test_an_interval_that_is_over_and_a_backup_from_the_future_are_found():
    """Nothing stays that a backup has done with."""
    state = state_after(*JOURNALED, "back-up-journal 7 7 7")
    state.journal.intervals.insert(0, (1, 2))
    with pytest.raises(AssertionError, match="nothing is left"):
        invariants.check(state)
    state = state_after(*JOURNALED, "back-up-journal 7 7 7")
    state.journal.backup = state.journal.backup._replace(through=99)
    with pytest.raises(AssertionError, match="backed up ahead"):
        invariants.check(state)
