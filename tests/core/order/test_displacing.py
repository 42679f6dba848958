"""Displacement over random histories, checked after every entry (decision 0047)."""

from __future__ import annotations

import pytest
from hypothesis import given

from support.checks.checked_histories import check_history, check_new_history, examples
from support.generators.displacement_generators import DisplacementWriter, displacement_histories
from support.generators.group_generators import GroupWriter
from support.generators.group_order_generators import GroupOrderWriter
from support.generators.mixed_histories import mixed_history
from support.generators.quota_generators import QuotaWriter
from support.generators.topic_generators import BindingWriter
from support.planted.order_faults import DISPLACEMENT, DISPLACEMENT_SCRIPTS
from support.planted.planted_faults import expect_found_by, named


@examples(80)
@given(displacement_histories())
def test_histories_in_which_messages_are_displaced_leave_a_sound_state(history):
    """What is kept changes, messages come back and are born, and the model agrees."""
    check_new_history(history)


@pytest.mark.parametrize("other", [GroupWriter, GroupOrderWriter, QuotaWriter, BindingWriter])
@pytest.mark.parametrize("seed", range(4))
def test_displacement_beside_all_else_leaves_a_sound_state(other, seed):
    """Groups lose members, blocked puts go on, subscriptions are crowded; the model agrees."""
    check_history(mixed_history(seed, steps=60, kinds=(other, DisplacementWriter, other)))


@pytest.mark.parametrize("planted", named(DISPLACEMENT))
def test_fault_planted_in_what_is_displaced_is_found(planted):
    """Histories of displacement are not blind to what is wrong with it."""
    expect_found_by(DISPLACEMENT, planted)


@pytest.mark.parametrize("planted", named(DISPLACEMENT_SCRIPTS))
def test_fault_that_random_histories_seldom_come_to_is_found_in_a_script(planted):
    """The scripts of displacement are not blind to it."""
    expect_found_by(DISPLACEMENT_SCRIPTS, planted)
