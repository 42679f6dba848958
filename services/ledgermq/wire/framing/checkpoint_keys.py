"""Keys of the checkpoints topic (PROTOCOL.md §10): made, and read from any key on the topic.

A key has one form only, so that one checkpoint never has two keys: digits are those of ASCII,
without zeros in front.
"""

from __future__ import annotations

import re
from typing import Final

_POSITION: Final = re.compile(rb"0|[1-9][0-9]{0,17}")
_DIGEST: Final = re.compile(rb"[0-9a-f]{64}")


def manifest_key(queue_manager: str, position: int) -> bytes:
    return f"{queue_manager}/manifest/{position}".encode()


def chunk_key(queue_manager: str, digest: str) -> bytes:
    return f"{queue_manager}/chunk/{digest}".encode()


def parse_key(queue_manager: str, key: bytes | None) -> int | str | None:
    """The position of a manifest or the digest of a chunk; None for what is neither."""
    name, found = queue_manager.encode(), key or b""
    position = found.removeprefix(name + b"/manifest/")
    if position != found:
        return int(position) if _POSITION.fullmatch(position) else None
    digest = found.removeprefix(name + b"/chunk/")
    if digest != found and _DIGEST.fullmatch(digest):
        return digest.decode("ascii")
    return None
