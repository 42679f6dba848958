"""What a quota held up, and where the outcomes answer it (PROTOCOL.md §16).

A put that waits has its number in its session and no reply; another entry, which makes room for it
or lets its time run out, brings that. When this is, depends on all other sessions: the tables take
it from the outcomes, as they take deliveries, and the rebuild says whether it is right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.derivation.acts import LATE_MAX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# Settings with which a put may have to wait.
LIMITS = r'"(messages_max|bytes_max|segments_max)":[1-9]'
REPLY = ["position", "session", "session_sequence"]


@dataclass(frozen=True, slots=True)
class Late:
    """Which operations waited, and the replies that they got.

    Attributes:
        waiting: Positions of Puts and Commits that no outcome of their own entry answers.
        replies: A row for each later reply: phase, `order` within it, and `number` as `Act.late`;
            None where nothing waits.
    """

    waiting: frozenset[int] = field(default_factory=frozenset)
    replies: DataFrame | None = None

    def without(self, outcomes: DataFrame) -> DataFrame:
        """The outcomes that are no late replies."""
        if self.replies is None:
            return outcomes
        late = self.replies.select("position", f.col("order").alias("index"))
        return outcomes.join(f.broadcast(late), ["position", "index"], how="left_anti")


def late_replies(
    operations: DataFrame, outcomes: DataFrame, rebuilt: DataFrame | None = None
) -> Late:
    """Finds what had to wait in a log; one without quotas has nothing.

    Above the last outcome that was recorded, the worker may not have answered yet: there the
    outcomes of the rebuild tell what waits, and without these nothing is taken to.
    """
    if operations.where(f.col("settings").rlike(LIMITS)).isEmpty():
        return Late()
    columns = [*REPLY, "index", "kind", "reason"]
    numbered = "kind != 'Delivered' AND session_sequence > 0"
    replies = outcomes.where(numbered).select(*columns).distinct()
    highest = outcomes.agg(f.max("position")).collect()[0][0]
    above = f.col("position") > f.lit(-1 if highest is None else highest)
    asked = operations.where("kind IN ('Put', 'Commit')")
    if rebuilt is None:
        asked = asked.where(~above)
    else:
        replies = replies.unionByName(rebuilt.where(numbered).where(above).select(*columns))
    unanswered = asked.select(*REPLY).join(replies, REPLY, how="left_anti").collect()
    if not unanswered:
        return Late()
    spark = operations.sparkSession
    names = {(row["session"], row["session_sequence"]) for row in unanswered}
    held = spark.createDataFrame(sorted(names), "session long, session_sequence long")
    # A retry at the entry that brings the answer is answered with it, behind it.
    own = (
        replies.join(operations.select(*REPLY), REPLY, how="left_semi")
        .groupBy("position")
        .agg(f.max("index").alias("own_index"))
    )
    before = f.expr("own_index IS NULL OR index < own_index")
    late = (
        replies.join(f.broadcast(held), ["session", "session_sequence"], how="inner")
        .join(own, "position", how="left")
        .where("NOT (index <=> own_index)")
        .select(
            *REPLY,
            "kind",
            f.col("reason").alias("text"),
            f.col("index").alias("order"),
            f.when(before, 0).otherwise(1).alias("phase"),
            f.when(before, f.col("index") - LATE_MAX).otherwise(f.col("index") + 1).alias("number"),
        )
    )
    return Late(frozenset(row["position"] for row in unanswered), late)
