"""Properties of the fold over random histories, checked after every entry."""

from __future__ import annotations

import pytest
from hypothesis import given

from ledgermq.core.apply import new_state
from ledgermq.protocol.operations import Unreadable
from ledgermq.wire.framing.codec import decode_operation
from support.checks import checked_histories, checks
from support.checks.checked_histories import (
    check_every_split,
    check_history,
    check_new_history,
    examples,
    fold_entry,
)
from support.generators.generators import (
    MUCH_REJECTED,
    informed_histories,
    naive_histories,
)
from support.generators.group_generators import group_histories
from support.generators.hostile_histories import hostile_history
from support.generators.mixed_histories import mixed_history
from support.generators.quota_generators import quota_histories
from support.generators.settings_generators import settings_history
from support.planted.fold_faults import (
    CONNECTIONS,
    FOLD,
    JOURNAL,
    REJECTING,
    REJECTING_SCRIPTS,
    UNIT_LIMITS,
)
from support.planted.order_faults import GROUPS
from support.planted.planted_faults import expect_found_by, named, plant
from support.planted.put_faults import QUOTAS

SEEDS = (*range(6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 120)))


@examples(200)
@given(naive_histories())
def test_any_records_leave_a_sound_state_that_the_model_agrees_with(history):
    """Random operations and bytes: outcomes as the model's, invariants, conservation, refusals
    without effect, sequence numbers that rise and never repeat, nothing consumed twice.
    """
    check_new_history(history)


@examples(250)
@given(informed_histories())
def test_deep_histories_leave_a_sound_state_that_the_model_agrees_with(history):
    """Mostly legal operations, with the same checks after every entry."""
    check_new_history(history)


@examples(120)
@given(informed_histories(weights=MUCH_REJECTED))
def test_histories_of_rejections_leave_a_sound_state_that_the_model_agrees_with(history):
    """Messages put back and sent away one by one, with the same checks (§5 Reject)."""
    check_new_history(history)


@examples(120)
@given(group_histories(weights=("put", "consume", "consume", "reject", "reject", "settle", "back")))
def test_rejections_within_groups_leave_a_sound_state_that_the_model_agrees_with(history):
    """Where consumers are in groups, and where they go on, with the same checks (§5 Reject)."""
    check_new_history(history)


@examples(120)
@given(group_histories())
def test_histories_of_groups_leave_a_sound_state_that_the_model_agrees_with(history):
    """Groups, segments, get options, group affinity and browses, with the same checks."""
    check_new_history(history)


@examples(200)
@given(quota_histories())
def test_histories_with_quotas_leave_a_sound_state_that_the_model_agrees_with(history):
    """Small quotas, several sessions and both policies, with the same checks (INF-18, INF-20)."""
    check_new_history(history)


@pytest.mark.parametrize("seed", SEEDS)
def test_mixed_histories_leave_a_sound_state_that_the_model_agrees_with(seed):
    """What one generator leaves the others go on with, with the same checks."""
    check_history(mixed_history(seed, steps=60))


@pytest.mark.parametrize("seed", SEEDS)
def test_settings_that_meet_leave_a_sound_state_that_the_model_agrees_with(seed):
    """Any of any destination, temporary ones too, set and taken away while much is open."""
    check_history(settings_history(seed, steps=60))


@pytest.mark.parametrize("seed", SEEDS)
def test_writers_of_another_make_leave_a_sound_state_that_the_model_agrees_with(seed):
    """What a schema allows in a field, in operations that are right in all others."""
    check_history(hostile_history(seed, steps=60))


@examples(60)
@given(informed_histories(steps=25) | group_histories(steps=25) | quota_histories(steps=25))
def test_checkpoint_and_replay_equal_replay_from_zero_at_every_split(history):
    """A state that is written and read at any position goes on with the same outcomes and ends in
    the same digest (D5).
    """
    check_every_split(history)


@examples(100)
@given(informed_histories(steps=15) | group_histories(steps=15) | quota_histories(steps=15))
def test_folding_the_same_history_twice_gives_the_same_outcomes(history):
    """The fold depends on nothing but the log."""
    first, second = new_state(), new_state()
    outcomes = [fold_entry(first, entry) for entry in history]
    assert outcomes == [fold_entry(second, entry) for entry in history]
    assert checks.digest(first) == checks.digest(second)


@pytest.mark.parametrize("planted", named(FOLD))
def test_planted_fault_is_found(planted):
    """The properties are not blind: each fault planted in the fold turns them red."""
    expect_found_by(FOLD, planted)


@pytest.mark.parametrize("planted", named(JOURNAL))
def test_planted_fault_of_the_journal_is_found(planted):
    """Histories in which the journal is turned on and off and backed up are not blind (DB-17)."""
    expect_found_by(JOURNAL, planted)


@pytest.mark.parametrize("planted", named(REJECTING))
def test_planted_fault_of_rejections_is_found(planted):
    """Histories of rejections are not blind (§5 Reject)."""
    expect_found_by(REJECTING, planted)


@pytest.mark.parametrize("planted", named(REJECTING_SCRIPTS))
def test_fault_of_rejections_that_random_histories_seldom_show_is_found_by_scripts(planted):
    """What was rejected is seldom delivered elsewhere."""
    expect_found_by(REJECTING_SCRIPTS, planted)


@pytest.mark.parametrize("planted", named(CONNECTIONS))
def test_planted_fault_of_connections_is_found(planted):
    """Scripts show it, because random histories seldom come to it (SES-39)."""
    expect_found_by(CONNECTIONS, planted)


@pytest.mark.parametrize("planted", named(UNIT_LIMITS))
def test_planted_fault_of_time_limits_is_found(planted):
    """Their scripts ask for each moment, which random histories seldom come to."""
    expect_found_by(UNIT_LIMITS, planted)


@pytest.mark.parametrize("planted", named(QUOTAS))
def test_planted_fault_of_quotas_is_found(planted):
    """Histories with quotas are not blind either (INF-18, INF-20)."""
    expect_found_by(QUOTAS, planted)


@pytest.mark.parametrize("planted", named(GROUPS))
def test_fault_planted_in_groups_is_found(planted):
    """Histories of groups are not blind to what is wrong with groups."""
    expect_found_by(GROUPS, planted)


def first_found(check, histories):
    """Which history a check fails of first."""
    for number, history in enumerate(histories):
        try:
            check(history)
        except AssertionError:
            return number
    return None


@pytest.mark.parametrize(
    ("family", "title"),
    [
        (FOLD, "a sequence number is left out"),
        (GROUPS, "who got of a group is not inside it"),
    ],
)
def test_a_fault_behind_beginnings_that_passed_is_found(family, title, monkeypatch):
    """In the same history in which it is where each is checked from its first entry."""
    (fault,) = (one for one in family.faults if one.title == title)
    histories = family.histories(fault.seed)
    monkeypatch.setattr(checked_histories, "_PASSED", {})
    with plant(fault):
        assert first_found(check_new_history, histories) == first_found(check_history, histories)


def test_unreadable_is_an_operation_like_any_other():
    """What a reader cannot read reaches the fold with its reason."""
    assert isinstance(decode_operation(b"nonsense"), Unreadable)
