"""Invariants of bytes, high-water marks and blocked puts (INF-05, INF-18, decision 19)."""

from __future__ import annotations

from ledgermq.core.destinations.by_name import find_destination
from ledgermq.core.puts.quotas import fits
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import (
    AVAILABLE,
    DELAYED,
    UNACKNOWLEDGED,
    UNBORN,
    UNCOMMITTED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.records import Queue, Session, Subscription, Topic, bytes_of
from ledgermq.protocol.limits import BLOCKED_MESSAGES_MAX, BLOCKED_PUTS_MAX, REPLIES_MAX
from ledgermq.protocol.settings import DEFAULTS, FIFO


def check_quotas(state: QueueManager) -> None:
    """Raises AssertionError unless bytes add up and nothing waits that need not."""
    for queue in (*state.destinations, *state.subscriptions.values()):
        _check_bytes(state, queue)
    for session in state.sessions.values():
        _check_session(session)
    waiting = sum(len(one.blocked) for one in state.sessions.values())
    assert waiting == len(state.blocked_puts), "blocked puts without their session"
    assert list(state.blocked_puts) == sorted(state.blocked_puts), "blocked puts: order"
    by_destination: dict[str, list[int]] = {}
    for put in state.blocked_puts.values():
        by_destination.setdefault(put.destination, []).append(put.position)
    told = {name: list(here) for name, here in state.blocked_at.items()}
    assert told == by_destination, "blocked puts: by destination"
    _check_standing(state)
    held = [(one.held_messages, one.held_bytes) for one in state.destinations]
    told = (state.held_messages, state.held_bytes)
    assert told == tuple(map(sum, zip((0, 0), *held, strict=True))), "held by all"


def _check_bytes(state: QueueManager, queue: Queue) -> None:
    where = f"{queue.destination} {queue.name}"
    if isinstance(queue, Topic):
        copies = [one.messages for one in queue.subscriptions.values()]
        kept = {number: one for messages in copies for number, one in messages.items()}
        size_bytes = bytes_of(kept.values())
        assert queue.message_bytes == size_bytes, f"{where}: {queue.message_bytes} message bytes"
    else:
        _check_by_state(queue, where)
    puts = 0
    if not isinstance(queue, Subscription):
        for session in state.sessions.values():
            puts += bytes_of(session.open_puts.get(queue.destination, ()))
    assert queue.sizes[UNCOMMITTED] == puts, f"{where}: uncommitted puts bytes"
    assert queue.messages_high >= queue.held_messages, f"{where}: messages high"
    assert queue.bytes_high >= queue.held_bytes, f"{where}: bytes high"


def _check_by_state(queue: Queue, where: str) -> None:
    available = unborn = delayed = unacknowledged = uncommitted = 0
    for message in queue.messages.values():
        if message.consumer is not None:
            if message.consumer.session.transacted:
                uncommitted += message.size_bytes
            else:
                unacknowledged += message.size_bytes
        elif message.is_available:
            available += message.size_bytes
        elif message.backout_count:
            delayed += message.size_bytes
        else:
            unborn += message.size_bytes
    assert queue.sizes[AVAILABLE] == available, f"{where}: current bytes"
    assert queue.sizes[UNBORN] == unborn, f"{where}: unborn bytes"
    assert queue.sizes[DELAYED] == delayed, f"{where}: delayed bytes"
    assert queue.sizes[UNACKNOWLEDGED] == unacknowledged, f"{where}: unacknowledged bytes"
    assert queue.sizes[UNCOMMITTED_GET] == uncommitted, f"{where}: uncommitted gets bytes"


def _check_session(session: Session) -> None:
    where = f"session {session.handle}"
    for number, put in session.blocked.items():
        assert put.session is session, f"{where}: blocked put {number} of another session"
        assert put.sequence == number, f"{where}: blocked put {number} bears {put.sequence}"
        assert number not in session.replies, f"{where}: blocked put {number} was answered"
        assert number <= session.last_sequence, f"{where}: blocked put {number} to come"
    waiting = sum(len(one.messages) for one in session.blocked.values())
    alone = len(session.blocked) <= 1
    assert alone or waiting <= BLOCKED_MESSAGES_MAX, f"{where}: blocked messages (H18)"
    assert len(session.blocked) <= BLOCKED_PUTS_MAX, f"{where}: blocked puts (H18)"
    commits = session.waiting_commit is not None
    assert session.blocked or not commits, f"{where}: a commit waits for nothing"
    answers = len(session.replies) + len(session.blocked) + commits
    assert answers <= REPLIES_MAX, f"{where}: too many replies kept or to come"


def _check_standing(state: QueueManager) -> None:
    """No blocked put could be put now, and none is overdue."""
    before: list[tuple[str, int]] = []
    for put in state.blocked_puts.values():
        where = f"blocked put {put.position}"
        assert put.deadline > state.time or state.time_stood_still, f"{where}: overdue"
        queue = find_destination(state, put.destination)
        is_there = queue is not None and queue.created_position == put.created_position
        assert is_there or put.created_position == put.position, f"{where}: destination"
        settings = DEFAULTS if queue is None else queue.settings
        if settings.blocking_send_policy == FIFO:
            behind = any(destination == put.destination for destination, _ in before)
        else:
            behind = (put.destination, put.session.handle) in before
        room = queue if queue is not None else put.messages[0].queue
        may_go = not behind and fits(state, room, put.messages, put.size_bytes)
        assert not may_go, f"{where}: it fits, and waits"
        before.append((put.destination, put.session.handle))
