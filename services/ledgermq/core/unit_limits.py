"""Time limits of units of work: idle and in all, the shorter of session and manager (§5)."""

from __future__ import annotations

from ledgermq.core.entry import Entry
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Session
from ledgermq.protocol.rounding import MILLISECOND_US, rounded


def take_part(entry: Entry, session: Session) -> None:
    """Notes that something is put or got in a unit of work, before it is added to it."""
    state = entry.state
    if not session.open_puts and not session.deliveries:
        begin_unit_of_work(entry, session)
    elif state.unit_of_work_idle_limit_ms or session.unit_of_work_idle_limit_ms:
        _restart_idleness(state, session, entry.begins)


def begin_unit_of_work(entry: Entry, session: Session) -> None:
    """Lets a unit of work begin now, and its time."""
    session.unit_of_work_began_at = entry.state.time
    restart_limits(entry.state, session, entry.begins, entry.begins)


def restart_limits(state: QueueManager, session: Session, began: int, active: int) -> None:
    """Sets when a unit of work is over that began, and had something put or got, at times in µs."""
    limit_ms = _time_limit_ms(state, session)
    session.unit_of_work_over_at = _due(began, limit_ms)
    if limit_ms:
        state.unit_limits.add((session.unit_of_work_over_at, session.handle))
    _restart_idleness(state, session, active)


def _restart_idleness(state: QueueManager, session: Session, active: int) -> None:
    limit_ms = _idle_limit_ms(state, session)
    due = _due(active, limit_ms)
    if limit_ms:
        state.unit_limits.add((due, session.handle))
    session.unit_of_work_idle_at = due


def _time_limit_ms(state: QueueManager, session: Session) -> int:
    return shorter(state.unit_of_work_time_limit_ms, session.unit_of_work_time_limit_ms)


def _idle_limit_ms(state: QueueManager, session: Session) -> int:
    return shorter(state.unit_of_work_idle_limit_ms, session.unit_of_work_idle_limit_ms)


def shorter(one_ms: int, other_ms: int) -> int:
    """The shorter of two limits in ms, of which 0 is none."""
    return min(one_ms, other_ms) if one_ms and other_ms else one_ms or other_ms


def _due(since: int, limit_ms: int) -> int:
    return rounded(since + limit_ms * MILLISECOND_US) if limit_ms else -1


def broken_limit(state: QueueManager, session: Session, due: int) -> str:
    """Which limit ended a unit of work at a time in µs, in words."""
    if session.unit_of_work_over_at == due:
        return f"its time limit: it was open for {_time_limit_ms(state, session)} ms"
    limit_ms = _idle_limit_ms(state, session)
    return f"its idle limit: nothing was put or got in it for {limit_ms} ms"
