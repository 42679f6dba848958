"""What the checkpoints topic holds for one queue manager, key by key.

Anybody who can write to the topic can write any key: what is no key of a checkpoint is passed over
with a word in the log.
"""

from __future__ import annotations

import logging

from ledgermq.processor.log_reading import PartitionReader
from ledgermq.wire.checkpoint_keys import chunk_key, manifest_key, parse_key
from ledgermq.wire.registry import Claim
from ledgermq.wire.topics import Topics

__all__ = ["Shelf", "filled_shelf"]

log = logging.getLogger(__name__)


class Shelf:
    """What the checkpoints topic holds for one queue manager; `rubbish` are keys of nothing."""

    def __init__(self, queue_manager: str) -> None:
        self._queue_manager = queue_manager
        self.manifests: dict[int, bytes] = {}
        self.chunks: dict[str, bytes] = {}
        self.rubbish: dict[bytes, None] = {}

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Files one record; a record without a value takes its key away."""
        name = parse_key(self._queue_manager, key)
        if isinstance(name, int):
            self.manifests.pop(name, None)
            if value is not None:
                self.manifests[name] = value
        elif name is not None:
            self.chunks.pop(name, None)
            if value is not None:
                self.chunks[name] = value
        elif key is not None:
            self.rubbish.pop(key, None)
            if value is not None:
                self.rubbish[key] = None

    def all_keys(self) -> list[bytes]:
        """All keys that have a value, whatever they are."""
        name = self._queue_manager
        keys = [manifest_key(name, position) for position in self.manifests]
        keys += [chunk_key(name, digest) for digest in self.chunks]
        return [*(key.encode() for key in keys), *self.rubbish]


def filled_shelf(reader: PartitionReader, topics: Topics, claim: Claim) -> Shelf:
    """Reads the topic to its end.

    Raises:
        LogUnreadableError: Kafka did not answer.
    """
    shelf = Shelf(claim.queue_manager)
    first, end = reader.ends(topics.checkpoints, claim.partition)
    for record in reader.records(topics.checkpoints, claim.partition, first, end):
        shelf.take(record.key(), record.value())
    if shelf.rubbish:
        log.warning(
            "%s: %d keys of %s-%d are no keys of its checkpoints (such as %r); they are passed "
            "over, and taken away with the next checkpoint",
            claim.queue_manager,
            len(shelf.rubbish),
            topics.checkpoints,
            claim.partition,
            next(iter(shelf.rubbish))[:100],
        )
    return shelf
