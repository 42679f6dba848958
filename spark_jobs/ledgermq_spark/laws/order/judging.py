"""Runs the pass of law F over all stores, each in one task, in the order of the log."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from ledgermq_spark.laws.engines.engine import Pass
from ledgermq_spark.laws.order import store_state
from ledgermq_spark.laws.order.event import Event
from ledgermq_spark.laws.order.store_events import EVENT_TYPES, KEYS
from ledgermq_spark.laws.order.store_pass import Finding, StorePass
from ledgermq_spark.log.rows import LONG, TEXT, arrow_batch

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]
# What an event is that tells what was known of its store before.
KNOWN: Final = "known"
FOUND_COLUMNS: Final = (
    ("queue_manager", TEXT),
    ("store", LONG),
    ("kind", TEXT),
    ("position", LONG),
    ("sequence", LONG),
    ("session", LONG),
    ("summary", TEXT),
    ("expected", TEXT),
    ("found", TEXT),
)


LEFT_COLUMNS: Final = (
    ("queue_manager", TEXT),
    ("store", LONG),
    ("number", LONG),
    ("text", TEXT),
)
# What was known of stores where a stretch begins comes before what happens in it.
EVENTS: Final = f"""
SELECT {", ".join((*KEYS, *EVENT_TYPES))}
FROM {{store_events}} LEFT JOIN (SELECT queue_manager, position AS begun_at FROM {{since}})
    USING (queue_manager)
WHERE store IS NOT NULL AND position > coalesce(begun_at, -1)
UNION ALL
SELECT queue_manager, store, {
    ", ".join(
        {"position": "-1", "step": "number", "what": f"'{KNOWN}'", "text": "text"}.get(
            name, f"CAST(NULL AS {kind})"
        )
        for name, kind in EVENT_TYPES.items()
    )
}
FROM {{stores_before}}
"""


def _judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for place, rows in groupby(_rows(batches), key=lambda row: row[: len(KEYS)]):
        found = list(_findings(StorePass(), (row[len(KEYS) :] for row in rows)))
        if found:
            yield arrow_batch(FOUND_COLUMNS, [(*place, *finding) for finding in found])


def _leave(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for place, rows in groupby(_rows(batches), key=lambda row: row[: len(KEYS)]):
        one = StorePass()
        for _ in _findings(one, (row[len(KEYS) :] for row in rows)):
            """They are told where the stretch is judged."""
        left = [(*place, number, text) for number, text in enumerate(store_state.told(one))]
        if left:
            yield arrow_batch(LEFT_COLUMNS, left)


def _findings(one: StorePass, rows: Iterator[Row]) -> Iterator[Finding]:
    """What a store's pass finds; what is stated may be such that no pass can follow it."""
    position = -1
    try:
        for row in rows:
            event = Event(*row)
            position = event.position
            if event.what == KNOWN:
                store_state.learn(one, event.text or "")
            elif not one.is_lost:
                yield from one.take(event)
        yield from one.finish()
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        yield Finding(
            kind="state mismatch",
            position=position,
            sequence=-1,
            session=-1,
            summary="what is stated of this store contradicts itself: nothing after it was judged",
            expected="moves that follow from one another",
            found=traceback.format_exc(limit=-1).strip().splitlines()[-1],
        )
        one.is_lost = True
        for _ in rows:
            pass


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        yield from zip(*columns, strict=True)


# What is not as it is due, of all stores.
JUDGED: Final = Pass(
    query=EVENTS, keys=KEYS, order=("position", "step"), take=_judge, columns=FOUND_COLUMNS
)
# What is known of each store in the end, in the order of `number`.
LEFT: Final = Pass(
    query=EVENTS, keys=KEYS, order=("position", "step"), take=_leave, columns=LEFT_COLUMNS
)
