"""What happens to a store, as the pass over it takes it, and what that tells of (law F)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ledgermq.protocol.get_options import Options
from ledgermq.selector import Selector
from ledgermq_spark.laws.order.store_records import (
    Consumer,
    Message,
    group_key,
    group_place,
)
from ledgermq_spark.log.headers import header_of


class Event(NamedTuple):
    """Something that happens to a store: a move if it has a step, else to a consumer or settings.

    `what` is the state after a move. `told_index` is that of the outcome by which it was told: of a
    Delivered, else of the operation's reply. `number` is a delivery of a move, a credit, or a
    delivery up to which something was handed over; `text` is the header of a message, a selector,
    options or settings.
    """

    position: int
    step: int | None
    told_index: int | None
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
    def is_put_in_group(self) -> bool:
        """Whether a session puts a message into a group."""
        return (
            self.step is not None
            and self.before == "new"
            and self.session >= 0
            and bool(self.flag)
            and '"g":' in (self.text or "")
        )

    @property
    def behind_index(self) -> int:
        """The outcome that it comes behind in its entry; -1: it comes before all of them."""
        return _behind(self.told_index)

    @property
    def as_message(self) -> Message:
        """The message that a move brings."""
        is_in_unit = "uncommitted put" in (self.before, self.what)
        told = (getattr(self, name) for name in OF_MESSAGE)
        return message_of(*told, is_in_unit=is_in_unit)

    def as_consumer(self, selector: Selector | None) -> Consumer:
        """The consumer to whom it happens, as one that is new."""
        return Consumer(session=self.session, number=self.consumer, selector=selector)

    @property
    def as_options(self) -> Options | None:
        """The options that a Get asks with, if it has any."""
        if self.text is None:
            return None
        told: dict[str, Any] = json.loads(self.text)
        for name in ("message_id", "group_id"):
            told[name] = bytes.fromhex(told[name])
        return Options(**told)


class Columns(dict[str, list[Any]]):
    """What the rows of a batch have of each field, as far as somebody asks for it."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __missing__(self, name: str) -> list[Any]:
        values: list[Any] = self._batch[name].to_pylist()
        self[name] = values
        return values


class Run:
    """Events of one kind that follow one another in an entry: most moves come in many."""

    def __init__(self, columns: Columns, rows: slice, said: tuple[Any, ...]) -> None:
        self._columns, self._rows = columns, rows
        is_beside, position, told_index, what, before, cause, session, consumer = said
        self.is_move = not is_beside
        self.position: int = position
        self.behind_index = _behind(told_index)
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
        return [*map(Event._make, zip(*map(self.each, EVENT_FIELDS), strict=True))]

    def messages(self) -> list[Message]:
        """The messages that moves bring."""
        is_in_unit = "uncommitted put" in (self.before, self.what)
        told = zip(*map(self.each, OF_MESSAGE), strict=True)
        return [message_of(*one, is_in_unit=is_in_unit) for one in told]

    @property
    def puts_in_groups(self) -> list[Event]:
        """The messages that a session puts into groups through them."""
        is_put = self.is_move and self.before == "new" and self.session >= 0
        if not is_put or not any(self.each("text")):
            return []
        return [one for one in self.events if one.is_put_in_group]


def message_of(
    sequence: int,
    priority: int,
    message_id: bytes | None,
    is_persistent: bool | None,
    time_us: int,
    text: str | None,
    flag: bool | None,
    *,
    is_in_unit: bool,
) -> Message:
    """A message, of what an event tells of it."""
    header = header_of(text) if text else {}
    group = group_place(header) if header and flag else None
    return Message(
        sequence=sequence,
        rank=(-priority, sequence),
        message_id=message_id or b"",
        is_persistent=bool(is_persistent),
        enqueued_at_us=time_us,
        header=text,
        group=group,
        is_in_unit=is_in_unit,
        keeps_order=bool(header.get("k")),
        key=group_key(header, group) if header else None,
    )


def runs(batch: pa.RecordBatch, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Run]]:
    """The rows of a batch, which are of a place (`keys`) and then as an `Event` has them."""
    if not batch.num_rows:
        return
    is_beside = pc.is_null(batch["step"])
    changed = _changed(is_beside)
    for name in (*keys, *SAID_OF_ALL):
        values = batch[name]
        nothing = -1 if pa.types.is_integer(values.type) else ""
        changed = pc.or_(changed, _changed(values.fill_null(nothing)))
    starts = [0, *(at + 1 for at in pc.indices_nonzero(changed).to_pylist())]
    said = [is_beside, *(batch[name] for name in SAID_OF_ALL)]
    places = zip(*(_at(starts, batch[name]) for name in keys), strict=True)
    told = zip(*(_at(starts, one) for one in said), strict=True)
    columns = Columns(batch)
    ends = [*starts[1:], batch.num_rows]
    for place, start, end, one in zip(places, starts, ends, told, strict=True):
        yield place, Run(columns, slice(start, end), one)


def _changed(values: pa.Array) -> pa.Array:
    """Of each value but the first one, whether it is another than the one before it."""
    return pc.not_equal(values[1:], values[:-1])


def _at(starts: list[int], values: pa.Array) -> list[Any]:
    found: list[Any] = values.take(pa.array(starts)).to_pylist()
    return found


def _behind(told_index: int | None) -> int:
    return -1 if told_index is None else told_index


# What the events of a run have in common, and what is told of each message.
SAID_OF_ALL = ("position", "index", "what", "before", "cause", "session", "consumer")
EVENT_FIELDS = ("position", "step", "index", *Event._fields[3:])
OF_MESSAGE = (*("sequence", "priority", "message_id", "is_persistent", "time_us", "text", "flag"),)
