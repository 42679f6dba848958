"""Handling: messages that nobody holds are purged, deleted, moved or copied by hand (§17).

One operation does bounded work and says how far it came, so that its writer can go on from there.
"""

from __future__ import annotations

from ledgermq.core.actors import check_actor
from ledgermq.core.choosing import Chosen, choose
from ledgermq.core.destinations import find_given
from ledgermq.core.state import Queue, Session
from ledgermq.core.transfer import COPIED, MOVED, RETRIED, transfer
from ledgermq.core.turn import Turn
from ledgermq.protocol.administration import (
    CopyMessages,
    DeleteMessages,
    HandlingOperation,
    MoveMessages,
    PurgeQueue,
)
from ledgermq.protocol.outcomes import Administered
from ledgermq.protocol.reasons import (
    DESTINATION_INVALID,
    SELECTION_INVALID,
    Refusal,
)
from ledgermq.selector import parse_selector

__all__ = ["copy_messages", "delete_messages", "move_messages", "purge_queue"]


def purge_queue(turn: Turn, session: Session, operation: PurgeQueue) -> Administered | Refusal:
    """Removes what a queue or subscription has and nobody holds."""
    return _remove(turn, operation)


def delete_messages(
    turn: Turn, session: Session, operation: DeleteMessages
) -> Administered | Refusal:
    """Removes messages that are named by selector or number."""
    return _remove(turn, operation)


def _remove(turn: Turn, operation: PurgeQueue | DeleteMessages) -> Administered | Refusal:
    found = _choose(turn, operation)
    if isinstance(found, Refusal):
        return found
    queue, chosen = found
    for message in chosen.messages:
        turn.withdraw(message)
        queue.remove(message)
    return _told(turn, operation, chosen)


def move_messages(turn: Turn, session: Session, operation: MoveMessages) -> Administered | Refusal:
    """Moves messages to a destination, or each back to where it came from."""
    found = _choose(turn, operation, to_origin=operation.to_origin)
    if isinstance(found, Refusal):
        return found
    queue, chosen = found
    if operation.to_origin:
        if operation.target:
            return Refusal(DESTINATION_INVALID, "a target is given, but each goes to its origin")
    else:
        refusal = _check_target(turn, queue, operation.target)
        if refusal is not None:
            return refusal
    for message in chosen.messages:
        turn.withdraw(message)
        queue.move_away(message)
        if operation.to_origin:
            assert message.origin is not None, "only what came from somewhere was chosen"
            transfer(turn, message, message.origin["destination"], RETRIED)
        else:
            transfer(turn, message, operation.target, MOVED)
    return _told(turn, operation, chosen)


def copy_messages(turn: Turn, session: Session, operation: CopyMessages) -> Administered | Refusal:
    """Puts copies of messages to a destination; they themselves stay."""
    found = _choose(turn, operation)
    if isinstance(found, Refusal):
        return found
    queue, chosen = found
    refusal = _check_target(turn, queue, operation.target)
    if refusal is not None:
        return refusal
    for message in chosen.messages:
        transfer(turn, message, operation.target, COPIED)
    return _told(turn, operation, chosen)


def _choose(
    turn: Turn, operation: HandlingOperation, *, to_origin: bool = False
) -> tuple[Queue, Chosen] | Refusal:
    found = choose(turn.state, operation.selection, to_origin=to_origin)
    if isinstance(found, Refusal):
        return found
    selection = operation.selection
    named = parse_selector(selection["selector"]) is not None or selection["sequences"]
    if isinstance(operation, DeleteMessages) and not named:
        return Refusal(
            SELECTION_INVALID, "messages to delete are named by selector or number; purge for all"
        )
    refusal = check_actor(operation.actor, operation.reason)
    if refusal is not None:
        return refusal
    return found


def _check_target(turn: Turn, source: Queue, target: str) -> Refusal | None:
    found = find_given(turn.state, target)
    if isinstance(found, Refusal):
        return found
    if found.destination == source.destination:
        return Refusal(DESTINATION_INVALID, f"{target} is where the messages are")
    return None


def _told(turn: Turn, operation: HandlingOperation, chosen: Chosen) -> Administered:
    return Administered(
        position=turn.position,
        index=turn.take_index(),
        session=operation.session,
        session_sequence=operation.session_sequence,
        affected=len(chosen.messages),
        skipped=chosen.skipped,
        more=chosen.more,
        last_sequence=chosen.last_sequence,
        next_sequence=chosen.next_sequence,
    )
