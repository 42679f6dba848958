"""Properties of the fold over random histories in which messages are written again (H24)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from ledgermq.core.apply import new_state
from ledgermq.protocol.outcomes import Administered, Delivered, Outcome, Refused
from support.checks.checked_histories import (
    check_every_split,
    check_new_history,
    examples,
    fold_entry,
)
from support.checks.what_happens import expect_to_happen
from support.generators.relocation_generators import relocation_histories
from support.planted.planted_faults import expect_found_by, named
from support.planted.put_faults import RELOCATION


@examples(120)
@given(relocation_histories())
def test_histories_with_relocations_leave_a_sound_state_that_the_model_agrees_with(history):
    """Outcomes, stored messages and where their bodies stand, after every entry (H24)."""
    check_new_history(history)


@examples(30)
@given(relocation_histories(steps=20))
def test_a_checkpoint_knows_where_bodies_stand_at_every_split(history):
    """A state that is written and read goes on the same and ends in the same digest (D5)."""
    check_every_split(history)


def test_histories_with_relocations_come_to_what_can_happen():
    """They relocate, skip, are refused, and deliver what was written again."""

    def note(history, seen):
        state = new_state()
        for entry in history:
            for found in fold_entry(state, entry):
                note_outcome(seen, found.outcome)

    wanted = ("relocated", "skipped", "delivered", "message-differs", "message-invalid")
    expect_to_happen(relocation_histories(), note, wanted, times=5, rounds=4)


def note_outcome(seen: Counter[str], outcome: Outcome) -> None:
    """Counts what an outcome tells of relocation."""
    if isinstance(outcome, Administered) and outcome.next_sequence < 0:
        seen["relocated"] += outcome.affected > 0
        seen["skipped"] += outcome.skipped > 0
    elif isinstance(outcome, Refused):
        seen[outcome.reason] += 1
    elif isinstance(outcome, Delivered):
        seen["delivered"] += any("body" in one for one in outcome.messages)


@pytest.mark.parametrize("planted", named(RELOCATION))
def test_planted_fault_of_relocation_is_found(planted):
    """The properties are not blind: each fault planted in the fold turns them red."""
    expect_found_by(RELOCATION, planted)
