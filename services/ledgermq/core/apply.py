"""The fold: `apply` is the one door through which the state changes.

Theory of operation. An entry is applied in one go: time advances and what is due fires; the
operation is checked in full and then takes effect, or is refused and changes nothing but the
session's bookkeeping; then queues that were touched serve their waiting consumers. Everything
comes from the entry, its position and its time: no clock, no randomness, no input or output, no
iteration over sets. Operating errors are refusals; an impossible state is an assertion, which
stays on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ledgermq.core import versions
from ledgermq.core.clock import advance, agrees, next_deadline
from ledgermq.core.delivery.doubt import tell_handed_through
from ledgermq.core.delivery.settling import acknowledge
from ledgermq.core.destinations import bindings, subscriptions, temporaries
from ledgermq.core.destinations import changes as destinations
from ledgermq.core.entry import Counter, Entry, Listener
from ledgermq.core.manual import (
    ending,
    journal_operations,
    manager_settings,
    message_operations,
    relocation,
)
from ledgermq.core.puts import putting
from ledgermq.core.puts.blocked import Waits, is_waiting
from ledgermq.core.sessions import consumers, sessions
from ledgermq.core.state.manager import QueueManager, new_state
from ledgermq.core.state.records import Session
from ledgermq.core.unblocking import unblock_and_deliver
from ledgermq.protocol import administration, operations
from ledgermq.protocol.administration import PositionsSkipped, VersionOffered
from ledgermq.protocol.limits import PROTOCOL_VERSION, REPLIES_MAX
from ledgermq.protocol.operations import (
    Open,
    Operation,
    SessionOperation,
    Suspect,
    Tick,
    TimeAgreed,
    Unreadable,
)
from ledgermq.protocol.outcomes import Accepted, Addressed, Refused, Reply
from ledgermq.protocol.reasons import Reason, Refusal

__all__ = ["apply", "new_state", "next_deadline"]

Handler = Callable[[Entry, Session, Any], Reply | Refusal | Waits | None]

# A handler that returns None is answered with Accepted; one that waits, later.
HANDLERS: dict[type[SessionOperation], Handler] = {
    administration.BackUpJournal: journal_operations.back_up_journal,
    administration.CopyMessages: message_operations.copy_messages,
    administration.DeleteMessages: message_operations.remove_messages,
    administration.MoveMessages: message_operations.move_messages,
    administration.PurgeQueue: message_operations.remove_messages,
    administration.Relocate: relocation.relocate,
    operations.Acknowledge: acknowledge,
    operations.Alive: sessions.alive,
    operations.AlterQueue: destinations.alter,
    operations.AlterQueueManager: manager_settings.alter_queue_manager,
    operations.AlterTopic: destinations.alter,
    operations.Bind: bindings.bind,
    operations.Close: sessions.close,
    operations.CloseConsumer: consumers.close_consumer,
    operations.Commit: sessions.commit,
    operations.Correct: message_operations.correct,
    operations.CreateQueue: destinations.create,
    operations.CreateTemporary: temporaries.create_temporary,
    operations.CreateTopic: destinations.create,
    operations.DeleteQueue: destinations.delete,
    operations.DeleteTopic: destinations.delete,
    operations.EndSession: ending.end_other_session,
    operations.Get: consumers.get,
    operations.GiveBack: consumers.give_back_unseen,
    operations.OpenConsumer: consumers.open_consumer,
    operations.Put: putting.put,
    operations.Recover: sessions.recover,
    operations.Reject: consumers.reject,
    operations.Rollback: sessions.rollback,
    operations.RollbackTransaction: ending.rollback_transaction,
    operations.Unbind: bindings.unbind,
    operations.Unsubscribe: subscriptions.unsubscribe,
    operations.Upgrade: versions.upgrade,
}


def apply(
    state: QueueManager,
    operation: Operation,
    position: int,
    time: int,
    listener: Listener | None = None,
    counter: Counter | None = None,
) -> list[Addressed]:
    """Applies one entry of the log to the state.

    `position` is the entry's offset, the one after the last applied; `time` its append time in µs.
    `listener` gets all that there is to tell of each move of messages, as it is made; `counter`
    gets the move and its messages, which costs little. Returns the entry's outcomes in order.
    Refuses whatever is illegal or unreadable; raises AssertionError only for what cannot be, such
    as a position out of turn.
    """
    assert position == state.position + 1, f"position {position} after {state.position}"
    assert state.active_version <= PROTOCOL_VERSION, "the caller stops at an unknown version"
    entry = Entry(state, position, listener, counter)
    state.position = position
    advance(entry, operation, time)
    if isinstance(operation, SessionOperation):
        _apply_in_session(entry, operation)
    else:
        _apply_outside(entry, operation, time)
    unblock_and_deliver(entry)
    state.storage.clean()
    return entry.outcomes


def _apply_in_session(entry: Entry, operation: SessionOperation) -> None:
    """Numbers an operation within its session, then applies it at most once (§4)."""
    handle, sequence = operation.session, operation.session_sequence
    session = entry.state.sessions.get(handle)
    if session is None:
        detail = f"session {handle} is not open here: it was closed, was lost or never existed"
        refusal = Refusal(Reason.SESSION_UNKNOWN, detail)
        entry.emit_unaddressed(entry.refused(refusal, handle, sequence))
        return
    sessions.show_life(entry, session)
    _forget_answered(session, operation.answered_through)
    if operation.handed_through > session.handed_through:
        tell_handed_through(entry, session, operation.handed_through)
    connection = session.connection
    if sequence <= session.last_sequence and is_waiting(session, sequence):
        return
    turned_away = _turn_away(entry, session, sequence)
    if turned_away is not None:
        entry.emit(connection, turned_away)
        return
    answer = HANDLERS[type(operation)](entry, session, operation)
    if isinstance(answer, Waits):
        session.last_sequence = sequence
        return
    if isinstance(answer, Refusal):
        reply: Reply = entry.refused(answer, handle, sequence)
    elif answer is None:
        reply = Accepted(
            position=entry.position,
            index=entry.take_index(),
            session=handle,
            session_sequence=sequence,
        )
    else:
        reply = answer
    sessions.remember_reply(session, reply)
    entry.emit(connection, reply)


def _forget_answered(session: Session, answered_through: int) -> None:
    """Drops the replies that the writer has; it never asks for those again (H15)."""
    replies = session.replies
    through = min(answered_through, session.last_sequence)
    for sequence in range(session.answered_through + 1, through + 1):
        replies.pop(sequence, None)
    session.answered_through = max(session.answered_through, through)


def _turn_away(entry: Entry, session: Session, sequence: int) -> Reply | None:
    """Answers what is not the session's next operation; no number is consumed."""
    last = session.last_sequence
    if sequence <= last:
        kept = session.replies.get(sequence)
        if kept is not None:
            return replace(kept, position=entry.position, index=entry.take_index())
        detail = f"operation {sequence} was answered, and the writer said that it had the answer"
        return entry.refused(Refusal(Reason.REPLY_FORGOTTEN, detail), session.handle, sequence)
    if sequence > last + 1:
        detail = f"operation {sequence} came before operation {last + 1}; send again from there"
        refusal = Refusal(Reason.SESSION_SEQUENCE_GAP, detail)
        return entry.refused(refusal, session.handle, sequence, expected=last + 1)
    waiting = len(session.blocked) + (session.waiting_commit is not None)
    if len(session.replies) + waiting >= REPLIES_MAX:
        detail = f"{REPLIES_MAX} operations wait for the writer to take their answers"
        return entry.refused(Refusal(Reason.SESSION_WINDOW_FULL, detail), session.handle, sequence)
    return None


def _apply_outside(entry: Entry, operation: Operation, time: int) -> None:
    """Applies what belongs to no session: an Open, a worker's entry, an unreadable record."""
    refusal: Refusal | None = None
    if isinstance(operation, Open):
        refusal = sessions.open_session(entry, operation)
    elif isinstance(operation, Suspect):
        sessions.suspect(entry, operation)
    elif isinstance(operation, TimeAgreed):
        if not agrees(operation, time):
            detail = f"the writer's clock says {operation.writer_time} µs, the log {time} µs"
            refusal = Refusal(Reason.TIME_DISAGREES, detail)
    elif isinstance(operation, VersionOffered):
        refusal = versions.offer_version(entry.state, operation)
    elif isinstance(operation, PositionsSkipped):
        refusal = versions.check_skip(operation, entry.position)
    elif isinstance(operation, Unreadable):
        refusal = Refusal(operation.reason, operation.detail)
    else:
        assert isinstance(operation, Tick), f"no handler for {type(operation).__name__}"
    if refusal is not None:
        refused: Refused = entry.refused(refusal, -1, 0)
        entry.emit_unaddressed(refused)
