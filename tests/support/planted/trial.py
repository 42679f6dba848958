"""Finds histories that the fold tells otherwise once a fault is planted in it.

They are what an audit has to find the fault by: worker and rebuild run the same faulty fold, so its
outcomes, moves, clock and counts agree with each other and are wrong.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ledgermq.core.apply import apply, new_state
from ledgermq.core.entry import Moves
from ledgermq.wire.framing.codec import decode_operation
from ledgermq_spark.rebuild.testimony import Testimony
from support.brokers.log_writer import Entry
from support.generators import generators
from support.planted.planted_faults import ROUNDS, Family, Fault, plant, round_of

# So much time of a processor may the fold take for a log, which takes some ms, before it is taken
# for endless.
LOG_SECONDS_MAX = 2
LOGS_WANTED = 3
# So often a fault may stop the fold before it is said to do so always.
STOPS_MAX = 10
# So many histories are tried for more logs than one, and for one.
HISTORIES_FOR_MORE, HISTORIES_MAX = 50, 250

Told = tuple[Any, ...]


class EndlessError(Exception):
    """The fold does not come to an end."""


STOPPED = (EndlessError, AssertionError, LookupError, AttributeError, TypeError, ValueError)


@dataclass(slots=True)
class Trial:
    """What a fault does: the logs that are told otherwise, and how often the fold stopped."""

    logs: list[list[Entry]] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    histories: int = 0


def log_of(history: Sequence[generators.Entry]) -> list[Entry]:
    """The history of a generator as a log."""
    return [Entry(value=one.value, time_us=one.time) for one in history]


def told_of(history: Sequence[generators.Entry]) -> list[Told]:
    """What the fold tells of each entry, and of all in the end."""
    state, moves, told = new_state(), list[Moves](), list[Told]()
    testimony = Testimony(state)

    def hear(one: Moves) -> None:
        moves.append(one)
        testimony.hear(one)

    for position, entry in enumerate(history):
        operation = decode_operation(entry.value)
        outcomes = apply(state, operation, position, entry.time, hear)
        told.append((outcomes, moves[:], state.time, state.time_reference))
        moves.clear()
    return [*told, (testimony.standing(), testimony.segments())]


def attempt(fault: Fault, family: Family) -> Trial:
    """Tries a fault on random histories until some are told otherwise."""
    trial = Trial()
    for number in range(fault.seed, fault.seed + ROUNDS):
        for history, right in round_of(family, number, told_of):
            enough = HISTORIES_FOR_MORE if trial.logs else HISTORIES_MAX
            done = len(trial.logs) >= LOGS_WANTED or len(trial.stops) >= STOPS_MAX
            if done or trial.histories >= enough:
                return trial
            trial.histories += 1
            try:
                with planted(fault):
                    # All of it, because the fold may stop after it went wrong.
                    if told_of(history) != right:
                        trial.logs.append(log_of(history))
            except STOPPED as error:
                trial.stops.append(repr(error))
    return trial


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Plants a fault that must fit, for so long as one log may take."""

    def ring(_number: int, _frame: object) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, LOG_SECONDS_MAX)
    try:
        with plant(fault) as misfits:
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert not misfits, f"the fault no longer fits {fault.name}: {misfits[0]}"
