"""FIFO modes over random histories, checked after every entry as all others are (DB-22)."""

from __future__ import annotations

import pytest
from hypothesis import given

from support.checks.checked_histories import check_history, examples
from support.generators.fifo_generators import fifo_histories
from support.planted.order_faults import FIFO
from support.planted.planted_faults import expect_found_by, named


@examples(80)
@given(fifo_histories())
def test_histories_of_fifo_modes_leave_a_sound_state_that_the_model_agrees_with(history):
    """Modes that change while messages are held, returned, removed and expire (DB-22)."""
    check_history(history)


@pytest.mark.parametrize("planted", named(FIFO))
def test_fault_planted_in_fifo_modes_is_found(planted):
    """Histories of FIFO modes are not blind to what is wrong with them (DB-22)."""
    expect_found_by(FIFO, planted)
