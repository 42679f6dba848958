"""Plain messages of a block as bytes and back, many at a time: those that the codec has for them.

A checkpoint of a deep queue is a million messages that have nothing but what every message has.
Their records differ in nine fields; between these the same bytes stand in all of them. So they are
written in a fifth of the codec's time, and one pattern reads them in a third of it. A field that is
new and differs among plain messages belongs here; tests compare the bytes, and what is read, in
every history that they play.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import Any, Final, Protocol

from fastavro import parse_schema, schemaless_reader

from ledgermq.protocol.limits import MESSAGE_ID_BYTES
from ledgermq.protocol.plain_messages import PlainMessages
from ledgermq.wire.framing.checkpoint_chunks import BLOCK, STORED
from ledgermq.wire.framing.codec import avro_long, decode_as, decode_within, encode_record
from ledgermq.wire.framing.confluent import SINGLE_OBJECT_BYTES

Record = dict[str, Any]

# A block in which more than these are not plain, and more than one in so many, is left to the codec
# as a whole.
OTHERS_MAX: Final = 8
PLAIN_FOR_EACH_OTHER: Final = 16
# Behind the segment: none of them was written again.
END: Final = avro_long(-1) * 2
LONGS: Final = parse_schema({"type": "array", "items": "long"})
# More bytes may be a number that the codec refuses.
LONG: Final = rb"([\x80-\xff]{0,8}[\x00-\x7f])"


class Plain(Protocol):
    """A message of the fold; of its segment the number is written."""

    put_position: int
    put_index: int
    sequence: int
    message_id: bytes
    priority: int
    persistent: bool
    size_bytes: int
    enqueued_at: int
    segment: Any


@cache
def _same() -> bytes:
    """What is the same in all of them, between the enqueue time and the segment."""
    zeros = "put_position", "put_index", "sequence", "priority", "size_bytes", "enqueued_at"
    sample = {**dict.fromkeys((*zeros, "backout_count", "segment"), 0), "persistent": False}
    value = encode_record(STORED, {**sample, "message_id": bytes(MESSAGE_ID_BYTES)})
    before = SINGLE_OBJECT_BYTES + len(zeros) + MESSAGE_ID_BYTES + 1
    return value[before : -1 - len(END)]


class PlainWriter:
    """Encodes plain messages; numbers that stand in many of them are encoded once."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        self._same = _same()

    def _number(self, number: int) -> bytes:
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = avro_long(number)
        return found

    def encoded(self, message: Plain) -> bytes:
        number = self._number
        return b"".join(
            (
                number(message.put_position),
                number(message.put_index),
                avro_long(message.sequence),
                message.message_id,
                number(message.priority),
                b"\x01" if message.persistent else b"\x00",
                number(message.size_bytes),
                number(message.enqueued_at),
                self._same,
                number(message.segment.number),
                END,
            )
        )


def decode_block(value: bytes) -> Record:
    """A MessageBlock; what follows one another in it and is plain is one PlainMessages.

    Raises:
        UndecodableError: It is none.
        UnknownSchemaError: It is written in a schema that this release does not have.
    """
    try:
        found = _mostly_plain(value)
    except (IndexError, ValueError):
        found = None
    return decode_as(BLOCK, value) if found is None else found


def _mostly_plain(value: bytes) -> Record | None:
    """A block, if it is one and few of its messages are not plain; else anything may be raised."""
    if not value.startswith(_frame()):
        return None
    length, at = _long(value, SINGLE_OBJECT_BYTES)
    queue, at = value[at : at + length].decode(), at + length
    created_position, at = _long(value, at)
    block, at = _long(value, at)
    count, at = _long(value, at)
    plain, run = _patterns()
    messages: list[Record | PlainMessages] = []
    left, others = count, 0
    while left > 0:
        end = run.match(value, at).end()
        if end > at:
            found = _columns(plain.findall(value, at, end))
            messages.append(found)
            left, at = left - len(found.sequences), end
        else:
            others += 1
            if others > max(OTHERS_MAX, (count - left) // PLAIN_FOR_EACH_OTHER):
                return None
            stored, at = decode_within(STORED, value, at)
            messages.append(stored)
            left -= 1
    if left or value[at:] != avro_long(0):
        return None
    return {
        "queue": queue,
        "created_position": created_position,
        "block": block,
        "messages": messages,
    }


@cache
def _frame() -> bytes:
    empty = {"queue": "", "created_position": 0, "block": 0, "messages": []}
    return encode_record(BLOCK, empty)[:SINGLE_OBJECT_BYTES]


@cache
def _patterns() -> tuple[re.Pattern[bytes], Any]:
    """One plain message with its nine fields, and as many as follow one another."""
    message_id = b"(.{%d})" % MESSAGE_ID_BYTES
    fields = (LONG, LONG, LONG, message_id, LONG, rb"([\x00\x01])", LONG, LONG)
    plain = b"".join((*fields, re.escape(_same()), LONG, re.escape(END)))
    run = b"(?:%s)*" % plain.replace(b"(", b"(?:")
    return re.compile(plain, re.DOTALL), re.compile(run, re.DOTALL)


def _columns(rows: Sequence[tuple[bytes, ...]]) -> PlainMessages:
    positions, indexes, sequences, ids, priorities, persistent, sizes, enqueued, segments = zip(
        *rows, strict=True
    )
    return PlainMessages(
        _longs(positions),
        _longs(indexes),
        _longs(sequences),
        ids,
        _longs(priorities),
        [one == b"\x01" for one in persistent],
        _longs(sizes),
        _longs(enqueued),
        _longs(segments),
    )


def _longs(column: Sequence[bytes]) -> Sequence[int]:
    first = column[0]
    if column.count(first) == len(column):
        return [_long(first, 0)[0]] * len(column)
    array = BytesIO(b"".join((avro_long(len(column)), *column, avro_long(0))))
    found: Any = schemaless_reader(array, LONGS, None)
    return found  # type: ignore[no-any-return]


def _long(value: bytes, at: int) -> tuple[int, int]:
    """A number as Avro writes it, and where it ends."""
    number = shift = 0
    while True:
        byte = value[at]
        number |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return number >> 1 ^ -(number & 1), at
