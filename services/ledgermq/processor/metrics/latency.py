"""How long outcomes took, gathered into the buckets of a histogram."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import Final

BOUNDS_MS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000)
BOUNDS_SECONDS: Final = tuple(one / 1_000 for one in BOUNDS_MS)


class Latency:
    """Counts times by the bucket that they fall into."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self.sum_seconds = 0.0

    def observe(self, appended: Mapping[int, int], acknowledged_ms: int) -> None:
        """Counts outcomes, by the append times in ms of the operations that they answer.

        Both times are stamped by Kafka, so that no clock of a worker is in their difference. Where
        two brokers stamp them, theirs may differ: below 0 counts as 0.
        """
        for appended_ms, count in appended.items():
            seconds = max(0, acknowledged_ms - appended_ms) / 1000
            self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += count
            self.sum_seconds += seconds * count

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bounds, each with how many were at or below it."""
        bounds = [*map(str, BOUNDS_SECONDS), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True))
