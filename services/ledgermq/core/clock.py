"""Time: how far an entry advances it, and what falls due on the way (PROTOCOL.md §6; H6, H7)."""

from __future__ import annotations

import heapq

from ledgermq.core.blocked import next_time_out
from ledgermq.core.redelivery import end_wait
from ledgermq.core.releasing import release, release_and_deliver, time_out
from ledgermq.core.sessions import end_session
from ledgermq.core.state import QueueManager, Session
from ledgermq.core.timing import expire_due
from ledgermq.core.turn import Turn
from ledgermq.protocol.limits import TIME_AGREEMENT_US, TIME_AHEAD_RATE, TIME_LEAP_US
from ledgermq.protocol.operations import Operation, TimeAgreed, Unreadable
from ledgermq.protocol.reasons import TIMESTAMP_UNTRUSTED

__all__ = ["advance", "agrees", "next_deadline", "time_after"]


def agrees(operation: TimeAgreed, time: int) -> bool:
    """Whether the writer's clock agrees with the append time of its own entry."""
    return abs(operation.writer_time - time) <= TIME_AGREEMENT_US


def time_after(
    time: int, reference: int, append_time: int, *, agreed: bool
) -> tuple[int, int, bool]:
    """State time and its reference after an entry, and whether the append time counted.

    A reference of -1 is none: state time is not ahead of the clock, or not known to be for good.
    """
    if time < 0:
        return append_time, -1, True
    step = append_time - (time if reference < 0 else reference)
    if -TIME_LEAP_US <= step < 0:
        return time, reference, True
    if 0 <= step <= TIME_LEAP_US:
        share, whole = TIME_AHEAD_RATE
        after = max(append_time, time + step * share // whole)
    elif agreed or time <= append_time <= time + TIME_LEAP_US:
        # What was leapt over is no time that passed, but where the clocks are by now.
        after = max(append_time, time)
    else:
        return time, reference, False
    return after, -1 if after == append_time else append_time, True


def advance(turn: Turn, operation: Operation, time: int) -> None:
    """Lets the time pass that this entry brings, if it counts, and fires what is due."""
    state = turn.state
    counts = True
    # Where the log did not stamp a record, its time is its writer's word, and it brings none.
    if not (isinstance(operation, Unreadable) and operation.reason == TIMESTAMP_UNTRUSTED):
        agreed = isinstance(operation, TimeAgreed) and agrees(operation, time)
        state.time, state.time_reference, counts = time_after(
            state.time, state.time_reference, time, agreed=agreed
        )
        turn.begins = max(time, state.time)
    state.time_stood_still = not counts
    expire_due(turn)
    release(turn)
    while True:
        births = state.births.next()
        sessions = _next_end(state)
        time_outs = next_time_out(state)
        moments = (births, sessions, time_outs)
        due = min((one for one in moments if one is not None), default=None)
        if due is None or due > state.time:
            break
        if due == sessions:
            _end(turn, state.sessions[heapq.heappop(state.deadlines)[1]])
        elif due == time_outs:
            time_out(turn, due)
        else:
            _end_waits(turn, due)


def _next_end(state: QueueManager) -> int | None:
    """The next moment in µs at which a session ends."""
    deadlines = state.deadlines
    while deadlines and _holder(state, *deadlines[0]) is None:
        heapq.heappop(deadlines)
    return deadlines[0][0] if deadlines else None


def _end_waits(turn: Turn, due: int) -> None:
    """Makes available what may be delivered from a moment on, and delivers (INF-01, INF-11)."""
    for message in turn.state.births.take_due(due):
        end_wait(turn, message)
    release_and_deliver(turn)


def _holder(state: QueueManager, due: int, handle: int) -> Session | None:
    """The session that a deadline still stands for."""
    session = state.sessions.get(handle)
    return session if session is not None and session.deadline == due else None


def _end(turn: Turn, session: Session) -> None:
    """Ends a session whose time is over; what it may have seen is unknown, so all counts (D7)."""
    reason = "LOST" if session.confirmed else "UNCONFIRMED"
    connection = session.connection
    turn.emit(connection, end_session(turn, session, reason, None))
    release_and_deliver(turn)


def next_deadline(state: QueueManager) -> int | None:
    """The next moment in µs at which something falls due, or None."""
    lifetimes = state.lifetimes.next(state.stores, state.time)
    moments = (
        _next_end(state),
        state.births.next(),
        state.expiries.next(),
        lifetimes,
        next_time_out(state),
    )
    return min((one for one in moments if one is not None), default=None)
