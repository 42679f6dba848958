"""Runs the demo's producers and consumers, and counts what they tell."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ledgermq.errors import LedgerMQError
from ledgermq_demo.flights import ORIGINS, Flights
from ledgermq_demo.rotations import Rotations

AGENTS: Final = "ledgermq_demo.agents"
ROTATION_AGENTS: Final = "ledgermq_demo.rotation_agents"
STOP_TIMEOUT_SECONDS: Final = 10


class AgentFailedError(LedgerMQError):
    """A producer or consumer of the demo ended with an error."""

    code = "demo-failed"


@dataclass(slots=True, kw_only=True)
class Counts:
    """What the agents have done so far.

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


class Processes:
    """Processes that tell what they do as JSON lines; to be derived from for what is told."""

    def __init__(self, *, log_directory: Path, changed: Callable[[], None]) -> None:
        """`changed` is called, in some thread, when something was told or somebody ended."""
        self._log_directory = log_directory
        self._changed = changed
        self._lock = threading.Lock()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._failures: dict[str, str] = {}
        self._readers: list[threading.Thread] = []

    def _start(self, name: str, module: str, arguments: list[str]) -> None:
        log = self._log_directory / f"{name.replace(' ', '-')}.log"
        with log.open("w", encoding="utf-8") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                # Ctrl-C goes to the demo, which stops everybody in its turn.
                start_new_session=True,
            )
        self._processes[name] = process
        reader = threading.Thread(target=self._read, args=(name, process), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        finished = False
        for line in process.stdout:
            event = json.loads(line)
            finished = finished or event["event"] == "finished"
            with self._lock:
                if event["event"] == "failed":
                    self._failures[name] = event["error"]
                else:
                    self._take(event)
            self._changed()
        if process.wait() != 0 or not finished:
            logs = self._log_directory / f"{name.replace(' ', '-')}.log"
            self._failures.setdefault(name, f"it ended with {process.returncode}; see {logs}")
        self._changed()

    def _take(self, event: dict[str, Any]) -> None:
        """Counts what somebody told."""
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether everybody has ended in good order.

        Raises:
            AgentFailedError: Somebody ended otherwise.
        """
        for name, error in list(self._failures.items()):
            raise AgentFailedError(f"the demo's {name} failed: {error}")
        return not any(reader.is_alive() for reader in self._readers)

    def stop(self) -> None:
        """End whoever is left, by force if need be."""
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self._processes.values():
            try:
                process.wait(timeout=STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Crew(Processes):
    """One producer and one consumer process per airport."""

    def __init__(
        self,
        *,
        address: str,
        topic_prefix: str,
        flights: Flights,
        log_directory: Path,
        changed: Callable[[], None],
    ) -> None:
        """Describe the crew; `changed` is called, in some thread, when a count has changed."""
        super().__init__(log_directory=log_directory, changed=changed)
        self.counts = Counts()
        self._to = [address, topic_prefix]
        self._flights = flights

    def start(self) -> None:
        """Start everybody."""
        for origin in ORIGINS:
            common = [*self._to, origin, str(self._flights.counts[origin])]
            file = str(self._flights.files[origin])
            self._start(f"consumer {origin}", AGENTS, ["consumer", *common])
            self._start(f"producer {origin}", AGENTS, ["producer", *common, file])

    def _take(self, event: dict[str, Any]) -> None:
        counts = self.counts
        if event["event"] == "put":
            counts.put += event["count"]
        elif event["event"] == "consumed":
            counts.consumed += event["count"]
            counts.moved += event["moved"]
        elif event["event"] == "rolled_back":
            counts.rollbacks += 1
            counts.returned += event["count"]
            counts.rolled_back += event["messages"]


@dataclass(slots=True, kw_only=True)
class RotationCounts:
    """What the agents of the rotations have done so far.

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


class RotationCrew(Processes):
    """A putter for each airport, and one getter of whole rotations."""

    def __init__(
        self,
        *,
        address: str,
        topic_prefix: str,
        rotations: Rotations,
        log_directory: Path,
        changed: Callable[[], None],
    ) -> None:
        """Describe the crew; `changed` is called, in some thread, when a count has changed."""
        super().__init__(log_directory=log_directory, changed=changed)
        self.counts = RotationCounts()
        self._to = [address, topic_prefix]
        self._rotations = rotations

    def start(self) -> None:
        """Start everybody."""
        flights = self._rotations.flights + self._rotations.single
        self._start("rotations getter", ROTATION_AGENTS, ["get", *self._to, str(flights)])
        for origin, file in self._rotations.files.items():
            self._start(
                f"rotations putter {origin}", ROTATION_AGENTS, ["put", *self._to, str(file)]
            )

    def _take(self, event: dict[str, Any]) -> None:
        counts = self.counts
        if event["event"] == "put":
            counts.put += event["count"]
        elif event["event"] == "got":
            counts.got += event["count"]
            counts.groups += event["groups"]
        elif event["event"] == "wrong":
            counts.wrong.append(event["text"])
