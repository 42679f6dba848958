"""What the fold states of each move of a message, as rows that laws and tables are made of.

A row is a move of one message, as `core.moves` reports it, with the time of the entry and the name
of its queue, topic or subscription, which only the fold knows at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import accumulate, chain
from operator import sub
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ledgermq.core.entry import Moves
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import NAMES
from ledgermq.core.state.records import Queue, Subscription, Topic
from ledgermq_spark.log.rows import FLAG, LONG, TEXT

# `time_us` is state time after time passed for the entry, `store` where the queue, topic or
# subscription was made; `kind` says which of the three it is, `destination` where it is put to or
# got from, `subscription` its name, for people, or null.
MOVE_COLUMNS = (
    ("position", LONG),
    ("step", LONG),
    ("time_us", LONG),
    ("store", LONG),
    ("kind", TEXT),
    ("destination", TEXT),
    ("subscription", TEXT),
    ("sequence", LONG),
    ("put_position", LONG),
    ("put_index", LONG),
    ("before", TEXT),
    ("after", TEXT),
    ("cause", TEXT),
    ("session", LONG),
    ("consumer", LONG),
    ("delivery", LONG),
    ("until_us", LONG),
    ("backouts", LONG),
    ("uncounted", LONG),
    ("segment", LONG),
    ("body_position", LONG),
    ("body_index", LONG),
)
# State time after each entry, and the reference while the clock is behind it (PROTOCOL.md §6).
CLOCK_COLUMNS = (("position", LONG), ("time_us", LONG), ("reference_us", LONG))
# How many messages a store has in a state, with their bytes, and how many are gone from it for a
# cause, whose bytes nobody counts; and the most of both that it ever held, as `most`.
STANDING_COLUMNS = (
    ("store", LONG),
    ("kind", TEXT),
    ("what", TEXT),
    ("count", LONG),
    ("size_bytes", LONG),
)
# The segments that there are in the end: what was appended since they were clean, what is live.
SEGMENT_COLUMNS = (
    ("segment", LONG),
    ("is_active", FLAG),
    ("appended_bytes", LONG),
    ("live_bytes", LONG),
    ("live_messages", LONG),
)
MOST = "most"
MOVES_AT_ONCE = 10_000
Row = tuple[Any, ...]
# Kind, destination, and the name of a subscription.
Name = tuple[str, str, str | None]


class Testimony:
    """Listens to a fold, and says what it heard and what stands in the end."""

    def __init__(self, state: QueueManager) -> None:
        self._state = state
        self._names: dict[tuple[int, bool], Name] = {}
        self._heard: list[tuple[Moves, int, Name]] = []

    def hear(self, moves: Moves) -> None:
        """The listener of an entry."""
        key = (moves.store, moves.is_topic)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = _name_of(self._store(*key))
        self._heard.append((moves, self._state.time, name))

    def take(self) -> Iterator[list[pa.Array]]:
        """The moves since the last call, some at a time, as `MOVE_COLUMNS`."""
        heard, self._heard = self._heard, []
        some: list[tuple[Moves, int, Name]] = []
        count = 0
        for one in heard:
            some.append(one)
            count += len(one[0].sequences)
            if count >= MOVES_AT_ONCE:
                yield _columns(some)
                some, count = [], 0
        if some:
            yield _columns(some)

    def standing(self) -> list[Row]:
        """How many messages there are of each kind at the end, as rows of `STANDING_COLUMNS`."""
        found: list[Row] = []
        for store in (*self._state.stores.values(), *self._state.topics.values()):
            place = (store.created_position, _name_of(store)[0])
            counted = [
                *zip(NAMES, store.counts, store.sizes, strict=False),
                *((cause, count, None) for cause, count in store.gone.items()),
                (MOST, store.messages_high, store.bytes_high),
            ]
            found += [(*place, *one) for one in counted if one[1] or one[0] == MOST]
        return found

    def segments(self) -> list[Row]:
        """The segments that there are at the end, as rows of `SEGMENT_COLUMNS`."""
        storage = self._state.storage
        return [
            (one.number, one is storage.active, one.bytes, one.live_bytes, one.live_messages)
            for one in storage.segments.values()
        ]

    def _store(self, created: int, is_topic: bool) -> Queue:
        if is_topic:
            topics = self._state.topics.values()
            return next(one for one in topics if one.created_position == created)
        return self._state.stores[created]


def _columns(heard: list[tuple[Moves, int, Name]]) -> list[pa.Array]:
    moves, times, names = zip(*heard, strict=True)
    counts = [len(one.sequences) for one in moves]
    position, first_step, store, _, before, after, cause, session, consumer, *of_each = zip(
        *moves, strict=True
    )
    starts = [0, *accumulate(counts)]
    rows = pa.array(range(starts[-1]), pa.int64())
    # Of each row, which of the moves it is of.
    which = pc.list_parent_indices(pa.ListArray.from_arrays(starts, rows))

    def of_all(kind: pa.DataType, values: Iterable[Any]) -> pa.Array:
        """What is said once of messages that moved together."""
        return pa.array([*values], kind).take(which)

    number, text = partial(of_all, pa.int64()), partial(of_all, pa.string())
    sequence, put_position, put_index, delivery, *rest = (
        pa.array([*chain.from_iterable(one)], pa.int64()) for one in of_each
    )
    return [
        number(position),
        pc.add(rows, number(map(sub, first_step, starts))),
        number(times),
        number(store),
        *map(text, zip(*names, strict=True)),
        *(sequence, put_position, put_index),
        *map(text, (before, after, cause)),
        *map(number, (session, consumer)),
        delivery,
        *rest,
    ]


def _name_of(store: Queue) -> Name:
    if isinstance(store, Subscription):
        return "subscription", store.destination, store.key.name
    return "topic" if isinstance(store, Topic) else "queue", store.destination, None
