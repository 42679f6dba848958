"""Ways to look at a state from outside: through the codec, as a digest, with parts left out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple, cast

from ledgermq.core.snapshot.state_records import blocks, restore, root_of, take_root, taken_block
from ledgermq.core.state.manager import QueueManager
from ledgermq.processor.checkpoints.blocks import encode_block
from ledgermq.processor.checkpoints.roots import encode_taken_root
from ledgermq.protocol.operations import Operation, Unreadable
from ledgermq.protocol.outcomes import Addressed, Delivered, DeliveredMessage, Outcome
from ledgermq.protocol.plain_messages import PlainMessages
from ledgermq.wire.framing.checkpoint_chunks import (
    BLOCK,
    decode_root,
    encode_block_record,
    encode_root,
    root_parts,
)
from ledgermq.wire.framing.codec import (
    decode_chunk,
    decode_operation,
    encode_chunk,
    encode_operation,
    encode_record,
)
from ledgermq.wire.framing.plain_messages import decode_block

# What a message has of which only the fields differ that each one has.
NAMES = (
    *("put_position", "put_index", "sequence", "message_id", "priority", "persistent"),
    *("size_bytes", "enqueued_at", "segment"),
)
PLAIN = {
    **dict.fromkeys(("expires_at", "deliver_at", "uncounted_backout_count"), -1),
    **dict.fromkeys(("redelivery_limit", "delayed_until", "body_position", "body_index"), -1),
    "backout_count": 0,
    "header": [],
    "in_unit_of_work": False,
    "origin": None,
}

# What a refused operation may change of a session (PROTOCOL.md §4).
BOOKKEEPING = {
    "answered_through",
    "confirmed",
    "deadline",
    "handed_through",
    "last_sequence",
    "replies",
    "suspected",
}


class Frozen(NamedTuple):
    """A state as the bytes that a checkpoint would hold."""

    root: bytes
    blocks: tuple[bytes, ...]


def freeze(state: QueueManager) -> Frozen:
    """The state as the framed records of a checkpoint."""
    found: list[bytes] = []
    for block in blocks(state):
        values = encode_block_record(block)
        taken = taken_block(state, block["created_position"], block["block"])
        assert taken is not None, "the block is there"
        assert encode_block(taken) == values, "a worker would write another block"
        for value in values:
            # Not the records themselves: a NaN in them is never the same.
            told = encode_record(BLOCK, written_out(decode_block(value)))
            assert told == value, "a worker would read another block"
        found += values
    root = encode_root(root_of(state))
    assert encode_taken_root(take_root(state)) == root, "a worker would write another Root"
    return Frozen(root, tuple(found))


def written_out(block: dict[str, Any]) -> dict[str, Any]:
    """A block with a record for each of its messages, also of those that are read together."""
    messages = []
    for one in block["messages"]:
        if isinstance(one, PlainMessages):
            rows = zip(*one, strict=True)
            messages += [PLAIN | dict(zip(NAMES, told, strict=True)) for told in rows]
        else:
            messages.append(one)
    return block | {"messages": messages}


def told_blocks(state: QueueManager) -> Iterator[dict[str, Any]]:
    """The state's blocks; a header that leaves out its group is written as one that has none."""
    for block in blocks(state):
        messages = [
            one | {"header": [{"group": None, **header} for header in one["header"]]}
            for one in block["messages"]
        ]
        yield block | {"messages": messages}


def contents(state: QueueManager) -> tuple[Any, ...]:
    """What `freeze` encodes: two states with the same contents freeze to the same bytes."""
    return root_of(state), list(told_blocks(state))


def thaw(frozen: Frozen) -> QueueManager:
    """The state that a checkpoint's bytes tell."""
    return restore(decode_root(frozen.root), map(decode_block, frozen.blocks))


def digest(state: QueueManager) -> str:
    """The digest of PROTOCOL.md §10: SHA-256 over the digests of root and blocks."""
    frozen = freeze(state)
    whole = hashlib.sha256()
    for chunk in (*root_parts(frozen.root), *frozen.blocks):
        whole.update(hashlib.sha256(chunk).digest())
    return whole.hexdigest()


def substance(state: QueueManager) -> tuple[Any, ...]:
    """The state without what a refused operation may change: position, time and bookkeeping."""
    root = root_of(state)
    sessions = [
        {name: value for name, value in session.items() if name not in BOOKKEEPING}
        for session in root["sessions"]
    ]
    for session in sessions:
        session.pop("waiting_commit")
        # What is told as handed over is so in a refused operation too.
        for consumer in session["consumers"]:
            consumer.pop("doubt")
    connections = [(one["connection"], one["lane"]) for one in root["connections"]]
    settings = (root["version"], root["automatic_creation"], root["wait_order"], root["journal"])
    open_ids = [one for one in root["open_ids"] if not one["session_sequence"]]
    destinations = (root["queues"], root["sources"], root["deduplication"], open_ids)
    marks = [
        {name: one[name] for name in one if name != "holds_up"} for one in root["resume_marks"]
    ]
    return (
        settings,
        destinations,
        marks,
        connections,
        sessions,
        root["storage"],
        list(told_blocks(state)),
    )


def logged(operation: Operation) -> Operation:
    """An operation as a reader of the log gets it: encoded and decoded, and the same."""
    if isinstance(operation, Unreadable):
        return operation
    read = decode_operation(encode_operation(operation))
    assert read == operation, f"the codec changed {operation} to {read}"
    return read


def through_the_wire(found: list[Addressed]) -> None:
    """Asserts that outcomes survive the codec, chunk by chunk.

    All but where a body stands that was written again: that is for the worker only.
    """
    outcomes = [_as_written(one.outcome) for one in found]
    assert decode_chunk(encode_chunk(-1, -1, outcomes)).outcomes == outcomes


def _as_written(outcome: Outcome) -> Outcome:
    if not isinstance(outcome, Delivered):
        return outcome
    messages = [{name: one[name] for name in one if name != "body"} for one in outcome.messages]
    return replace(outcome, messages=cast("list[DeliveredMessage]", messages))


def outcome_records(found: list[Addressed]) -> list[dict[str, Any]]:
    """Outcomes as plain mappings, field by field; texts for people are left out."""
    records = []
    for one in found:
        outcome = one.outcome
        record: dict[str, Any] = {"kind": type(outcome).__name__}
        record |= {field.name: getattr(outcome, field.name) for field in fields(outcome)}
        record.pop("detail", None)
        record |= {
            "connection": one.connection,
            "lane": one.lane,
            "previous": (one.previous_position, one.previous_index),
        }
        records.append(record)
    return records
