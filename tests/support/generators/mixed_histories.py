"""Histories in which the writers of all generators take turns, each seeing what the others left.

Each generator keeps to its subject; what two of them do to one another only a mixture comes to.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hypothesis.strategies import SearchStrategy

from support.generators.clock_generators import ClockWriter
from support.generators.deduplication_generators import DeduplicationWriter
from support.generators.displacement_generators import DisplacementWriter
from support.generators.fifo_generators import FifoWriter
from support.generators.generators import Entry, Writer
from support.generators.group_generators import GroupWriter
from support.generators.group_order_generators import GroupOrderWriter
from support.generators.quota_generators import QuotaWriter
from support.generators.relocation_generators import RelocationWriter
from support.generators.source_generators import SourceWriter
from support.generators.storage_generators import StorageWriter
from support.planted.planted_faults import drawn

# As often as they are named: what groups and quotas do has the most sides.
WRITERS: tuple[type[Writer], ...] = (
    *(Writer, GroupWriter, GroupWriter, GroupWriter, QuotaWriter, QuotaWriter, FifoWriter),
    *(GroupOrderWriter, GroupOrderWriter, DeduplicationWriter, SourceWriter, RelocationWriter),
    *(StorageWriter, ClockWriter, DisplacementWriter),
)
# One writer alone is what its own generator is for.
MIXED = (2, 3, 4, 6, 13)
POOL_ROUNDS = 10


@lru_cache(1_000)
def _pool(strategy: SearchStrategy[Any]) -> list[Any]:
    """What a strategy may give; drawing from that takes less long than drawing from it."""
    draw = drawn(strategy)
    return [one for number in range(POOL_ROUNDS) for one in draw(number)]


def mixed_history(seed: int, steps: int = 150, kinds: Sequence[type[Writer]] = ()) -> list[Entry]:
    """A history of about so many entries, or twice as many, the same for each seed.

    `kinds`: who takes turns; unless given, some that the seed chooses.
    """
    chance = random.Random(seed)
    shared = vars(Writer(lambda strategy: chance.choice(_pool(strategy)))) | {"random": chance}

    def taking_over(kind: type[Writer]) -> Any:
        writer = object.__new__(kind)
        writer.__dict__ = shared
        return writer

    kinds = kinds or [chance.choice(WRITERS) for _ in range(chance.choice(MIXED))]
    first = taking_over(kinds[0])
    if chance.random() < 0.7:
        getattr(first, "begin", first.prelude)()
    for _ in range(steps):
        taking_over(chance.choice(kinds)).step()
    return first.history
