"""What a manifest says: chunks of a state in order, its digest, where the log stood (§10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ledgermq.processor.checkpoints.digests import state_digest
from ledgermq.wire.framing.checkpoint_chunks import manifest_pages, root_parts
from ledgermq.wire.topics.identity import LogIdentity
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.reading import PartitionReader

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
    reader: PartitionReader,
    ledger: Ledger,
    identity: LogIdentity,
    contents: Contents,
    **taken: Any,
) -> dict[str, Any]:
    """A manifest of what was `taken`, by the names of its other fields, and of the lanes as now.

    Raises:
        LogUnreadableError: Kafka does not answer.
    """
    return {
        "queue_manager": ledger.claim.queue_manager,
        "cluster_id": identity.cluster_id,
        "topic_id": identity.topic_id,
        "lane_ends": [reader.ends(ledger.topics.outcomes, lane)[1] for lane in ledger.lanes],
        "chunks": contents.references,
        "digest": contents.digest,
        **taken,
    }
