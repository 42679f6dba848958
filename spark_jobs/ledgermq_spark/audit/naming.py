"""Names the messages that an anomaly concerns, where what was found does not name them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.audit.evidence import MESSAGES_NAMED_MAX, Evidence, hexadecimal

if TYPE_CHECKING:
    from ledgermq_spark.derivation.tables import Tables


SOURCES = ("outcomes", "claims")

Named = dict[int, list[tuple[str, str]]]


def name_messages(anomalies: list[Evidence], tables: Tables) -> list[Evidence]:
    """Add the messages that were put, numbered, settled or delivered at an anomaly's position."""
    nameless = {
        one.position
        for one in anomalies
        if not one.message_id and one.position >= 0 and one.source in SOURCES
    }
    if not nameless:
        return anomalies
    known = _messages_at(tables, nameless)
    return [
        _with_names(one, known.get(one.position, []))
        if not one.message_id and one.source in SOURCES
        else one
        for one in anomalies
    ]


def _with_names(one: Evidence, messages: list[tuple[str, str]]) -> Evidence:
    if not messages:
        return one
    named = messages[:MESSAGES_NAMED_MAX]
    more = len(messages) - len(named)
    summary = one.summary + (f" (and {more} messages more)" if more > 0 else "")
    queue = one.queue or named[0][0]
    return replace(
        one, summary=summary, queue=queue, message_id=", ".join(message for _, message in named)
    )


def _messages_at(tables: Tables, positions: set[int]) -> Named:
    """Messages by position, in the order in which they were put; each once."""
    spark = tables.messages.sparkSession
    wanted = f.broadcast(spark.createDataFrame([(one,) for one in positions], "at long"))
    columns = ["queue", "message_id", "put_position", "put_index"]
    parts = [
        tables.messages.select(f.col(place).alias("at"), *columns)
        for place in ("put_position", "numbered_position", "fate_position")
    ]
    parts.append(tables.deliveries.select(f.col("position").alias("at"), *columns))
    parts.append(tables.deliveries.select(f.col("settled_position").alias("at"), *columns))
    found: Named = {}
    for part in parts:
        rows = part.join(wanted, "at", how="inner").orderBy("put_position", "put_index").collect()
        for row in rows:
            named = found.setdefault(row["at"], [])
            message = (row["queue"], hexadecimal(row["message_id"]))
            if message not in named:
                named.append(message)
    return found
