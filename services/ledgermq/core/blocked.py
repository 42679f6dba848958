"""Blocked puts: they wait for a quota and are in no statistic (PROTOCOL.md §16; INF-03, INF-05).

A blocked put has its number in its session, but no reply and no effect: its messages are in no
queue and no unit of work. It is answered once, at the entry that makes room for it or at its
deadline, or with the end of its session or unit of work. A commit waits for the blocked puts of
its session, and nothing else ever waits (H18).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from ledgermq.core.quotas import bytes_of, fits, has_quota, larger_than_whole, used_up_quota
from ledgermq.core.storing import storage_full
from ledgermq.protocol.limits import (
    BLOCKED_MESSAGES_MAX,
    BLOCKED_PUTS_MAX,
    TIMING_MS_MAX,
)
from ledgermq.protocol.reasons import (
    COMMIT_WAITING,
    PUTS_MISMATCH,
    QUOTA_EXCEEDED,
    SETTING_INVALID,
    Refusal,
)
from ledgermq.protocol.rounding import rounded
from ledgermq.protocol.settings import FIFO

if TYPE_CHECKING:
    from ledgermq.core.queue import Queue
    from ledgermq.core.state import Message, QueueManager, Session
    from ledgermq.core.turn import Turn
    from ledgermq.protocol.operations import Put
    from ledgermq.protocol.outcomes import Reply

__all__ = [
    "WAITS",
    "BlockedPut",
    "Waits",
    "answer_late",
    "block",
    "commit_waits",
    "drop_blocked",
    "is_waiting",
    "keep_blocked",
    "must_block",
    "next_time_out",
    "refuse_blocked",
    "stays_behind",
    "take_timed_out",
]

MILLISECOND_US = 1_000


class Waits:
    """What the handler of an operation answers that is to be answered later."""


WAITS: Final = Waits()


class BlockedPut:
    """A put that waits for a quota; times in µs.

    `created_position` is that of its destination, or its own position where there was none;
    `logical_order` are the indexes of messages whose writer keeps the logical order.
    """

    __slots__ = (
        "created_position",
        "deadline",
        "destination",
        "logical_order",
        "messages",
        "position",
        "sequence",
        "session",
        "since",
        "size_bytes",
    )

    def __init__(
        self,
        *,
        position: int,
        session: Session,
        sequence: int,
        destination: str,
        created_position: int,
        since: int,
        deadline: int,
        messages: list[Message],
        logical_order: list[int],
    ) -> None:
        self.position = position
        self.session = session
        self.sequence = sequence
        self.destination = destination
        self.created_position = created_position
        self.since = since
        self.deadline = deadline
        self.messages = messages
        self.logical_order = logical_order
        self.size_bytes = bytes_of(messages)


def stays_behind(put: BlockedPut, session: Session, destination: str, policy: str) -> bool:
    """Whether a put of a session must not pass an earlier one that waits (INF-18, SES-68)."""
    return put.destination == destination and (policy == FIFO or put.session is session)


def must_block(
    turn: Turn,
    session: Session,
    queue: Queue,
    operation: Put,
    messages: list[Message],
    size_bytes: int,
) -> bool | Refusal:
    """Whether a put has to wait for a quota; refused, if it never fits or may not wait."""
    state, count = turn.state, len(messages)
    if not 0 <= operation.blocking_ms <= TIMING_MS_MAX:
        return Refusal(
            SETTING_INVALID,
            f"blocking_ms is {operation.blocking_ms}, must be 0 to {TIMING_MS_MAX}",
        )
    if session.waiting_commit is not None:
        return commit_waits(session)
    if not state.blocked_puts and not has_quota(state, queue):
        return False
    state.storage.clean()
    never = larger_than_whole(state, queue, count, size_bytes)
    if never is not None:
        return Refusal(QUOTA_EXCEEDED, never)
    policy = queue.settings.blocking_send_policy
    waiting_here = state.blocked_at.get(queue.destination, {}).values()
    behind = any(stays_behind(one, session, queue.destination, policy) for one in waiting_here)
    if not behind and fits(state, queue, messages, size_bytes):
        return False
    if not operation.blocking_ms:
        whose = used_up_quota(state, queue, count, size_bytes)
        if whose is None and not behind:
            return storage_full(state, size_bytes)
        why = "earlier puts wait for it" if behind else f"no room for {count} more"
        whose = whose or queue.destination
        return Refusal(QUOTA_EXCEEDED, f"the quota of {whose} is used up: {why}")
    waiting = sum(len(one.messages) for one in session.blocked.values())
    if len(session.blocked) >= BLOCKED_PUTS_MAX or (
        session.blocked and waiting + count > BLOCKED_MESSAGES_MAX
    ):
        return Refusal(
            QUOTA_EXCEEDED,
            f"{len(session.blocked)} puts of the session with {waiting} messages wait already",
        )
    return True


def commit_waits(session: Session) -> Refusal:
    """Refuses what belongs behind a commit that waits."""
    return Refusal(
        COMMIT_WAITING,
        f"a commit waits for {len(session.blocked)} blocked puts; go on when it is answered",
    )


def block(
    turn: Turn, session: Session, queue: Queue, operation: Put, messages: list[Message]
) -> None:
    """Lets a put wait, without a trace in any queue."""
    ordered = [
        index
        for index, entry in enumerate(operation.messages)
        if (group := entry.get("header", {}).get("group")) is not None and group["logical_order"]
    ]
    keep_blocked(
        turn.state,
        BlockedPut(
            position=turn.position,
            session=session,
            sequence=operation.session_sequence,
            destination=queue.destination,
            created_position=queue.created_position,
            since=turn.state.time,
            deadline=rounded(turn.begins + operation.blocking_ms * MILLISECOND_US),
            messages=messages,
            logical_order=ordered,
        ),
    )


def keep_blocked(state: QueueManager, put: BlockedPut) -> None:
    """Makes a put one of those that wait."""
    state.blocked_puts[put.position] = put
    if put.destination not in state.blocked_at:
        state.blocked_at[put.destination] = {}
        state.standstill = None
    state.blocked_at[put.destination][put.position] = put
    put.session.blocked[put.sequence] = put
    heapq.heappush(state.time_outs, (put.deadline, put.position))


def is_waiting(session: Session, sequence: int) -> bool:
    """Whether an operation has its number, and its reply comes later."""
    if sequence in session.blocked:
        return True
    commit = session.waiting_commit
    return commit is not None and commit.session_sequence == sequence


def next_time_out(state: QueueManager) -> int | None:
    """The next moment in µs at which a blocked put is refused."""
    time_outs = state.time_outs
    while time_outs and time_outs[0][1] not in state.blocked_puts:
        heapq.heappop(time_outs)
    return time_outs[0][0] if time_outs else None


def take_timed_out(state: QueueManager, due: int) -> list[BlockedPut]:
    """The blocked puts whose time is over at a moment, by position."""
    found: list[BlockedPut] = []
    while next_time_out(state) == due:
        found.append(state.blocked_puts[heapq.heappop(state.time_outs)[1]])
    return found


def answer_late(turn: Turn, session: Session, sequence: int, answer: Reply | Refusal) -> None:
    """Answers what waited; kept for retries unless the writer has let go of the number."""
    reply = (
        turn.refused(answer, session.handle, sequence) if isinstance(answer, Refusal) else answer
    )
    if sequence > session.answered_through:
        session.replies[sequence] = reply
        session.replies = dict(sorted(session.replies.items()))
    turn.emit(session.connection, reply)


def refuse_blocked(turn: Turn, put: BlockedPut, refusal: Refusal) -> None:
    """Ends a blocked put without a trace (INF-20)."""
    let_go(turn.state, put)
    answer_late(turn, put.session, put.sequence, refusal)


def let_go(state: QueueManager, put: BlockedPut) -> None:
    """A put waits no longer."""
    state.standstill = None
    del state.blocked_puts[put.position]
    here = state.blocked_at[put.destination]
    del here[put.position]
    if not here:
        del state.blocked_at[put.destination]
    del put.session.blocked[put.sequence]


def drop_blocked(turn: Turn, session: Session) -> None:
    """Refuses what waits in a session, because its unit of work or the session itself is over."""
    for put in list(session.blocked.values()):
        detail = "the unit of work or session of the put ended while it waited for the quota"
        refuse_blocked(turn, put, Refusal(QUOTA_EXCEEDED, detail))
    commit, session.waiting_commit = session.waiting_commit, None
    if commit is not None:
        detail = "the unit of work ended while its commit waited for blocked puts"
        answer_late(turn, session, commit.session_sequence, Refusal(PUTS_MISMATCH, detail))
