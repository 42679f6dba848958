"""Checkpoints as audit and rebuild read them: manifests, chunks, digests (PROTOCOL.md §10)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ledgermq.errors import LedgerMQError
from ledgermq.wire.framing.checkpoint_chunks import (
    BLOCK,
    MANIFEST,
    ROOT,
    ChunkError,
    chunk_of,
    references_of,
    root_parts,
)
from ledgermq.wire.framing.codec import UndecodableError, decode_as, decode_record
from ledgermq.wire.topics.checkpoint_records import StoredRecords
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import LogUnreadableError, PartitionReader, latest_values
from ledgermq.wire.topics.registry import Claim
from ledgermq_spark.log.positions import LogUnreachableError, partition_ranges

__all__ = [
    "BLOCK",
    "MANIFEST",
    "ROOT",
    "Checkpoint",
    "CheckpointBrokenError",
    "Checkpoints",
    "read_checkpoints",
    "state_digest",
]

TIMEOUT_SECONDS = 20.0


class CheckpointBrokenError(LedgerMQError):
    """A checkpoint is not whole: a chunk is missing, or its bytes are not what was written."""

    code = "checkpoint-broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A whole checkpoint: the state as its chunks, each verified against its digest."""

    manifest: dict[str, Any]
    root: bytes
    blocks: list[bytes]

    @property
    def position(self) -> int:
        """The last position that the state includes."""
        return int(self.manifest["position"])

    def root_record(self) -> dict[str, Any]:
        """The Root, replies as the codec reads them."""
        return decode_record(self.root)[1]

    def block_records(self) -> list[dict[str, Any]]:
        """The blocks of messages in manifest order; of a large one, each chunk by itself."""
        return [decode_record(block)[1] for block in self.blocks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """What stands on a queue manager's partition of the checkpoints topic."""

    manifests: dict[int, dict[str, Any]] = field(default_factory=dict)
    chunks: dict[str, bytes] = field(default_factory=dict)

    def load(self, position: int) -> Checkpoint:
        """The checkpoint at a position.

        Raises:
            CheckpointBrokenError: There is none, or it is not whole.
        """
        manifest = self.manifests.get(position)
        if manifest is None:
            known = ", ".join(str(one) for one in sorted(self.manifests)) or "none"
            raise CheckpointBrokenError(
                f"there is no checkpoint at position {position} (there are: {known})"
            )
        root, blocks = bytearray(), []
        try:
            for reference in references_of(manifest, self.chunks):
                chunk = chunk_of(self.chunks, reference["digest"])
                if reference["kind"] == "root":
                    root += chunk
                else:
                    blocks.append(chunk)
        except ChunkError as error:
            raise CheckpointBrokenError(
                f"the checkpoint at position {position} is not whole: {error}"
            ) from error
        parts = [bytes(root), *blocks]
        if state_digest(parts) != manifest["digest"]:
            raise CheckpointBrokenError(
                f"the checkpoint at position {position} does not add up to its digest"
            )
        return Checkpoint(manifest=manifest, root=parts[0], blocks=parts[1:])

    def newest_at_or_below(self, position: int) -> Checkpoint | None:
        """The newest whole checkpoint that does not lie above a position."""
        below = (one for one in sorted(self.manifests, reverse=True) if one <= position)
        return self._first_whole(below)

    def oldest_between(self, first: int, last: int) -> Checkpoint | None:
        """The oldest whole checkpoint from one position to another."""
        return self._first_whole(one for one in sorted(self.manifests) if first <= one <= last)

    def _first_whole(self, positions: Iterable[int]) -> Checkpoint | None:
        for position in positions:
            with suppress(CheckpointBrokenError):
                return self.load(position)
        return None


def read_checkpoints(bootstrap: str, topics: Topics, claim: Claim) -> Checkpoints:
    """Read a queue manager's manifests and chunks to the end that the partition has now.

    Raises:
        LogUnreachableError: The cluster does not answer, or has no such topic.
    """
    (place,) = partition_ranges(bootstrap, topics.checkpoints, [claim.partition])
    try:
        with PartitionReader(bootstrap, TIMEOUT_SECONDS) as reader:
            values = latest_values(
                reader.records(place.topic, place.partition, place.start, place.end)
            )
    except LogUnreadableError as error:
        raise LogUnreachableError(f"log topic {error}") from error
    stored = StoredRecords(claim.queue_manager, values)
    return Checkpoints(manifests=_readable(stored), chunks=stored.chunks)


def _readable(stored: StoredRecords) -> dict[int, dict[str, Any]]:
    """The manifests that can be read, by position."""
    found = {}
    for position, value in stored.manifests.items():
        with suppress(UndecodableError):
            manifest = decode_as(MANIFEST, value)
            if manifest["position"] == position:
                found[position] = manifest
    return found


def state_digest(chunks: list[bytes]) -> str:
    """The digest of a state: over the digests of a whole Root's chunks and those of the blocks."""
    whole = hashlib.sha256()
    for chunk in (*root_parts(chunks[0]), *chunks[1:]):
        whole.update(hashlib.sha256(chunk).digest())
    return whole.hexdigest()
