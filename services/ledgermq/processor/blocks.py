"""Blocks of a checkpoint as bytes: those that the codec writes, in a fifth of its time.

A checkpoint of a deep queue is a million messages that have nothing but what every message has.
Their records differ in eight fields; the rest is the same bytes in all of them.
"""

from __future__ import annotations

from typing import Any, Final

from ledgermq.core.message import Message
from ledgermq.core.message_snapshot import stored_message
from ledgermq.core.queue import Queue
from ledgermq.core.snapshot import TakenBlock
from ledgermq.wire.codec import encode_record

__all__ = ["BLOCK", "encode_block"]

BLOCK: Final = "ledgermq.checkpoint.MessageBlock"
STORED: Final = "ledgermq.checkpoint.StoredMessage"
# Marker and fingerprint.
FRAME_BYTES: Final = 10


def _long(number: int) -> bytes:
    """A number as Avro writes it: zigzag, seven bits a byte."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _record(record: dict[str, Any]) -> bytes:
    return encode_record(STORED, record)[FRAME_BYTES:]


class _Plain:
    """Encodes plain messages; numbers that stand in many of them are encoded once."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        sample = Message(Queue("", 0), 0, 0, bytes(16), 0, False, 0)
        self._tail = b""
        self._tail = _record(stored_message(sample))[len(self.encoded(sample)) :]

    def encoded(self, message: Message) -> bytes:
        """The record of a plain message."""
        known, shared = self._known, []
        for number in (
            message.put_position,
            message.put_index,
            message.priority,
            message.size_bytes,
            message.enqueued_at,
        ):
            found = known.get(number)
            if found is None:
                found = known[number] = _long(number)
            shared.append(found)
        position, index, priority, size, enqueued_at = shared
        sequence = _long(message.sequence)
        persistent = b"\x01" if message.persistent else b"\x00"
        return b"".join(
            (
                position,
                index,
                sequence,
                message.message_id,
                priority,
                persistent,
                size,
                enqueued_at,
                self._tail,
            )
        )


def encode_block(taken: TakenBlock) -> bytes:
    """A block as the value of a record of the checkpoints topic, whatever the state is by now."""
    empty = encode_record(BLOCK, {**taken._asdict(), "messages": []})
    plain = _Plain()
    parts = [
        plain.encoded(one) if isinstance(one, Message) else _record(one) for one in taken.messages
    ]
    # An array is the count, that many items, and the end, which is all of an empty one.
    return b"".join([empty[:-1], _long(len(parts)), *parts, empty[-1:]])
