"""Messages that no subscription wants, over random histories, checked after every entry."""

from __future__ import annotations

import pytest
from hypothesis import given

from support.checks.checked_histories import check_new_history, examples
from support.generators.topic_generators import unrouted_histories
from support.planted.planted_faults import expect_found_by, named
from support.planted.topic_faults import UNROUTED


@examples(80)
@given(unrouted_histories())
def test_histories_of_unrouted_messages_leave_a_sound_state_that_the_model_agrees_with(history):
    """They go to the error destination once, or are dropped, and subscriptions come and go."""
    check_new_history(history)


@pytest.mark.parametrize("planted", named(UNROUTED))
def test_fault_planted_in_what_becomes_of_unrouted_messages_is_found(planted):
    """Histories of unrouted messages are not blind to what is wrong with them."""
    expect_found_by(UNROUTED, planted)
