"""Blocked puts that fit are put, and commits that waited for them done (§16, INF-18)."""

from __future__ import annotations

from collections.abc import Mapping

from ledgermq.core.delivery.delivering import deliver_touched
from ledgermq.core.delivery.expiry import expire_due
from ledgermq.core.destinations.by_name import find_destination, use_destination
from ledgermq.core.destinations.deduplication import duplicate
from ledgermq.core.destinations.subscriptions import retire
from ledgermq.core.entry import Entry
from ledgermq.core.puts.blocked import Waits, answer_late, refuse_blocked, remove_blocked
from ledgermq.core.puts.grouping import check_groups, group_record
from ledgermq.core.puts.putting import take_in
from ledgermq.core.puts.quotas import (
    check_transaction_size,
    fits,
    hold_up,
    larger_than_whole,
    resume,
    used_up_quota,
)
from ledgermq.core.sessions.sessions import commit
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import BlockedPut, GroupedMessage, Queue, Session
from ledgermq.core.state.resume_mark import ResumeMark
from ledgermq.protocol.operations import Group
from ledgermq.protocol.outcomes import Reply
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.settings import FIFO


def unblock_and_deliver(entry: Entry) -> None:
    unblock(entry)
    while deliver_touched(entry):
        unblock(entry)


def unblock(entry: Entry) -> None:
    """Looks at the blocked puts round by round, until a round unblocks none.

    While nothing changes of what they wait for, they wait on: what came since was looked at then.
    """
    state = entry.state
    while state.blocked_puts:
        if entry.left:
            retire(entry)
        expire_due(entry)
        state.storage.clean()
        resume(state, [find_destination(state, one) for one in state.blocked_at])
        if state.standstill is not None and state.standstill == _waited_for(state):
            return
        if not _round(entry):
            state.standstill = _waited_for(state)
            return


def _waited_for(state: QueueManager) -> tuple[object, ...] | None:
    """All that decides whether a blocked put goes on; None: too much to compare."""
    if state.storage.settings.segments_max:
        return None
    has_quota = state.messages_max or state.bytes_max
    found = [find_destination(state, one) for one in state.blocked_at]
    return (
        state.automatic_creation,
        state.messages_max,
        state.bytes_max,
        _values_of(state.resume_mark),
        (state.held_messages, state.held_bytes) if has_quota else None,
        *(
            None
            if one is None
            else (
                one.created_position,
                one.held_messages,
                one.held_bytes,
                one.settings,
                _values_of(one.resume_mark),
            )
            for one in found
        ),
    )


def _values_of(mark: ResumeMark | None) -> tuple[int, int, bool] | None:
    return None if mark is None else (mark.messages, mark.bytes, mark.holds_up)


def _round(entry: Entry) -> bool:
    """Unblocks or refuses what may be, by position; returns whether there was any."""
    answered = False
    # Destinations at which a put waits on, alone and with the session of the put.
    standing: dict[str | tuple[str, int], None] = {}
    for put in list(entry.state.blocked_puts.values()):
        answer = _try(entry, put, standing)
        if answer is None:
            standing[put.destination] = None
            standing[(put.destination, put.session.handle)] = None
            continue
        answered = True
        if isinstance(answer, Refusal):
            refuse_blocked(entry, put, answer)
        else:
            remove_blocked(entry.state, put)
            answer_late(entry, put.session, put.sequence, answer)
        _commit_if_waiting(entry, put.session)
    return answered


def _try(
    entry: Entry, put: BlockedPut, standing: Mapping[str | tuple[str, int], None]
) -> Reply | Refusal | None:
    """The answer to a blocked put; None: it goes on waiting."""
    state, destination = entry.state, put.destination
    state.storage.clean()
    queue = find_destination(state, destination)
    if put.created_position != put.position and (
        queue is None or queue.created_position != put.created_position
    ):
        detail = f"{destination} was deleted while the put waited for its quota"
        return Refusal(Reason.DESTINATION_UNKNOWN, detail)
    if queue is None:
        # Made at the position of its Put: this entry may make others.
        found = use_destination(state, destination, put.position)
        if isinstance(found, Refusal):
            return found
        queue = found
    never = larger_than_whole(state, queue, len(put.messages), put.size_bytes)
    if never is not None:
        return Refusal(Reason.QUOTA_EXCEEDED, never)
    is_fifo = queue.settings.blocking_send_policy == FIFO
    if (destination if is_fifo else (destination, put.session.handle)) in standing:
        return None
    if not fits(state, queue, put.messages, put.size_bytes):
        hold_up(state, queue, len(put.messages), put.size_bytes)
        return None
    return _put_now(entry, put, queue)


def _put_now(entry: Entry, put: BlockedPut, queue: Queue) -> Reply | Refusal:
    """Puts the messages as if their Put came now; groups may have changed since it came."""
    name = put.deduplication_id
    before = duplicate(entry, put.session, queue, name, put.sequence)
    if before is not None:
        return before
    for message in put.messages:
        message.queue = queue
    grouped = [one for one in put.messages if isinstance(one, GroupedMessage)]
    records: list[Group] = [
        {**group_record(one), "logical_order": one.put_index in put.logical_order}
        for one in grouped
    ]
    warning = check_groups(put.session, queue, records, grouped)
    if isinstance(warning, Refusal):
        return warning
    refusal = check_transaction_size(entry.state, put.session, put.messages, put.size_bytes)
    if refusal is not None:
        return refusal
    return take_in(entry, put.session, queue, put.messages, put.sequence, warning, name)


def _commit_if_waiting(entry: Entry, session: Session) -> None:
    waiting = session.waiting_commit
    if waiting is None or session.blocked:
        return
    session.waiting_commit = None
    answer = commit(entry, session, waiting)
    assert not isinstance(answer, Waits), "nothing is left to wait for"
    answer_late(entry, session, waiting.session_sequence, answer)


def _held_up_by(state: QueueManager, put: BlockedPut) -> str:
    queue = find_destination(state, put.destination)
    whose = used_up_quota(state, queue, len(put.messages), put.size_bytes)
    if whose is not None:
        return f"the quota of {whose}"
    waiting = state.blocked_at.get(put.destination, {}).values()
    if any(one.position < put.position for one in waiting):
        return "the quota, behind earlier puts,"
    return "the storage, whose segments are in use,"


def time_out(entry: Entry, due: int) -> None:
    """Refuses the blocked puts whose time is over; what they held up may go (INF-20)."""
    for _, position in entry.state.time_outs.take_through((due + 1,)):
        put = entry.state.blocked_puts[position]
        held_up_by = _held_up_by(entry.state, put)
        detail = f"no room in {held_up_by} for {put.destination} within the blocking time"
        refuse_blocked(entry, put, Refusal(Reason.QUOTA_EXCEEDED, detail))
        _commit_if_waiting(entry, put.session)
    unblock_and_deliver(entry)
