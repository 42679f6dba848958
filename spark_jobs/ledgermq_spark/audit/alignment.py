"""Whether log and lanes speak of the same entries: an operation that is answered must be there.

Replies carry the session and session sequence number of their operation, and Opened its session
key, so a missing operation shows even where the log was written anew without it and all positions
above moved down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.audit.findings.evidence import MESSAGES_NAMED_MAX, Evidence, hexadecimal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


REPLIES = ("Accepted", "Enqueued", "Committed", "Returned", "SessionEnded", "Refused")
EVIDENCE_MAX = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """Missing operations, and the first position above which log and lanes cannot be compared."""

    evidence: list[Evidence] = field(default_factory=list)
    comparable_until: int | None = None


def alignment(operations: DataFrame, recorded: DataFrame, end: int) -> Alignment:
    """Find out whether entries are missing on the log below `end`, the position after its last.

    They are if from some position on every answer stands elsewhere than its operation, or if the
    lanes answer what would lie beyond the end. One odd outcome among others that fit is not that.
    """
    both = _replies(recorded).join(
        _sent(operations), ["session", "session_key", "number"], how="full_outer"
    )
    answered = both.where("answered_at IS NOT NULL").cache()
    single = answered.where("times = 1 AND sent_times = 1")
    moved = single.where("answered_at != sent_at")
    first_moved = moved.orderBy("sent_at").limit(1).collect()
    absent = answered.where("sent_at IS NULL").orderBy("answered_at").limit(EVIDENCE_MAX).collect()
    try:
        if first_moved:
            row = first_moved[0]
            later = single.where(f.col("sent_at") > row["sent_at"])
            if later.where("answered_at = sent_at").isEmpty():
                return _misaligned(operations, recorded, absent, row)
    finally:
        answered.unpersist()
    beyond = [row for row in absent if row["answered_at"] >= end]
    if beyond:
        return Alignment(
            evidence=[_missing(operations, recorded, beyond[0])], comparable_until=end - 1
        )
    return Alignment()


def _misaligned(
    operations: DataFrame, recorded: DataFrame, absent: list[Any], moved: Any
) -> Alignment:
    last = max(moved["sent_at"], moved["answered_at"])
    near = [row for row in absent if row["answered_at"] <= last]
    if near:
        first = min(near[0]["answered_at"], moved["sent_at"])
        return Alignment(
            evidence=[_missing(operations, recorded, near[0])], comparable_until=first - 1
        )
    first = min(moved["sent_at"], moved["answered_at"])
    return Alignment(evidence=[_displaced(moved, first)], comparable_until=first - 1)


def _replies(recorded: DataFrame) -> DataFrame:
    """Replies by what they answer; Opened by its key, so that a moved session still matches."""
    known = f.col("kind").isin(*REPLIES) & (f.col("session_sequence") > 0)
    unreadable = f.coalesce(f.col("reason"), f.lit("")).isin(
        "record-empty",
        "record-unreadable",
        "schema-unknown",
        "version-inactive",
        "timestamp-untrusted",
        "time-disagrees",
    )
    own = recorded.where(known & ~unreadable).select(
        "session",
        f.lit("").alias("session_key"),
        f.col("session_sequence").alias("number"),
        "position",
        "kind",
    )
    opened = recorded.where("kind = 'Opened'").select(
        f.lit(-1).cast("long").alias("session"),
        f.hex("session_key").alias("session_key"),
        f.lit(0).cast("long").alias("number"),
        "position",
        "kind",
    )
    return (
        own.unionByName(opened)
        .groupBy("session", "session_key", "number")
        .agg(
            f.countDistinct("position").alias("times"),
            f.min("position").alias("answered_at"),
            f.min("kind").alias("kind"),
        )
    )


def _sent(operations: DataFrame) -> DataFrame:
    own = operations.where("session IS NOT NULL").select(
        "session",
        f.lit("").alias("session_key"),
        f.col("session_sequence").alias("number"),
        "position",
    )
    opens = operations.where("kind = 'Open'").select(
        f.lit(-1).cast("long").alias("session"),
        f.hex("session_key").alias("session_key"),
        f.lit(0).cast("long").alias("number"),
        "position",
    )
    return (
        own.unionByName(opens)
        .groupBy("session", "session_key", "number")
        .agg(f.countDistinct("position").alias("sent_times"), f.min("position").alias("sent_at"))
    )


def _missing(operations: DataFrame, recorded: DataFrame, row: Any) -> Evidence:
    """An operation that the lanes answer but that is not on the log, with the messages it meant."""
    at = row["answered_at"]
    what = "the Open" if row["number"] == 0 else f"operation {row['number']}"
    messages, queue, how = _messages_of(operations, recorded, row)
    return Evidence(
        kind="gap",
        source="operations",
        summary=f"{what} of a session is answered on the lanes but is not on the log{how}",
        queue=queue,
        message_id=", ".join(messages),
        position=at,
        session=row["session"],
        expected=f"the operation that the {row['kind']} at {at} answers",
        found="no such operation",
    )


def _messages_of(
    operations: DataFrame, recorded: DataFrame, row: Any
) -> tuple[list[str], str, str]:
    """Messages that the missing operation put, else those that its session may have settled."""
    at, session = row["answered_at"], row["session"]
    each = recorded.where("kind = 'Delivered'").select(
        "session",
        "position",
        "destination",
        "first_delivery",
        f.posexplode(f.arrays_zip("put_positions", "put_indexes", "message_ids")).alias(
            "place", "one"
        ),
    )
    put = _named(
        each.where(f.col("one.put_positions") == at), "one.put_positions", "one.put_indexes"
    )
    if put:
        return *put, "; it put these messages"
    if row["kind"] in ("Accepted", "Committed", "Returned", "SessionEnded"):
        numbered = each.where((f.col("session") == session) & (f.col("position") < at)).withColumn(
            "delivery", f.col("first_delivery") + f.col("place")
        )
        held = _named(
            numbered.join(_settled(operations, session), "delivery", how="left_anti"), "delivery"
        )
        if held:
            return (
                *held,
                "; its session held these messages, oldest first, and settles them nowhere",
            )
    return [], "", ""


def _settled(operations: DataFrame, session: int) -> DataFrame:
    """Deliveries of a session that operations on the log name as consumed."""
    return (
        operations.where(f.col("kind").isin("Acknowledge", "Commit"))
        .where(f.col("session") == session)
        .select(f.explode(f.arrays_zip("range_first", "range_last")).alias("one"))
        .select(f.explode(f.sequence("one.range_first", "one.range_last")).alias("delivery"))
    )


def _named(frame: DataFrame, *order: str) -> tuple[list[str], str] | None:
    rows = frame.orderBy(*order).limit(MESSAGES_NAMED_MAX).collect()
    if not rows:
        return None
    names = list(dict.fromkeys(hexadecimal(row["one"]["message_ids"]) for row in rows))
    return names, rows[0]["destination"].removeprefix("queue:")


def _displaced(row: Any, first: int) -> Evidence:
    by = row["answered_at"] - row["sent_at"]
    return Evidence(
        kind="gap",
        source="operations",
        summary="from here on the lanes answer entries at other positions than the log has them: "
        + ("entries are missing on the log" if by > 0 else "the log has entries too many"),
        position=first,
        session=row["session"],
        expected=f"position {row['answered_at']}, where its {row['kind']} says it stood",
        found=f"position {row['sent_at']}",
    )
