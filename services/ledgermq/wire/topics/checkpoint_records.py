"""What the checkpoints topic holds for one queue manager (PROTOCOL.md §10)."""

from __future__ import annotations

from collections.abc import Mapping

from ledgermq.wire.framing.checkpoint_keys import chunk_key, manifest_key, parse_key


class StoredRecords:
    """What the checkpoints topic holds for one queue manager, by the last values of its keys.

    `rubbish` are keys of nothing; `ends` are where the topic began and ended when it was read.
    """

    def __init__(
        self, queue_manager: str, values: Mapping[bytes, bytes], ends: tuple[int, int] = (0, 0)
    ) -> None:
        self.queue_manager = queue_manager
        self.ends = ends
        self.manifests: dict[int, bytes] = {}
        self.chunks: dict[str, bytes] = {}
        self.rubbish: list[bytes] = []
        for key, value in values.items():
            name = parse_key(queue_manager, key)
            if isinstance(name, int):
                self.manifests[name] = value
            elif name is not None:
                self.chunks[name] = value
            else:
                self.rubbish.append(key)

    def all_keys(self) -> list[bytes]:
        name = self.queue_manager
        keys = [manifest_key(name, position) for position in self.manifests]
        keys += [chunk_key(name, digest) for digest in self.chunks]
        return [*keys, *self.rubbish]
