"""Sessions: opening, numbering, units of work, the end (PROTOCOL.md §4, §5; D7, H5, H15, H16)."""

from __future__ import annotations

from ledgermq.core.delivery.doubt import tell_handing
from ledgermq.core.delivery.settling import check_deliveries, consume, give_back_all
from ledgermq.core.destinations.deduplication import check_open_ids, remember
from ledgermq.core.destinations.numbering import enqueue
from ledgermq.core.entry import Entry
from ledgermq.core.moves import move
from ledgermq.core.order.fifo import check_order
from ledgermq.core.order.waiting_consumers import join_ready
from ledgermq.core.puts.blocked import WAITS, Waits, commit_waits, drop_blocked
from ledgermq.core.puts.putting import unit_of_work_ended
from ledgermq.core.ranges import check_range
from ledgermq.core.sessions import connections
from ledgermq.core.sessions.consumers import leave_queue
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import GONE, ROLLED_BACK, UNCOMMITTED
from ledgermq.core.state.records import Session
from ledgermq.core.unit_limits import begin_unit_of_work, broken_limit
from ledgermq.protocol.limits import (
    REPLIES_MAX,
    SUSPECT_TIMEOUT_MS_MAX,
    SUSPECT_TIMEOUT_MS_MIN,
    TIMING_MS_MAX,
    UNCONFIRMED_SESSION_US,
)
from ledgermq.protocol.operations import (
    Alive,
    Close,
    Commit,
    DeliveryRange,
    Open,
    Recover,
    Rollback,
    Suspect,
)
from ledgermq.protocol.outcomes import (
    Committed,
    EnqueuedRun,
    Opened,
    Reply,
    Returned,
    SessionEnded,
    Suspected,
)
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.rounding import MILLISECOND_US, rounded

ACKNOWLEDGE_MODES = ("AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL", "TRANSACTED")


def open_session(entry: Entry, operation: Open) -> Refusal | None:
    """Creates a session whose handle is this position; it must be confirmed in time (H16)."""
    state = entry.state
    if operation.acknowledge_mode not in ACKNOWLEDGE_MODES:
        return Refusal(Reason.MODE_UNKNOWN, f"no acknowledge mode {operation.acknowledge_mode}")
    timeout_ms, delay_ms = operation.suspect_timeout_ms, operation.redelivery_delay_ms
    refusal = check_range(
        "suspect_timeout_ms", timeout_ms, SUSPECT_TIMEOUT_MS_MIN, SUSPECT_TIMEOUT_MS_MAX
    ) or check_range("redelivery_delay_ms", delay_ms, 0, TIMING_MS_MAX)
    for name in ("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms"):
        refusal = refusal or check_range(name, getattr(operation, name), 0, TIMING_MS_MAX)
    if refusal is not None:
        return refusal
    connection = connections.connection_for(entry, operation)
    if isinstance(connection, Refusal):
        return connection
    for replaced in connections.replaced_by(state, connection):
        entry.emit(replaced.connection, end_session(entry, replaced, "TAKEN_OVER", None))
    connections.add_connection(state, connection)
    session = Session(
        entry.position,
        connection,
        operation.session_key,
        operation.acknowledge_mode,
        timeout_ms,
        delay_ms,
        unit_of_work_time_limit_ms=operation.unit_of_work_time_limit_ms,
        unit_of_work_idle_limit_ms=operation.unit_of_work_idle_limit_ms,
    )
    state.sessions[entry.position] = session
    connection.sessions[entry.position] = session
    set_deadline(state, session, entry.begins + UNCONFIRMED_SESSION_US)
    entry.emit(
        connection,
        Opened(
            position=entry.position,
            index=entry.take_index(),
            session_key=operation.session_key,
            session=entry.position,
        ),
    )
    return None


def set_deadline(state: QueueManager, session: Session, due: int) -> None:
    """Lets a session end at a time, rounded up to 50 ms (H7)."""
    session.deadline = rounded(due)
    state.deadlines.add((session.deadline, session.handle))


def show_life(entry: Entry, session: Session) -> None:
    """Any operation confirms a session and clears a suspicion (H5, H16)."""
    session.confirmed = True
    session.deadline = -1
    if session.suspected:
        session.suspected = False
        for consumer in session.consumers.values():
            join_ready(consumer)
            entry.touch(consumer.queue)


def remember_reply(session: Session, reply: Reply) -> None:
    """Remembers a reply, so that a retry gets the same one (D7)."""
    assert len(session.replies) < REPLIES_MAX, "the window was checked before the operation"
    session.last_sequence = reply.session_sequence
    session.replies[reply.session_sequence] = reply


def alive(entry: Entry, session: Session, operation: Alive) -> None:
    tell_handing(entry, session, operation.handing)


def commit(entry: Entry, session: Session, operation: Commit) -> Reply | Refusal | Waits:
    """Numbers the open puts and consumes the named deliveries, as one (SEQ-04, SEQ-18).

    Waits, if puts of the session wait for a quota (H18).
    """
    if not session.transacted:
        return Refusal(Reason.NOT_TRANSACTED, "commit needs a transacted session")
    if session.unit_of_work_ended_by:
        return unit_of_work_ended(session)
    if session.waiting_commit is not None:
        return commit_waits(session)
    if session.blocked:
        session.waiting_commit = operation
        return WAITS
    open_puts = sum(len(messages) for messages in session.open_puts.values())
    if operation.puts != open_puts:
        return Refusal(
            Reason.PUTS_MISMATCH,
            f"the unit of work holds {open_puts} puts, the commit names {operation.puts}: "
            "one of its puts was refused; roll back, or commit what it holds",
        )
    refusal = check_open_ids(session, entry.state.time)
    refusal = refusal or check_deliveries(session, operation.deliveries)
    refusal = refusal or check_order(session, operation.deliveries)
    if refusal is not None:
        return refusal
    consumed = consume(entry, session, operation.deliveries)
    enqueued: list[EnqueuedRun] = []
    first_sequences: dict[str, int] = {}
    for destination, messages in session.open_puts.items():
        first = enqueue(entry, messages[0].queue, messages, UNCOMMITTED, session)
        first_sequences[destination] = first
        enqueued.append(
            {"destination": destination, "first_sequence": first, "count": len(messages)}
        )
    for destination, name, first_put in session.open_ids:
        queue = session.open_puts[destination][0].queue
        remember(entry, queue, name, first_sequences[destination] + first_put)
    _clear_open_puts(session)
    # What it got and did not commit belongs to its next unit of work.
    begin_unit_of_work(entry, session)
    return Committed(
        position=entry.position,
        index=entry.take_index(),
        session=session.handle,
        session_sequence=operation.session_sequence,
        enqueued=enqueued,
        consumed=consumed,
    )


def _discard_open_puts(entry: Entry, session: Session) -> int:
    """Lets the open puts of a unit of work vanish; they never had a number (SEQ-15)."""
    discarded = 0
    for messages in session.open_puts.values():
        queue = messages[0].queue
        move(entry, queue, messages, UNCOMMITTED, GONE, cause=ROLLED_BACK, session=session)
        discarded += len(messages)
    _clear_open_puts(session)
    return discarded


def _clear_open_puts(session: Session) -> None:
    session.open_puts = {}
    session.open_bytes = 0
    session.open_ids = []
    session.open_groups = {}


def undo(entry: Entry, session: Session, seen: list[DeliveryRange] | None) -> tuple[int, int]:
    """Withdraws all credit; puts vanish, also those that wait, and deliveries return.

    `seen` None: its application was not asked what it saw, and all of them are in doubt.
    Returns how many returned, and how many open puts vanished.
    """
    for consumer in session.consumers.values():
        if consumer.credit:
            consumer.credit = 0
            consumer.queue.ready.pop(consumer.key, None)
    if session.transacted and session.blocked:
        drop_blocked(entry, session)
    discarded = _discard_open_puts(entry, session)
    return give_back_all(entry, session, seen), discarded


def time_out_unit_of_work(entry: Entry, session: Session, due: int) -> None:
    """Rolls back a unit of work that broke a limit at a time in µs; every get counts as backed out.

    As after a rollback by administration, the session is given nothing until it rolls back itself,
    and what it had not said to have handed over does not count against a limit (H20).
    """
    limit = broken_limit(entry.state, session, due)
    entry.emit(session.connection, _return_all(entry, session, 0, None))
    session.unit_of_work_ended_by, session.unit_of_work_timed_out = limit, True


def _return_everything(
    entry: Entry, session: Session, sequence: int, seen: list[DeliveryRange]
) -> Reply | Refusal:
    return check_deliveries(session, seen) or _return_all(entry, session, sequence, seen)


def _return_all(
    entry: Entry, session: Session, sequence: int, seen: list[DeliveryRange] | None
) -> Returned:
    returned, discarded = undo(entry, session, seen)
    return Returned(
        position=entry.position,
        index=entry.take_index(),
        session=session.handle,
        session_sequence=sequence,
        returned=returned,
        discarded=discarded,
    )


def rollback(entry: Entry, session: Session, operation: Rollback) -> Reply | Refusal:
    if not session.transacted:
        return Refusal(Reason.NOT_TRANSACTED, "rollback needs a transacted session")
    if session.unit_of_work_ended_by:
        # What it saw went back already.
        session.unit_of_work_ended_by, session.unit_of_work_timed_out = "", False
        return _return_everything(entry, session, operation.session_sequence, [])
    return _return_everything(entry, session, operation.session_sequence, operation.seen)


def recover(entry: Entry, session: Session, operation: Recover) -> Reply | Refusal:
    if session.transacted:
        return Refusal(
            Reason.TRANSACTED, "recover is not for a transacted session; roll back instead"
        )
    return _return_everything(entry, session, operation.session_sequence, operation.seen)


def close(entry: Entry, session: Session, operation: Close) -> Reply | Refusal:
    refusal = check_deliveries(session, operation.seen)
    if refusal is not None:
        return refusal
    return end_session(entry, session, "CLOSED", operation.seen, operation.session_sequence)


def end_session(
    entry: Entry,
    session: Session,
    reason: str,
    seen: list[DeliveryRange] | None,
    sequence: int = 0,
) -> SessionEnded:
    state = entry.state
    for consumer in session.consumers.values():
        if consumer.open:
            leave_queue(entry, consumer)
    if session.blocked:
        drop_blocked(entry, session)
    discarded = _discard_open_puts(entry, session)
    returned = give_back_all(entry, session, seen)
    session.consumers.clear()
    del state.sessions[session.handle]
    connection = session.connection
    del connection.sessions[session.handle]
    if not connection.sessions:
        connections.end_connection(entry, connection)
    return SessionEnded(
        position=entry.position,
        index=entry.take_index(),
        session=session.handle,
        session_sequence=sequence,
        reason=reason,
        returned=returned,
        discarded=discarded,
    )


def suspect(entry: Entry, operation: Suspect) -> None:
    """Gives silent sessions a deadline; those unknown or suspected already are passed over."""
    state = entry.state
    for handle in operation.sessions:
        session = state.sessions.get(handle)
        if session is None or session.suspected:
            continue
        session.suspected = True
        for consumer in session.consumers.values():
            consumer.queue.ready.pop(consumer.key, None)
        set_deadline(state, session, entry.begins + session.suspect_timeout_ms * MILLISECOND_US)
        entry.emit(
            session.connection,
            Suspected(
                position=entry.position,
                index=entry.take_index(),
                session=handle,
                deadline=session.deadline,
            ),
        )
