"""What a law is: a sentence about every history, and the query that finds what breaks it.

Queries are Spark SQL over the frames of `Facts`, each row of which names its queue manager, so that
one run judges many logs at once. What a query finds has the columns `FINDING`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# `position` is where it shows, `store` where the queue, topic or subscription was made; -1: none.
FINDING = (
    "queue_manager",
    "law",
    "kind",
    "position",
    "store",
    "sequence",
    "session",
    "summary",
    "expected",
    "found",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A law: a letter that reports name it by, its sentence, and queries for what breaks it.

    Each query gives `queue_manager`, `position`, `store`, `sequence`, `session`, `summary`,
    `expected` and `found`; `kinds` has for each the audit's word for what it finds.
    """

    letter: str
    sentence: str
    kinds: tuple[str, ...]
    queries: tuple[str, ...]


class Facts:
    """What laws are asked of: what was written, what was answered, what the fold states.

    `operations` are rows of `OPERATION_COLUMNS`, `outcomes` those on the lanes, `moves` those of
    `MOVE_COLUMNS`, `clock` those of `CLOCK_COLUMNS`, `standing` those of `STANDING_COLUMNS`, each
    with `queue_manager`.
    """

    def __init__(
        self,
        spark: SparkSession,
        operations: DataFrame,
        outcomes: DataFrame,
        moves: DataFrame,
        clock: DataFrame,
        standing: DataFrame,
    ) -> None:
        self._spark = spark
        self._frames = {
            "operations": operations,
            "outcomes": outcomes,
            "moves": moves,
            "clock": clock,
            "standing": standing,
        }

    def judge(self, laws: tuple[Law, ...]) -> DataFrame:
        """What breaks some of the laws, as rows of `FINDING`."""
        found = None
        for law in laws:
            for kind, query in zip(law.kinds, law.queries, strict=True):
                rows = self.query(query).selectExpr(
                    "queue_manager",
                    f"'{law.letter}' AS law",
                    f"'{kind}' AS kind",
                    "CAST(position AS BIGINT) AS position",
                    "CAST(store AS BIGINT) AS store",
                    "CAST(sequence AS BIGINT) AS sequence",
                    "CAST(session AS BIGINT) AS session",
                    "summary",
                    "CAST(expected AS STRING) AS expected",
                    "CAST(found AS STRING) AS found",
                )
                found = rows if found is None else found.unionByName(rows)
        assert found is not None, "there are laws"
        return found

    def query(self, text: str) -> DataFrame:
        """The answer to a query over the frames, which it names in braces."""
        named = {name for name in (*self._frames, *DERIVED) if f"{{{name}}}" in text}
        frames: dict[str, Any] = {name: self._frame(name) for name in sorted(named)}
        return self._spark.sql(text, **frames)

    def _frame(self, name: str) -> DataFrame:
        if name not in self._frames:
            self._frames[name] = self.query(DERIVED[name]).cache()
        return self._frames[name]


# Operations that took their number in their session, with their reply: the first at each number
# that was not turned away. What waited was answered later; `reply` is null while it waits.
APPLIED = """
WITH
turned AS (
    SELECT queue_manager, session, session_sequence, position FROM {outcomes}
    WHERE kind = 'Refused' AND reason IN (
        'session-unknown', 'session-sequence-gap', 'session-window-full', 'reply-forgotten')
),
fresh AS (
    SELECT queue_manager, session, session_sequence, min(position) AS position
    FROM {operations}
        LEFT ANTI JOIN turned USING (queue_manager, session, session_sequence, position)
    WHERE session_sequence > 0
    GROUP BY ALL
),
answered AS (
    SELECT queue_manager, session, session_sequence,
        min_by(struct(position, kind, number, count, runs, reason), (position, index)) AS reply
    FROM {outcomes}
        LEFT ANTI JOIN turned USING (queue_manager, session, session_sequence, position)
    WHERE session_sequence > 0
    GROUP BY ALL
)
SELECT operation.*, reply.position AS replied_at, reply.kind AS reply, reply.number AS reply_number,
    reply.count AS reply_count, reply.runs AS reply_runs, reply.reason AS reply_reason
FROM fresh
JOIN {operations} AS operation USING (queue_manager, session, session_sequence, position)
LEFT JOIN answered USING (queue_manager, session, session_sequence)
"""

# Deliveries from when they went into flight until they left it; `left_at` is null in flight.
FLIGHTS = """
SELECT queue_manager, session, delivery,
    min_by(position, (position, step)) AS position,
    min_by(store, (position, step)) AS store,
    min_by(sequence, (position, step)) AS sequence,
    min_by(consumer, (position, step)) AS consumer,
    min_by(backouts, (position, step)) AS backouts,
    count(*) AS moves,
    max(IF(is_out, position, NULL)) AS left_at,
    max(IF(is_out, after, NULL)) AS left_to,
    max(IF(is_out, cause, NULL)) AS left_as,
    max(IF(is_out, backouts, NULL)) AS left_backouts,
    max(IF(is_out, uncounted, NULL)) AS left_uncounted
FROM (
    SELECT *, before IN ('unacknowledged', 'uncommitted get') AS is_out FROM {moves}
    WHERE delivery > 0
)
GROUP BY queue_manager, session, delivery
"""
DERIVED = {"applied": APPLIED, "flights": FLIGHTS}
