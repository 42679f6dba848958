"""Consumer priorities over random histories, checked after every entry (PROTOCOL.md §5)."""

from __future__ import annotations

import pytest
from hypothesis import given

from support.checks.checked_histories import check_new_history, examples
from support.generators.fifo_generators import consumer_priority_histories
from support.planted.order_faults import CONSUMER_PRIORITY
from support.planted.planted_faults import expect_found_by, named


@examples(80)
@given(consumer_priority_histories())
def test_histories_of_consumers_with_priorities_leave_a_sound_state_that_the_model_agrees_with(
    history,
):
    """Consumers of higher priorities come first, with selectors, limits and FIFO modes beside."""
    check_new_history(history)


@pytest.mark.parametrize("planted", named(CONSUMER_PRIORITY))
def test_fault_planted_in_whose_priority_counts_is_found(planted):
    """Histories of consumers with priorities are not blind to what is wrong with them."""
    expect_found_by(CONSUMER_PRIORITY, planted)
