"""Checks that no put exceeded a quota: of its destination, or of the queue manager (INF-04, §16).

Messages and bytes that were there are summed up along the log, from what the tables say of each
message: it counts from its Put on, uncommitted too, until it is gone. Quotas hold up nothing but
puts, so what goes elsewhere may come to a queue that is full, and a quota may be set below what is
there; looked at is what was there when a put was applied.
"""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as f

from ledgermq_spark.audit.evidence import Evidence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ledgermq_spark.derivation.tables import Tables


EVIDENCE_MAX = 200
NAMES = ("messages_max", "bytes_max")
# A queue or topic, and the time for which a quota was in force; of all: no name.
STEPS = "name string, created long, since long, until long, messages_max long, bytes_max long"
Key = tuple[str, int]
# What leaves makes room for the puts of the same entry; what comes from elsewhere comes behind.
LEFT, PUT, CAME = 0, 1, 2


def check_quotas(tables: Tables) -> list[Evidence]:
    """Every put that was applied left its destination, and all of them, within their quotas."""
    of_each = _in_force(_given(tables))
    of_all = _in_force({("", -1): _given_to_all(tables)})
    if not of_each and not of_all:
        return []
    changes = _changes(tables)
    found = []
    if of_each:
        places = Window.partitionBy("name", "created")
        found.extend(_exceeded(changes, places, of_each, ["name", "created"]))
    if of_all:
        found.extend(_exceeded(changes, Window.partitionBy(), of_all, []))
    return found


def _given(tables: Tables) -> dict[Key, list[tuple[int, int, int]]]:
    """The quotas that queues and topics were given, as (position, messages, bytes)."""
    found: dict[Key, list[tuple[int, int, int]]] = {}
    for queue, created, position, settings in tables.facts.directory.settings:
        told = settings.as_dict()
        quotas = (told.get("messages_max") or 0, told.get("bytes_max") or 0)
        found.setdefault((queue, created), []).append((position, *quotas))
    return found


def _given_to_all(tables: Tables) -> list[tuple[int, int, int]]:
    """Those of the queue manager."""
    facts = tables.facts
    in_turn = facts.acts.where("what = 'act' AND reason IS NULL").select("position")
    altered = facts.operations.where("kind = 'AlterQueueManager' AND settings IS NOT NULL")
    rows = altered.join(in_turn, "position", how="left_semi").select("position", "settings")
    current, found = dict.fromkeys(NAMES, 0), []
    for row in sorted(rows.collect()):
        if row["position"] not in facts.directory.refusals:
            told = json.loads(row["settings"])
            current |= {name: told[name] for name in NAMES if name in told}
            found.append((row["position"], *(current[name] for name in NAMES)))
    return found


def _in_force(given: dict[Key, list[tuple[int, int, int]]]) -> list[tuple[Any, ...]]:
    """The quotas with the positions between which each was in force."""
    found: list[tuple[Any, ...]] = []
    for key, steps in given.items():
        steps = sorted(steps)
        untils = [position for position, _, _ in steps[1:]]
        for (since, messages_max, bytes_max), until in zip_longest(steps, untils):
            if messages_max or bytes_max:
                found.append((*key, since, until, messages_max, bytes_max))
    return found


def _changes(tables: Tables) -> DataFrame:
    """What came and went, put by put: at, kind, place at it, messages and bytes more or less."""
    place = (f.col("queue").alias("name"), f.col("queue_created").alias("created"))
    size = f.col("size_bytes")
    applied = tables.puts.select(
        f.col("position").alias("put_position"), f.col("applied_position").alias("at"), "late"
    )
    each = tables.messages
    put = (
        each.where("stay = 0")
        .groupBy(*place, "put_position")
        .agg(f.count("*").alias("messages"), f.sum(size).alias("bytes"))
        .join(applied, "put_position", how="inner")
        .withColumn("kind", f.lit(PUT))
    )
    came = each.where("stay > 0").select(
        *place, f.col("numbered_position").alias("at"), f.lit(1).alias("messages"), size
    )
    gone = each.where("fate NOT IN ('resident', 'uncommitted')").select(
        *place, f.col("fate_position").alias("at"), f.lit(-1).alias("messages"), -size
    )
    columns = ["name", "created", "put_position", "at", "late", "kind", "messages", "bytes"]
    return (
        put.select(*columns)
        .unionByName(_of_no_put(came, CAME).select(*columns))
        .unionByName(_of_no_put(gone, LEFT).select(*columns))
    )


def _of_no_put(frame: DataFrame, kind: int) -> DataFrame:
    last = frame.columns[-1]
    return (
        frame.withColumnRenamed(last, "bytes")
        .withColumn("put_position", f.lit(None).cast("long"))
        .withColumn("late", f.lit(0))
        .withColumn("kind", f.lit(kind))
    )


def _exceeded(
    changes: DataFrame, places: Any, quotas: list[tuple[Any, ...]], keys: list[str]
) -> list[Evidence]:
    """Puts behind which there was more than a quota that was in force there."""
    until_here = places.orderBy("at", "kind", "late", "put_position").rowsBetween(
        Window.unboundedPreceding, 0
    )
    steps = changes.sparkSession.createDataFrame(quotas, STEPS)
    if not keys:
        steps = steps.drop("name", "created")
    held = (
        changes.withColumn("held", f.sum("messages").over(until_here))
        .withColumn("held_bytes", f.sum("bytes").over(until_here))
        .where(f.col("kind") == PUT)
    )
    placed = held.join(f.broadcast(steps), keys) if keys else held.crossJoin(f.broadcast(steps))
    rows = (
        placed.where("since <= at AND (until IS NULL OR at < until)")
        .where(
            "messages_max > 0 AND held > messages_max OR bytes_max > 0 AND held_bytes > bytes_max"
        )
        .orderBy("at", "put_position")
        .limit(EVIDENCE_MAX)
        .collect()
    )
    whose = "of its destination" if keys else "of the queue manager"
    return [
        Evidence(
            kind="state mismatch",
            source="tables",
            summary=f"the put was applied although it exceeds the quota {whose}",
            queue=row["name"],
            position=row["put_position"],
            field="quota",
            expected=f"at most {row['messages_max']} messages, {row['bytes_max']} bytes (0: any)",
            found=f"{row['held']} messages, {row['held_bytes']} bytes at position {row['at']}",
        )
        for row in rows
    ]
