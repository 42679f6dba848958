"""Blocked puts that fit are put, and commits that waited for them done (§16, INF-18)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

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
    has_room,
    has_room_at,
    hold_up,
    larger_than_whole,
    resume,
    used_up_quota,
)
from ledgermq.core.sessions.sessions import commit
from ledgermq.core.state.manager import QueueManager, WaitsFor
from ledgermq.core.state.records import BlockedPut, GroupedMessage, Queue, Session
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

    Those of a destination are looked at when something changed that they wait for there, or at all
    of them: the others wait on, so that an entry costs the same however many wait elsewhere.
    """
    state = entry.state
    while state.blocked_puts:
        if entry.left:
            retire(entry)
        room = _waits_for(state).room
        expire_due(entry)
        if state.waits_for is not None and room != _waits_for(state).room:
            # A put took this room, and what expires gives it back: it may be the same as before.
            state.waits_for = state.waits_for._replace(room=room)
        state.storage.clean()
        stirred = _take_stirred(state)
        if not stirred or not _round(entry, stirred):
            return


def _take_stirred(state: QueueManager) -> dict[str, bool]:
    """Where blocked puts are to be looked at; whether at each, or for room, from the first on."""
    stirred, state.stirred = state.stirred, {}
    resume(state, [find_destination(state, one) for one in stirred])
    before, now = state.waits_for, _waits_for(state)
    state.waits_for = now
    if before is None or before.allowed != now.allowed:
        return dict.fromkeys(state.blocked_at, True)
    if state.storage.settings.segments_max or (before.room != now.room and has_room(state)):
        stirred = dict.fromkeys(state.blocked_at, False) | stirred
    elif before.room != now.room:
        # What each of them would do.
        hold_up(state, None, 1, 0)
    return {one: each for one, each in stirred.items() if one in state.blocked_at}


def _waits_for(state: QueueManager) -> WaitsFor:
    has_quota, mark = state.messages_max or state.bytes_max, state.resume_mark
    quotas = (state.messages_max, state.bytes_max)
    return WaitsFor(
        allowed=(state.automatic_creation, quotas, state.storage.settings),
        room=(
            (state.held_messages, state.held_bytes) if has_quota else None,
            None if mark is None else (mark.messages, mark.bytes, mark.holds_up),
        ),
    )


class _Round:
    """Blocked puts that a round looks at, by position, of destinations as they come in."""

    def __init__(self, state: QueueManager) -> None:
        self._state = state
        self._waits_for = _waits_for(state)
        # Positions of those that are next, one of each destination; where others of it come from.
        self._next: list[int] = []
        self._behind: dict[str, Iterator[BlockedPut]] = {}
        self._has_all = False
        # By destination the sessions of which a put waits on there.
        self._standing: dict[str, dict[int, None]] = {}
        # What was stirred meanwhile.
        self._later: list[tuple[str, bool]] = []

    def look_at(self, stirred: Mapping[str, bool], behind: int = -1) -> None:
        """Adds the puts of some destinations that are behind a position."""
        for destination, each in stirred.items():
            if destination in self._state.blocked_at and destination not in self._behind:
                self._behind[destination] = self._of(destination, behind, each=each)
                self.go_on(destination)

    def look_at_stirred(self, behind: int) -> None:
        """As `look_at`, where the answer to a put stirred some; once at all, if it may have.

        What fits at none of them fits at none later on.
        """
        state = self._state
        fresh, state.stirred = state.stirred, {}
        self._later += fresh.items()
        self.look_at(fresh, behind)
        if self._has_all:
            return
        if state.storage.settings.segments_max or _waits_for(state) != self._waits_for:
            self._has_all = True
            self.look_at(dict.fromkeys(state.blocked_at, False), behind)

    def go_on(self, destination: str) -> None:
        """Looks at the next put of a destination, if one may go on."""
        put = next(self._behind[destination], None)
        if put is None:
            del self._behind[destination]
        else:
            heapq.heappush(self._next, put.position)

    def take(self) -> BlockedPut | None:
        """The next put to look at; None: that was all."""
        return self._state.blocked_puts[heapq.heappop(self._next)] if self._next else None

    def stands(self, put: BlockedPut) -> None:
        """Notes that a put waits on."""
        self._standing.setdefault(put.destination, {})[put.session.handle] = None

    def stays_behind(self, put: BlockedPut, queue: Queue) -> bool:
        """Whether a put must not pass one that waits on (INF-18, SES-68)."""
        sessions = self._standing.get(put.destination, {})
        if queue.settings.blocking_send_policy == FIFO:
            return bool(sessions)
        return put.session.handle in sessions

    def end(self) -> None:
        """Has the next round look at what was stirred in this one."""
        for destination, each in self._later:
            self._state.stir(destination, each=each)

    def _of(self, destination: str, behind: int, *, each: bool) -> Iterator[BlockedPut]:
        """Puts of a destination behind a position: each, or as long as one may find room."""
        here = self._state.blocked_at[destination]
        queue = find_destination(self._state, destination)
        if not each and (queue is None or queue.settings.blocking_send_policy == FIFO):
            # None of them passes one that waits.
            while here and (first := next(iter(here.values()))).position > behind:
                behind = first.position
                yield first
            return
        if behind >= 0 and not each and not has_room_at(self._state, queue):
            return
        for put in list(here.values()):
            if put.position <= behind:
                self.stands(put)
                continue
            yield put
            is_full = destination in self._standing and not has_room_at(self._state, queue)
            if is_full and not each:
                return


def _round(entry: Entry, stirred: Mapping[str, bool]) -> bool:
    """Unblocks or refuses what may be, by position; returns whether there was any."""
    looks, answered = _Round(entry.state), False
    looks.look_at(stirred)
    while (put := looks.take()) is not None:
        answer = _try(entry, put, looks)
        if answer is None:
            looks.stands(put)
            looks.go_on(put.destination)
            continue
        answered = True
        if isinstance(answer, Refusal):
            refuse_blocked(entry, put, answer)
        else:
            remove_blocked(entry.state, put)
            answer_late(entry, put.session, put.sequence, answer)
        _commit_if_waiting(entry, put.session)
        looks.go_on(put.destination)
        looks.look_at_stirred(put.position)
    looks.end()
    return answered


def _try(entry: Entry, put: BlockedPut, looks: _Round) -> Reply | Refusal | None:
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
    if looks.stays_behind(put, queue):
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
    if next(iter(state.blocked_at[put.destination].values())) is not put:
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
