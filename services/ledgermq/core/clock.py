"""Time: how far an entry advances it, and what falls due on the way (PROTOCOL.md §6; H6, H7)."""

from __future__ import annotations

from typing import Any

from ledgermq.core.delivery.expiry import expire_due
from ledgermq.core.delivery.redelivery import end_wait
from ledgermq.core.entry import Entry
from ledgermq.core.sessions.sessions import end_session, time_out_unit_of_work
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Session
from ledgermq.core.structures.lazy_heap import LazyHeap
from ledgermq.core.unblocking import time_out, unblock, unblock_and_deliver
from ledgermq.protocol.limits import TIME_AGREEMENT_US, TIME_AHEAD_RATE, TIME_LEAP_US
from ledgermq.protocol.operations import Operation, TimeAgreed, Unreadable
from ledgermq.protocol.reasons import Reason


def agrees(operation: TimeAgreed, time: int) -> bool:
    return abs(operation.writer_time - time) <= TIME_AGREEMENT_US


def time_after(
    time: int, reference: int, append_time: int, *, agreed: bool
) -> tuple[int, int, bool]:
    """Returns state time, its reference, and whether the append time counted.

    The reference is the append time that state time goes on from while it is ahead of the clock, or
    is not known for good not to be; -1: none.
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


def advance(entry: Entry, operation: Operation, time: int) -> None:
    state = entry.state
    counts = True
    # Where the log did not stamp a record, its time is its writer's word, and it brings none.
    if not (isinstance(operation, Unreadable) and operation.reason == Reason.TIMESTAMP_UNTRUSTED):
        agreed = isinstance(operation, TimeAgreed) and agrees(operation, time)
        state.time, state.time_reference, counts = time_after(
            state.time, state.time_reference, time, agreed=agreed
        )
        entry.begins = max(time, state.time)
    state.time_stood_still = not counts
    expire_due(entry)
    unblock(entry)
    while True:
        births, ends = _moment(state.births), _moment(state.deadlines)
        time_outs, units = _moment(state.time_outs), _moment(state.unit_limits)
        due = _earliest(births, ends, time_outs, units)
        if due is None or due > state.time:
            break
        if due == ends:
            _end(entry, state.sessions[state.deadlines.pop()[1]])
        elif due == units:
            time_out_unit_of_work(entry, state.sessions[state.unit_limits.pop()[1]], due)
            unblock_and_deliver(entry)
        elif due == time_outs:
            time_out(entry, due)
        else:
            _end_waits(entry, due)


def _moment(due: LazyHeap[Any]) -> int | None:
    """The next moment in µs of those that are ordered by one."""
    first = due.first()
    return None if first is None else first[0]


def _earliest(*moments: int | None) -> int | None:
    return min((one for one in moments if one is not None), default=None)


def _end_waits(entry: Entry, due: int) -> None:
    """Makes available what may be delivered from a moment on, and delivers (INF-01, INF-11)."""
    for *_, message in entry.state.births.take_through((due + 1,)):
        end_wait(entry, message)
    unblock_and_deliver(entry)


def _end(entry: Entry, session: Session) -> None:
    """Ends a session whose time is over; what it may have seen is unknown, so all counts (D7)."""
    reason = "LOST" if session.confirmed else "UNCONFIRMED"
    connection = session.connection
    entry.emit(connection, end_session(entry, session, reason, None))
    unblock_and_deliver(entry)


def next_deadline(state: QueueManager) -> int | None:
    """The next moment in µs at which something falls due, or None."""
    return _earliest(
        _moment(state.deadlines),
        _moment(state.births),
        _moment(state.expiries),
        _moment(state.time_outs),
        _moment(state.unit_limits),
        state.lifetimes.next(state.stores, state.time),
    )
