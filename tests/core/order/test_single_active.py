"""Single active consumers over random histories, checked after every entry (decision 0044)."""

from __future__ import annotations

import pytest
from hypothesis import given

from support.checks.checked_histories import check_new_history, examples
from support.generators.fifo_generators import single_active_histories
from support.planted.order_faults import SINGLE_ACTIVE, SINGLE_ACTIVE_SCRIPTS
from support.planted.planted_faults import expect_found_by, named


@examples(80)
@given(single_active_histories())
def test_histories_of_active_consumers_leave_a_sound_state_that_the_model_agrees_with(history):
    """Consumers that are active while others stand by, and the setting goes on and off."""
    check_new_history(history)


@pytest.mark.parametrize("planted", named(SINGLE_ACTIVE))
def test_fault_planted_in_who_is_active_is_found(planted):
    """Histories of active consumers are not blind to what is wrong with them."""
    expect_found_by(SINGLE_ACTIVE, planted)


@pytest.mark.parametrize("planted", named(SINGLE_ACTIVE_SCRIPTS))
def test_fault_that_random_histories_seldom_come_to_is_found_in_a_script(planted):
    """The scripts of active consumers are not blind to it."""
    expect_found_by(SINGLE_ACTIVE_SCRIPTS, planted)
