"""Blocks of a checkpoint as bytes: those that the codec writes, sooner."""

from __future__ import annotations

from ledgermq.core.snapshot.state_records import TakenBlock
from ledgermq.core.state.records import Message
from ledgermq.wire.framing.checkpoint_chunks import STORED, block_values
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.framing.confluent import SINGLE_OBJECT_BYTES
from ledgermq.wire.framing.plain_messages import PlainWriter


def encode_block(taken: TakenBlock) -> list[bytes]:
    """A block as the values of its chunks, whatever the state is by now."""
    plain = PlainWriter()
    messages = [
        (one.sequence, plain.encoded(one))
        if isinstance(one, Message)
        else (one["sequence"], encode_record(STORED, one)[SINGLE_OBJECT_BYTES:])
        for one in taken.messages
    ]
    return block_values(taken._asdict(), messages)
