"""Properties of the storage over random histories in which it is scarce (DB-08 to DB-15)."""

from __future__ import annotations

from collections import Counter

import pytest

from ledgermq.core.apply import new_state
from ledgermq.protocol.outcomes import Refused
from support.checks.checked_histories import check_every_split, fold_entry
from support.generators.generators import Entry
from support.generators.storage_generators import storage_history
from support.planted.planted_faults import expect_found_by, named
from support.planted.put_faults import STORAGE
from support.scripts.play import Player


def check_history(history: list[Entry]) -> None:
    """Folds a history with every check after every entry."""
    player = Player()
    for entry in history:
        player.clock_us = entry.time
        player.enter(entry.value)


@pytest.mark.parametrize("seed", range(40))
def test_segments_and_refusals_are_as_the_model_says_where_storage_is_scarce(seed):
    """Every segment, its bytes, what is live in it and the oldest of that, after every entry."""
    check_history(storage_history(seed))


def test_histories_of_scarce_storage_come_to_everything_that_can_happen():
    """They are refused for both reasons, reuse segments, make new ones and give some up."""
    seen: Counter[str] = Counter()
    for seed in range(30):
        state = new_state()
        for entry in storage_history(seed):
            active, segments = state.storage.active.number, dict(state.storage.segments)
            found = fold_entry(state, entry)
            seen.update(one.outcome.reason for one in found if isinstance(one.outcome, Refused))
            after = state.storage
            seen["reused"] += after.active.number < active
            seen["made"] += any(number not in segments for number in after.segments)
            seen["given up"] += any(number not in after.segments for number in segments)
            shared = [one for one in after.segments.values() if one.live_bytes > one.bytes]
            seen["several messages with one body"] += bool(shared)
    wanted = ("storage-full", "transaction-too-large", "reused", "made", "given up")
    wanted += ("several messages with one body",)
    missing = [name for name in wanted if seen[name] < 5]
    assert not missing, f"{missing} hardly happened: {seen}"


@pytest.mark.parametrize("seed", range(6))
def test_storage_that_comes_from_a_checkpoint_goes_on_the_same_at_every_split(seed):
    """Settings, segments and what is live are told whole (D5)."""
    check_every_split(storage_history(seed, steps=40))


@pytest.mark.parametrize("planted", named(STORAGE))
def test_fault_planted_in_the_storage_is_found(planted):
    """Histories of scarce storage are not blind to what is wrong with it."""
    expect_found_by(STORAGE, planted)
