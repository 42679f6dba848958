"""Administration ends what others have begun: units of work, sessions (PROTOCOL.md §18)."""

from __future__ import annotations

from ledgermq.core.entry import Entry
from ledgermq.core.quoting import quoted
from ledgermq.core.ranges import check_actor
from ledgermq.core.sessions.sessions import end_session, undo
from ledgermq.core.state.records import Session
from ledgermq.protocol.operations import EndSession, RollbackTransaction
from ledgermq.protocol.reasons import Reason, Refusal


def rollback_transaction(
    entry: Entry, session: Session, operation: RollbackTransaction
) -> Refusal | None:
    """Rolls back the unit of work of a session; every get of it counts as backed out.

    Until the session itself rolls back, it is given nothing and its puts and commits are refused.
    """
    target = _target(entry, operation)
    if isinstance(target, Refusal):
        return target
    if not target.has_unit_of_work:
        return Refusal(
            Reason.TARGET_UNKNOWN,
            f"session {operation.target_session} has no unit of work that is open",
        )
    undo(entry, target, None)
    target.unit_of_work_ended_by = f"{quoted(operation.actor)} ({quoted(operation.reason)})"
    return None


def end_other_session(entry: Entry, session: Session, operation: EndSession) -> Refusal | None:
    """Ends a session as if it was lost: what its application saw is unknown."""
    target = _target(entry, operation)
    if isinstance(target, Refusal):
        return target
    if target is session:
        return Refusal(Reason.TARGET_UNKNOWN, "a session ends itself by Close")
    entry.emit(target.connection, end_session(entry, target, "ENDED", None))
    return None


def _target(entry: Entry, operation: RollbackTransaction | EndSession) -> Session | Refusal:
    refusal = check_actor(operation.actor, operation.reason)
    if refusal is not None:
        return refusal
    handle = operation.target_session
    target = entry.state.sessions.get(handle)
    if target is None:
        return Refusal(
            Reason.TARGET_UNKNOWN,
            f"there is no session {handle}: it was closed, was lost or never existed",
        )
    return target
