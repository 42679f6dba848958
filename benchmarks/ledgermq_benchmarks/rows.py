"""The rows of the performance table: what is measured, the floor, the aim."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import NamedTuple


class Row(NamedTuple):
    """One row: a name for programs, a text for people, what must be reached and what is aimed at.

    `unit` is messages/s, of which more is better, or one of which less is: ms, s, GiB, or "times"
    (a ratio within one run).
    """

    name: str
    text: str
    unit: str
    minimum: float
    aim: float


@dataclass(slots=True, kw_only=True)
class RowResult:
    """What the runs of one row gave; `details` holds further figures per run."""

    row: Row
    values: list[float] = field(default_factory=list)
    details: list[dict[str, float]] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def meets_minimum(self) -> bool:
        if self.row.unit != "messages/s":
            return self.median <= self.row.minimum
        return self.median >= self.row.minimum

    def document(self) -> dict[str, object]:
        return {
            **self.row._asdict(),
            "median": round(self.median, 2),
            "lowest": round(min(self.values), 2),
            "highest": round(max(self.values), 2),
            "runs": [round(value, 2) for value in self.values],
            "meets_minimum": self.meets_minimum,
            "details": self.details,
        }


ROWS = (
    Row("fold", "fold with codec, batches of 100", "messages/s", 80_000, 150_000),
    Row(
        "transacted", "full life, transacted, 100 messages per commit", "messages/s", 20_000, 50_000
    ),
    Row("pipelined", "full life, asynchronous sends, prefetch", "messages/s", 25_000, 60_000),
    Row("single", "full life, one message per operation, 1 + 1 sessions", "messages/s", 500, 1_500),
    Row("sixteen", "the same, 16 + 16 sessions", "messages/s", 3_000, 10_000),
    Row("latency", "put to received, 200 messages/s, median", "ms", 4.0, 1.5),
    Row("groups", "get in logical against physical order, 1,000,000 deep", "times", 1.5, 1.0),
    Row("group-memory", "memory of a message in a group against one in none", "times", 1.5, 1.0),
    Row("fill", "filling a queue to 1,000,000", "messages/s", 25_000, 60_000),
    Row("depth-memory", "worker with 1,000,000 messages waiting, resident", "GiB", 1.5, 0.6),
    # The worker keeps nothing on its disk, so this is with and without it.
    Row("restart", "SIGKILL to first delivery, 1,000,000 deep", "s", 15.0, 5.0),
    Row("depth-get", "get and acknowledge, 1,000,000 deep against shallow", "times", 1.5, 1.0),
    Row("depth-random", "get by number in random order, 1,000,000 deep", "messages/s", 0, 0),
    Row("checkpoints", "fill and drain with checkpoints against without", "times", 1.1, 1.0),
    Row("fan-out", "a topic with 10 subscriptions, deliveries", "messages/s", 0, 0),
    Row("thousand", "1,000 + 1,000 sessions, each side in one event loop", "messages/s", 0, 0),
    Row("kafka", "beside: plain Kafka, the same bytes, 100 per record", "messages/s", 0, 0),
)
