"""Golden logs: histories as JSON lines, readable by any implementation, and their replay.

A line is one entry: position, append time in µs, value in hexadecimal, the operation and its
outcomes in JSON; the last line holds the digest of the state. Run as a program, it replays the
logs named and prints one digest of all outcomes and states.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ledgermq.core.apply import apply, new_state
from ledgermq.protocol.operations import Operation
from ledgermq.protocol.outcomes import Addressed
from ledgermq.wire.framing.codec import decode_operation
from ledgermq.wire.framing.schemas import forms_of, names
from support.checks import checks
from support.checks.samples import to_json
from support.scripts.play import play
from support.scripts.script import Script

Row = dict[str, Any]


def _without_text(found: Row) -> Row:
    """A record without its text for people, which may quote a library."""
    return {name: to_json(value) for name, value in found.items() if name != "detail"}


def _outcome(one: Addressed) -> Row:
    return {
        "kind": type(one.outcome).__name__,
        **_without_text(asdict(one.outcome)),
        "connection": None if one.connection is None else one.connection.hex(),
        "lane": one.lane,
        "previous": [one.previous_position, one.previous_index],
    }


def _operation(operation: Operation) -> Row:
    """An operation as it was written: without the optional fields that say nothing."""
    kind = type(operation).__name__
    fields = _without_text(asdict(operation))
    schema = f"ledgermq.operation.{kind}"
    left_out = forms_of(schema)[0].left_out if schema in names() else {}
    return {"kind": kind} | {
        name: value
        for name, value in fields.items()
        if name not in left_out or value != left_out[name]
    }


def _fold(log: list[tuple[bytes | None, int]]) -> Iterator[Row]:
    """The lines of a log: what this fold makes of its entries."""
    state = new_state()
    for position, (value, time) in enumerate(log):
        operation = decode_operation(value, state.active_version)
        yield {
            "position": position,
            "time": time,
            "value": None if value is None else value.hex(),
            "operation": _operation(operation),
            "outcomes": [_outcome(one) for one in apply(state, operation, position, time)],
        }
    yield {"digest": checks.digest(state)}


def record(script: Script) -> list[Row]:
    """The golden log of a script, played with all checks."""
    return list(_fold(play(script).log))


def replay(rows: list[Row]) -> list[Row]:
    """What this fold makes of a golden log's entries."""
    entries = [row for row in rows if "position" in row]
    values = [None if row["value"] is None else bytes.fromhex(row["value"]) for row in entries]
    return list(_fold([(value, row["time"]) for value, row in zip(values, entries, strict=True)]))


if __name__ == "__main__":
    whole = hashlib.sha256()
    for name in sys.argv[1:]:
        text = Path(name).read_text(encoding="utf-8")
        replayed = replay([json.loads(line) for line in text.splitlines()])
        whole.update(json.dumps(replayed).encode())
    print(whole.hexdigest())
