"""The demo's middle part: flights go through the queues, and the worker is killed on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledgermq.cli.printing.screens import status_document
from ledgermq.wire.topics.registry import find_queue_manager
from ledgermq_demo.crash import UnderWay, ends_of, under_way
from ledgermq_demo.crew import Counts, Crew, RotationCounts, flight_programs, rotation_programs
from ledgermq_demo.flights import ORIGINS, Flights, arrivals_queue, departures_queue
from ledgermq_demo.rotations import Rotations

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection
    from ledgermq_demo.stage import Stage


# Whose status is recorded in the middle of the run, for Spark to compute again.
WATCHED_QUEUE: Final = departures_queue("JFK")
STATUS_AT: Final = 0.5
# Early enough for the producers to be at work too.
KILL_AT: Final = 0.15
BUSY_SESSIONS: Final = 3
BUSY_SECONDS_MAX: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comeback:
    """The worker's death and return: what was under way, and for how long nobody answered."""

    under_way: UnderWay
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What happened on the way.

    Attributes:
        counts: What the applications say they did.
        seconds: From the first put to the last commit.
        status: The watched queue's status in the middle, with its log position.
        comeback: The worker's death and return; None: none was killed.
    """

    counts: Counts
    seconds: float
    status: dict[str, Any]
    comeback: Comeback | None


def create_queues(
    connection: Connection, flights: Flights, tell: Callable[[int, int], None]
) -> int:
    """Create a queue per airport of origin and per destination; return how many."""
    names = [departures_queue(origin) for origin in ORIGINS]
    names += [arrivals_queue(destination) for destination in flights.arrived]
    for done, name in enumerate(names, 1):
        connection.admin.create_queue(name)
        tell(done, len(names))
    return len(names)


def run_course(
    stage: Stage,
    connection: Connection,
    flights: Flights,
    *,
    tell: Callable[[Counts], None],
    say: Callable[[str], None],
) -> Course:
    """Run producers and consumers to the end, with one SIGKILL of the worker on the way if it can.

    Raises:
        AgentFailedError: A producer or consumer ended with an error.
    """
    status: dict[str, Any] | None = None
    comeback: Comeback | None = None

    def look(counts: Counts) -> None:
        nonlocal status, comeback
        tell(counts)
        share = counts.consumed / flights.total
        if status is None and share >= STATUS_AT:
            status = status_document(connection.admin.queue_status(WATCHED_QUEUE))
            say(f"status of {WATCHED_QUEUE} recorded at {stage.named(status['position'])}")
        if stage.kills and comeback is None and share >= KILL_AT:
            comeback = _kill(stage, connection, say)

    started = time.monotonic()
    crew = Crew(stage, Counts())
    crew.run(flight_programs(flights), look)
    assert status is not None, "it is recorded before the last flight"
    assert comeback is not None or not stage.kills, "it happens before the last flight"
    return Course(
        counts=crew.counts,
        seconds=time.monotonic() - started,
        status=status,
        comeback=comeback,
    )


def fly_rotations(
    stage: Stage, rotations: Rotations, *, tell: Callable[[RotationCounts], None]
) -> tuple[RotationCounts, float]:
    """Put and get all rotations; what was counted, and the seconds it took."""
    started = time.monotonic()
    crew = Crew(stage, RotationCounts())
    crew.run(rotation_programs(rotations), tell)
    return crew.counts, time.monotonic() - started


def _kill(stage: Stage, connection: Connection, say: Callable[[str], None]) -> Comeback:
    """Kill the worker, see what it left behind, and wait until there is one that answers."""
    claim = find_queue_manager(stage.bootstrap, stage.topics, stage.queue_manager)
    _wait_until_busy(connection)
    killed = stage.kill_worker(connection.admin.queue_manager_status().worker)
    say(f"SIGKILL to the worker, {killed}")
    started = time.monotonic()
    ends = ends_of(stage.bootstrap, stage.topics, claim)
    with ThreadPoolExecutor(max_workers=1) as waiting:
        answered = waiting.submit(_answered, connection, ends.operations - 1)
        left = under_way(stage.bootstrap, stage.topics, claim, ends)
        say(
            f"it had folded up to {stage.named(left.position)}: {left.units_of_work} units of work "
            f"open with {left.gets} gets and {left.puts} puts, {left.unanswered} operations on the "
            "log unanswered"
        )
        seconds = answered.result() - started
    worker = connection.admin.queue_manager_status().worker
    say(f"after {seconds:.1f} s worker {worker} answers")
    return Comeback(under_way=left, seconds=seconds)


def _wait_until_busy(connection: Connection) -> None:
    """Wait until several applications are in the middle of a unit of work, but not for long."""
    deadline = time.monotonic() + BUSY_SECONDS_MAX
    while time.monotonic() < deadline:
        sessions = connection.admin.sessions()
        if sum(1 for one in sessions if one.in_flight or one.open_puts) >= BUSY_SESSIONS:
            return


def _answered(connection: Connection, position: int) -> float:
    """When a worker answered that has folded the log up to a position."""
    connection.admin.queue_manager_status(not_before=position)
    return time.monotonic()
