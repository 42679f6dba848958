"""When sessions, consumers of topics and temporary destinations ended, read off the session scan.

An end at (position, due) precedes the entry at that position if it fell due there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.derivation.directory import AdministrationRow, Directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _phase(due: bool) -> int:
    return 0 if due else 2


def consumer_rows(acts: DataFrame, deliveries: DataFrame) -> list[AdministrationRow]:
    """Where each consumer of a topic closed, and where the last of its deliveries was settled."""
    closed = (
        acts.where("what = 'consumer' AND position IS NOT NULL AND queue LIKE 'topic:%'")
        .select("session", "consumer", "position", "due")
        .collect()
    )
    moment = f.struct("settled_position", (~f.col("settled_due")).alias("late"))
    settled = {
        (row["session"], row["consumer"]): row
        for row in deliveries.where("queue LIKE 'topic:%'")
        .groupBy("session", "consumer")
        .agg(f.max(moment).alias("last"), f.max(f.expr("settled = 'open'")).alias("held"))
        .collect()
    }
    rows = []
    for row in closed:
        key = (row["session"], row["consumer"])
        at = (row["position"], not row["due"])
        rows.append(_row("Closed", key, at))
        told: Any = settled.get(key)
        if told is None:
            rows.append(_row("Free", key, at))
        elif not told["held"]:
            rows.append(_row("Free", key, max(at, tuple(told["last"]))))
    return rows


def _row(kind: str, key: tuple[int, int], at: tuple[int, bool]) -> AdministrationRow:
    position, late = at
    return AdministrationRow(
        position, kind, "", phase=_phase(not late), session=key[0], consumer=key[1]
    )


def connection_rows(
    operations: DataFrame, acts: DataFrame, *, always: bool
) -> list[AdministrationRow]:
    """Sessions as they open and end; none (unless `always`) where nobody has a client id."""
    opens = operations.where("kind = 'Open'")
    if not always and opens.where("client_id != ''").isEmpty():
        return []
    decided = acts.where("what = 'act' AND kind = 'Open'").where(
        "reason IS NULL OR reason = 'client-id-in-use'"
    )
    opened = (
        opens.join(decided.select("position"), "position", how="inner")
        .select(
            "position",
            f.lower(f.hex("connection")).alias("connection"),
            f.coalesce("client_id", f.lit("")).alias("client_id"),
            f.lower(f.hex(f.coalesce("takeover", f.lit(b"")))).alias("takeover"),
        )
        .collect()
    )
    ended = acts.where("what = 'ended' AND position IS NOT NULL").select(
        "session", "position", "due"
    )
    rows = [
        AdministrationRow(kind="Open", queue="", session=row["position"], **row.asDict())
        for row in opened
    ]
    rows.extend(
        AdministrationRow(
            row["position"], "Ended", "", phase=_phase(row["due"]), session=row["session"]
        )
        for row in ended.collect()
    )
    return rows


def vanished_puts(puts: DataFrame, found: Directory) -> list[tuple[int, bool, int, str]]:
    """Open puts to temporary destinations whose connection ended before their unit of work did."""
    gone = [
        (one.queue, one.created, one.deleted, one.deleted_due)
        for one in found.lifetimes
        if one.owner and one.deleted is not None
    ]
    if not gone:
        return []
    frame = puts.sparkSession.createDataFrame(
        gone, "queue string, created long, gone long, gone_due boolean"
    )
    still_open = f.expr(
        "unit IS NOT NULL AND applied_position > created AND applied_position < gone AND "
        "(closed_position IS NULL OR closed_position > gone "
        "OR closed_position = gone AND gone_due AND NOT closed_due)"
    )
    rows = (
        puts.join(f.broadcast(frame), "queue", how="inner")
        .where(still_open)
        .select("gone", "gone_due", "session", "queue")
        .distinct()
        .collect()
    )
    return sorted((row[0], row[1], row[2], row[3]) for row in rows)
