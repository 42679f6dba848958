"""What happened to messages where they can be got, step by step: the input of `turns`."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DataType

from ledgermq_spark.derivation.fifo_turns import OUT_OF_TURN
from ledgermq_spark.derivation.group_steps import group_steps
from ledgermq_spark.derivation.held_back import KEEPS
from ledgermq_spark.derivation.walked import MESSAGE, delays_in
from ledgermq_spark.log.rows import BYTES, FLAG, LONG, TEXT

if TYPE_CHECKING:
    from ledgermq_spark.derivation.tables import Tables


# What has messages: a queue (holder -1) or a subscription of a topic.
PLACES = ("queue", "queue_created", "holder")
STEP_COLUMNS = (
    *PLACES,
    "position",
    "phase",
    "index",
    "offset",
    "what",
    "put_position",
    "put_index",
    "message_id",
    "priority",
    "sequence",
    "session",
    "selector",
    "persistent",
    "enqueued_at",
    "header",
    "consumer",
    "unit",
    "moment",
    "stay",
)
# After everything else at one place of the log.
LAST = 2**31
# After all that was done before an outcome, which is told by the index of that outcome.
FOLLOWS = 2**62


def kept_messages(tables: Tables) -> DataFrame:
    """Messages where they can be got: those of queues, and the copies of subscriptions."""
    columns = [
        *("queue", "queue_created", "put_position", "put_index", "stay", "message_id", "priority"),
        *("numbered_phase", "numbered_index"),
        *("sequence", "numbered_position", "fate", "fate_position", "persistent", "enqueued_at"),
        *("fate_due", "on_return", "deliver_at", "birth_position"),
    ]
    unit = f.col("unit_of_work").alias("unit")
    of_queues = tables.messages.where("sequence IS NOT NULL AND queue NOT LIKE 'topic:%'")
    # What is in a subscription is what its selector matches: no consumer of it has another.
    return of_queues.select(
        *columns,
        "header",
        unit,
        f.lit(-1).cast(LONG).alias("holder"),
    ).unionByName(
        _copies(tables).select(
            *columns,
            "header",
            f.lit(None).cast(LONG).alias("unit"),
            f.col("subscription").alias("holder"),
        )
    )


def _copies(tables: Tables) -> DataFrame:
    """Copies, with the header of their message where the order of groups may be kept."""
    if not tables.facts.directory.group_orders():
        return tables.copies.withColumn("header", f.lit(None).cast(TEXT))
    headers = tables.messages.where("queue LIKE 'topic:%'").select(*MESSAGE, "header")
    return tables.copies.join(headers, MESSAGE, how="left")


def _selectors(tables: Tables) -> DataFrame:
    """Consumers of queues that have a selector."""
    opened = tables.facts.acts.where("what = 'act' AND kind = 'OpenConsumer' AND reason IS NULL")
    return (
        tables.facts.operations.where("kind = 'OpenConsumer' AND target LIKE 'queue:%'")
        .where("selector != ''")
        .join(opened.select("position"), "position", how="inner")
        .select("session", "consumer", "selector")
    )


def _limits(tables: Tables) -> DataFrame:
    """Steps that set what a session may hold of a queue or subscription."""
    spark = tables.messages.sparkSession
    frame = spark.createDataFrame(
        tables.facts.directory.limits_by_holder(),
        "queue string, queue_created long, holder long, position long, sequence long",
    )
    placed = _of_no_message(frame)
    return _step(placed, f.lit("limit"), "position", f.lit(1), f.lit(0), f.lit(0))


def _of_no_message(frame: DataFrame) -> DataFrame:
    none = f.lit(-1).cast(LONG)
    return (
        frame.withColumn("put_position", none)
        .withColumn("put_index", none)
        .withColumn("stay", none)
        .withColumn("priority", none)
        .withColumn("message_id", f.lit(None).cast(BYTES))
    )


def _group_steps(tables: Tables, recorded: DataFrame) -> list[DataFrame]:
    """What there is beside messages where there are groups, and members that are not born yet."""
    if not tables.facts.grouped:
        return []
    found = _of_no_message(group_steps(tables, recorded))
    unborn = kept_messages(tables).where("holder = -1 AND deliver_at IS NOT NULL")
    joined = unborn.where("get_json_object(header, '$.g') IS NOT NULL")
    nothing = f.lit(0)
    return [
        _step(found, f.col("what"), "position", f.col("phase"), f.col("index"), nothing),
        _step(
            joined,
            f.lit("joined"),
            "numbered_position",
            f.col("numbered_phase"),
            f.col("numbered_index"),
            f.col("sequence"),
        ),
    ]


def _fifo_steps(tables: Tables, deliveries: DataFrame) -> list[DataFrame]:
    """Which FIFO mode each place had, and what was refused because it was not its turn."""
    modes = tables.facts.directory.fifo_modes()
    if not modes:
        return []
    columns = "queue string, queue_created long, holder long, position long, selector string"
    frame = _of_no_message(tables.messages.sparkSession.createDataFrame(modes, columns))
    acts = tables.facts.acts.where("what = 'act'").where(f.col("reason") == OUT_OF_TURN)
    named = f.explode(f.arrays_zip("range_first", "range_last")).alias("one")
    asked = (
        tables.facts.operations.join(acts.select("position"), "position", how="left_semi")
        .select(f.col("position").alias("asked_position"), "session", named)
        .select(
            "asked_position",
            "session",
            f.explode(f.expr("sequence(one.range_first, one.range_last)")).alias("delivery"),
        )
    )
    found = deliveries.join(f.broadcast(asked), ["session", "delivery"], how="inner")
    nothing = f.lit(0)
    return [
        _step(frame, f.lit("mode"), "position", f.lit(1), nothing, nothing),
        _step(found, f.lit("asked"), "asked_position", f.lit(1), nothing, f.col("delivery")),
    ]


def _order_steps(tables: Tables) -> list[DataFrame]:
    """Which places keep the order of groups."""
    orders = tables.facts.directory.group_orders()
    if not orders:
        return []
    columns = "queue string, queue_created long, holder long, position long, selector string"
    frame = _of_no_message(tables.messages.sparkSession.createDataFrame(orders, columns))
    nothing = f.lit(0)
    return [_step(frame, f.lit(KEEPS), "position", f.lit(1), nothing, nothing)]


def steps_of(tables: Tables, recorded: DataFrame) -> DataFrame:
    """Everything that happened to the messages of all queues and subscriptions."""
    numbered = kept_messages(tables)
    # What went before it was born, and what is not born yet, was never to be delivered.
    born = numbered.where("deliver_at IS NULL OR birth_position IS NOT NULL")
    over = numbered.where("on_return").select(
        *MESSAGE,
        "holder",
        f.col("fate_position").alias("settled_position"),
        f.lit(True).alias("expired"),
    )
    deliveries = (
        tables.deliveries.withColumn("holder", f.coalesce("subscription", f.lit(-1)))
        .drop("persistent", "enqueued_at")
        .join(f.broadcast(_selectors(tables)), ["session", "consumer"], how="left")
    )
    settled = deliveries.where("settled_position IS NOT NULL").join(
        f.broadcast(_lost(recorded)), ["settled_position", "session"], how="left"
    )
    settled = settled.join(f.broadcast(over), [*MESSAGE, "holder", "settled_position"], how="left")
    settled, offered = _delayed(tables, settled, numbered)
    nothing = f.lit(0)
    back = (
        f.when(f.expr("settled = 'returned' AND expired IS NULL AND delayed"), "delayed")
        .when(f.expr("settled = 'returned' AND expired IS NULL"), "returned")
        .otherwise("gone")
    )
    due = f.when(f.col("settled_due"), 0).otherwise(1)
    ended_index = f.coalesce("ended_index", nothing)
    delivered = f.lit("delivered")
    # What an outcome delivers was there before it: what carries its index made room for it.
    after = f.col("offset") + FOLLOWS
    birth = f.col("birth_position").isNotNull()
    begins = born.withColumn(
        "begins", f.coalesce("birth_position", "numbered_position")
    ).withColumn("moment", f.when(birth, f.col("deliver_at")))
    parts = [
        _step(
            begins,
            f.lit("numbered"),
            "begins",
            f.when(birth, 0).otherwise(f.col("numbered_phase")),
            f.when(birth, -1).otherwise(f.col("numbered_index")),
            f.col("sequence"),
        ),
        _gone(numbered),
        _limits(tables),
        _step(
            settled.withColumn("selector", f.col("settled")),
            back,
            "settled_position",
            due,
            ended_index,
            f.col("delivery"),
        ),
        *offered,
        _step(deliveries, delivered, "position", f.col("phase"), f.col("index"), after),
        *_group_steps(tables, recorded),
        *_fifo_steps(tables, deliveries),
        *_order_steps(tables),
    ]
    return reduce(DataFrame.unionByName, parts)


def _gone(kept: DataFrame) -> DataFrame:
    """Steps of what left other than by a delivery."""
    gone = kept.where(
        "fate IN ('removed', 'moved', 'purged', 'dropped', 'expired') "
        "AND NOT coalesce(on_return, false)"
    )
    # What goes with its subscription goes after what came back to it.
    left = f.when(f.col("fate_due"), 0).otherwise(1)
    # So does what follows into the error destination; what is moved by hand may as well.
    late = "fate = 'dropped' OR fate IN ('expired', 'moved') AND NOT fate_due"
    last = f.when(f.expr(late), LAST).otherwise(0)
    return _step(gone, f.lit("gone"), "fate_position", left, last, f.lit(0))


def _lost(recorded: DataFrame) -> DataFrame:
    """Where sessions were lost: what they give back is there for deliveries that follow that."""
    return (
        recorded.where("kind = 'SessionEnded' AND session_sequence = 0")
        .groupBy("position", "session")
        .agg(f.min("index").alias("ended_index"))
        .select(f.col("position").alias("settled_position"), "session", "ended_index")
    )


def _delayed(
    tables: Tables, settled: DataFrame, kept: DataFrame
) -> tuple[DataFrame, list[DataFrame]]:
    """Settled deliveries with whether each was delayed; steps of what was offered after that."""
    if tables.facts.walk is None:
        return settled.withColumn("delayed", f.lit(False)), []
    told = delays_in(tables.facts.walk)
    keys = [*MESSAGE, "holder"]
    late = told.where("what = 'delayed'").select(
        *keys, f.col("position").alias("settled_position"), f.lit(True).alias("was_delayed")
    )
    settled = (
        settled.join(late.distinct(), [*keys, "settled_position"], how="left")
        .withColumn("delayed", f.coalesce("was_delayed", f.lit(False)))
        .drop("was_delayed")
    )
    offered = told.where("what = 'offered'").drop("what")
    again = kept.select(*keys, *PLACES[:2], "message_id", "priority", "sequence").join(
        offered, keys, how="inner"
    )
    where = ("position", f.col("phase"), f.col("index"), f.lit(0))
    step = _step(again, f.lit("returned"), *where)
    return settled, [step]


def _step(
    frame: DataFrame, what: Column, position: str, phase: Column, index: Column, offset: Column
) -> DataFrame:
    have = set(frame.columns)

    def given(name: str, kind: DataType, otherwise: Any) -> Column:
        value = f.col(name) if name in have else f.lit(None)
        return f.coalesce(value.cast(kind), f.lit(otherwise).cast(kind)).alias(name)

    return frame.select(
        *PLACES,
        f.col(position).alias("position"),
        phase.cast(LONG).alias("phase"),
        index.cast(LONG).alias("index"),
        offset.cast(LONG).alias("offset"),
        what.alias("what"),
        "put_position",
        "put_index",
        "message_id",
        "priority",
        given("sequence", LONG, -1),
        given("session", LONG, -1),
        given("selector", TEXT, ""),
        given("persistent", FLAG, None),
        given("enqueued_at", LONG, 0),
        given("header", TEXT, None),
        given("consumer", LONG, 0),
        given("unit", LONG, -1),
        given("moment", LONG, 0),
        "stay",
    )
