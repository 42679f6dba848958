"""Compares the outcomes that the log calls for with those that are recorded on the lanes.

Outcomes are compared by a hash of their fields inside Spark; only those that differ come to the
driver, for `classify`. A recorded outcome may repeat, if its repeats are equal. The text that
explains a refusal to people is compared too: it follows from entry and state alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.log.outcome_rows import OUTCOME_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


KEYS_MAX = 500
# What is not there, but of which nothing is proven.
UNPROVEN = {"expired", "unanswered"}
CHAIN = ("previous_position", "previous_index")
UNCOMPARED = ("position", "index", "content_digests", *CHAIN)
COMPARED = tuple(name for name, _ in OUTCOME_COLUMNS if name not in UNCOMPARED)
Key = tuple[int, int]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Outcomes on which the log and the lanes differ, by (position, index), and how many in all.

    `missing` are not recorded, `extra` not called for, `differing` both but unlike; `chains` are
    equal but for the outcome that they name before them: (expected, found).
    """

    compared: int = 0
    recorded: int = 0
    missing: dict[Key, Row] = field(default_factory=dict)
    extra: dict[Key, Row] = field(default_factory=dict)
    differing: dict[Key, tuple[Row, list[Row]]] = field(default_factory=dict)
    chains: dict[Key, tuple[Key, Key]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)


def differences(
    expected: DataFrame,
    recorded: DataFrame,
    lanes: int,
    *,
    floors: dict[int, int] | None = None,
    answered_until: int | None = None,
) -> Differences:
    """Compare outcomes by (position, index); recorded ones may repeat.

    Args:
        expected: Outcomes as the rebuild makes them.
        recorded: Outcomes as the lanes hold them.
        lanes: How many lanes the queue manager has.
        floors: Lanes whose older records have expired: at or below that position a missing outcome
            proves nothing (status `expired`). Lane -1 stands for refusals without a session.
        answered_until: Above this position a missing outcome may still come (`unanswered`).
    """
    wanted = _normal(expected, lanes).withColumn("side", f.lit(0))
    found = _normal(recorded, lanes).withColumn("side", f.lit(1))
    judged = _judged(_by_key(wanted, found), floors or {}, answered_until)
    return _collect(judged.cache(), wanted, found)


def _by_key(wanted: DataFrame, found: DataFrame) -> DataFrame:
    """One row per (position, index): how often each side has it, and with what."""
    columns = ["position", "index", "side", "hash", "lane", "chain", "first"]
    told = f.col("side") == 1
    chain = f.col("chain")
    return (
        wanted.withColumn("first", f.lit(True))
        .select(*columns)
        .unionByName(found.withColumn("first", f.col("ordinal") == 0).select(*columns))
        .groupBy("position", "index")
        .agg(
            f.count(f.when(~told, 1)).alias("wanted"),
            f.count(f.when(told, 1)).alias("found"),
            f.max(f.when(~told, f.col("hash"))).alias("hash"),
            f.min(f.when(told, f.col("hash"))).alias("low"),
            f.max(f.when(told, f.col("hash"))).alias("high"),
            f.max(f.when(~told, f.col("lane"))).alias("lane"),
            f.max(f.when(~told, chain)).alias("chain"),
            f.min(f.when(told & f.col("first"), chain)).alias("chain_low"),
            f.max(f.when(told & f.col("first"), chain)).alias("chain_high"),
            f.max(f.when(told & ~f.col("first"), chain)).alias("chain_inner"),
        )
    )


def _judged(by_key: DataFrame, floors: dict[int, int], answered_until: int | None) -> DataFrame:
    """What each (position, index) comes to: same, or one of the ways to differ."""
    # Inside a chunk a connection that was forgotten and came back follows its own past.
    anew = f.col("chain.previous_index") == -1
    broken = (
        (f.col("chain_low") != f.col("chain"))
        | (f.col("chain_high") != f.col("chain"))
        | ((f.col("chain_inner") != f.col("chain")) & ~anew)
    )
    absent = f.col("found") == 0
    status = (
        f.when(absent & _expired(floors), "expired")
        .when(absent & (f.col("position") > _or_end(answered_until)), "unanswered")
        .when(absent, "missing")
        .when(f.col("wanted") == 0, "extra")
        .when((f.col("low") != f.col("hash")) | (f.col("high") != f.col("hash")), "differing")
        .when(f.coalesce(broken, f.lit(False)), "chain")
        .otherwise("same")
    )
    return by_key.withColumn("status", status).select(
        "position",
        "index",
        "status",
        "wanted",
        "found",
        "chain",
        f.coalesce(
            f.when(f.col("chain_low") != f.col("chain"), f.col("chain_low")),
            f.when(f.col("chain_high") != f.col("chain"), f.col("chain_high")),
            f.col("chain_inner"),
        ).alias("chain_found"),
    )


def _expired(floors: dict[int, int]) -> Column:
    gone = f.lit(False)
    for lane, position in floors.items():
        gone = gone | ((f.col("lane") == lane) & (f.col("position") <= position))
    return gone


def _or_end(position: int | None) -> Column:
    return f.lit(2**62 if position is None else position)


def _normal(frame: DataFrame, lanes: int) -> DataFrame:
    """The comparable form: refusals without a known session have no connection, lane or chain."""
    chained = f.col("previous_index") != -2
    return (
        frame.withColumn("connection", f.when(chained, f.col("connection")))
        .withColumn("lane", f.when(chained, f.col("lane") % lanes).otherwise(-1))
        .withColumn("hash", f.xxhash64(*COMPARED))
        .withColumn("chain", f.struct(*CHAIN))
    )


def _collect(judged: DataFrame, wanted: DataFrame, found: DataFrame) -> Differences:
    counts = judged.groupBy("status").agg(
        f.count("*").alias("keys"), f.sum("wanted").alias("wanted"), f.sum("found").alias("found")
    )
    totals = {row["status"]: row for row in counts.collect()}
    result = Differences(
        compared=sum(row["wanted"] for row in totals.values()),
        recorded=sum(row["found"] for row in totals.values()),
        totals={name: row["keys"] for name, row in totals.items()},
    )
    odd = (
        judged.where("status NOT IN ('same', 'expired', 'unanswered')")
        .orderBy("position", "index")
        .limit(KEYS_MAX)
    )
    keys = odd.collect() if set(totals) - UNPROVEN - {"same"} else []
    judged.unpersist()
    if not keys:
        return result
    places = [(row["position"], row["index"]) for row in keys]
    frame = judged.sparkSession.createDataFrame(places, "position long, index long")
    near = f.broadcast(frame)
    calls = {_key(row): row for row in _rows(wanted.join(near, ["position", "index"]))}
    told: dict[Key, list[Row]] = {}
    for row in _rows(found.join(near, ["position", "index"])):
        told.setdefault(_key(row), []).append(row)
    for odd_one in keys:
        key = (odd_one["position"], odd_one["index"])
        if odd_one["status"] == "missing":
            result.missing[key] = calls[key]
        elif odd_one["status"] == "extra":
            result.extra[key] = told[key][0]
        elif odd_one["status"] == "differing":
            result.differing[key] = (calls[key], told[key])
        else:
            result.chains[key] = (tuple(odd_one["chain"]), tuple(odd_one["chain_found"]))
    return result


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict() for row in frame.collect()]


def _key(row: Row) -> Key:
    return (row["position"], row["index"])
