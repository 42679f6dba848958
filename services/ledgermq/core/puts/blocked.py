"""Blocked puts: they wait for a quota and are in no statistic (PROTOCOL.md §16; INF-03, INF-05).

A blocked put has its number in its session, but no reply and no effect: its messages are in no
queue and no unit of work. It is answered once, at the entry that makes room for it or at its
deadline, or with the end of its session or unit of work. A commit waits for the blocked puts of
its session, and nothing else ever waits (H18).
"""

from __future__ import annotations

from typing import Final

from ledgermq.core.destinations.by_name import find_destination
from ledgermq.core.entry import Entry
from ledgermq.core.puts.quotas import (
    fits,
    has_quota,
    hold_up,
    larger_than_whole,
    storage_full,
    used_up_quota,
)
from ledgermq.core.ranges import check_range
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import BlockedPut, Message, Queue, Session, bytes_of
from ledgermq.protocol.limits import BLOCKED_MESSAGES_MAX, BLOCKED_PUTS_MAX, TIMING_MS_MAX
from ledgermq.protocol.operations import Put
from ledgermq.protocol.outcomes import Reply
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.rounding import MILLISECOND_US, rounded
from ledgermq.protocol.settings import FIFO


class Waits:
    """The answer of a handler whose operation is answered later."""


WAITS: Final = Waits()


def stays_behind(state: QueueManager, session: Session, queue: Queue) -> bool:
    """Whether a put of a session must not pass an earlier one that waits (INF-18, SES-68)."""
    if queue.settings.blocking_send_policy == FIFO:
        return queue.destination in state.blocked_at
    return any(one.destination == queue.destination for one in session.blocked.values())


def must_block(
    entry: Entry,
    session: Session,
    queue: Queue,
    operation: Put,
    messages: list[Message],
    size_bytes: int,
) -> bool | Refusal:
    """Whether a put has to wait for a quota; refused, if it never fits or may not wait."""
    state, count = entry.state, len(messages)
    if operation.blocking_ms:
        refusal = check_range("blocking_ms", operation.blocking_ms, 0, TIMING_MS_MAX)
        if refusal is not None:
            return refusal
    if session.waiting_commit is not None:
        return commit_waits(session)
    if not state.blocked_puts and not has_quota(state, queue):
        return False
    state.storage.clean()
    never = larger_than_whole(state, queue, count, size_bytes)
    if never is not None:
        return Refusal(Reason.QUOTA_EXCEEDED, never)
    behind = stays_behind(state, session, queue)
    if not behind and fits(state, queue, messages, size_bytes):
        return False
    if not operation.blocking_ms:
        whose = used_up_quota(state, queue, count, size_bytes)
        if whose is None and not behind:
            return storage_full(state, size_bytes)
        why = "earlier puts wait for it" if behind else f"no room for {count} more"
        whose = whose or queue.destination
        return Refusal(Reason.QUOTA_EXCEEDED, f"the quota of {whose} is used up: {why}")
    waiting = sum(len(one.messages) for one in session.blocked.values())
    if len(session.blocked) >= BLOCKED_PUTS_MAX or (
        session.blocked and waiting + count > BLOCKED_MESSAGES_MAX
    ):
        return Refusal(
            Reason.QUOTA_EXCEEDED,
            f"{len(session.blocked)} puts of the session with {waiting} messages wait already",
        )
    return True


def commit_waits(session: Session) -> Refusal:
    return Refusal(
        Reason.COMMIT_WAITING,
        f"a commit waits for {len(session.blocked)} blocked puts; go on when it is answered",
    )


def block(
    entry: Entry, session: Session, queue: Queue, operation: Put, messages: list[Message]
) -> None:
    hold_up(entry.state, queue, len(messages), bytes_of(messages))
    ordered = [
        index
        for index, sent in enumerate(operation.messages)
        if (group := sent.get("header", {}).get("group")) is not None and group["logical_order"]
    ]
    add_blocked(
        entry.state,
        BlockedPut(
            position=entry.position,
            session=session,
            sequence=operation.session_sequence,
            destination=queue.destination,
            created_position=queue.created_position,
            since=entry.state.time,
            deadline=rounded(entry.begins + operation.blocking_ms * MILLISECOND_US),
            messages=messages,
            logical_order=ordered,
            deduplication_id=operation.deduplication_id,
        ),
    )


def add_blocked(state: QueueManager, put: BlockedPut) -> None:
    state.blocked_puts[put.position] = put
    if put.destination not in state.blocked_at:
        state.blocked_at[put.destination] = {}
        state.stir(put.destination, each=True)
    state.blocked_at[put.destination][put.position] = put
    put.session.blocked[put.sequence] = put
    state.time_outs.add((put.deadline, put.position))


def is_waiting(session: Session, sequence: int) -> bool:
    if sequence in session.blocked:
        return True
    commit = session.waiting_commit
    return commit is not None and commit.session_sequence == sequence


def answer_late(entry: Entry, session: Session, sequence: int, answer: Reply | Refusal) -> None:
    """Answers what waited; remembered for retries unless the writer forgot the number."""
    reply = (
        entry.refused(answer, session.handle, sequence) if isinstance(answer, Refusal) else answer
    )
    if sequence > session.answered_through:
        session.replies[sequence] = reply
        session.replies = dict(sorted(session.replies.items()))
    entry.emit(session.connection, reply)


def refuse_blocked(entry: Entry, put: BlockedPut, refusal: Refusal) -> None:
    """Ends a blocked put without a trace (INF-20)."""
    remove_blocked(entry.state, put)
    answer_late(entry, put.session, put.sequence, refusal)


def remove_blocked(state: QueueManager, put: BlockedPut) -> None:
    del state.blocked_puts[put.position]
    here = state.blocked_at[put.destination]
    del here[put.position]
    if here:
        state.stir(put.destination)
    else:
        del state.blocked_at[put.destination]
        end_holding_up(state, put.destination)
    del put.session.blocked[put.sequence]


def end_holding_up(state: QueueManager, destination: str) -> None:
    """Nobody waits at a destination any longer, or at none: nothing is held up there."""
    queue = find_destination(state, destination)
    if queue is not None and queue.resume_mark is not None:
        queue.resume_mark.holds_up = False
    if not state.blocked_puts and state.resume_mark is not None:
        state.resume_mark.holds_up = False


def drop_blocked(entry: Entry, session: Session) -> None:
    """Refuses what waits in a session, because its unit of work or the session itself is over."""
    for put in list(session.blocked.values()):
        detail = "the unit of work or session of the put ended while it waited for the quota"
        refuse_blocked(entry, put, Refusal(Reason.QUOTA_EXCEEDED, detail))
    commit, session.waiting_commit = session.waiting_commit, None
    if commit is not None:
        detail = "the unit of work ended while its commit waited for blocked puts"
        answer_late(entry, session, commit.session_sequence, Refusal(Reason.PUTS_MISMATCH, detail))
