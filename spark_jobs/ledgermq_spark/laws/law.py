"""What a law is: a sentence about every history, and the query that finds what breaks it.

Queries are Spark SQL over the frames of `Facts`, each row of which names its queue manager, so that
one run judges many logs at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgermq_spark.laws import consumers, directory, entry_frames, session_frames
from ledgermq_spark.laws.deduplication import id_frames
from ledgermq_spark.laws.limits import message_frames, room_frames
from ledgermq_spark.laws.order import judging, store_events
from ledgermq_spark.laws.refusals import refusal_frames, text_checks
from ledgermq_spark.laws.sources import source_frames
from ledgermq_spark.laws.storage import relocations, segment_frames
from ledgermq_spark.laws.stretches import carried_operations
from ledgermq_spark.tables import all_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

# The columns of what a query finds: `position` is where it shows, `store` where the queue, topic or
# subscription was made; -1: none.
FOUND = (
    "CAST(position AS BIGINT) AS position",
    "CAST(store AS BIGINT) AS store",
    "CAST(sequence AS BIGINT) AS sequence",
    "CAST(session AS BIGINT) AS session",
    "summary",
    "CAST(expected AS STRING) AS expected",
    "CAST(found AS STRING) AS found",
)


RAW = ("operations", "outcomes", "moves", "clock", "standing", "segments")
# What is carried into a stretch of a log besides rows of the other frames (`carried`): where the
# stretch begins, being the last position before it; what stood then, and what segments had; what is
# known of each store, as law F goes on from it. Empty where a log is judged from its beginning.
BEFORE = {
    "since": "queue_manager STRING, position BIGINT",
    "stood": "queue_manager STRING, store BIGINT, kind STRING, what STRING, count BIGINT, "
    "size_bytes BIGINT",
    "segments_before": "queue_manager STRING, segment BIGINT, is_active BOOLEAN, "
    "appended_bytes BIGINT, live_bytes BIGINT, live_messages BIGINT",
    "stores_before": "queue_manager STRING, store BIGINT, number BIGINT, text STRING",
}
# What one driver plans side by side; a cluster may have any number of cores.
QUERIES_AT_ONCE_MAX = 16
ORDER = ("position", "law", "kind", "store", "sequence", "session")
Keep = Callable[[str, "DataFrame"], "DataFrame"]


class Breach(NamedTuple):
    """One way to break a law: the audit's word for it, and the query that finds it."""

    kind: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A law: a letter that reports name it by, its sentence, and what breaks it."""

    letter: str
    sentence: str
    breaches: tuple[Breach, ...]


class Facts:
    """What laws are asked of: what was written, what was answered, what the fold states.

    Of the frames, `operations` has rows of `OPERATION_COLUMNS`, `outcomes` those on the lanes,
    `moves` those of `MOVE_COLUMNS`, `clock` of `CLOCK_COLUMNS`, `standing` of `STANDING_COLUMNS`,
    `segments` of `SEGMENT_COLUMNS`, each with `queue_manager`.
    """

    def __init__(self, spark: SparkSession, frames: dict[str, DataFrame], keep: Keep) -> None:
        """What is worked out of them is kept once, under its name."""
        self.spark = spark
        # What is known to be empty is planned away.
        none = {
            name: spark.createDataFrame([], columns).limit(0) for name, columns in BEFORE.items()
        }
        self._frames = none | frames
        self._given = frozenset(frames)
        self._asked: defaultdict[str, list[str]] = defaultdict(list)
        self._has_past = "since" in frames
        if not self._has_past:
            self._frames["new_moves"] = frames["moves"]
            self._asked["new_moves"] = ["{moves}"]
        self._keep = keep
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def behind(self, carried: dict[str, DataFrame]) -> Facts:
        """These as facts of stretches, with what was carried into each (`stretches.carried`).

        Findings are then of what is behind the carried past, which looks broken by itself.
        """
        own = {name: frame for name, frame in self._frames.items() if name in RAW}
        joined = {
            name: frame.unionByName(carried[name]) if name in carried else frame
            for name, frame in own.items()
        }
        before = {name: frame for name, frame in carried.items() if name in BEFORE}
        return Facts(self.spark, joined | before, self._keep)

    def judge(self, laws: tuple[Law, ...]) -> DataFrame:
        """What breaks some of the laws: `queue_manager`, `law`, `kind` and the columns `FOUND`."""
        text_checks.register(self.spark)
        found = [self.finding(law, breach) for law in laws for breach in law.breaches]
        return reduce(lambda one, other: one.unionByName(other), found)

    def judge_apart(self, laws: tuple[Law, ...], most: int = 10_000) -> list[Row]:
        """The same, query by query and several at once: the first rows of each, by position.

        Where logs are short, planning takes longer than running, and keeps one core busy a query.
        """
        text_checks.register(self.spark)

        def ask(law: Law, breach: Breach) -> list[Row]:
            return self.finding(law, breach).orderBy(*ORDER).limit(most).collect()

        cores = self.spark.sparkContext.defaultParallelism
        with ThreadPoolExecutor(max_workers=min(max(cores, 2), QUERIES_AT_ONCE_MAX)) as pool:
            asked = [pool.submit(ask, law, one) for law in laws for one in law.breaches]
            return [row for one in asked for row in one.result()]

    def finding(self, law: Law, breach: Breach) -> DataFrame:
        """What one query of a law finds, of a stretch: in it, or of how it ends (position -1)."""
        found = self.query(breach.query).selectExpr(
            "queue_manager", f"'{law.letter}' AS law", f"'{breach.kind}' AS kind", *FOUND
        )
        return self.query(OF_STRETCH, found=found) if self._has_past else found

    def query(self, text: str, **given: DataFrame) -> DataFrame:
        """The answer to a query over the frames and those given, which it names in braces."""
        named = {name for name in (*self._frames, *DERIVED) if f"{{{name}}}" in text}
        frames: dict[str, Any] = {name: self.frame(name) for name in sorted(named)} | given
        return self.spark.sql(text, **frames)

    def frame(self, name: str) -> DataFrame:
        """One of the frames, worked out if it follows from others."""
        with self._locks[name]:
            if name not in self._frames:
                made = DERIVED[name]

                def ask(text: str) -> DataFrame:
                    self._asked[name].append(text)
                    return self.query(text)

                frame = ask(made) if isinstance(made, str) else made(ask)
                self._frames[name] = self._keep(name, frame)
            return self._frames[name]

    def rests_on(self, text: str) -> frozenset[str]:
        """Which of the frames given a query was answered from, through all that follows from them.

        Known of what was asked before.
        """
        named = {name for name in (*self._given, *DERIVED) if f"{{{name}}}" in text}
        below = [self.rests_on(one) for name in named - self._given for one in self._asked[name]]
        return self._given.intersection(named).union(*below)

    def counts(self) -> dict[str, int]:
        """How many rows each of the frames given has."""
        each = (
            f"SELECT '{name}' AS name, count(*) AS rows FROM {{{name}}}" for name in self._given
        )
        return {row["name"]: row["rows"] for row in self.query(" UNION ALL ".join(each)).collect()}


OF_STRETCH = """
SELECT found.* FROM {found} AS found LEFT JOIN {since} AS begin USING (queue_manager)
WHERE found.position < 0 OR found.position > coalesce(begin.position, -1)
"""
# Moves of a stretch itself.
NEW_MOVES = """
SELECT moves.* FROM {moves} AS moves LEFT JOIN {since} AS begin USING (queue_manager)
WHERE moves.position > coalesce(begin.position, -1)
"""
# Operations that took their number in their session, with their reply: the first at each number
# that was not turned away. What waited was answered later; `reply` is null while it waits. A put
# `has_vanished` if it says that it was put before; law Q asks whether it was.
APPLIED = """
WITH
turned AS (
    SELECT queue_manager, session, session_sequence, position, index FROM {outcomes}
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
        min_by(struct(position, index, kind, reason, number, count, runs), (position, index))
            AS reply
    FROM {outcomes}
        -- Not all at the entry that was turned away: what waited may have been answered there.
        LEFT ANTI JOIN turned USING (queue_manager, session, session_sequence, position, index)
    WHERE session_sequence > 0
    GROUP BY ALL
)
SELECT operation.*, reply.position AS replied_at, reply.index AS reply_index, reply.kind AS reply,
    reply.number AS reply_number, reply.count AS reply_count, reply.runs AS reply_runs,
    IF(reply.kind = 'Refused', reply.reason, NULL) AS reply_reason,
    coalesce(deduplication_id IS NOT NULL AND reply.kind = 'Enqueued' AND reply.count = 0, FALSE)
        AS has_vanished
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
    max(IF(is_out, position, NULL)) AS left_at,
    max(IF(is_out, after, NULL)) AS left_to,
    max(IF(is_out, cause, NULL)) AS left_as,
    max(IF(is_out, backouts, NULL)) AS left_backouts
FROM (
    SELECT *, before IN ('unacknowledged', 'uncommitted get') AS is_out FROM {moves}
    WHERE delivery > 0
)
GROUP BY queue_manager, session, delivery
"""

# Deliveries that operations name, with the kind of each. What was refused may name ranges of any
# length: these are not taken apart.
NAMED = """
SELECT queue_manager, session, replied_at AS position, kind, delivery
FROM (
    SELECT * FROM {applied} WHERE reply <> 'Refused' AND kind IN (
        'Acknowledge', 'Commit', 'Rollback', 'Recover', 'Close', 'CloseConsumer', 'GiveBack')
)
    LATERAL VIEW posexplode(range_first) AS at, first
    LATERAL VIEW explode(sequence(first, range_last[at])) AS delivery
"""

# Messages that a Correct put right, where it was not refused.
CORRECTED = """
SELECT queue_manager, number AS sequence, replied_at AS position FROM {applied}
WHERE kind = 'Correct' AND reply <> 'Refused'
"""
# A frame is made by a query, or by what asks queries and goes on in Python.
Made = str | Callable[[Callable[[str], "DataFrame"]], "DataFrame"]
OWN: dict[str, Made] = {
    "new_moves": NEW_MOVES,
    "applied": APPLIED,
    "flights": FLIGHTS,
    "named": NAMED,
    "corrected": CORRECTED,
    "disorder": judging.judge_stores,
    "stores_left": judging.stores_left,
}
DERIVED: dict[str, Made] = {}
for frames in (
    OWN,
    all_tables.DERIVED,
    consumers.FRAMES,
    segment_frames.FRAMES,
    relocations.FRAMES,
    session_frames.FRAMES,
    source_frames.FRAMES,
    id_frames.FRAMES,
    entry_frames.FRAMES,
    refusal_frames.FRAMES,
    directory.FRAMES,
    store_events.FRAMES,
    message_frames.FRAMES,
    room_frames.FRAMES,
    carried_operations.FRAMES,
):
    assert not DERIVED.keys() & frames.keys(), "a name of a frame means one thing"
    DERIVED |= frames
