"""Runs the demo's applications, and counts what they tell."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from ledgermq.errors import LedgerMQError
from ledgermq_demo.flights import ORIGINS, Flights
from ledgermq_demo.rotations import Rotations
from ledgermq_demo.stage import Stage

STOP_TIMEOUT_SECONDS: Final = 10
LOOK_SECONDS: Final = 0.5


class AgentFailedError(LedgerMQError):
    code = "demo-failed"


@dataclass(slots=True, kw_only=True)
class Counts:
    """What producers and consumers have done so far.

    Attributes:
        put: Flights put and committed.
        consumed: Flights taken and committed.
        moved: Flights put to their destination's queue in the same units of work.
        rollbacks: Units of work that were rolled back.
        returned: Messages that went back with them.
        rolled_back: Message ids of the flights without a tail number that caused it, in order.
    """

    put: int = 0
    consumed: int = 0
    moved: int = 0
    rollbacks: int = 0
    returned: int = 0
    rolled_back: list[str] = field(default_factory=list)

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] == "put":
            self.put += event["count"]
        elif event["event"] == "consumed":
            self.consumed += event["count"]
            self.moved += event["moved"]
        elif event["event"] == "rolled_back":
            self.rollbacks += 1
            self.returned += event["count"]
            self.rolled_back += event["messages"]


@dataclass(slots=True, kw_only=True)
class RotationCounts:
    """What was done with rotations so far.

    Attributes:
        put: Flights put and committed.
        got: Flights taken and committed.
        groups: Rotations among them.
        wrong: What was wrong with a rotation as it came, in words.
    """

    put: int = 0
    got: int = 0
    groups: int = 0
    wrong: list[str] = field(default_factory=list)

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] == "put":
            self.put += event["count"]
        elif event["event"] == "got":
            self.got += event["count"]
            self.groups += event["groups"]
        elif event["event"] == "wrong":
            self.wrong.append(event["text"])


Counted = TypeVar("Counted", bound=Counts | RotationCounts)
# A name for people, the role that `agents` has for it, what that takes.
Program = tuple[str, str, *tuple[object, ...]]


class Crew(Generic[Counted]):
    """Processes of the demo's applications; what they report is counted."""

    def __init__(self, stage: Stage, counts: Counted) -> None:
        self.counts = counts
        self._stage = stage
        # Set, in some thread, when an application reports something or ends.
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._failures: dict[str, str] = {}
        self._readers: list[threading.Thread] = []

    def run(self, programs: Sequence[Program], look: Callable[[Counted], None]) -> None:
        """Runs programs to their end, with a look whenever a count has changed.

        Raises:
            AgentFailedError: One ended otherwise than in good order; the others are ended too.
        """
        try:
            for name, role, *arguments in programs:
                self._start(name, role, arguments)
            while any(reader.is_alive() for reader in self._readers):
                self._check()
                self._changed.wait(LOOK_SECONDS)
                self._changed.clear()
                look(self.counts)
            self._check()
            look(self.counts)
        finally:
            self._stop()

    def _start(self, name: str, role: str, arguments: list[object]) -> None:
        command = [sys.executable, "-m", "ledgermq_demo.agents", role]
        command += [self._stage.address, self._stage.topic_prefix, *map(str, arguments)]
        log = self._stage.directory / f"{name.replace(' ', '-')}.log"
        with log.open("w", encoding="utf-8") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                # Ctrl-C goes to the demo, which stops everybody in its turn.
                start_new_session=True,
            )
        self._processes[name] = process
        reader = threading.Thread(target=self._read, args=(name, process, log), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _read(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        assert process.stdout is not None
        finished = False
        for line in process.stdout:
            event = json.loads(line)
            finished = finished or event["event"] == "finished"
            with self._lock:
                if event["event"] == "failed":
                    self._failures[name] = event["error"]
                else:
                    self.counts.take(event)
            self._changed.set()
        if process.wait() != 0 or not finished:
            self._failures.setdefault(name, f"it ended with {process.returncode}; see {log}")
        self._changed.set()

    def _check(self) -> None:
        for name, error in list(self._failures.items()):
            raise AgentFailedError(f"the demo's {name} failed: {error}")

    def _stop(self) -> None:
        """Ends whoever is left, by force if need be."""
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self._processes.values():
            try:
                process.wait(timeout=STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def flight_programs(flights: Flights) -> list[Program]:
    programs: list[Program] = []
    for origin in ORIGINS:
        programs.append((f"consumer {origin}", "consume", origin, flights.counts[origin]))
        programs.append((f"producer {origin}", "produce", origin, flights.files[origin]))
    return programs


def rotation_programs(rotations: Rotations) -> list[Program]:
    flights = rotations.flights + rotations.single
    putters: list[Program] = [
        (f"rotations putter {origin}", "put-rotations", file)
        for origin, file in rotations.files.items()
    ]
    return [("rotations getter", "get-rotations", flights), *putters]
