"""What each session's operations came to, read off PROTOCOL.md §4, §5 without the fold.

Strict numbering, the window of replies, units of work and the end of a session depend on what went
before in the same session (and, for its lane, the same connection), but on no other's: Spark
spreads the connections over its tasks and each is scanned in order. SQL windows cannot say it,
because whether an operation counts depends on whether those before it counted. What concerns more
than one connection comes in from outside: state time; queues, topics, subscriptions and client ids
(`Directory`); corrections, takeovers, open puts that vanish with a temporary destination; and what
the outcomes claim: deliveries, and when what a quota held up was answered. What administration asks
to end is asked of the session that it concerns, which alone knows whether there is anything to end.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from ledgermq_spark.derivation.acts import Act, Event
from ledgermq_spark.derivation.destinations import store_of
from ledgermq_spark.derivation.directory import Directory
from ledgermq_spark.derivation.get_options import options_of
from ledgermq_spark.derivation.refusing import (
    ScannedConsumer,
    ScannedSession,
    opening_refusal,
    refusal,
)
from ledgermq_spark.derivation.rounding import rounded
from ledgermq_spark.derivation.settlements import handed_with, settle, settle_lost, take_segment

UNCONFIRMED_US = 30_000_000
WINDOW = 256
# Events that others bring about in a session.
OUTSIDE = ("suspect", "corrected", "vanished", "takeover")
ENDING = "ending"


def _deadline(event: Event, period_us: int) -> int:
    """Some time after an entry, rounded up; an append time that did not count is counted here."""
    due = max(event.state_time, event.append_time_us) + period_us
    return rounded(due)


def _stray(event: Event, kind: str, first: int, last: int) -> Act:
    """Claimed deliveries with numbers that no outcome should have brought there."""
    at, consumer = event.position, event.consumer
    return Act("stray", event.session, at, kind=kind, consumer=consumer, first=first, last=last)


class ConnectionScan:
    """Scans the events of one connection in order and tells what they came to."""

    def __init__(self, directory: Directory, connection: bytes | None = None) -> None:
        self._directory = directory
        self._connection = (connection or b"").hex()
        self._sessions: dict[int, ScannedSession] = {}

    def take(self, event: Event) -> Iterator[Act]:
        """Takes the next event."""
        if event.what == "claim":
            yield from self._claim(event)
            return
        if event.what == "late":
            yield from self._late(event)
            return
        if event.kind == "Open" and event.what == "operation":
            yield from self._open(event)
            return
        session = yield from self._living(event.session, event.state_time)
        if event.what in OUTSIDE:
            if session is not None:
                yield from getattr(self, "_" + event.what)(session, event)
            return
        if event.what == ENDING:
            yield from self._ending(session, event)
            return
        if session is None:
            yield self._refused(event, "session-unknown")
            return
        session.confirmed = True
        session.suspected = False
        session.deadline = None
        session.answered = max(session.answered, min(event.answered_through, session.last))
        session.handed = max(session.handed, min(event.handed_through, session.next_delivery - 1))
        yield from self._number(session, event)

    def finish(self) -> Iterator[Act]:
        """Tells what the last event left open."""
        for session in list(self._sessions.values()):
            yield Act(
                "alive",
                session.handle,
                None,
                session.deadline,
                session.mode,
                unit=session.last,
                consumer=session.consumer_highest,
                first=session.next_delivery,
                last=session.answered,
                count=session.unit_puts,
                flag=session.confirmed,
                text="suspected" if session.suspected else "",
            )
            yield from self._end(session, None, session.deadline, None)

    def _suspect(self, session: ScannedSession, event: Event) -> Iterator[Act]:
        if not session.suspected:
            session.suspected = True
            session.deadline = _deadline(event, session.timeout_us)
        return iter(())

    def _corrected(self, session: ScannedSession, event: Event) -> Iterator[Act]:
        if event.number not in session.in_flight:
            # A correction before was found to end this delivery; which one is meant is found next.
            return
        backed_out = {event.number} if event.kind == "released" else set()
        yield from settle(session, [event.number], event.position, event.kind, backed_out)

    def _vanished(self, session: ScannedSession, event: Event) -> Iterator[Act]:
        """Open puts to a temporary destination that is gone are no longer in the unit of work."""
        session.open_puts.pop(event.target, None)
        session.open_bytes.pop(event.target, None)
        yield Act("vanished", session.handle, event.position, unit=session.unit, queue=event.target)

    def _takeover(self, session: ScannedSession, event: Event) -> Iterator[Act]:
        yield from self._end(session, event.position, None, None, "taken over")
        del self._sessions[session.handle]

    def _ending(self, session: ScannedSession | None, event: Event) -> Iterator[Act]:
        """Administration asks to end a session, or its unit of work (§18)."""
        if session is None or (event.kind == "RollbackTransaction" and not session.has_unit):
            yield self._refused(event, "target-unknown")
        elif event.kind == "EndSession":
            yield from self._end(session, event.position, None, None, "ended")
            del self._sessions[session.handle]
        else:
            session.unit_ended = True
            gets = len(session.in_flight)
            yield from self._undo(session, event.position, "rolled back", set(session.in_flight))
            yield from self._end_unit(session, event.position, None, "rolled back", gets)

    def _living(self, handle: int, now: int) -> Generator[Act, None, ScannedSession | None]:
        """The session of a handle, unless its deadline passed: then it ended before this event."""
        session = self._sessions.get(handle)
        if session is not None and session.deadline is not None and session.deadline <= now:
            yield from self._lose(session)
            return None
        return session

    def _lose(self, session: ScannedSession) -> Iterator[Act]:
        yield from self._end(session, None, session.deadline, None)
        del self._sessions[session.handle]

    def _open(self, event: Event) -> Iterator[Act]:
        for session in list(self._sessions.values()):
            if session.deadline is not None and session.deadline <= event.state_time:
                yield from self._lose(session)
        reason = opening_refusal(self._sessions.values(), event, self._directory)
        if reason is not None:
            yield Act("act", -1, event.position, kind="Open", reason=reason)
            return
        self._sessions[event.position] = ScannedSession(
            handle=event.position,
            connection=self._connection,
            client_id=event.client_id,
            mode=event.acknowledge_mode,
            timeout_us=event.suspect_timeout_ms * 1000,
            lane=event.lane,
            deadline=_deadline(event, UNCONFIRMED_US),
        )
        yield Act("act", event.position, event.position, kind="Open")

    def _refused(self, event: Event, reason: str, session: int | None = None) -> Act:
        known = event.session if session is None else session
        return Act("act", known, event.position, kind=event.kind, reason=reason)

    def _number(self, session: ScannedSession, event: Event) -> Iterator[Act]:
        """§4, steps 3 to 6: a retry, a gap, a full window, or the session's next operation."""
        number = event.session_sequence
        if number <= session.last:
            known = number > session.answered or number in session.blocked
            yield self._refused(event, "repeated" if known else "reply-forgotten")
            return
        if number > session.last + 1:
            yield self._refused(event, "session-sequence-gap")
            return
        if session.last - session.answered >= WINDOW:
            yield self._refused(event, "session-window-full")
            return
        session.last = number
        reason = refusal(session, event, self._directory)
        if reason is not None:
            yield self._refused(event, reason)
        elif event.position in self._directory.waiting:
            session.blocked[number] = event
        else:
            yield from self._effect(session, event, event.position)

    def _late(self, event: Event) -> Iterator[Act]:
        """What was held up is answered now; a retry may be given the same answer later (§16)."""
        session = self._sessions.get(event.session)
        held = None if session is None else session.blocked.pop(event.session_sequence, None)
        if session is None or held is None:
            return
        at = event.position
        if event.kind == "Refused":
            yield Act("late", event.session, at, kind=held.kind, reason=event.text)
        else:
            yield from self._effect(session, held, at, event.number)

    def _effect(
        self, session: ScannedSession, event: Event, position: int, late: int = 0
    ) -> Iterator[Act]:
        kind = event.kind
        # Where administration ended the unit of work, what was seen went back already, and nobody
        # looked at what a Rollback names.
        ranges = () if session.unit_ended else zip(event.firsts, event.lasts, strict=True)
        named = [number for first, last in ranges for number in range(first, last + 1)]
        if kind == "Put":
            queue = store_of(event.target)
            unit = None
            if session.transacted:
                session.open_puts[queue] = session.open_puts.get(queue, 0) + event.count
                taken = session.open_bytes.get(queue, 0)
                session.open_bytes[queue] = taken + event.whole_sum
                session.unit_begin = position if session.unit_begin is None else session.unit_begin
                unit = session.unit
            yield Act(
                "act",
                session.handle,
                event.position,
                kind=kind,
                unit=unit,
                queue=queue,
                count=event.count,
                applied=position,
                late=late,
            )
            return
        yield Act(
            "act",
            session.handle,
            event.position,
            kind=kind,
            unit=session.unit,
            queue=store_of(event.target),
            consumer=event.consumer,
        )
        if kind == "OpenConsumer":
            session.consumer_highest = event.consumer
            session.consumers[event.consumer] = ScannedConsumer(store_of(event.target), position)
        elif kind == "Get":
            consumer = session.consumers[event.consumer]
            # No credit withdraws what there is.
            consumer.credit = consumer.credit + event.number if event.number else 0
            if event.text:
                consumer.complete = options_of(event.text).complete_message
        elif kind == "Alive":
            session.handing.update(handed_with(session, event.number))
        elif kind in ("GiveBack", "CloseConsumer"):
            yield from settle(session, named, position, kind, set())
            if kind == "CloseConsumer" and session.consumers[event.consumer].open:
                yield self._consumer_closed(session, event.consumer, position, None)
        elif kind == "Acknowledge":
            yield from settle(session, named, position, kind, None)
        elif kind == "Commit":
            yield from settle(session, named, position, kind, None)
            yield from self._end_unit(session, position, None, "commit", len(named), late)
        elif kind in ("Rollback", "Recover"):
            gets = len(session.in_flight)
            yield from self._undo(session, position, kind, set(named))
            if kind == "Rollback":
                session.unit_ended = False
                yield from self._end_unit(session, position, None, "rollback", gets)
        elif kind == "Close":
            yield from self._end(session, position, None, set(named))
            del self._sessions[session.handle]

    def _undo(
        self, session: ScannedSession, position: int, kind: str, seen: set[int]
    ) -> Iterator[Act]:
        """All credit is withdrawn, and every delivery returns."""
        for consumer in session.consumers.values():
            consumer.credit = 0
        yield from settle(session, list(session.in_flight), position, kind, seen)

    def _end_unit(
        self,
        session: ScannedSession,
        position: int | None,
        deadline: int | None,
        kind: str,
        gets: int,
        late: int = 0,
    ) -> Iterator[Act]:
        if kind != "commit":
            session.blocked = {}
        if session.transacted:
            begin = session.unit_begin if session.unit_begin is not None else position
            yield Act(
                "unit",
                session.handle,
                position,
                deadline,
                kind,
                unit=session.unit,
                first=begin,
                count=session.unit_puts,
                last=gets,
                late=late,
            )
        session.unit += 1
        session.unit_begin = None
        session.open_puts, session.open_bytes = {}, {}

    def _consumer_closed(
        self, session: ScannedSession, number: int, position: int | None, deadline: int | None
    ) -> Act:
        consumer = session.consumers[number]
        consumer.open = False
        return Act(
            "consumer",
            session.handle,
            position,
            deadline,
            consumer=number,
            queue=consumer.queue,
            first=consumer.opened,
        )

    def _end(
        self,
        session: ScannedSession,
        position: int | None,
        deadline: int | None,
        seen: set[int] | None,
        how: str = "close",
    ) -> Iterator[Act]:
        """Ends a session at once or by a deadline, or (neither) shows what it has open at last."""
        lost = "lost" if session.confirmed else "unconfirmed"
        kind = how if position is not None else lost if deadline is not None else "open"
        in_flight = list(session.in_flight)
        if kind != "open":
            if seen is None:
                yield from settle_lost(session, position, kind)
            else:
                yield from settle(session, in_flight, position, kind, seen)
            yield Act("ended", session.handle, position, deadline, kind, count=session.unit_puts)
        if session.unit_begin is not None:
            yield from self._end_unit(session, position, deadline, kind, len(in_flight))
        for number, consumer in session.consumers.items():
            if consumer.open:
                yield self._consumer_closed(session, number, position, deadline)

    def _claim(self, event: Event) -> Iterator[Act]:
        """Deliveries as an outcome claims them; numbers that no claim brought are told as stray."""
        session = self._sessions.get(event.session)
        first, last = event.number, event.number + event.count - 1
        if session is None:
            yield _stray(event, "no session", first, last)
            return
        if first > session.next_delivery:
            yield _stray(event, "missing", session.next_delivery, first - 1)
            for number in range(session.next_delivery, first):
                session.in_flight[number] = -1
        elif first < session.next_delivery:
            again = min(last, session.next_delivery - 1)
            yield _stray(event, "repeated", first, again)
            first = again + 1
        if session.unit_ended and first <= last:
            yield _stray(event, "unit ended", first, last)
        yield from self._take(session, event, first, last)
        session.next_delivery = max(session.next_delivery, last + 1)
        if session.unit_begin is None:
            session.unit_begin = event.position

    def _take(self, session: ScannedSession, event: Event, first: int, last: int) -> Iterator[Act]:
        """New deliveries; each costs a credit but those that came with the one before."""
        consumer = session.consumers.get(event.consumer)
        for number in range(first, last + 1):
            session.in_flight[number] = event.consumer
            place = event.groups[number - event.number] if event.groups else None
            unit = None if place is None else take_segment(session, number, event, place)
            if unit is not None:
                at = (session.handle, event.position)
                yield Act("together", *at, consumer=event.consumer, first=unit, last=number)
            elif consumer is not None:
                consumer.credit -= 1
