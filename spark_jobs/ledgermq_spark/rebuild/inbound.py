"""Which messages came in from outside, and when each got its number: told beside the fold (§21).

A Put is answered once, at its own entry or, if it had to wait, at a later one; its messages get
their numbers there or by the Commit of its unit of work. Everything is read off first answers, so
nothing is told twice however often a client asks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol import operations as op
from ledgermq.protocol import outcomes as out

# Put position and index of a message.
Place = tuple[int, int]


class Arrival(NamedTuple):
    """Messages of one Put that follow each other, numbered at `position` from `sequence` on."""

    position: int
    put_position: int
    put_index: int
    messages: int
    destination: str
    sequence: int
    enqueued_at: int


class _Asked(NamedTuple):
    """A Put, Commit or Rollback that has no answer yet; of a Put, what it brings and where to."""

    destination: str
    places: list[Place]


class Inbound:
    """Follows Puts from the state that it is made with."""

    def __init__(self, state: QueueManager) -> None:
        self._asked: dict[tuple[int, int], _Asked] = {}
        self._open: dict[int, dict[str, list[Place]]] = {}
        for session in state.sessions.values():
            self._open[session.handle] = {
                destination: [(one.put_position, one.put_index) for one in messages]
                for destination, messages in session.open_puts.items()
            }
            if session.waiting_commit is not None:
                number = session.waiting_commit.session_sequence
                self._asked[session.handle, number] = _Asked("", [])
        for put in state.blocked_puts.values():
            places = [(put.position, index) for index in range(len(put.messages))]
            self._asked[put.session.handle, put.sequence] = _Asked(put.destination, places)

    def ask(self, state: QueueManager, operation: op.Operation, position: int) -> None:
        """Notes what is asked for the first time; before the entry is applied."""
        if not isinstance(operation, op.Put | op.Commit | op.Rollback):
            return
        session = state.sessions.get(operation.session)
        if session is None or operation.session_sequence != session.last_sequence + 1:
            return
        asked = _Asked("", [])
        if isinstance(operation, op.Put):
            places = [(position, index) for index in range(len(operation.messages))]
            asked = _Asked(operation.destination, places)
        self._asked[operation.session, operation.session_sequence] = asked

    def hear(self, outcomes: Iterable[out.Outcome], time: int) -> list[Arrival]:
        """What came in by an entry, from its outcomes; `time` is the state's after it, in µs."""
        found: list[Arrival] = []
        for one in outcomes:
            if not isinstance(one, out.Reply):
                continue
            asked = self._asked.pop((one.session, one.session_sequence), None)
            if asked is not None:
                found += self._answered(one, asked, time)
            elif isinstance(one, out.SessionEnded):
                self._open.pop(one.session, None)
        return found

    def _answered(self, reply: out.Reply, asked: _Asked, time: int) -> list[Arrival]:
        if isinstance(reply, out.Enqueued):
            return _arrivals(
                reply.position, asked.places, asked.destination, reply.first_sequence, time
            )
        if isinstance(reply, out.Committed):
            held = self._open.pop(reply.session, {})
            return [
                arrival
                for run in reply.enqueued
                for arrival in _arrivals(
                    reply.position,
                    # The last ones: what vanished with a temporary destination stands before.
                    held.get(run["destination"], [])[-run["count"] :],
                    run["destination"],
                    run["first_sequence"],
                    time,
                )
            ]
        if isinstance(reply, out.Accepted):
            held = self._open.setdefault(reply.session, {})
            held.setdefault(asked.destination, []).extend(asked.places)
        elif isinstance(reply, out.Returned):
            self._open.pop(reply.session, None)
        return []


def _arrivals(
    position: int, places: list[Place], destination: str, sequence: int, time: int
) -> list[Arrival]:
    """Numbered messages, those of one Put together."""
    found: list[Arrival] = []
    for put_position, group in groupby(places, key=lambda place: place[0]):
        indexes = [index for _, index in group]
        count = len(indexes)
        found.append(
            Arrival(position, put_position, indexes[0], count, destination, sequence, time)
        )
        sequence += count
    return found
