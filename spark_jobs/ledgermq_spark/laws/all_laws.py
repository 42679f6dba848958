"""All laws that there are, by their letters."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws import (
    conservation,
    deliveries,
    lives,
    numbers,
    puts,
    sessions,
    settlements,
    times,
    topics,
    transfers,
)
from ledgermq_spark.laws.law import Law

LAWS: Final[tuple[Law, ...]] = (
    lives.LAW,
    numbers.LAW,
    puts.LAW,
    settlements.LAW,
    deliveries.LAW,
    times.LAW,
    transfers.LAW,
    topics.LAW,
    sessions.LAW,
    conservation.LAW,
)
