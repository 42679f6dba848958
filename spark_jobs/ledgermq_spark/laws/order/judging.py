"""Law F: nothing that somebody may have is passed over, and nobody is left beside it.

A pass over what happens to each store judges it, in one task, in the order of the log.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, Final

import pyarrow as pa

from ledgermq.garbage import seldom_looked_for_cycles
from ledgermq_spark.laws.engines.engine import Pass
from ledgermq_spark.laws.law import Breach, Law
from ledgermq_spark.laws.order import store_state
from ledgermq_spark.laws.order.event import Run, runs
from ledgermq_spark.laws.order.store_events import EVENT_TYPES, HAPPENED, KEYS
from ledgermq_spark.laws.order.store_pass import Finding, StorePass
from ledgermq_spark.log.rows import LONG, TEXT, arrow_batch, columns_of

Row = tuple[Any, ...]
# What an event is that tells what was known of its store before.
KNOWN: Final = "known"
PLACE: Final = (("queue_manager", TEXT), ("store", LONG))
FOUND_COLUMNS: Final = (*PLACE, *columns_of(Finding))
LEFT_COLUMNS: Final = (*PLACE, ("number", LONG), ("text", TEXT))
# What was known of stores where a stretch begins comes before what happens in it.
EVENTS: Final = f"""
SELECT {", ".join((*KEYS, *EVENT_TYPES))}
FROM ({HAPPENED}) LEFT JOIN (SELECT queue_manager, position AS begun_at FROM {{since}})
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
    for place, happened in _stores(batches):
        found = list(_findings(StorePass(), happened))
        if found:
            yield arrow_batch(FOUND_COLUMNS, [(*place, *finding) for finding in found])


def _leave(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for place, happened in _stores(batches):
        one = StorePass()
        for _ in _findings(one, happened):
            """They are told where the stretch is judged."""
        left = [(*place, number, text) for number, text in enumerate(store_state.told(one))]
        if left:
            yield arrow_batch(LEFT_COLUMNS, left)


def _findings(one: StorePass, happened: Iterator[Run]) -> Iterator[Finding]:
    """What a store's pass finds; what is stated may be such that no pass can follow it."""
    position = -1
    try:
        for _, of_entry in groupby(happened, key=attrgetter("position")):
            entry = [*of_entry]
            position = entry[0].position
            if entry[0].what == KNOWN:
                for known in chain.from_iterable(run.events for run in entry):
                    store_state.learn(one, known.text or "")
            elif not one.is_lost:
                yield from one.judge(entry)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        yield Finding(
            kind="state mismatch",
            summary="what is stated of this store contradicts itself: nothing after it was judged",
            expected="moves that follow from one another",
            found=traceback.format_exc(limit=-1).strip().splitlines()[-1],
            position=position,
        )
        one.is_lost = True
        deque(happened, maxlen=0)


def _stores(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Row, Iterator[Run]]]:
    """Each store, as `KEYS` say, with what happens to it."""
    happened = chain.from_iterable(runs(batch, KEYS) for batch in batches)
    with seldom_looked_for_cycles():
        for place, mine in groupby(happened, key=itemgetter(0)):
            yield place, map(itemgetter(1), mine)


# What is not as it is due, of all stores.
JUDGED: Final = Pass(
    query=EVENTS, keys=KEYS, order=("position", "step"), take=_judge, columns=FOUND_COLUMNS
)
# What is known of each store in the end, in the order of `number`.
LEFT: Final = Pass(
    query=EVENTS, keys=KEYS, order=("position", "step"), take=_leave, columns=LEFT_COLUMNS
)


def _found(kind: str) -> Breach:
    return Breach(kind, f"SELECT * FROM {{disorder}} WHERE kind = '{kind}'")


LAW = Law(
    letter="F",
    sentence="Each consumer is given what comes first of what it may have, by priority, number and "
    "the rules of groups and FIFO modes; nobody with credit is left beside what it may have; "
    "where only the newest messages are kept, older ones go.",
    breaches=(_found("reordered"), _found("unexpected"), _found("lost")),
)
