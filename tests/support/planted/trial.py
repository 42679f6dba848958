"""Finds histories that the fold tells otherwise once a fault is planted in it.

They are what an audit has to find the fault by: worker and rebuild run the same faulty fold, so its
outcomes, moves, clock and counts agree with each other and are wrong.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ledgermq.core.apply import apply, new_state
from ledgermq.core.entry import Move
from ledgermq.wire.framing.codec import decode_operation
from ledgermq_spark.rebuild.testimony import Testimony
from support.brokers.log_writer import Entry
from support.generators import generators
from support.planted.planted_faults import ROUNDS, Family, Fault, plant

# So long may the fold take for a log, which takes some ms, before it is taken for endless.
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


@cache
def histories_of(family: Family, number: int) -> list[tuple[list[Entry], list[Told]]]:
    """The histories of a round, each with what the fold tells of it when it is right."""
    found = [list(map(entry_of, history)) for history in family.histories(number)]
    return [(log, list(told_of(log))) for log in found]


def entry_of(one: generators.Entry) -> Entry:
    """An entry of a generator as one of a log."""
    return Entry(value=one.value, time_us=one.time)


def told_of(log: Sequence[Entry]) -> Iterator[Told]:
    """What the fold tells of each entry, and of all in the end."""
    state, moves = new_state(), list[Move]()
    testimony = Testimony(state)

    def hear(move: Move) -> None:
        moves.append(move)
        testimony.hear(move)

    for position, entry in enumerate(log):
        operation = decode_operation(entry.value)
        outcomes = apply(state, operation, position, entry.time_us, hear)
        yield outcomes, moves[:], state.time, state.time_reference
        moves.clear()
    yield testimony.standing(), testimony.segments()


def attempt(fault: Fault, family: Family) -> Trial:
    """Tries a fault on random histories until some are told otherwise."""
    trial = Trial()
    for number in range(fault.seed, fault.seed + ROUNDS):
        for log, right in histories_of(family, number):
            enough = HISTORIES_FOR_MORE if trial.logs else HISTORIES_MAX
            done = len(trial.logs) >= LOGS_WANTED or len(trial.stops) >= STOPS_MAX
            if done or trial.histories >= enough:
                return trial
            trial.histories += 1
            try:
                with planted(fault):
                    # All of it, because the fold may stop after it went wrong.
                    if list(told_of(log)) != right:
                        trial.logs.append(log)
            except STOPPED as error:
                trial.stops.append(repr(error))
    return trial


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Plants a fault that must fit, for so long as one log may take."""

    def ring(_number: int, _frame: object) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LOG_SECONDS_MAX)
    try:
        with plant(fault) as misfits:
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not misfits, f"the fault no longer fits {fault.name}: {misfits[0]}"
