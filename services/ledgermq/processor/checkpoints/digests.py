"""Digests of a checkpoint: of chunks, of the state, of the operations up to it (§10)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

CHAIN_START = bytes(32)
_PLACE = struct.Struct(">qq")


def chain_next(chain: bytes, offset: int, append_ms: int, value: bytes | None) -> bytes:
    return hashlib.sha256(chain + _PLACE.pack(offset, append_ms) + (value or b"")).digest()


def record_digest(value: bytes | None) -> bytes:
    """By which a manifest knows the record at its position."""
    return hashlib.sha256(value or b"").digest()


def chunk_digest(value: bytes) -> str:
    """The digest of a chunk's bytes in hexadecimal: its key."""
    return hashlib.sha256(value).hexdigest()


def state_digest(digests: Iterable[str]) -> str:
    """The digest of a state from those of its chunks in manifest order."""
    return hashlib.sha256(b"".join(bytes.fromhex(one) for one in digests)).hexdigest()
