"""The rows of the performance table: what is measured, the floor, the aim."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
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
        """The figure to quote."""
        return statistics.median(self.values)

    @property
    def meets_minimum(self) -> bool:
        """Whether the median reaches what it must."""
        if self.row.unit != "messages/s":
            return self.median <= self.row.minimum
        return self.median >= self.row.minimum

    def document(self) -> dict[str, object]:
        """The result for programs."""
        return {
            "name": self.row.name,
            "text": self.row.text,
            "unit": self.row.unit,
            "minimum": self.row.minimum,
            "aim": self.row.aim,
            "median": round(self.median, 2),
            "lowest": round(min(self.values), 2),
            "highest": round(max(self.values), 2),
            "runs": [round(value, 2) for value in self.values],
            "meets_minimum": self.meets_minimum,
            "details": self.details,
        }


ROWS = (
    Row(
        name="fold",
        text="fold with codec, batches of 100",
        unit="messages/s",
        minimum=80_000,
        aim=150_000,
    ),
    Row(
        name="transacted",
        text="full life, transacted, 100 messages per commit",
        unit="messages/s",
        minimum=20_000,
        aim=50_000,
    ),
    Row(
        name="pipelined",
        text="full life, asynchronous sends, prefetch",
        unit="messages/s",
        minimum=25_000,
        aim=60_000,
    ),
    Row(
        name="single",
        text="full life, one message per operation, 1 + 1 sessions",
        unit="messages/s",
        minimum=500,
        aim=1_500,
    ),
    Row(
        name="sixteen",
        text="the same, 16 + 16 sessions",
        unit="messages/s",
        minimum=3_000,
        aim=10_000,
    ),
    Row(
        name="latency",
        text="put to received, 200 messages/s, median",
        unit="ms",
        minimum=4.0,
        aim=1.5,
    ),
    Row(
        name="groups",
        text="get in logical against physical order, 1,000,000 deep",
        unit="times",
        minimum=1.5,
        aim=1.0,
    ),
    Row(
        name="group-memory",
        text="memory of a message in a group against one in none",
        unit="times",
        minimum=1.5,
        aim=1.0,
    ),
    Row(
        name="fill",
        text="filling a queue to 1,000,000",
        unit="messages/s",
        minimum=25_000,
        aim=60_000,
    ),
    Row(
        name="depth-memory",
        text="worker with 1,000,000 messages waiting, resident",
        unit="GiB",
        minimum=1.5,
        aim=0.6,
    ),
    Row(
        # The worker keeps nothing on its disk, so this is with and without it.
        name="restart",
        text="SIGKILL to first delivery, 1,000,000 deep",
        unit="s",
        minimum=15.0,
        aim=5.0,
    ),
    Row(
        name="depth-get",
        text="get and acknowledge, 1,000,000 deep against shallow",
        unit="times",
        minimum=1.5,
        aim=1.0,
    ),
    Row(
        name="depth-random",
        text="get by number in random order, 1,000,000 deep",
        unit="messages/s",
        minimum=0,
        aim=0,
    ),
    Row(
        name="checkpoints",
        text="fill and drain with checkpoints against without",
        unit="times",
        minimum=1.1,
        aim=1.0,
    ),
    Row(
        name="fan-out",
        text="a topic with 10 subscriptions, deliveries",
        unit="messages/s",
        minimum=0,
        aim=0,
    ),
    Row(
        name="thousand",
        text="1,000 + 1,000 sessions, each side in one event loop",
        unit="messages/s",
        minimum=0,
        aim=0,
    ),
    Row(
        name="kafka",
        text="beside: plain Kafka, the same bytes, 100 per record",
        unit="messages/s",
        minimum=0,
        aim=0,
    ),
)
