"""Which bodies the state of a checkpoint needs of the log (PROTOCOL.md §20)."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from typing import Any, NamedTuple

from ledgermq_spark.rebuild.checkpoints import Checkpoint


class NeededBody(NamedTuple):
    """A live message by where its body stands; sequence number -1: it had none yet."""

    position: int
    body_index: int
    destination: str
    sequence: int


def bodies_needed(checkpoint: Checkpoint, limit: int) -> list[NeededBody]:
    """The live messages of a state whose bodies stand lowest, at most `limit` of them."""
    return nsmallest(limit, _bodies(checkpoint))


def _bodies(checkpoint: Checkpoint) -> Iterator[NeededBody]:
    for block in checkpoint.block_records():
        for message in block["messages"]:
            yield _body(message, _destination(block["queue"]))
    root = checkpoint.root_record()
    waiting = [*root["blocked_puts"]]
    for session in root["sessions"]:
        waiting += session["open_puts"]
    for puts in waiting:
        for message in puts["messages"]:
            yield _body(message, puts["destination"])


def _destination(store: str) -> str:
    """Of a queue a block has the name, of a subscription the topic as a destination."""
    return store if store.startswith("topic:") else "queue:" + store


def _body(message: dict[str, Any], destination: str) -> NeededBody:
    place = (message["body_position"], message["body_index"])
    if place[0] < 0:
        place = (message["put_position"], message["put_index"])
    return NeededBody(*place, destination, message["sequence"])
