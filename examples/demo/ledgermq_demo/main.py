"""The demo from its first step to its verdict: `ledgermq demo`, which `make demo` calls."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ledgermq
from ledgermq.cli.options.spark import quiet_spark
from ledgermq.cli.printing.screens import screen, status_document
from ledgermq_demo.course import (
    WATCHED_QUEUE,
    Course,
    create_queues,
    fly_rotations,
    run_course,
)
from ledgermq_demo.flights import ORIGINS, Flights, arrivals_queue, departures_queue
from ledgermq_demo.rotations import Rotations
from ledgermq_demo.screen import Screen
from ledgermq_demo.stage import GuestStage, OwnStage, Stage

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection
    from ledgermq.protocol.documents.manager import CheckpointStatus
    from ledgermq_demo.crew import Counts, RotationCounts


PATIENCE_SECONDS = 120.0


def run_demo(
    directory: Path, *, whole_year: bool, bootstrap: str | None, kill_command: str | None
) -> int:
    """Run the demo in a directory, on what runs at an address or on a broker and a worker of its
    own; 0 if everything it checks holds, else 1.

    Raises:
        LedgerMQError: A part of it could not be run.
    """
    shown = Screen()
    started = time.monotonic()
    what = "the year's flights" if whole_year else "the flights of January 2013"
    shown.heading(f"LedgerMQ: {what} from New York City go through queues")
    stage: Stage
    if bootstrap is None:
        stage = OwnStage(directory, tell=shown.say)
        shown.say("starting a single-node Kafka and a Faust worker ...")
    else:
        stage = GuestStage(directory, bootstrap, kill_command)
    with stage:
        shown.say(f"Kafka at {stage.bootstrap}, files in {directory}")
        with shown.bars("reading the flights") as (bar,):
            flights = Flights.write(directory, whole_year=whole_year, tell=bar)
        with ledgermq.connect(stage.address, timeout=PATIENCE_SECONDS) as connection:
            course = _play(shown, stage, connection, flights)
            _rotate(shown, stage, flights)
            statuses = [status_document(one) for one in connection.admin.list_queues()]
            checkpoint = connection.admin.checkpoint()
        _balance(shown, flights, course, {one["name"]: one for one in statuses})
        _prove(shown, stage, course, checkpoint, directory)
    where = f"--data-dir {directory}" if bootstrap is None else f"--bootstrap {bootstrap}"
    return _verdict(shown, where, time.monotonic() - started)


def _play(shown: Screen, stage: Stage, connection: Connection, flights: Flights) -> Course:
    with shown.bars("creating queues") as (bar,):
        create_queues(connection, flights, bar)
    shown.heading("Transacted producers and consumers, and a worker that is killed")
    with shown.bars("flights put", "flights taken") as (put, taken):

        def tell(counts: Counts) -> None:
            put(counts.put, flights.total)
            taken(counts.consumed, flights.total)

        course = run_course(stage, connection, flights, tell=tell, say=shown.say)
    counts = course.counts
    shown.say(
        f"{counts.put:,} flights put, {counts.consumed:,} taken, {counts.moved:,} of them moved to "
        f"{len(flights.arrived)} arrival queues, in {course.seconds:.1f} s, crash included"
    )
    shown.say(
        f"{counts.rollbacks:,} units of work rolled back for a missing tail number, with "
        f"{counts.returned:,} messages, which came again"
    )
    return course


def _rotate(shown: Screen, stage: Stage, flights: Flights) -> None:
    """Groups: each aircraft's day, put by three airports at a time, got whole and in order."""
    shown.heading("Groups: what each aircraft flew on a day, in the order of departure")
    rotations = Rotations.write(stage.directory, flights)
    with shown.bars("flights put", "flights got in logical order") as (put, got):

        def tell(counts: RotationCounts) -> None:
            put(counts.put, flights.total)
            got(counts.got, flights.total)

        counts, seconds = fly_rotations(stage, rotations, tell=tell)
    shown.say(
        f"{counts.put:,} flights put by {len(rotations.files)} airports, got as {counts.groups:,} "
        f"groups and {rotations.single:,} flights without a tail number, in {seconds:.1f} s"
    )
    shown.check(
        f"all {rotations.count:,} rotations came whole, each from its first departure to its last",
        holds=(counts.groups, counts.got, counts.wrong) == (rotations.count, flights.total, []),
        otherwise=f"{counts.groups} groups, {counts.got} flights; {counts.wrong[:3]}",
    )


def _balance(
    shown: Screen, flights: Flights, course: Course, statuses: dict[str, dict[str, Any]]
) -> None:
    shown.heading("The queues, as the worker answers")
    for origin in ORIGINS:
        shown.show(screen(statuses[departures_queue(origin)]))
        shown.console.print()
    busiest = max(flights.arrived, key=lambda name: flights.arrived[name])
    shown.show(screen(statuses[arrivals_queue(busiest)]))
    shown.console.print()
    for origin in ORIGINS:
        name, wanted = departures_queue(origin), flights.counts[origin]
        status = statuses[name]
        found = (status["message_count"], status["sent_and_committed"], status["next_sequence"])
        shown.check(
            f"{name}: all {wanted:,} flights were put once and taken once",
            holds=found == (0, wanted, wanted),
            otherwise=f"count, sent, next number are {found}",
        )
    wrong = {
        name: status["message_count"]
        for name, wanted in flights.arrived.items()
        if (status := statuses[arrivals_queue(name)])["message_count"] != wanted
    }
    shown.check(
        f"arrivals: each of {len(flights.arrived)} queues holds exactly the flights that arrived "
        f"there, {sum(flights.arrived.values()):,} in all",
        holds=not wrong,
        otherwise=str(wrong),
    )
    if course.comeback is None:
        shown.say("no worker was killed")
        return
    left = course.comeback.under_way
    shown.check(
        f"the worker died with {left.units_of_work} units of work open and {left.unanswered} "
        f"operations unanswered, and was back after {course.comeback.seconds:.1f} s",
        holds=left.units_of_work > 0 and left.unanswered > 0,
        otherwise="nothing was under way, so its death proved nothing",
    )


def _prove(
    shown: Screen, stage: Stage, course: Course, checkpoint: CheckpointStatus, directory: Path
) -> None:
    from ledgermq_demo.proof import audit_all, rebuild_the_past

    with quiet_spark(checkpoint.position + 1) as engine:
        # A log as short as this one would be read without it; the demo shows what a long one has.
        shown.say("starting Spark ...")
        rebuild_the_past(shown, stage, course, engine)
        audit_all(shown, stage, course, checkpoint, directory / "report", engine)


def _verdict(shown: Screen, where: str, seconds: float) -> int:
    shown.heading("Verdict")
    if shown.failed:
        for text in shown.failed:
            shown.say(f"✘ {text}")
        shown.say(f"{len(shown.failed)} of {shown.checked} checks failed, after {seconds:.0f} s")
        return 1
    shown.say(f"all {shown.checked} checks hold, after {seconds:.0f} s")
    if where.startswith("--data-dir"):
        shown.say(f"everything is stopped; start it again: ledgermq up {where}")
    shown.say(f"look around: ledgermq queue stat {WATCHED_QUEUE} {where}")
    return 0
