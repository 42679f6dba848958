"""The fold: `apply` is the one door through which the state changes.

Theory of operation. An entry is applied in one turn: time advances and what is due fires; the
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

from ledgermq.core import (
    destinations,
    ending,
    handling,
    journal,
    messages,
    queues,
    relocating,
    sessions,
    subscribing,
    topic_administration,
    versions,
)
from ledgermq.core.blocked import Waits, is_waiting
from ledgermq.core.clock import advance, agrees, next_deadline
from ledgermq.core.doubt import tell_handed_through
from ledgermq.core.releasing import release_and_deliver
from ledgermq.core.state import QueueManager, Session, new_state
from ledgermq.core.turn import Turn
from ledgermq.protocol.administration import (
    BackUpJournal,
    CopyMessages,
    DeleteMessages,
    MoveMessages,
    PositionsSkipped,
    PurgeQueue,
    Relocate,
    VersionOffered,
)
from ledgermq.protocol.limits import PROTOCOL_VERSION, REPLIES_MAX
from ledgermq.protocol.operations import (
    Acknowledge,
    Alive,
    AlterQueue,
    AlterQueueManager,
    AlterTopic,
    Close,
    CloseConsumer,
    Commit,
    Correct,
    CreateQueue,
    CreateTemporary,
    CreateTopic,
    DeleteQueue,
    DeleteTopic,
    EndSession,
    Get,
    GiveBack,
    Open,
    OpenConsumer,
    Operation,
    Put,
    Recover,
    Rollback,
    RollbackTransaction,
    SessionOperation,
    Suspect,
    Tick,
    TimeAgreed,
    Unreadable,
    Unsubscribe,
    Upgrade,
)
from ledgermq.protocol.outcomes import Accepted, Addressed, Refused, Reply
from ledgermq.protocol.reasons import (
    REPLY_FORGOTTEN,
    SESSION_SEQUENCE_GAP,
    SESSION_UNKNOWN,
    SESSION_WINDOW_FULL,
    TIME_DISAGREES,
    Refusal,
)

__all__ = ["apply", "new_state", "next_deadline"]

Handler = Callable[[Turn, Session, Any], Reply | Refusal | Waits | None]

# A handler that returns None is answered with Accepted; one that waits, later.
HANDLERS: dict[type[SessionOperation], Handler] = {
    Acknowledge: messages.acknowledge,
    Alive: sessions.alive,
    AlterQueue: queues.alter_queue,
    AlterQueueManager: queues.alter_queue_manager,
    AlterTopic: topic_administration.alter_topic,
    BackUpJournal: journal.back_up_journal,
    Close: sessions.close,
    CloseConsumer: messages.close_consumer,
    Commit: sessions.commit,
    CopyMessages: handling.copy_messages,
    Correct: queues.correct,
    CreateQueue: queues.create_queue,
    CreateTemporary: destinations.create_temporary,
    CreateTopic: topic_administration.create_topic,
    DeleteMessages: handling.delete_messages,
    DeleteQueue: queues.delete_queue,
    DeleteTopic: topic_administration.delete_topic,
    EndSession: ending.end_other_session,
    Get: messages.get,
    GiveBack: messages.give_back_unseen,
    MoveMessages: handling.move_messages,
    OpenConsumer: messages.open_consumer,
    PurgeQueue: handling.purge_queue,
    Put: messages.put,
    Recover: sessions.recover,
    Relocate: relocating.relocate,
    Rollback: sessions.rollback,
    RollbackTransaction: ending.rollback_transaction,
    Unsubscribe: subscribing.unsubscribe,
    Upgrade: versions.upgrade,
}


def apply(state: QueueManager, operation: Operation, position: int, time: int) -> list[Addressed]:
    """Applies one entry of the log to the state.

    `position` is the entry's offset, the one after the last applied; `time` its append time in µs.
    Returns its outcomes in order. Refuses whatever is illegal or unreadable; raises AssertionError
    only for what cannot be, such as a position out of turn.
    """
    assert position == state.position + 1, f"position {position} after {state.position}"
    assert state.active_version == PROTOCOL_VERSION, "the caller stops at an unknown version"
    turn = Turn(state, position)
    state.position = position
    advance(turn, operation, time)
    if isinstance(operation, SessionOperation):
        _apply_in_session(turn, operation)
    else:
        _apply_outside(turn, operation, time)
    release_and_deliver(turn)
    state.storage.clean()
    return turn.outcomes


def _apply_in_session(turn: Turn, operation: SessionOperation) -> None:
    """Numbers an operation within its session, then applies it at most once (§4)."""
    handle, sequence = operation.session, operation.session_sequence
    session = turn.state.sessions.get(handle)
    if session is None:
        detail = f"session {handle} is not open here: it was closed, was lost or never existed"
        refusal = Refusal(SESSION_UNKNOWN, detail)
        turn.emit_unaddressed(turn.refused(refusal, handle, sequence))
        return
    sessions.show_life(session, turn)
    _forget_answered(session, operation.answered_through)
    if operation.handed_through > session.handed_through:
        tell_handed_through(turn, session, operation.handed_through)
    connection = session.connection
    if sequence <= session.last_sequence and is_waiting(session, sequence):
        return
    turned_away = _turn_away(turn, session, sequence)
    if turned_away is not None:
        turn.emit(connection, turned_away)
        return
    answer = HANDLERS[type(operation)](turn, session, operation)
    if isinstance(answer, Waits):
        session.last_sequence = sequence
        return
    if isinstance(answer, Refusal):
        reply: Reply = turn.refused(answer, handle, sequence)
    elif answer is None:
        reply = Accepted(
            position=turn.position,
            index=turn.take_index(),
            session=handle,
            session_sequence=sequence,
        )
    else:
        reply = answer
    sessions.keep_reply(session, reply)
    turn.emit(connection, reply)


def _forget_answered(session: Session, answered_through: int) -> None:
    """Drops the replies that the writer has; it never asks for those again (H15)."""
    replies = session.replies
    through = min(answered_through, session.last_sequence)
    for sequence in range(session.answered_through + 1, through + 1):
        replies.pop(sequence, None)
    session.answered_through = max(session.answered_through, through)


def _turn_away(turn: Turn, session: Session, sequence: int) -> Reply | None:
    """Answers what is not the session's next operation; no number is consumed."""
    last = session.last_sequence
    if sequence <= last:
        kept = session.replies.get(sequence)
        if kept is not None:
            return _again(turn, kept)
        detail = f"operation {sequence} was answered, and the writer said that it had the answer"
        return turn.refused(Refusal(REPLY_FORGOTTEN, detail), session.handle, sequence)
    if sequence > last + 1:
        detail = f"operation {sequence} came before operation {last + 1}; send again from there"
        refusal = Refusal(SESSION_SEQUENCE_GAP, detail)
        return turn.refused(refusal, session.handle, sequence, expected=last + 1)
    waiting = len(session.blocked) + (session.waiting_commit is not None)
    if len(session.replies) + waiting >= REPLIES_MAX:
        detail = f"{REPLIES_MAX} operations wait for the writer to take their answers"
        return turn.refused(Refusal(SESSION_WINDOW_FULL, detail), session.handle, sequence)
    return None


def _again(turn: Turn, kept: Reply) -> Reply:
    """The same reply at the position of the retry."""
    return replace(kept, position=turn.position, index=turn.take_index())


def _apply_outside(turn: Turn, operation: Operation, time: int) -> None:
    """Applies what belongs to no session: an Open, a worker's entry, an unreadable record."""
    refusal: Refusal | None = None
    if isinstance(operation, Open):
        refusal = sessions.open_session(turn, operation)
    elif isinstance(operation, Suspect):
        sessions.suspect(turn, operation)
    elif isinstance(operation, TimeAgreed):
        if not agrees(operation, time):
            detail = f"the writer's clock says {operation.writer_time} µs, the log {time} µs"
            refusal = Refusal(TIME_DISAGREES, detail)
    elif isinstance(operation, VersionOffered):
        refusal = versions.offer_version(turn.state, operation)
    elif isinstance(operation, PositionsSkipped):
        refusal = versions.check_skip(operation, turn.position)
    elif isinstance(operation, Unreadable):
        refusal = Refusal(operation.reason, operation.detail)
    else:
        assert isinstance(operation, Tick), f"no handler for {type(operation).__name__}"
    if refusal is not None:
        refused: Refused = turn.refused(refusal, -1, 0)
        turn.emit_unaddressed(refused)
