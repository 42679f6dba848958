"""What a manifest says: the chunks of a state in order, its digest, where the log stood
(PROTOCOL.md §10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ledgermq.processor.checkpoints.digests import state_digest
from ledgermq.wire.framing.checkpoint_chunks import manifest_pages, root_parts
from ledgermq.wire.topics.identity import LogIdentity
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq.wire.topics.registry import Claim

# The queue's name, the block's number, the digests of its chunks.
Block = tuple[str, int, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a manifest lists, the digest of the state, and all chunks that it takes."""

    references: list[dict[str, Any]]
    digest: str
    needed: tuple[str, ...]


def contents_of(root: bytes, blocks: Iterable[Block], note: Callable[[bytes], str]) -> Contents:
    """The contents of a state, its blocks in manifest order.

    `note` gives the digest of a chunk that is made here, and sees to it that it is written.
    """
    references = [_reference("root", note(part)) for part in root_parts(root)]
    for name, number, digests in blocks:
        references += [_reference("block", one, name, number) for one in digests]
    state = [one["digest"] for one in references]
    pages = [note(page) for page in manifest_pages(references)]
    if pages:
        references = [_reference("page", one) for one in pages]
    return Contents(references=references, digest=state_digest(state), needed=(*state, *pages))


def _reference(kind: str, digest: str, queue: str = "", block: int = -1) -> dict[str, Any]:
    return {"kind": kind, "digest": digest, "queue": queue, "block": block}


def manifest_of(
    claim: Claim,
    identity: LogIdentity,
    contents: Contents,
    *,
    position: int,
    append_ms: int,
    record_digest: bytes,
    version: int,
    chain: bytes,
    lane_ends: list[int],
    worker: str,
) -> dict[str, Any]:
    return {
        "queue_manager": claim.queue_manager,
        "position": position,
        "append_time_ms": append_ms,
        "version": version,
        "cluster_id": identity.cluster_id,
        "topic_id": identity.topic_id,
        "chain": chain,
        "record_digest": record_digest,
        "lane_ends": lane_ends,
        "chunks": contents.references,
        "digest": contents.digest,
        "worker": worker,
    }


def lane_ends(reader: PartitionReader, ledger: Ledger) -> list[int]:
    """Where the lanes end now; LogUnreadableError if Kafka does not answer."""
    return [reader.ends(ledger.topics.outcomes, lane)[1] for lane in ledger.lanes]
