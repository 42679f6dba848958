"""FIFO modes over random histories, checked after every entry as all others are (DB-22)."""

from __future__ import annotations

import pytest
from hypothesis import given

from ledgermq.core import moves
from ledgermq.core.delivery import delivering as delivery
from ledgermq.core.delivery import settling
from ledgermq.core.destinations import by_name as destinations
from ledgermq.core.order import fifo
from ledgermq.core.sessions import sessions
from support.checks.checked_histories import check_history, examples
from support.generators.fifo_generators import fifo_histories
from support.planted.planted_faults import expect_found_by, named


@examples(80)
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
    return lambda consumer, message: message.is_available


def _notes_nothing(original):
    def go_to(store, messages, consumer):
        received, store.received = store.received, None
        original(store, messages, consumer)
        store.received = received

    return go_to


def _forgets(original):
    def take_out(entry, store, messages):
        received, store.received = store.received, None
        original(entry, store, messages)
        store.received = received

    return take_out


def _touches_nothing(original):
    def take_out(entry, store, messages):
        touched = dict(entry.touched_queues)
        original(entry, store, messages)
        entry.touched_queues.clear()
        entry.touched_queues.update(touched)

    return take_out


FAULTS = [
    (settling, "check_order", _none, 1),
    (sessions, "check_order", _none),
    (moves, "_go_to", _notes_nothing),
    (delivery, "is_serialized", _no),
    (delivery, "first_received", _none),
    (delivery, "first_received", _last, 5),
    (delivery, "may_take", _anybody),
    (destinations, "use_fifo_mode", _none),
    (fifo, "_check_queue", _none),
    (moves, "_take_out", _forgets),
    (moves, "_take_out", _touches_nothing),
]


@pytest.mark.parametrize("planted", named(FAULTS))
def test_fault_planted_in_fifo_modes_is_found(planted, monkeypatch):
    """Histories of FIFO modes are not blind to what is wrong with them (DB-22)."""
    expect_found_by(monkeypatch, planted, fifo_histories())
