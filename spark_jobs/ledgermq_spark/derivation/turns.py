"""Checks claimed deliveries against the operations: available, in turn, not held already.

One pass per queue or subscription over what made messages available, took them and gave them back,
in the order of the log; written from PROTOCOL.md §5 "Delivery" (priority 9 first, then sequence
number), not from the fold. Of a consumer it knows the selector: it gets what that matches, and of
this nothing is passed over; of a session, how much of the queue it may hold. It knows nothing of
credit: who was served is the rebuild's matter.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.audit.evidence import Evidence, hexadecimal
from ledgermq_spark.derivation.fifo_turns import FIFO_STEPS, FifoTurns
from ledgermq_spark.derivation.group_steps import grouped_queues
from ledgermq_spark.derivation.group_turns import GroupTurns
from ledgermq_spark.derivation.held_back import KEEPS, HeldBack
from ledgermq_spark.derivation.matching import Selected, matches
from ledgermq_spark.derivation.step import Finding, MessageKey, Step
from ledgermq_spark.derivation.steps import PLACES, STEP_COLUMNS, kept_messages, steps_of
from ledgermq_spark.log.rows import BYTES, LONG, TEXT, arrow_batch, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ledgermq_spark.derivation.tables import Tables

__all__ = ["QueueTurns", "Step", "check_turns", "queue_refusals"]

EVIDENCE_MAX = 200
# A message where it is held: by a queue (holder -1) or a subscription.
HELD = ["put_position", "put_index", "stay", "holder"]
FINDING_COLUMNS = (
    ("kind", TEXT),
    ("queue", TEXT),
    ("position", LONG),
    ("index", LONG),
    ("session", LONG),
    ("message_id", BYTES),
    ("put_position", LONG),
    ("put_index", LONG),
    ("stay", LONG),
    ("holder", LONG),
    ("detail", TEXT),
)


Place = tuple[int, int, MessageKey]


class QueueTurns:
    """The messages of one queue or subscription as steps make them available and take them.

    One entry of the log may serve several consumers at once; what it delivers is taken together,
    because the outcomes stand in the order of consumers, not of messages.
    """

    def __init__(self, fifo: FifoTurns | None = None, held: HeldBack | None = None) -> None:
        self._fifo = fifo or FifoTurns()
        self._held_back = held or HeldBack()
        self._available: dict[MessageKey, tuple[int, int]] = {}
        self._held: dict[MessageKey, int] = {}
        self._holds: dict[int, int] = {}
        self._limit = 0
        self._numbered: dict[MessageKey, Step] = {}
        # By selector, what it matches; by "" all.
        self._orders: dict[str, list[Place]] = {"": []}
        self._together: list[Step] = []

    def take(self, step: Step) -> Iterator[Finding]:
        """Takes a step; yields findings as (kind, step, detail)."""
        together = self._together
        if together and (
            step.what != "delivered" or step[:2] != (together[0].position, together[0].phase)
        ):
            yield from self.finish()
        if step.what == "delivered":
            self._together.append(step)
            return
        if step.what == "limit":
            self._limit = step.sequence
            return
        message = step.message
        holder = self._held.pop(message, None)
        if holder is not None:
            self._holds[holder] -= 1
        if step.what == "gone":
            self._available.pop(message, None)
            self._numbered.pop(message, None)
            return
        if step.what == "delayed":
            return
        if step.what == "numbered":
            self._numbered[message] = step
        place = (-step.priority, step.sequence)
        self._available[message] = place
        for text, order in self._orders.items():
            if self._matches(text, message):
                heapq.heappush(order, (*place, message))

    def _matches(self, text: str, message: MessageKey) -> bool:
        """Whether a selector matches a numbered message; nothing is known of any other."""
        one = self._numbered.get(message)
        if not text or one is None:
            return True
        return matches(
            text,
            Selected(one.message_id, one.priority, one.persistent, one.enqueued_at, one.header),
        )

    def _order(self, text: str) -> list[Place]:
        """What a selector matches of the available messages, those that come first in front."""
        order = self._orders.get(text)
        if order is None:
            order = [
                (*place, message)
                for message, place in self._available.items()
                if self._matches(text, message)
            ]
            heapq.heapify(order)
            self._orders[text] = order
        while order and self._available.get(order[0][2]) != order[0][:2]:
            heapq.heappop(order)
        return order

    def finish(self) -> Iterator[Finding]:
        """Judges the deliveries taken together last."""
        together, self._together = self._together, []
        for earlier, later in pairwise(together):
            if earlier.index == later.index and _place(later) < _place(earlier):
                yield "reordered", later, f"it stands after message {earlier.sequence}"
        for step in sorted(together, key=_place):
            yield from self._delivered(step)

    def _delivered(self, step: Step) -> Iterator[Finding]:
        message = step.message
        if message in self._held:
            yield "duplicated", step, f"session {self._held[message]} holds it"
            return
        place = self._available.pop(message, None)
        if place is None:
            yield "unavailable", step, "the operations had not made it available"
            return
        self._held[message] = step.session
        holds = self._holds[step.session] = self._holds.get(step.session, 0) + 1
        if self._limit and holds > self._limit:
            yield (
                "unexpected",
                step,
                f"its session holds {holds}, at most {self._limit} are allowed",
            )
        if not self._matches(step.selector, message):
            yield "unexpected", step, f"the consumer's selector does not match it: {step.selector}"
            return
        if self._held_back.waits_for(message) is not None:
            yield "unexpected", step, "it waits for a delayed message of its group"
            return
        passed = self._passed_over(step, place)
        if passed is not None:
            urgency, sequence, (put_position, put_index, _) = passed
            # Told once for the message that was passed over.
            self._available.pop(passed[2])
            detail = (
                f"message {sequence} of priority {-urgency}, put at {put_position}:{put_index}, "
                f"was available and comes before message {step.sequence}"
            )
            yield "reordered", step, detail

    def _passed_over(self, step: Step, place: tuple[int, int]) -> Place | None:
        """What its consumer was to get before what it was given, if there is any."""
        order = self._order(step.selector)
        if not order or order[0][:2] >= place or self._fifo.goes_first(step.message):
            return None
        if not self._may_be_passed(order[0][2], step):
            return order[0]
        found = [one for one in order if one[:2] < place and self._available.get(one[2]) == one[:2]]
        return min((one for one in found if not self._may_be_passed(one[2], step)), default=None)

    def _may_be_passed(self, message: MessageKey, step: Step) -> bool:
        """Whether a message that is available comes later all the same."""
        return self._held_back.waits_for(message) is not None or self._is_later(message, step)

    def changed(self, name: str) -> None:
        """What is held back is looked at each time."""

    def _is_later(self, message: MessageKey, step: Step) -> bool:
        """Whether a message was born in the entry of a delivery, and maybe after that was made."""
        born, given = self._numbered.get(message), self._numbered.get(step.message)
        if born is None or not born.moment or born.position != step.position:
            return False
        if given is None or given.position != step.position:
            return True
        return given.moment < born.moment


def _place(step: Step) -> tuple[int, int]:
    return (-step.priority, step.sequence)


def check_turns(tables: Tables, recorded: DataFrame) -> list[Evidence]:
    """Check every claimed delivery against what the operations made available."""
    rows = _findings(tables, recorded).where("kind != 'refusal'").limit(EVIDENCE_MAX).collect()
    gone = _gone_before(tables, rows)
    return [
        Evidence(
            kind=_kind(row, gone),
            source="claims",
            summary=f"the operations do not allow this delivery: {row['detail']}",
            queue=row["queue"] or "",
            message_id=hexadecimal(row["message_id"]),
            position=row["position"],
            index=row["index"],
            session=row["session"],
        )
        for row in rows
    ]


def queue_refusals(tables: Tables, recorded: DataFrame) -> dict[int, str]:
    """Why Puts and Gets are refused for the sake of groups, and what is settled out of turn.

    What was refused before them is taken from the tables as they are; a decision rests on earlier
    positions only.
    """
    rows = _findings(tables, recorded).where("kind = 'refusal'").collect()
    return {row["position"]: row["detail"] for row in rows}


def _findings(tables: Tables, recorded: DataFrame) -> DataFrame:
    steps = steps_of(tables, recorded)
    partitions = int(steps.sparkSession.conf.get("spark.sql.shuffle.partitions") or "2")
    ordered = (
        steps.select(*STEP_COLUMNS)
        .repartition(partitions, *PLACES)
        .sortWithinPartitions(*PLACES, "position", "phase", "index", "offset")
    )
    grouped = grouped_queues(tables) if tables.facts.grouped else set()
    return ordered.mapInArrow(_scan(grouped), spark_schema(FINDING_COLUMNS))


def _kind(row: Any, gone: dict[tuple[int, ...], int]) -> str:
    """A delivery of what was not available is duplicated if the message was gone before."""
    if row["kind"] != "unavailable":
        return str(row["kind"])
    went = gone.get(tuple(row[key] for key in HELD))
    return "duplicated" if went is not None and went <= row["position"] else "unexpected"


def _gone_before(tables: Tables, rows: list[Any]) -> dict[tuple[int, ...], int]:
    """Where the messages that were delivered without being available had gone."""
    wanted = [tuple(row[key] for key in HELD) for row in rows if row["kind"] == "unavailable"]
    if not wanted:
        return {}
    spark = tables.messages.sparkSession
    frame = spark.createDataFrame(
        wanted, "put_position long, put_index long, stay long, holder long"
    )
    found = (
        kept_messages(tables)
        .join(f.broadcast(frame.distinct()), HELD, how="inner")
        .where("fate_position IS NOT NULL")
        .select(*HELD, "fate_position")
    )
    return {tuple(row[:4]): row[4] for row in found.collect()}


def _scan(grouped: set[str]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The pass over steps; queues with groups have their own rules."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fifo, held = FifoTurns(), HeldBack()
        turns: QueueTurns | GroupTurns = QueueTurns(fifo, held)
        current = (None, None, None)
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            rows: list[tuple[Any, ...]] = []
            for queue, created, holder, *values in zip(*columns, strict=True):
                if (queue, created, holder) != current:
                    rows.extend(_finding(current, one) for one in _finish(turns, fifo))
                    fifo, held = FifoTurns(), HeldBack()
                    kind = GroupTurns if holder == -1 and queue in grouped else QueueTurns
                    turns = kind(fifo, held)
                    current = (queue, created, holder)
                step = Step(*values)
                rows.extend(_finding(current, one) for one in _take(turns, fifo, step))
                for name in held.take(step):
                    turns.changed(name)
            yield arrow_batch(FINDING_COLUMNS, rows)
        yield arrow_batch(FINDING_COLUMNS, [_finding(current, one) for one in _finish(turns, fifo)])

    return run


def _take(turns: QueueTurns | GroupTurns, fifo: FifoTurns, step: Step) -> Iterator[Finding]:
    """A step is judged first by what was received before it."""
    if step.what not in (*FIFO_STEPS, KEEPS):
        yield from turns.take(step)
    else:
        yield from turns.finish()
    if step.what != KEEPS:
        yield from fifo.take(step)


def _finish(turns: QueueTurns | GroupTurns, fifo: FifoTurns) -> Iterator[Finding]:
    yield from turns.finish()
    yield from fifo.finish()


def _finding(place: tuple[Any, Any, Any], found: Finding) -> tuple[Any, ...]:
    queue, _, holder = place
    kind, step, detail = found
    where = (step.position, step.index, step.session, step.message_id)
    return (kind, queue, *where, *step.message, holder, detail)
