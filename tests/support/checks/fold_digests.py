"""Digests of logs: one for each, of what the fold makes of every entry, on whatever Python runs it.

Run as a program with a file of logs, it prints their digests as JSON; with the name of a log after
the file, a line for each entry of that log, so that two Pythons can be compared by diff.

A log is `[[value in hexadecimal or null, append time in µs], ...]`. The program needs nothing but
the standard library, lark and fastavro, and of fastavro not the compiled parts.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ledgermq.core.apply import apply, new_state
from ledgermq.protocol.operations import Operation, Unreadable
from ledgermq.protocol.outcomes import Outcome, Refused
from ledgermq.wire.framing.codec import decode_operation, encode_chunk, encode_operation
from support.checks import checks
from support.invariants import whole_state as invariants

# A digest of the whole state costs more than all else; every kind of entry meets it all the same.
STATE_EVERY = 29

Log = list[tuple[str | None, int]]
Logs = dict[str, Log]


class Step(NamedTuple):
    """What one entry came to: what was read, what was answered, now and then the state after it."""

    kind: str
    operation: str
    outcomes: str
    state: str


def _hashed(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()


def _bytes_of(operation: Operation) -> bytes:
    if isinstance(operation, Unreadable):
        return operation.reason.encode()
    return encode_operation(operation)


def _answered(operation: Operation, outcome: Outcome) -> Outcome:
    """The outcome; without its text if that quotes the library which could not read the entry."""
    if isinstance(operation, Unreadable) and isinstance(outcome, Refused):
        return replace(outcome, detail="")
    return outcome


def steps(log: Log, every: int = STATE_EVERY) -> Iterator[Step]:
    """Folds a log; the digests of a state are those of its checkpoint (PROTOCOL.md §10)."""
    state = new_state()
    for position, (written, time) in enumerate(log):
        value = None if written is None else bytes.fromhex(written)
        operation = decode_operation(value, state.active_version)
        # What was read is hashed before the fold, which may keep parts of it and write to them.
        read = _hashed(_bytes_of(operation))
        found = apply(state, operation, position, time)
        addresses = repr([one[:4] for one in found]).encode()
        outcomes = [_answered(operation, one.outcome) for one in found]
        last = position == len(log) - 1
        yield Step(
            type(operation).__name__,
            read,
            _hashed(addresses + encode_chunk(-1, -1, outcomes)),
            checks.digest(state) if last or position % every == 0 else "",
        )
    invariants.check(state)
    frozen = checks.freeze(state)
    assert checks.freeze(checks.thaw(frozen)) == frozen, "the snapshot does not tell the state"


def digests(logs: Logs) -> dict[str, dict[str, int | str]]:
    """For each log its length, the digest of its last state, and one of all its steps."""
    found: dict[str, dict[str, int | str]] = {}
    for name, log in logs.items():
        course = hashlib.sha256()
        state = ""
        for step in steps(log):
            course.update(" ".join(step).encode())
            state = step.state
        found[name] = {"entries": len(log), "state": state, "course": course.hexdigest()}
    return found


def _main(path: str, *names: str) -> None:
    logs: Logs = json.loads(Path(path).read_text(encoding="utf-8"))
    if not names:
        print(json.dumps(digests(logs)))
    for name in names:
        for position, step in enumerate(steps(logs[name], every=1)):
            print(name, position, *step)


if __name__ == "__main__":
    _main(*sys.argv[1:])
