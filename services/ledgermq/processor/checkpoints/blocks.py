"""Blocks of a checkpoint as bytes: those that the codec writes, in a fifth of its time.

A checkpoint of a deep queue is a million messages that have nothing but what every message has.
Their records differ in nine fields; the rest is the same bytes in all of them. A field that is new
and differs among plain messages belongs here; tests compare the bytes in every history that they
play.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ledgermq.core.snapshot.message_records import stored_message
from ledgermq.core.snapshot.state_records import TakenBlock
from ledgermq.core.state.records import Message, Queue
from ledgermq.core.state.storage import Segment
from ledgermq.wire.framing.checkpoint_chunks import STORED, block_values
from ledgermq.wire.framing.codec import avro_long, encode_record
from ledgermq.wire.framing.confluent import SINGLE_OBJECT_BYTES


def _record(record: dict[str, Any]) -> bytes:
    return encode_record(STORED, record)[SINGLE_OBJECT_BYTES:]


class _Plain:
    """Encodes plain messages; numbers that stand in many of them are encoded once."""

    def __init__(self, same: bytes) -> None:
        self._known: dict[int, bytes] = {}
        # What is the same in all of them stands between the enqueue time and the segment, and
        # behind that: none of them was written again.
        self._same, self._end = same, avro_long(-1) * 2

    def _number(self, number: int) -> bytes:
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = avro_long(number)
        return found

    def _parts(self, message: Message) -> tuple[bytes, ...]:
        number = self._number
        return (
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
            self._end,
        )

    def encoded(self, message: Message) -> bytes:
        return b"".join(self._parts(message))

    def around_same(self, message: Message) -> tuple[int, int]:
        """How many bytes stand before what is the same, and behind it."""
        *before, _, segment, end = self._parts(message)
        return len(b"".join(before)), len(segment + end)


@cache
def _same_of_all() -> bytes:
    sample = Message(Queue("", 0), 0, 0, bytes(16), 0, False, 0)
    sample.segment = Segment(0, [])
    plain = _Plain(b"")
    before, behind = plain.around_same(sample)
    return _record(stored_message(sample))[before:-behind]


def encode_block(taken: TakenBlock) -> list[bytes]:
    """A block as the values of its chunks, whatever the state is by now."""
    plain = _Plain(_same_of_all())
    messages = [
        (one.sequence, plain.encoded(one))
        if isinstance(one, Message)
        else (one["sequence"], _record(one))
        for one in taken.messages
    ]
    return block_values(taken._asdict(), messages)
