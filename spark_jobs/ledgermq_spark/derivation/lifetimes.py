"""When messages expired and when they came to be delivered (PROTOCOL.md §5 Expiry), by log time.

A moment falls due at the first entry whose state time has reached it, before that entry is applied;
one that had passed when the message was numbered falls due with the numbering.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from ledgermq_spark.derivation.rounding import ROUNDING_US

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ledgermq_spark.derivation.directory import Directory


# A message that is there and not to be delivered yet.
UNBORN = "fate = 'resident' AND deliver_at IS NOT NULL AND birth_position IS NULL"
DELAYED = "fate = 'resident' AND delayed AND NOT held"
# Columns that say when a message expires and is born; all null where nothing is timed.
EXPIRY = ("expires_at", "deliver_at", "expiry_position", "expiry_due", "birth_position")


def with_lifetimes(
    messages: DataFrame, times: DataFrame, directory: Directory, *, timed: bool
) -> DataFrame:
    """Messages with their moments, in µs, and the positions at which these fall due.

    `expiry_due` and a `birth_position` after the numbering fall due before their entry;
    `birth_position` is null for a message that may be delivered from the beginning, and for one
    that is not born yet, which has a `deliver_at`.
    """
    if not timed:
        kinds = {"expiry_due": "boolean"}
        for name in EXPIRY:
            none = f.lit(None).cast(kinds.get(name, "long"))
            messages = messages.withColumn(name, none)
        return messages
    sent = f.col("put_at") - f.coalesce(_given("a"), f.lit(0)) * 1000
    overridden = _overridden(messages, directory)
    told = overridden.withColumn(
        "expires_at", _moment(sent, _instead("life", _given("l")))
    ).withColumn("deliver_at", _moment(sent, _instead("delay", _given("d"))))
    told = told.drop("life", "delay")
    moments = (
        told.select(f.col("expires_at").alias("at"))
        .unionByName(told.select(f.col("deliver_at").alias("at")))
        .where("at IS NOT NULL")
        .distinct()
    )
    due = due_positions(moments, times)
    for name in ("expires_at", "deliver_at"):
        told = told.join(
            f.broadcast(due.withColumnsRenamed({"at": name, "due": f"{name}_due"})),
            name,
            how="left",
        )
    numbered = f.col("numbered_position")
    return (
        told.withColumn(
            "expiry_position",
            f.when(
                f.col("expires_at_due").isNotNull() & numbered.isNotNull(),
                f.greatest("expires_at_due", numbered),
            ),
        )
        .withColumn("expiry_due", f.col("expires_at_due") > numbered)
        .withColumn(
            "birth_position", f.when(f.col("deliver_at_due") > numbered, f.col("deliver_at_due"))
        )
        # What had come when it was numbered is as if it had never been asked for.
        .withColumn(
            "deliver_at",
            f.when(
                f.col("deliver_at_due").isNull() | (f.col("deliver_at_due") > numbered),
                f.col("deliver_at"),
            ),
        )
        .drop("expires_at_due", "deliver_at_due")
    )


def _given(name: str) -> Column:
    """A number of the header, in ms."""
    return f.get_json_object("header", f"$.{name}").cast("long")


def _overridden(messages: DataFrame, directory: Directory) -> DataFrame:
    """With the `life` and `delay` in ms that the destination gave messages at their Put, or -1."""
    steps: dict[str, list[tuple[int, int, int]]] = {}
    for one in directory.lifetimes:
        steps.setdefault(one.queue, []).append((one.created, -1, -1))
    for queue, _, position, told in directory.settings:
        life, delay = told.time_to_live_override_ms, told.delivery_delay_override_ms
        steps.setdefault(queue, []).append((position, life, delay))
    rows = []
    for queue, found in steps.items():
        # Of a queue that is made with settings, these stand behind its creation.
        found.sort(key=lambda step: step[0])
        ends = [*(step[0] for step in found[1:]), None]
        rows += [
            (queue, since, until, life, delay)
            for (since, life, delay), until in zip(found, ends, strict=True)
            if (life, delay) != (-1, -1)
        ]
    if not rows:
        none = f.lit(-1).cast("long")
        return messages.withColumn("life", none).withColumn("delay", none)
    frame = messages.sparkSession.createDataFrame(
        rows, "name string, since long, until long, life long, delay long"
    )
    put = f.expr(
        "queue = name AND since < put_position AND (until IS NULL OR put_position < until)"
    )
    least = f.lit(-1)
    return (
        messages.join(f.broadcast(frame), put, how="left")
        .withColumn("life", f.coalesce("life", least))
        .withColumn("delay", f.coalesce("delay", least))
        .drop("name", "since", "until")
    )


def _instead(name: str, given: Column) -> Column:
    """What the destination says, or else the sender, in ms; null: nothing."""
    told = f.when(f.col(name) >= 0, f.col(name)).otherwise(given)
    return f.when(told > 0, told)


def _moment(sent: Column, after_ms: Column) -> Column:
    """So long after the send, rounded up."""
    exact = sent + after_ms * 1000
    return (f.ceil(exact / ROUNDING_US) * ROUNDING_US).cast("long")


def due_positions(moments: DataFrame, times: DataFrame) -> DataFrame:
    """The position at which each moment (`at`) falls due; null where the log ends before."""
    none = f.lit(None).cast("long")
    merged = moments.select("at", f.lit(0).alias("entry"), none.alias("p")).unionByName(
        times.select(
            f.col("state_time").alias("at"), f.lit(1).alias("entry"), f.col("position").alias("p")
        )
    )
    from_here = Window.orderBy("at", "entry", "p").rowsBetween(0, Window.unboundedFollowing)
    return (
        merged.withColumn("due", f.first("p", ignorenulls=True).over(from_here))
        .where("entry = 0")
        .select("at", "due")
    )


def settled_by(deliveries: DataFrame, keys: list[str], *, timed: bool) -> DataFrame:
    """What deliveries came to: how many, backouts, where one was consumed, whether one is held.

    `flights` are all of them where messages expire, otherwise the last one.
    """
    consumed = f.col("settled").isin("acknowledged", "committed")
    flight = f.struct("position", "phase", "index", "settled", "settled_position", "settled_due")
    return deliveries.groupBy(*keys).agg(
        f.count("*").alias("deliveries"),
        f.sum(f.when(f.col("seen"), 1).otherwise(0)).alias("backout_count"),
        f.max(f.when(consumed, f.col("settled_position"))).alias("consumed_position"),
        f.sum(f.expr("if(blame = 'uncounted', 1, if(blame IS NULL, NULL, 0))")).alias("uncounted"),
        f.max(f.expr("settled = 'open'")).alias("held"),
        (f.collect_list(flight) if timed else f.array(f.max(flight))).alias("flights"),
    )


def filled(messages: DataFrame) -> DataFrame:
    """Messages joined with `settled_by`, where nothing was delivered as where something was."""
    zero = f.lit(0)
    return (
        messages.withColumn("deliveries", f.coalesce("deliveries", zero))
        .withColumn("backout_count", f.coalesce("backout_count", zero))
        .withColumn("held", f.coalesce("held", f.lit(False)))
        .withColumn("uncounted_backout_count", f.coalesce("uncounted", f.lit(-1)))
        .drop("uncounted")
    )


def with_expiry(messages: DataFrame) -> DataFrame:
    """Where each message expired that nobody had consumed: when it was due, or when it came back.

    A pass over the log may have told that already. Messages have `flights`, as `settled_by` tells
    them. Who held a message when it was due, the last delivery before that says: of what is claimed
    to be delivered later, it had expired. `expired_due` says that it went before the entry at
    `expired_position` was applied, `on_return` that it expired because it came back.
    """
    if "expired_position" in messages.columns:
        return messages.drop("flights").withColumn(
            "on_return", f.coalesce("on_return", f.lit(False))
        )
    last = f.expr(
        "array_max(filter(flights, "
        "one -> expiry_position IS NULL OR one.position < expiry_position))"
    )
    back = f.expr("last.settled = 'returned' AND last.settled_position >= expiry_position")
    waits = f.expr("last IS NULL OR last.settled = 'returned'")
    return (
        messages.withColumn("last", last)
        .withColumn("on_return", f.coalesce(back, f.lit(False)))
        .withColumn(
            "expired_position",
            f.when(f.col("on_return"), f.col("last.settled_position")).when(
                waits, f.col("expiry_position")
            ),
        )
        .withColumn(
            "expired_due",
            f.when(f.col("on_return"), f.col("last.settled_due")).otherwise(f.col("expiry_due")),
        )
        .drop("last", "flights")
    )


def expired(until: str) -> Column:
    """Whether it expired before what it was in went (at the position of a column, if it did).

    At one place what is due, and what comes back, expires before queues and subscriptions end;
    what had expired before it was numbered, after that.
    """
    at = f.col("expired_position")
    first = (at < f.col(until)) | (at == f.col(until)) & (f.col("on_return") | f.col("expired_due"))
    return at.isNotNull() & (f.col(until).isNull() | first)


def born(gone: Column) -> Column:
    """The birth's position of a message that was not gone by then.

    What is due expires before anything is born; what an entry removes was there for its births.
    """
    birth = f.col("birth_position")
    over = f.col("expired_due") & (f.col("fate") == "expired") & (gone == birth)
    return f.when(gone.isNull() | (gone > birth) | (gone == birth) & ~over, birth)
