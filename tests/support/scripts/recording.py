"""Scripts of the fold's tests as logs: each is played, and its entries are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ledgermq.core.apply import apply
from ledgermq.core.versions import SKIPPED
from ledgermq.protocol.operations import Operation, Unreadable
from ledgermq.protocol.outcomes import Addressed
from ledgermq.wire.framing.codec import NOT_STAMPED, decode_operation, encode_operation
from support.brokers.log_writer import LOG_APPEND_TIME, Entry
from support.scripts.play import Player
from support.scripts.script import scripts_of

SCRIPTS = Path(__file__).parents[2] / "core" / "scripts"


class Recorder(Player):
    """Plays without the checks of a player, and keeps the entries."""

    def __init__(self) -> None:
        super().__init__(with_model=False)
        self.entries: list[Entry] = []

    def enter(self, entry: Operation | bytes | None) -> list[Addressed]:
        """Appends one entry and folds it."""
        if entry is SKIPPED:
            raise LookupError("what was declared skipped is in no log of one script")
        stamp, value = LOG_APPEND_TIME, entry
        if isinstance(entry, Unreadable):
            stamp, value = LOG_APPEND_TIME + 1, None
        elif isinstance(entry, Operation):
            value = encode_operation(entry)
        operation = NOT_STAMPED if isinstance(entry, Unreadable) else decode_operation(value)
        time_us = self.state.time if isinstance(entry, Unreadable) else self.clock_us
        self.entries.append(Entry(value=value, time_us=time_us, stamp=stamp))
        return apply(self.state, operation, self.state.position + 1, time_us)


def recorded_scripts() -> Iterator[tuple[str, list[Entry]]]:
    """Each script's source and title, and its entries."""
    for script in scripts_of(SCRIPTS):
        recorder = Recorder()
        try:
            for line in script.lines:
                recorder.line(line)
        except LookupError:
            continue
        yield f"{Path(script.source).name} {script.title}", recorder.entries
