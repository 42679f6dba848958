"""What happened at queues with groups beside deliveries: input of `group_turns`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.derivation.puts import lifetimes_frame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ledgermq_spark.derivation.tables import Tables


# Why a Put or Get is refused that only what is there of groups can tell.
GROUP_REASONS = ("group-invalid", "group-clash", "unit-of-work-inconsistent")
MATCH_REASON = "match-options-invalid"
OPENED = "what = 'act' AND kind = 'OpenConsumer' AND reason IS NULL"
# Before and at the effects of an entry; those of what it settles come before its numbers.
ASKED, ENDED, EFFECT = -2, -1, 0


def grouped_queues(tables: Tables) -> set[str]:
    """Names of the queues that groups came to, or whose consumers asked for get options."""
    operations = tables.facts.operations.where("grouped")
    named = operations.where("kind != 'Get'").select(
        f.regexp_replace("target", "^queue:", "").alias("queue")
    )
    consumers = tables.facts.acts.where(OPENED).select("session", "consumer", "queue")
    asked = operations.where("kind = 'Get'").select("session", "consumer")
    got = asked.join(consumers, ["session", "consumer"], how="inner").select("queue")
    moved = tables.messages.where("stay > 0 AND group IS NOT NULL").select("queue")
    found = named.unionByName(got).unionByName(moved)
    rows = found.where("queue NOT LIKE 'topic:%'").distinct().collect()
    return {row["queue"] for row in rows}


def group_steps(tables: Tables, recorded: DataFrame) -> DataFrame:
    """Steps of puts, units of work, options, places and affinity, with their places on the log."""
    names = sorted(grouped_queues(tables))
    spark = tables.messages.sparkSession
    wanted = f.broadcast(spark.createDataFrame([(one,) for one in names], "queue string"))
    lifetimes = lifetimes_frame(spark, tables.facts.directory.lifetimes)
    lifetimes = f.broadcast(lifetimes.join(wanted, "queue", how="inner"))
    consumers = _consumers(tables, lifetimes)
    puts = _puts(tables, wanted, lifetimes)
    parts = [
        puts,
        _units(tables, puts),
        _options(tables, consumers),
        _back(tables, consumers),
        _closed(tables, consumers, recorded),
        _affinity(tables),
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    return whole.withColumn("holder", f.lit(-1).cast("long"))


def _row(
    frame: DataFrame, what: str, phase: Column | int, index: Column | int, *columns: str | Column
) -> DataFrame:
    """A step; what it lacks is filled in by the caller of `group_steps`."""
    place = (phase if not isinstance(phase, int) else f.lit(phase)).alias("phase")
    order = (index if not isinstance(index, int) else f.lit(index)).alias("index")
    head = ("queue", "queue_created", "position", place, order, f.lit(what).alias("what"))
    return frame.select(*head, "session", *columns)


def _in_lifetime(frame: DataFrame, lifetimes: DataFrame, at: str, how: str) -> DataFrame:
    """With `queue_created`, of the queue of that name that stood at a position."""
    stood = (f.col("created_before") <= f.col(at)) & (
        f.col("gone_at").isNull() | (f.col(at) < f.col("gone_at"))
    )
    named = lifetimes.select(
        f.col("queue").alias("name"),
        f.col("queue_created").alias("created_before"),
        f.col("queue_deleted").alias("gone_at"),
    )
    found = frame.join(named, (f.col("queue") == f.col("name")) & stood, how=how)
    created = f.coalesce("created_before", f.lit(-1).cast("long"))
    return found.withColumn("queue_created", created).drop("name", "created_before", "gone_at")


def _puts(tables: Tables, wanted: DataFrame, lifetimes: DataFrame) -> DataFrame:
    """Puts with groups in turn; one that is refused may have no queue at all."""
    acts = tables.facts.acts.where("what = 'act' AND kind = 'Put'")
    judged = acts.where(f.col("reason").isNull() | f.col("reason").isin(*GROUP_REASONS))
    modes = tables.facts.operations.where("kind = 'Open'").select(
        f.col("position").alias("session"), f.col("acknowledge_mode").alias("selector")
    )
    puts = (
        tables.facts.operations.where("kind = 'Put' AND grouped AND target LIKE 'queue:%'")
        .withColumn("queue", f.regexp_replace("target", "^queue:", ""))
        .select("position", "session", "queue", "priorities", "headers")
        .join(judged.select("position"), "position", how="inner")
        .join(wanted, "queue", how="inner")
        .join(f.broadcast(modes), "session", how="inner")
    )
    told = f.to_json(f.struct("priorities", "headers")).alias("header")
    placed = _in_lifetime(puts, lifetimes, "position", "left")
    return _row(placed, "put", 1, ASKED, "selector", told)


def _units(tables: Tables, puts: DataFrame) -> DataFrame:
    """Ends of units of work, at every queue that their session put groups to."""
    ends = tables.facts.acts.where("what = 'unit' AND position IS NOT NULL")
    places = puts.select("session", "queue", "queue_created").distinct()
    found = ends.select("session", "position", "due").join(places, "session", how="inner")
    return _row(found, "unit", _phase(), ENDED)


def _phase() -> Column:
    return f.when(f.col("due"), 0).otherwise(1)


def _consumers(tables: Tables, lifetimes: DataFrame) -> DataFrame:
    """Consumers of these queues: session, consumer, opened."""
    opened = tables.facts.acts.where(OPENED).select(
        "session", "consumer", "queue", f.col("position").alias("opened")
    )
    return _in_lifetime(opened, lifetimes, "opened", "inner")


def _options(tables: Tables, consumers: DataFrame) -> DataFrame:
    acts = tables.facts.acts.where("what = 'act' AND kind = 'Get'")
    judged = acts.where(f.col("reason").isNull() | (f.col("reason") == MATCH_REASON))
    gets = (
        tables.facts.operations.where("kind = 'Get' AND options IS NOT NULL")
        .select("position", "session", "consumer", f.col("options").alias("header"))
        .join(judged.select("position"), "position", how="inner")
        .join(consumers, ["session", "consumer"], how="inner")
    )
    return _row(gets, "options", 1, ASKED, "consumer", "header")


def _back(tables: Tables, consumers: DataFrame) -> DataFrame:
    acts = tables.facts.acts.where("what = 'act' AND reason IS NULL")
    ends = acts.where("kind IN ('Rollback', 'Recover')").select("session", "position")
    ended = tables.facts.acts.where("what = 'unit' AND kind = 'rolled back'")
    ends = ends.unionByName(ended.select("session", "position"))
    found = ends.join(consumers.drop("consumer"), "session", how="inner")
    places = found.where("opened < position").select(
        "queue", "queue_created", "position", "session"
    )
    return _row(places.distinct(), "back", 1, EFFECT)


def _closed(tables: Tables, consumers: DataFrame, recorded: DataFrame) -> DataFrame:
    ended = (
        recorded.where("kind = 'SessionEnded' AND session_sequence = 0")
        .groupBy("position", "session")
        .agg(f.min("index").alias("ended_index"))
    )
    closed = (
        tables.facts.acts.where("what = 'consumer' AND position IS NOT NULL")
        .select("session", "consumer", "position", "due")
        .join(consumers, ["session", "consumer"], how="inner")
        .join(f.broadcast(ended), ["position", "session"], how="left")
    )
    order = f.coalesce("ended_index", f.lit(EFFECT))
    return _row(closed, "closed", _phase(), order, "consumer")


def _affinity(tables: Tables) -> DataFrame:
    rows = [
        (queue, created, position, int(on))
        for queue, created, position, on in tables.facts.directory.affinities
    ]
    frame = tables.messages.sparkSession.createDataFrame(
        rows, "queue string, queue_created long, position long, sequence long"
    )
    none = frame.withColumn("session", f.lit(-1).cast("long"))
    return _row(none, "affinity", 1, EFFECT, "sequence")
