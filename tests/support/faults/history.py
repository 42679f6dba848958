"""The history of a run: one JSON line for each thing that a client or the nemesis did, as it does
it.

A line goes to the file before the call that it tells of, so that a killed client's last call is in
its history. Steps of a unit of work are `invoke` and then `ok`, `fail` or `unknown`; `got` is a
message that was handed over, `fault` and `healed` are the nemesis'.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Recorder:
    """Writes the history of one client, or of the nemesis."""

    def __init__(self, directory: Path, client: str) -> None:
        self._client = client
        self._file = (directory / f"{client}.jsonl").open("a", buffering=1, encoding="utf-8")

    def write(self, step: str, **fields: Any) -> None:
        """Adds a line; the clock is one for all processes of a machine."""
        line = {"at": round(time.monotonic(), 4), "client": self._client, "step": step} | fields
        self._file.write(json.dumps(line) + "\n")


def read(directory: Path) -> list[Line]:
    """All lines of a run, in the order of their times."""
    lines = [line for path in sorted(directory.glob("*.jsonl")) for line in _lines_of(path)]
    return sorted(lines, key=lambda line: float(line["at"]))


def _lines_of(path: Path) -> Iterator[Line]:
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(text)
        except ValueError:
            # The client was killed while it wrote this line, so it never made the call.
            continue
