"""FIFO modes over random histories, checked after every entry as all others are (DB-22)."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings

from ledgermq.core import delivery, destinations, fifo, messages, sessions
from ledgermq.core.queue import Queue
from ledgermq.core.turn import Turn
from support.checked_histories import FOLD, check_history
from support.fifo_generators import fifo_histories
from support.planted_faults import expect_found, named


@settings(FOLD, max_examples=80)
@given(fifo_histories())
def test_histories_of_fifo_modes_leave_a_sound_state_that_the_model_agrees_with(history):
    """Modes that change while messages are held, returned, removed and expire (DB-22)."""
    check_history(history)


def _none(original):
    return lambda *arguments: None


def _no(original):
    return lambda *arguments: False


def _last(original):
    return lambda queue: max(
        (queue.messages[one] for one in queue.received or ()),
        key=lambda one: (-one.priority, one.sequence),
        default=None,
    )


def _anybody(original):
    return lambda consumer, message: message.is_here


def _forgets(original):
    def forget(self, message):
        kept, self.received = self.received, None
        original(self, message)
        self.received = kept

    return forget


FAULTS = [
    (messages, "check_turn", _none),
    (sessions, "check_turn", _none),
    (delivery, "note_received", _none),
    (delivery, "is_serialized", _no),
    (delivery, "first_received", _none),
    (delivery, "first_received", _last),
    (delivery, "may_take", _anybody),
    (destinations, "use_fifo_mode", _none),
    (fifo, "_check_queue", _none),
    (Queue, "forget", _forgets),
    (Turn, "ends_clash", _none),
]


# Those that only few histories show.
RARE = ("check_turn", "first_received_last")


@pytest.mark.parametrize("planted", named(FAULTS, RARE))
def test_fault_planted_in_fifo_modes_is_found(planted, monkeypatch):
    """Histories of FIFO modes are not blind to what is wrong with them (DB-22)."""

    @settings(FOLD, max_examples=1_000, phases=[Phase.generate])
    @given(fifo_histories())
    def run(history):
        check_history(history)

    expect_found(monkeypatch, planted, run)
