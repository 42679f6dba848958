"""What a checkpoint is cut into so that each record of it fits the log (PROTOCOL.md §10).

The bytes of a Root are cut every 4 MiB. A block whose messages take more is written as its two
halves by sequence number, and each of them likewise: where a message leaves, the halves that it is
not in stay as they were. References that a manifest has no room for stand in pages of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from ledgermq.protocol.limits import BLOCK_MESSAGES
from ledgermq.wire.framing.codec import (
    UndecodableError,
    UnknownSchemaError,
    avro_long,
    decode_as,
    encode_in_parts,
    encode_record,
    outcome_from_union,
    outcome_to_union,
)
from ledgermq.wire.framing.confluent import SINGLE_OBJECT_BYTES

Record = dict[str, Any]
ROOT: Final = "ledgermq.checkpoint.Root"
MANIFEST: Final = "ledgermq.checkpoint.Manifest"
BLOCK: Final = "ledgermq.checkpoint.MessageBlock"
STORED: Final = "ledgermq.checkpoint.StoredMessage"
MANIFEST_PAGE: Final = "ledgermq.checkpoint.ManifestPage"
CHUNK_BYTES_MAX: Final = 4 * 1024 * 1024
# Digest, kind and numbers of a reference, without the name of its queue; more than they take.
REFERENCE_BYTES: Final = 96
# One reference of so many ends a page of some size, so that pages stay as they are where nothing
# changed.
PAGE_REFERENCES: Final = 8192
PAGE_BYTES_MIN: Final = 64 * 1024


class ChunkError(ValueError):
    """A chunk is not there, or not what its digest says; the text says which."""


def encode_root(root: Record) -> bytes:
    """The bytes of a Root whose replies are outcomes; all entries of a list may be bytes already.

    Its lists are encoded some entries at a time: no other thread has a turn while the codec works.
    """
    return encode_in_parts(ROOT, root | {"sessions": map(_with_replies, root["sessions"])})


def _with_replies(session: Record) -> Record:
    return session | {"replies": [outcome_to_union(reply) for reply in session["replies"]]}


def decode_root(value: bytes) -> Record:
    """The Root whose bytes these are, its replies as outcomes."""
    root = decode_as(ROOT, value)
    for session in root["sessions"]:
        session["replies"] = [outcome_from_union(reply) for reply in session["replies"]]
    return root


def root_parts(root: bytes) -> list[bytes]:
    """The bytes of a Root as the values of its chunks, in order."""
    return [root[at : at + CHUNK_BYTES_MAX] for at in range(0, len(root), CHUNK_BYTES_MAX)]


def block_values(head: Record, messages: Sequence[tuple[int, bytes]]) -> list[bytes]:
    """The chunks of a block: `head` is it without messages, these are numbers and bytes of each."""
    empty = encode_record(BLOCK, {**head, "messages": []})
    # An array is the count, that many items, and the end, which is all of an empty one.
    return [
        b"".join([empty[:-1], avro_long(len(part)), *(value for _, value in part), empty[-1:]])
        for part in _halved(messages, head["block"] * BLOCK_MESSAGES, BLOCK_MESSAGES)
    ]


def _halved(
    messages: Sequence[tuple[int, bytes]], first: int, count: int
) -> Iterator[Sequence[tuple[int, bytes]]]:
    """Messages of a range of sequence numbers, in parts that fit; none that is empty."""
    if count == 1 or sum(len(value) for _, value in messages) <= CHUNK_BYTES_MAX:
        if messages:
            yield messages
        return
    half = count // 2
    lower = sum(1 for sequence, _ in messages if sequence < first + half)
    yield from _halved(messages[:lower], first, half)
    yield from _halved(messages[lower:], first + half, half)


def encode_block_record(block: Record) -> list[bytes]:
    """The chunks of a MessageBlock record, as `block_values` cuts it."""
    whole = encode_record(BLOCK, block)
    if len(whole) <= CHUNK_BYTES_MAX:
        return [whole]
    messages = [
        (one["sequence"], encode_record(STORED, one)[SINGLE_OBJECT_BYTES:])
        for one in block["messages"]
    ]
    return block_values(block, messages)


def manifest_pages(references: Sequence[Record]) -> list[bytes]:
    """The references of a checkpoint as pages; none where a manifest has room for all of them."""
    sizes = [REFERENCE_BYTES + 4 * len(one["queue"]) for one in references]
    if sum(sizes) <= CHUNK_BYTES_MAX:
        return []
    pages: list[bytes] = []
    page: list[Record] = []
    page_bytes = 0
    for one, size in zip(references, sizes, strict=True):
        page.append(one)
        page_bytes += size
        if page_bytes >= CHUNK_BYTES_MAX or (page_bytes >= PAGE_BYTES_MIN and _ends_page(one)):
            pages.append(encode_record(MANIFEST_PAGE, {"chunks": page}))
            page, page_bytes = [], 0
    if page:
        pages.append(encode_record(MANIFEST_PAGE, {"chunks": page}))
    return pages


def _ends_page(reference: Record) -> bool:
    return crc32(f"{reference['queue']}/{reference['block']}".encode()) % PAGE_REFERENCES == 0


def references_of(manifest: Record, chunks: Mapping[str, bytes]) -> list[Record]:
    """What a checkpoint consists of in manifest order, those on pages in their place.

    Raises:
        ChunkError: A page is not whole, or the root does not stand first.
        UnknownSchemaError: A page is written in a schema that this release does not have.
    """
    found: list[Record] = []
    for one in manifest["chunks"]:
        if one["kind"] == "page":
            found += _page(chunk_of(chunks, one["digest"]), one["digest"])
        else:
            found.append(one)
    kinds = [one["kind"] for one in found]
    if kinds[:1] != ["root"] or "root" in kinds[kinds.count("root") :]:
        raise ChunkError("its list does not begin with its root")
    return found


def _page(value: bytes, digest: str) -> list[Record]:
    try:
        listed: list[Record] = decode_as(MANIFEST_PAGE, value)["chunks"]
    except UnknownSchemaError:
        raise
    except UndecodableError as error:
        raise ChunkError(f"chunk {digest} cannot be read: {error}") from error
    return listed


def chunk_of(chunks: Mapping[str, bytes], digest: str) -> bytes:
    """A chunk by its digest; ChunkError if it is not there or has another digest."""
    value = chunks.get(digest)
    if value is None:
        raise ChunkError(f"chunk {digest[:100]} is missing")
    if hashlib.sha256(value).hexdigest() != digest:
        raise ChunkError(f"chunk {digest} is damaged")
    return value
