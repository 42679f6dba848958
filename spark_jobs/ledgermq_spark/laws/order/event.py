"""What happens to a store, one by one and in runs, as the pass over it takes it (law F)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ledgermq.protocol.get_options import Options
from ledgermq.selector import Selector
from ledgermq_spark.laws.order.store_records import Consumer, Message, message_of
from ledgermq_spark.log.headers import options_of

# Of an event what tells of a message, as `message_of` has it.
OF_MESSAGE: Final = (
    *("sequence", "priority", "message_id", "is_persistent", "time_us", "text", "flag"),
)


class Event(NamedTuple):
    """Something that happens to a store: a move if it has a step, else to a consumer or settings.

    `what` is the state after a move. `behind_index` is that of the outcome behind which it comes in
    its entry (-1: before all): of its Delivered, else of the operation's reply. `number` is a
    delivery of a move, a credit, or a delivery up to which something was handed over; `text` is the
    header of a message, a selector, options or settings.
    """

    position: int
    step: int | None
    behind_index: int
    what: str
    before: str | None
    cause: str | None
    sequence: int
    session: int
    consumer: int
    number: int
    text: str | None
    time_us: int
    priority: int
    message_id: bytes | None
    is_persistent: bool | None
    flag: bool | None

    @property
    def is_in_group(self) -> bool:
        """Whether the message that a move brings is in a group."""
        return bool(self.flag) and '"g":' in (self.text or "")

    @property
    def as_message(self) -> Message:
        """The message that a move brings."""
        is_in_unit = "uncommitted put" in (self.before, self.what)
        told = (getattr(self, name) for name in OF_MESSAGE)
        return message_of(*told, is_in_unit=is_in_unit)

    def as_consumer(self, selector: Selector | None) -> Consumer:
        """The consumer to whom it happens, as one that is new."""
        return Consumer(
            session=self.session,
            number=self.consumer,
            selector=selector,
            priority=self.priority,
        )

    @property
    def as_options(self) -> Options | None:
        """The options that a Get asks with, if it has any."""
        return None if self.text is None else options_of(json.loads(self.text))


# What the events of a run have in common.
SAID_OF_ALL: Final = ("position", "behind_index", "what", "before", "cause", "session", "consumer")


class Columns(dict[str, list[Any]]):
    """What the rows of a batch have of each field, as far as somebody asks for it."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __missing__(self, name: str) -> list[Any]:
        values: list[Any] = self._batch[name].to_pylist()
        self[name] = values
        return values


class Run:
    """Events of one kind that follow one another in an entry; most moves come in many."""

    def __init__(self, columns: Columns, rows: slice, said: tuple[Any, ...]) -> None:
        self._columns, self._rows = columns, rows
        is_beside, position, behind_index, what, before, cause, session, consumer = said
        self.is_move = not is_beside
        self.position: int = position
        self.behind_index: int = behind_index
        self.what: str = what
        self.before: str | None = before
        self.cause: str | None = cause
        self.session: int = session
        self.consumer: int = consumer

    def each(self, name: str) -> list[Any]:
        """What each event has of a field."""
        return self._columns[name][self._rows]

    @cached_property
    def events(self) -> list[Event]:
        """Each of them by itself."""
        return [*map(Event._make, zip(*map(self.each, Event._fields), strict=True))]

    def messages(self) -> list[Message]:
        """The messages that moves bring."""
        is_in_unit = "uncommitted put" in (self.before, self.what)
        told = zip(*map(self.each, OF_MESSAGE), strict=True)
        return [message_of(*one, is_in_unit=is_in_unit) for one in told]

    @property
    def is_put(self) -> bool:
        """Whether a session puts messages."""
        return self.is_move and self.before == "new" and self.session >= 0

    @property
    def puts_in_groups(self) -> list[Event]:
        """The messages that a session puts into groups through them."""
        if not self.is_put or not any(self.each("text")):
            return []
        return [one for one in self.events if one.is_in_group]


def runs(batch: pa.RecordBatch, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Run]]:
    """The rows of a batch, which are of a place (`keys`) and then as an `Event` has them."""
    if not batch.num_rows:
        return
    is_beside = pc.is_null(batch["step"])
    changed = _changed(is_beside)
    for name in (*keys, *SAID_OF_ALL):
        values = batch[name]
        if values.null_count:
            values = values.fill_null(-1 if pa.types.is_integer(values.type) else "")
        changed = pc.or_(changed, _changed(values))
    starts = [0, *(at + 1 for at in pc.indices_nonzero(changed).to_pylist())]
    rows = pa.array(starts) if len(starts) < batch.num_rows else None
    said = [is_beside, *(batch[name] for name in SAID_OF_ALL)]
    places = zip(*(_at(rows, batch[name]) for name in keys), strict=True)
    told = zip(*(_at(rows, one) for one in said), strict=True)
    columns = Columns(batch)
    ends = [*starts[1:], batch.num_rows]
    for place, start, end, one in zip(places, starts, ends, told, strict=True):
        yield place, Run(columns, slice(start, end), one)


def _changed(values: pa.Array) -> pa.Array:
    """Of each value but the first one, whether it is another than the one before it."""
    return pc.not_equal(values[1:], values[:-1])


def _at(rows: pa.Array | None, values: pa.Array) -> list[Any]:
    """The values of some rows, or of all."""
    found: list[Any] = (values if rows is None else values.take(rows)).to_pylist()
    return found
