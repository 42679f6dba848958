"""The rows of the performance table: what is measured, the floor, the aim."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import NamedTuple

from ledgermq_benchmarks.rabbitmq import PEER_ROWS, PeerRow


class Row(NamedTuple):
    """One row: a name for programs, a text for people, what must be reached and what is aimed at.

    `unit` is messages/s, of which more is better, or one of which less is: ms, s, GiB, or "times"
    (a ratio within one run). A minimum of 0 is none.
    """

    name: str
    text: str
    unit: str
    minimum: float
    aim: float


@dataclass(slots=True, kw_only=True)
class RowResult:
    """What the runs of one row gave; `details` holds further figures per run.

    Those of a peer, one beside each of ours, are in the fields that say so.
    """

    row: Row
    values: list[float] = field(default_factory=list)
    details: list[dict[str, float]] = field(default_factory=list)
    peer_values: list[float] = field(default_factory=list)
    peer_details: list[dict[str, float]] = field(default_factory=list)

    @property
    def meets_minimum(self) -> bool:
        return _meets(self.values, self.row.minimum, self.row.unit) and (
            not self.peer_values or _meets(self.ratios, self.goal.minimum, self.row.unit)
        )

    @property
    def ratios(self) -> list[float]:
        """Our figure divided by the peer's, run by run: of one hour, so of one machine's mood."""
        return [ours / theirs for ours, theirs in zip(self.values, self.peer_values, strict=True)]

    @property
    def goal(self) -> PeerRow:
        """What the ratio must reach."""
        return PEER_ROWS[self.row.name]

    def document(self) -> dict[str, object]:
        document = {
            **self.row._asdict(),
            **spread(self.values, 2),
            "meets_minimum": _meets(self.values, self.row.minimum, self.row.unit),
            "details": self.details,
        }
        if self.peer_values:
            document["peer"] = spread(self.peer_values, 2) | {"details": self.peer_details}
            document["ratio"] = spread(self.ratios, 3) | {
                "minimum": self.goal.minimum,
                "aim": self.goal.aim,
                "meets_minimum": _meets(self.ratios, self.goal.minimum, self.row.unit),
            }
        return document


def _meets(values: list[float], minimum: float, unit: str) -> bool:
    if not minimum:
        return True
    median = statistics.median(values)
    return median >= minimum if unit == "messages/s" else median <= minimum


def spread(values: list[float], digits: int) -> dict[str, object]:
    return {
        "median": round(statistics.median(values), digits),
        "lowest": round(min(values), digits),
        "highest": round(max(values), digits),
        "runs": [round(value, digits) for value in values],
    }


ROWS = (
    Row("fold", "fold with codec, batches of 100", "messages/s", 80_000, 150_000),
    Row(
        "transacted", "full life, transacted, 100 messages per commit", "messages/s", 20_000, 50_000
    ),
    Row("pipelined", "full life, asynchronous sends, prefetch", "messages/s", 25_000, 60_000),
    Row("single", "full life, one message per operation, 1 + 1 sessions", "messages/s", 500, 1_500),
    Row("sixteen", "the same, 16 + 16 sessions", "messages/s", 3_000, 10_000),
    Row("single-auto", "1 + 1 sessions of AUTO, whose receives acknowledge", "messages/s", 0, 0),
    Row("sixteen-auto", "16 + 16 sessions of AUTO", "messages/s", 0, 0),
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
    Row("loaded-latency", "put to received beside half the pipelined load, median", "ms", 0, 0),
    Row("pipelined-1k", "full life, pipelined, bodies of 1 KiB", "messages/s", 0, 0),
    Row("pipelined-64k", "full life, pipelined, bodies of 64 KiB", "messages/s", 0, 0),
    Row("selectors", "1,000 consumers with selectors of their own on a queue", "messages/s", 0, 0),
    Row("priorities", "full life, pipelined, of ten priorities", "messages/s", 0, 0),
    Row("grouped", "full life, pipelined, whole groups of 10", "messages/s", 0, 0),
    Row("thousand", "1,000 + 1,000 sessions, each side in one event loop", "messages/s", 0, 0),
    Row("kafka", "beside: plain Kafka, the same bytes, 100 per record", "messages/s", 0, 0),
)
