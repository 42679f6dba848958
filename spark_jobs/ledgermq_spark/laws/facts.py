"""What laws are asked of: frames of a history, and all frames that follow from these.

Queries are Spark SQL over the frames of `Facts`, each row of which names its queue manager, so that
one run judges many logs at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

from ledgermq_spark.laws import session_frames
from ledgermq_spark.laws.engines.engine import Engine, Pass, Rows
from ledgermq_spark.laws.law import FOUND, ORDER, Breach, Law
from ledgermq_spark.laws.limits import message_frames, room_frames
from ledgermq_spark.laws.once import ids, sources
from ledgermq_spark.laws.order import judging, store_events
from ledgermq_spark.laws.places import directory
from ledgermq_spark.laws.refusals import refusals
from ledgermq_spark.laws.storage import relocations, segments
from ledgermq_spark.laws.stretches import carried_operations
from ledgermq_spark.tables import all_tables

RAW = ("operations", "outcomes", "moves", "clock", "standing", "segments")
# What is carried into a stretch of a log besides rows of the other frames (`carried`): where the
# stretch begins, being the last position before it; what stood then, and what segments had; what is
# known of each store, as law F goes on from it. Here as it is where a log is judged from its
# beginning: nothing.
BEFORE = {
    "since": "SELECT queue_manager, position FROM {clock} WHERE FALSE",
    "stood": "SELECT * FROM {standing} WHERE FALSE",
    "segments_before": "SELECT * FROM {segments} WHERE FALSE",
    "stores_before": "SELECT queue_manager, position AS store, position AS number, kind AS text "
    "FROM {operations} WHERE FALSE",
}
# So many findings of each query are told.
FOUND_MAX = 10_000


class Facts:
    """What laws are asked of: what was written, what was answered, what the fold states.

    Of the frames, `operations` has rows of `OPERATION_COLUMNS`, `outcomes` of `OUTCOME_COLUMNS`,
    `moves` those of `MOVE_COLUMNS`, `clock` of `CLOCK_COLUMNS`, `standing` of `STANDING_COLUMNS`,
    `segments` of `SEGMENT_COLUMNS`, each with `queue_manager`.
    """

    def __init__(self, engine: Engine, frames: Mapping[str, Any]) -> None:
        """What is worked out of frames of the engine is kept once, under its name."""
        self.engine = engine
        raw = {name: frames[name] for name in RAW}
        nothing = {
            name: engine.ask(query, raw) for name, query in BEFORE.items() if name not in frames
        }
        self._frames = nothing | {**frames}
        self._given = frozenset(frames)
        self._asked: defaultdict[str, list[str]] = defaultdict(list)
        self._has_past = "since" in frames
        if not self._has_past:
            self._frames["new_moves"] = frames["moves"]
            self._asked["new_moves"] = ["{moves}"]
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def behind(self, carried: Mapping[str, Any]) -> Facts:
        """These as facts of stretches, with what was carried into each (`stretches.carried`).

        Findings are then of what is behind the carried past, which looks broken by itself.
        """
        own = {name: frame for name, frame in self._frames.items() if name in RAW}
        joined = {
            name: self.engine.together(name, frame, carried[name]) if name in carried else frame
            for name, frame in own.items()
        }
        before = {name: frame for name, frame in carried.items() if name in BEFORE}
        return Facts(self.engine, joined | before)

    def judge(self, laws: tuple[Law, ...], most: int = FOUND_MAX) -> Rows:
        """What breaks some of the laws: `queue_manager`, `law`, `kind` and the columns `FOUND`.

        Of each query these are the first rows, by position.
        """

        def ask(law: Law, breach: Breach) -> Rows:
            return self.rows(FIRST, found=self.finding(law, breach), most=most)

        asked = [(law, one) for law in laws for one in law.breaches]
        with ThreadPoolExecutor(max_workers=self.engine.at_once) as pool:
            each = pool.map if self.engine.at_once > 1 else map
            return [row for rows in each(lambda one: ask(*one), asked) for row in rows]

    def finding(self, law: Law, breach: Breach) -> Any:
        """What one query of a law finds, of a stretch: in it, or of how it ends (position -1)."""
        columns = ", ".join(FOUND)
        text = f"SELECT queue_manager, '{law.letter}' AS law, '{breach.kind}' AS kind, {columns}"
        found = self.query(f"{text} FROM {{broken}}", broken=self.query(breach.query))
        return self.query(OF_STRETCH, found=found) if self._has_past else found

    def query(self, text: str, **given: Any) -> Any:
        """The engine's answer to a query over the frames and those given, named in braces."""
        named = {name for name in (*self._frames, *DERIVED) if f"{{{name}}}" in text}
        frames = {name: self.frame(name) for name in sorted(named - given.keys())} | given
        return self.engine.ask(text, frames)

    def rows(self, text: str, **given: Any) -> Rows:
        """The rows of the answer."""
        return self.engine.rows(self.query(text, **given))

    def frame(self, name: str) -> Any:
        """One of the frames, worked out if it follows from others."""
        with self._locks[name]:
            if name not in self._frames:
                made = DERIVED[name]
                text = made.query if isinstance(made, Pass) else made
                self._asked[name].append(text)
                answer = self.query(text)
                self._frames[name] = (
                    self.engine.passed(name, answer, made)
                    if isinstance(made, Pass)
                    else self.engine.keep(name, answer)
                )
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
        return {row["name"]: row["rows"] for row in self.rows(" UNION ALL ".join(each))}


# The first rows of what was found.
FIRST = f"SELECT * FROM {{found}} ORDER BY {', '.join(ORDER)} LIMIT {{most}}"
OF_STRETCH = """
SELECT found.* FROM {found} AS found LEFT JOIN {since} AS begin USING (queue_manager)
WHERE found.position < 0 OR found.position > coalesce(begin.position, -1)
"""
# A frame is made by a query, or by a pass over the rows of one.
Made = str | Pass
OWN: dict[str, Made] = {"disorder": judging.JUDGED, "stores_left": judging.LEFT}
# Moves of a stretch itself.
OWN["new_moves"] = """
SELECT moves.* FROM {moves} AS moves LEFT JOIN {since} AS begin USING (queue_manager)
WHERE moves.position > coalesce(begin.position, -1)
"""
# Those by which what nobody puts comes to a queue or topic: moved, copied, handed on, or expired.
OWN["arrived"] = """
SELECT * FROM {new_moves} WHERE before = 'new' AND session < 0 AND kind <> 'subscription'
"""
# Operations that took their number in their session, with their reply: the first at each number
# that was not turned away. What waited was answered later; `reply` is null while it waits. A put
# `has_vanished` if it says that it was put before; law Q asks whether it was.
OWN["applied"] = """
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
OWN["flights"] = """
SELECT queue_manager, session, delivery, begun.position AS position, begun.store AS store,
    begun.sequence AS sequence, begun.consumer AS consumer, begun.backouts AS backouts, left_at,
    left_to, left_as, left_backouts
FROM (
    SELECT queue_manager, session, delivery,
        min(struct(position, step, store, sequence, consumer, backouts)) AS begun,
        max(IF(is_out, position, NULL)) AS left_at,
        max(IF(is_out, after, NULL)) AS left_to,
        max(IF(is_out, cause, NULL)) AS left_as,
        max(IF(is_out, backouts, NULL)) AS left_backouts
    FROM (
        SELECT *, before IN ('unacknowledged', 'uncommitted get') AS is_out FROM {moves}
        WHERE delivery > 0
    )
    GROUP BY queue_manager, session, delivery
)
"""

# Each message of each delivery, as the lanes tell it.
OWN["lane_deliveries"] = """
SELECT queue_manager, position, index, session, first_delivery + at AS delivery,
    consumer AS told_consumer, destination AS told_destination, told_sequence,
    put_positions[at] AS told_position, put_indexes[at] AS told_index,
    backout_counts[at] AS told_backouts, enqueued_ats[at] AS enqueued_at,
    message_ids[at] AS told_id, priorities[at] AS told_priority,
    persistent[at] AS told_persistent, get(origins, at) AS origin
FROM {outcomes} LATERAL VIEW posexplode(sequences) AS at, told_sequence
WHERE kind = 'Delivered'
"""

# Deliveries that operations name, with the kind of each. Ranges may have any length if they were
# refused, or come after administration ended the unit of work: the former are not taken apart, the
# latter from 0 up to one delivery more than the session was given.
OWN["named"] = """
WITH
given AS (SELECT queue_manager, session, max(delivery) AS highest FROM {flights} GROUP BY ALL),
ranges AS (
    SELECT queue_manager, session, replied_at AS position, kind, flag, redelivery_delay_ms,
        greatest(first, 0) AS first,
        least(range_last[at], greatest(first, coalesce(highest, 0) + 1)) AS last
    FROM {applied} LEFT JOIN given USING (queue_manager, session)
        LATERAL VIEW posexplode(range_first) AS at, first
    WHERE reply <> 'Refused' AND kind IN ('Acknowledge', 'Commit', 'Rollback', 'Recover', 'Close',
        'CloseConsumer', 'GiveBack', 'Reject') AND range_last[at] >= greatest(first, 0)
)
SELECT queue_manager, session, position, kind, flag, redelivery_delay_ms, delivery
FROM ranges LATERAL VIEW explode(sequence(first, last)) AS delivery
"""

# Deliveries that an application rejected for good, which go at once, whatever their limit, or put
# back, with the delay that it asked for.
OWN["rejections"] = """
SELECT queue_manager, session, position, delivery, NOT flag AS is_rejected,
    IF(redelivery_delay_ms >= 0, redelivery_delay_ms, NULL) AS asked_ms
FROM {named} WHERE kind = 'Reject'
"""

# Messages that a Correct put right, where it was not refused.
OWN["corrected"] = """
SELECT queue_manager, number AS sequence, replied_at AS position FROM {applied}
WHERE kind = 'Correct' AND reply <> 'Refused'
"""
DERIVED: dict[str, Made] = {}
for frames in (
    OWN,
    all_tables.DERIVED,
    segments.FRAMES,
    relocations.FRAMES,
    session_frames.FRAMES,
    sources.FRAMES,
    ids.FRAMES,
    refusals.FRAMES,
    directory.FRAMES,
    store_events.FRAMES,
    message_frames.FRAMES,
    room_frames.FRAMES,
    carried_operations.FRAMES,
):
    assert not DERIVED.keys() & frames.keys(), "a name of a frame means one thing"
    DERIVED |= frames
