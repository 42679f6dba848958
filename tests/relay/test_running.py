"""How long a relay or bridge pauses: a target that refuses all is asked ever less often."""

from __future__ import annotations

import pytest

from ledgermq.errors import (
    InvalidClientIDError,
    LedgerMQError,
    OutcomeUnknownError,
    PutsDisabledError,
    QuotaExceededError,
    TransactionRolledBackError,
)
from ledgermq.relay import running as module
from ledgermq.relay.running import NOT_COUNTED, SourceMovedError, keep_going

FULL = QuotaExceededError("full", position=7, code="quota-exceeded")


class Clock:
    """A clock that the test moves.

    Attributes:
        now: What it shows, in seconds.
    """

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """What it shows."""
        return self.now


class Pauses:
    """An event that is never set, and notes how long it was waited for."""

    def __init__(self) -> None:
        self.seconds = []

    def is_set(self) -> bool:
        """It never is."""
        return False

    def wait(self, seconds: float) -> None:
        """Notes them, and waits for nothing."""
        self.seconds.append(seconds)


def pauses(*attempts, tell=lambda _: None):
    """What is paused after attempts, each of which puts some messages and ends as it says."""
    left = list(attempts)
    done = 0

    def run():
        nonlocal done
        put, error = left.pop(0) if left else (0, None)
        done += put
        if error is not None:
            raise error

    waiting = Pauses()
    keep_going(run, lambda: done, waiting, tell)
    return waiting.seconds


def test_what_a_target_refuses_is_put_ever_less_often():
    """What it refuses stands on its log, whole transfers at that."""
    assert pauses(*[(0, FULL)] * 8) == [1, 2, 4, 8, 16, 30, 30, 30]
    closed = PutsDisabledError("closed", position=7, code="puts-disabled")
    assert pauses((0, closed), (0, closed)) == [1, 2]


def test_a_unit_of_work_that_is_refused_is_begun_ever_less_often():
    """All that was put in it stands on the log each time, too."""
    rolled_back = TransactionRolledBackError("rolled back")
    assert pauses(*[(0, rolled_back)] * 3) == [1, 1, 1]
    rolled_back.__cause__ = FULL
    assert pauses(*[(0, rolled_back)] * 3) == [1, 2, 4]


def test_a_target_that_takes_some_is_asked_soon():
    """A slow consumer makes room again and again; each time as much goes on as has room."""
    assert pauses((0, FULL), (0, FULL), (500, FULL), (500, FULL), (0, FULL)) == [1, 2, 1, 1, 1]


def test_one_that_stands_by_asks_ever_less_often_and_soon_enough():
    """Each try is an Open on the log; one that works may work for years."""
    in_use = InvalidClientIDError("in use", position=7)
    assert pauses(*[(0, in_use)] * 6) == [1, 2, 4, 8, 10, 10]
    assert pauses(*[(0, FULL)] * 6, (0, in_use))[-1] == 10


def test_one_that_stands_by_may_be_told_that_its_turn_has_come():
    """By whoever looks; only there, and with the pause that it may take at most."""
    in_use, pauses = InvalidClientIDError("in use", position=7), []
    errors = [in_use, in_use, FULL]

    def run():
        if errors:
            raise errors.pop(0)

    waiting = Pauses()
    keep_going(run, lambda: 0, waiting, lambda _: None, pauses.append)
    assert (pauses, waiting.seconds) == ([1, 2], [4])


def test_whatever_else_passes_is_tried_each_second():
    """What was refused before and what is away now are two things."""
    moved = SourceMovedError("moved")
    assert pauses((0, moved), (0, moved), (0, FULL), (0, FULL), (0, moved)) == [1, 1, 1, 2, 1]


def test_what_does_not_pass_is_raised():
    """And nothing is tried again."""
    with pytest.raises(LedgerMQError, match="for good"):
        pauses((0, FULL), (0, LedgerMQError("for good")), (0, FULL))


def test_what_is_waited_for_is_told_once_wherever_it_is_refused():
    """A unit of work that was rolled back has its refusal in its text, not as its own position."""
    told = []
    texts = [f"rolled back, because refused by QM1@{position}: full" for position in (7, 29, 51)]
    pauses(*((0, OutcomeUnknownError(text)) for text in texts), tell=told.append)
    assert told == [f"waits and begins anew: {texts[0]}"]


def test_of_an_outcome_that_is_unknown_an_operator_is_told_what_it_means_for_the_count():
    """Nobody at a terminal can call what a program would."""
    told = []
    unknown = OutcomeUnknownError("it may have been applied")
    unknown.resolver = lambda _: None
    pauses((0, unknown), tell=told.append)
    assert told == [f"waits and begins anew: it may have been applied. {NOT_COUNTED}"]


def test_what_is_waited_for_again_after_it_went_well_is_told_again(monkeypatch):
    """The broker that is away today was away last month, too: then it was told, and is not seen."""
    clock, told = Clock(), []
    monkeypatch.setattr(module, "time", clock)
    lasts = [0.0, 30.0, 3_600.0, 0.0]

    def run():
        if lasts:
            clock.now += lasts.pop(0)
            raise SourceMovedError("away")

    keep_going(run, lambda: 0, Pauses(), told.append)
    assert told == ["waits and begins anew: away"] * 2
