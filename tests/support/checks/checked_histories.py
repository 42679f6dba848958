"""Random histories folded with every check after every entry.

Hypothesis makes new histories of old ones: half of all entries come after the same entries as in a
history before, and the fold depends on nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from hypothesis import HealthCheck, settings

from ledgermq.core.apply import apply, new_state
from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol.outcomes import Addressed
from ledgermq.wire.framing.codec import decode_operation
from support.checks import checks
from support.checks.witness import Witness
from support.generators.generators import Entry
from support.scripts.play import Player, last_snapshot

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile(
    "fold", deadline=None, suppress_health_check=QUIET, derandomize=True, database=None
)
FOLD = settings.get_profile("fold")
# The inner loop and mutation testing ask for fewer examples.
EXAMPLES_DIVISOR = int(os.environ.get("LEDGERMQ_EXAMPLES_DIVISOR", "1"))


def examples(count: int) -> settings:
    """So many histories, the same in every run."""
    return settings(FOLD, max_examples=max(count // EXAMPLES_DIVISOR, 1))


# Beginnings of histories that passed: each entry with those that came next.
Passed = dict[Entry, "Passed"]
_PASSED: Passed = {}


def check_history(history: Sequence[Entry]) -> None:
    """Folds a history with every check after every entry; the witness follows beside the model."""
    _check(history, {})


def check_new_history(history: Sequence[Entry]) -> None:
    """As `check_history`, from where it goes on as none did before.

    For the fold as it is: what passed there says nothing of one in which a fault is planted.
    """
    _check(history, _PASSED)


def _check(history: Sequence[Entry], passed: Passed) -> None:
    known = _known(history, passed)
    if known == len(history):
        return
    player = Player()
    witness = Witness()
    for position, entry in enumerate(history):
        player.clock_us = entry.time
        if position < known:
            found = player.follow(entry.value, snapshot_at=last_snapshot(known - 1))
        else:
            found = player.enter(entry.value)
        witness.observe(decode_operation(entry.value), position, found)
        witness.compare(player.queue_statuses, player.topic_statuses)
        passed = passed.setdefault(entry, {})


def _known(history: Sequence[Entry], passed: Passed) -> int:
    """How many entries of its beginning passed before."""
    for count, entry in enumerate(history):
        if entry not in passed:
            return count
        passed = passed[entry]
    return len(history)


def fold_entry(state: QueueManager, entry: Entry) -> list[Addressed]:
    """The outcomes of one entry."""
    operation = decode_operation(entry.value, state.active_version)
    return apply(state, operation, state.position + 1, entry.time)


def check_every_split(history: Sequence[Entry]) -> None:
    """A state that is written and read goes on the same and ends in the same digest (D5)."""
    frozen, outcomes, state = [], [], new_state()
    for entry in history:
        frozen.append(checks.freeze(state))
        outcomes.append(fold_entry(state, entry))
    whole = checks.digest(state)
    for split, at_split in enumerate(frozen):
        restored = checks.thaw(at_split)
        assert [fold_entry(restored, one) for one in history[split:]] == outcomes[split:], split
        assert checks.digest(restored) == whole, split
