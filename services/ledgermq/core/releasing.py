"""Releasing: blocked puts that fit are put, and commits that waited for them done (§16, INF-18)."""

from __future__ import annotations

from collections.abc import Mapping

from ledgermq.core.blocked import (
    BlockedPut,
    Waits,
    answer_late,
    let_go,
    refuse_blocked,
    take_timed_out,
)
from ledgermq.core.delivery import deliver_touched
from ledgermq.core.destinations import find_destination, use_destination
from ledgermq.core.grouping import check_groups, group_record
from ledgermq.core.message import AWAY, MEMBER, GroupedMessage, Message
from ledgermq.core.messages import take_in
from ledgermq.core.quotas import fits, held_by_all, larger_than_whole, used_up_quota
from ledgermq.core.sessions import commit
from ledgermq.core.state import Queue, QueueManager, Session
from ledgermq.core.storing import check_transaction_size
from ledgermq.core.subscribing import retire
from ledgermq.core.timing import expire_due
from ledgermq.core.turn import Turn
from ledgermq.protocol.operations import Group
from ledgermq.protocol.outcomes import Reply
from ledgermq.protocol.reasons import DESTINATION_UNKNOWN, QUOTA_EXCEEDED, Refusal
from ledgermq.protocol.settings import FIFO

__all__ = ["release", "release_and_deliver", "time_out"]


def release_and_deliver(turn: Turn) -> None:
    """Puts what fits now of what waits, then serves the consumers of every queue touched."""
    release(turn)
    deliver_touched(turn)


def release(turn: Turn) -> None:
    """Looks at the blocked puts round by round, until a round releases none.

    While nothing changes of what they wait for, they wait on: what came since was looked at then.
    """
    state = turn.state
    while state.blocked_puts:
        if turn.left:
            retire(turn)
        expire_due(turn)
        state.storage.clean()
        if state.standstill is not None and state.standstill == _waited_for(state):
            return
        if not _round(turn):
            state.standstill = _waited_for(state)
            return


def _waited_for(state: QueueManager) -> tuple[object, ...] | None:
    """All that decides whether a blocked put goes on; None: that is not told in short."""
    if state.storage.settings.segments_max:
        return None
    has_quota = state.messages_max or state.bytes_max
    found = [find_destination(state, one) for one in state.blocked_at]
    return (
        state.automatic_creation,
        state.messages_max,
        state.bytes_max,
        held_by_all(state) if has_quota else None,
        *(
            None
            if one is None
            else (one.created_position, one.held_messages, one.held_bytes, one.settings)
            for one in found
        ),
    )


def _round(turn: Turn) -> bool:
    """Releases or refuses what may be, by position; whether there was any."""
    answered = False
    # Destinations at which a put waits on, alone and with the session of the put.
    standing: dict[str | tuple[str, int], None] = {}
    for put in list(turn.state.blocked_puts.values()):
        answer = _try(turn, put, standing)
        if answer is None:
            standing[put.destination] = None
            standing[(put.destination, put.session.handle)] = None
            continue
        answered = True
        if isinstance(answer, Refusal):
            refuse_blocked(turn, put, answer)
        else:
            let_go(turn.state, put)
            answer_late(turn, put.session, put.sequence, answer)
        _commit_if_waiting(turn, put.session)
    return answered


def _try(
    turn: Turn, put: BlockedPut, standing: Mapping[str | tuple[str, int], None]
) -> Reply | Refusal | None:
    """The answer to a blocked put; None: it waits on."""
    state, destination = turn.state, put.destination
    state.storage.clean()
    queue = find_destination(state, destination)
    if put.created_position != put.position and (
        queue is None or queue.created_position != put.created_position
    ):
        detail = f"{destination} was deleted while the put waited for its quota"
        return Refusal(DESTINATION_UNKNOWN, detail)
    if queue is None:
        found = use_destination(turn, destination)
        if isinstance(found, Refusal):
            return found
        queue = found
    never = larger_than_whole(state, queue, len(put.messages), put.size_bytes)
    if never is not None:
        return Refusal(QUOTA_EXCEEDED, never)
    is_fifo = queue.settings.blocking_send_policy == FIFO
    if (destination if is_fifo else (destination, put.session.handle)) in standing:
        return None
    if not fits(state, queue, put.messages, put.size_bytes):
        return None
    return _put_now(turn, put, queue)


def _put_now(turn: Turn, put: BlockedPut, queue: Queue) -> Reply | Refusal:
    """Puts the messages as if their Put came now; groups may have changed since it came."""
    records: list[Group | None] = []
    grouped: list[Message] = []
    for message in put.messages:
        message.queue = queue
        record = group_record(message)
        if record is not None:
            record["logical_order"] = message.put_index in put.logical_order
            assert isinstance(message, GroupedMessage), "it has a place in a group"
            message.flags &= ~(MEMBER | AWAY)
            records.append(record)
            grouped.append(message)
    warning = check_groups(put.session, queue, records, grouped)
    if isinstance(warning, Refusal):
        return warning
    refusal = check_transaction_size(turn.state, put.session, put.messages, put.size_bytes)
    if refusal is not None:
        return refusal
    return take_in(turn, put.session, queue, put.messages, put.sequence, warning)


def _commit_if_waiting(turn: Turn, session: Session) -> None:
    """Does the commit of a session that waits, once nothing is left that it waits for."""
    waiting = session.waiting_commit
    if waiting is None or session.blocked:
        return
    session.waiting_commit = None
    answer = commit(turn, session, waiting)
    assert not isinstance(answer, Waits), "nothing is left to wait for"
    answer_late(turn, session, waiting.session_sequence, answer)


def _held_up_by(state: QueueManager, put: BlockedPut) -> str:
    """What has no room for a put that waits, in words."""
    queue = find_destination(state, put.destination)
    whose = used_up_quota(state, queue, len(put.messages), put.size_bytes)
    if whose is not None:
        return f"the quota of {whose}"
    waiting = state.blocked_at.get(put.destination, {}).values()
    if any(one.position < put.position for one in waiting):
        return "the quota, behind earlier puts,"
    return "the storage, whose segments are in use,"


def time_out(turn: Turn, due: int) -> None:
    """Refuses the blocked puts whose time is over; what they held up may go (INF-20)."""
    for put in take_timed_out(turn.state, due):
        detail = f"{put.destination} within the blocking time"
        refuse_blocked(
            turn,
            put,
            Refusal(QUOTA_EXCEEDED, f"no room in {_held_up_by(turn.state, put)} for {detail}"),
        )
        _commit_if_waiting(turn, put.session)
    release_and_deliver(turn)
