"""FIFO modes over random histories, checked after every entry as all others are (DB-22)."""

from __future__ import annotations

import pytest
from hypothesis import given

from ledgermq.protocol import operations as op
from support.checks.checked_histories import check_new_history, examples
from support.generators.fifo_generators import fifo_histories
from support.messages.large_states import LargeState
from support.planted.order_faults import FIFO
from support.planted.planted_faults import expect_found_by, named


@examples(80)
@given(fifo_histories())
def test_histories_of_fifo_modes_leave_a_sound_state_that_the_model_agrees_with(history):
    """Modes that change while messages are held, returned, removed and expire (DB-22)."""
    check_new_history(history)


@pytest.mark.parametrize("planted", named(FIFO))
def test_fault_planted_in_fifo_modes_is_found(planted):
    """Histories of FIFO modes are not blind to what is wrong with them (DB-22)."""
    expect_found_by(FIFO, planted)


def test_of_several_queues_out_of_turn_that_of_the_first_consumer_is_told_of():
    """Whatever order deliveries came in, and though another consumer got them (DB-22)."""
    large = LargeState()
    session = large.open("INDIVIDUAL")
    for name in ("a", "b"):
        large.do(op.CreateQueue, session, queue=name, settings={"fifo_mode": "PROTECTED"})
    for number, name in enumerate(("a", "b", "a"), 1):
        large.do(op.OpenConsumer, session, consumer=number, destination=f"queue:{name}")
        large.do(op.Get, session, consumer=number, credit=5 if number > 1 else 0)
    for name in ("b", "b", "a", "a"):
        large.put(session, f"queue:{name}")
    settled = [{"first": 2, "last": 2}, {"first": 4, "last": 4}]
    (refused,) = large.do(op.Acknowledge, session, deliveries=settled)
    assert "delivery 4 is message 1 of queue:a" in refused.detail
