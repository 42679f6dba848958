"""What a journal is: its messages as rows, and what is counted of them (PROTOCOL.md §21)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ledgermq.wire.content.journaled import JournaledMessage
from ledgermq_spark.journal.arrivals import in_turn
from ledgermq_spark.rebuild.rebuilt import Rebuilt

JOURNAL_COLUMNS: Final = (
    "position",
    "put_position",
    "put_index",
    "destination",
    "sequence",
    "message_id",
    "enqueued_at",
    "expires_at",
    "expired",
    "priority",
    "persistent",
    "properties",
    "header",
    "content",
)

# What is counted of a journal, and of a backup of it when it is read back.
COUNTS: Final = {
    "messages": "count(*)",
    "expired": "coalesce(sum(CAST(expired AS LONG)), 0L)",
    "content_bytes": "coalesce(sum(length(content)), 0L)",
    "checksum": f"coalesce(bit_xor(xxhash64({', '.join(JOURNAL_COLUMNS)})), 0L)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The journal at the end of the log, expired messages included.

    Attributes:
        queue_manager: Whose it is.
        through: The position after the last record that was looked at.
        time: Log time there, in µs since 1970 UTC.
        lifetime_ms: How long journaled messages stay; 0: they never expire.
        is_on: Whether journaling is on there.
        kept_from: What came in below has left, or nobody can tell it; None: the journal is empty.
        rows: One row per message, of `JOURNAL_COLUMNS`: `position` is where it came in, times are
            timestamps, `header` is a framed Avro record as `content` is, `properties` JSON.
        waiting: Positions of the journaled Puts that may yet come in.
        rebuilt: The state there.
    """

    queue_manager: str
    through: int
    time: int
    lifetime_ms: int
    is_on: bool
    kept_from: int | None
    rows: DataFrame
    waiting: list[int]
    rebuilt: Rebuilt

    def messages(self, first: int = 0) -> Iterator[JournaledMessage]:
        """Those that came in at a position or above, in that order."""
        rows = self.rows.where(f.col("position") >= first)
        ordered = rows.orderBy("position", "put_position", "put_index")
        for row in in_turn(ordered):
            yield JournaledMessage.from_row(row, is_live=True, backup=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a backup of a journal would have, and what would stay in the journal (§21).

    `counts` are those of `COUNTS`: messages, how many have expired, bytes, a checksum.
    """

    counts: dict[str, int]
    kept_from: int
    needed_from: int


def counted(rows: DataFrame) -> dict[str, int]:
    """`COUNTS` of rows of `JOURNAL_COLUMNS`."""
    (found,) = rows.agg(*(f.expr(text).alias(name) for name, text in COUNTS.items())).collect()
    return {name: int(value) for name, value in found.asDict().items()}


def summary_of(journal: Journal) -> Summary:
    """Goes through a journal once."""
    stays = f.expr("NOT expired")
    (found,) = journal.rows.agg(
        *(f.expr(text).alias(name) for name, text in COUNTS.items()),
        f.min(f.when(stays, f.col("position"))).alias("kept_from"),
        f.min(f.when(stays, f.col("put_position"))).alias("needed_from"),
    ).collect()
    told = found.asDict()
    kept_from, needed = told.pop("kept_from"), told.pop("needed_from")
    kept_from = journal.through if kept_from is None else int(kept_from)
    lowest = [kept_from, *journal.waiting] + ([] if needed is None else [int(needed)])
    counts = {name: int(value) for name, value in told.items()}
    return Summary(counts=counts, kept_from=kept_from, needed_from=min(lowest))
