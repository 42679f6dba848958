"""Feeds the audit's pass over a log with what the fold is seen to do, without Spark.

What the fold decides where messages go and which number they get there is not looked at: the pass
must come to that by itself.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ledgermq.core import clock
from ledgermq.core.delivery import settling
from ledgermq.core.puts import putting
from ledgermq.core.sessions import sessions
from ledgermq.core.state.message_states import REMOVED
from ledgermq.core.state.records import Subscription as FoldedSubscription
from ledgermq.protocol.administration import HandlingOperation
from ledgermq.protocol.operations import Correct
from ledgermq.protocol.outcomes import Delivered, Outcome, Refused, Reply, SessionEnded
from ledgermq.protocol.settings import settings_record
from ledgermq.wire.framing.codec import decode_operation
from ledgermq_spark.derivation.destinations import store_of
from ledgermq_spark.derivation.directory import (
    Correction,
    Directory,
    Lifetime,
    Reception,
    Subscription,
)
from ledgermq_spark.derivation.settings import DEFAULTS, Settings
from ledgermq_spark.derivation.stay import Stayed, WalkEvent
from ledgermq_spark.derivation.walk import Walk
from ledgermq_spark.log.headers import header_text, settings_columns
from support.brokers.log_writer import Script

# Why an operation is not looked at, whatever it asks for.
OUT_OF_TURN = (
    *("session-unknown", "session-sequence-gap", "reply-forgotten", "session-window-full"),
    "timestamp-untrusted",
)


def is_late(outcome: Outcome) -> bool:
    """Whether an outcome tells that a session ended by its deadline or was taken over."""
    return isinstance(outcome, SessionEnded) and outcome.session_sequence == 0


class WatchedLog(Script):
    """A log that grows at random and notes what its fold does beside moving messages."""

    def __init__(self, seed: int, monkeypatch: Any) -> None:
        super().__init__(random=random.Random(seed))
        self.events: list[WalkEvent] = []
        # Operations by hand that were refused, and why.
        self.refused: dict[int, str] = {}
        self._replied: dict[int, int] = {}
        self._lifetimes: dict[tuple[str, int], Lifetime] = {}
        self._settings: dict[tuple[str, int], Settings] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._receptions: dict[tuple[int, int], Reception] = {}
        self._found = Directory()
        self._lifetime_ms = self.state.lifetimes.maximum_ms
        for module in (putting, sessions):
            monkeypatch.setattr(module, "enqueue", self._noting_puts(module.enqueue))
        taken = self._noting_settlements(settling.end_flight)
        monkeypatch.setattr(settling, "end_flight", taken)
        monkeypatch.setattr(clock, "_end", self._noting_ends(clock._end))

    @property
    def directory(self) -> Directory:
        """What stood when."""
        self._found.lifetimes = list(self._lifetimes.values())
        self._found.subscriptions = list(self._subscriptions.values())
        self._found.receptions = list(self._receptions.values())
        return self._found

    def walked(self) -> tuple[Walk, list[Stayed]]:
        """The pass after the last entry, and what it told."""
        walk, told = Walk(self.directory), []
        for event in sorted(self.events, key=lambda one: one[:4]):
            told.extend(walk.take(event))
        told.extend(walk.finish())
        return walk, told

    def add_value(self, value: bytes | None, stamp: int = 1) -> int:
        """Appends a record, and notes what stands after it."""
        removed = {name: one.gone[REMOVED] for name, one in self.state.queues.items()}
        position = super().add_value(value, stamp)
        outcomes = [one.outcome for one in self.outcomes[-1]]
        due = any(is_late(one) and one.reason != "TAKEN_OVER" for one in outcomes)
        self.events.append(
            WalkEvent(
                position,
                -1,
                0,
                0,
                "entry",
                time=self.state.time,
                moment=self.entries[-1].time_us if stamp else -1,
            )
        )
        self.events.extend(deliveries(position, outcomes))
        self._note_handling(position, value, outcomes)
        self._note_destinations(position, due)
        self._note_subscriptions(position, due)
        if self.state.lifetimes.maximum_ms != self._lifetime_ms:
            self._lifetime_ms = self.state.lifetimes.maximum_ms
            self._found.maximum_lifetimes.append((position, self._lifetime_ms))
        for name, one in self.state.queues.items():
            operation = decode_operation(value)
            if one.gone[REMOVED] > removed.get(name, 0) and isinstance(operation, Correct):
                told = (name, one.created_position, operation.sequence, "REMOVE", "", "", -1, -1)
                self._found.corrections.append(Correction(position, *told))
        return position

    def _note_handling(self, position: int, value: bytes | None, outcomes: list[Outcome]) -> None:
        """What was asked for by hand, if it was in turn, and why it was refused."""
        operation = decode_operation(value)
        if not isinstance(operation, HandlingOperation) or len(value or b"") == 0:
            return
        replies = [one for one in outcomes if isinstance(one, Reply) and not is_late(one)]
        first = replies[0] if replies else None
        if isinstance(first, Refused) and first.reason in OUT_OF_TURN:
            return
        if first is not None and self._replied.get(first.session, 0) < first.session_sequence:
            self._replied[first.session] = first.session_sequence
            text, _ = settings_columns(operation)
            self.events.append(WalkEvent(position, 1, 0, 0, "handled", text=text or ""))
            if isinstance(first, Refused):
                self.refused[position] = first.reason

    def _note_destinations(self, position: int, due: bool) -> None:
        standing = {
            (store_of(one.destination), one.created_position): one
            for one in [*self.state.queues.values(), *self.state.topics.values()]
        }
        for key, one in standing.items():
            self._lifetimes.setdefault(key, Lifetime(*key))
            told = DEFAULTS.changed(json.dumps(settings_record(one.settings)))
            if told != self._settings.get(key, DEFAULTS):
                self._settings[key] = told
                self._found.settings.append((*key, position, told))
        for key, lifetime in self._lifetimes.items():
            if lifetime.deleted is None and key not in standing:
                self._lifetimes[key] = lifetime._replace(deleted=position, deleted_due=due)

    def _note_subscriptions(self, position: int, due: bool) -> None:
        standing = {one.created_position: one for one in self.state.subscriptions.values()}
        for created, one in standing.items():
            if created not in self._subscriptions:
                self._subscriptions[created] = _subscription(one)
        for created, told in self._subscriptions.items():
            gone = created not in standing or standing[created].has_ended
            if told.kind == "shared" and told.stopped is None and gone:
                told = told._replace(stopped=position, stopped_due=due)
                self._subscriptions[created] = told
            if told.ended is None and created not in standing:
                self._subscriptions[created] = told._replace(ended=position, ended_due=due)
        consumers = {
            (session.handle, number): one
            for session in self.state.sessions.values()
            for number, one in session.consumers.items()
            if isinstance(one.queue, FoldedSubscription)
        }
        for key, consumer in consumers.items():
            connection = consumer.session.connection.identity.hex()
            told = Reception(consumer.queue.created_position, *key, connection, position)
            self._receptions.setdefault(key, told)
        for key, told in self._receptions.items():
            if told.closed is None and (key not in consumers or not consumers[key].open):
                self._receptions[key] = told._replace(closed=position, closed_due=due)

    def _noting_puts(self, enqueue: Callable[..., int]) -> Callable[..., int]:
        def noting(entry: Any, queue: Any, messages: Any, before: int, session: Any) -> int:
            sender = session.connection
            for one in messages:
                offset = one.put_position * 16_384 + one.put_index
                self.events.append(
                    WalkEvent(
                        *(len(self.entries) - 1, 1, 1, offset, "numbered"),
                        queue=store_of(queue.destination),
                        put_position=one.put_position,
                        put_index=one.put_index,
                        moment=-1 if one.times is None else one.times.expires_at,
                        message_id=one.message_id,
                        priority=one.priority,
                        persistent=one.persistent,
                        header=header_text(one.header),
                        connection=sender.identity.hex(),
                        client_id=sender.client_id,
                        born_at=-1 if one.times is None else one.times.deliver_at,
                    )
                )
            return enqueue(entry, queue, messages, before, session)

        return noting

    def _noting_ends(self, end: Callable[..., Any]) -> Callable[..., Any]:
        def noting(turn: Any, session: Any) -> Any:
            index, last = turn.next_index, session.handle * 2**31 + 2**31 - 1
            place = (len(self.entries) - 1, 0, index, last, "ended")
            self.events.append(WalkEvent(*place, session=session.handle, moment=session.deadline))
            return end(turn, session)

        return noting

    def _noting_settlements(self, take: Callable[..., Any]) -> Callable[..., Any]:
        def noting(entry: Any, session: Any, consumer: Any, deliveries: Any) -> Any:
            caller = sys._getframe(1)
            callers = list(_callers(caller))
            due = "advance" in callers
            asked = (consumer.redelivery_delay_ms, session.redelivery_delay_ms)
            lost = caller.f_back is not None and caller.f_back.f_locals.get("seen", ()) is None
            for delivery in deliveries:
                handed = delivery <= session.handed_through or delivery in session.handed_doubts
                self.events.append(
                    WalkEvent(
                        *(len(self.entries) - 1, 0 if due else 1, entry.next_index if due else 0),
                        *(session.handle * 2**31 + delivery, "settled"),
                        session=session.handle,
                        delivery=delivery,
                        flag=bool(caller.f_locals.get("backed_out", False)),
                        text="acknowledged" if caller.f_code.co_name == "consume" else "returned",
                        moment=session.deadline if due else -1,
                        delay_ms=next(one for one in asked if one >= 0),
                        uncounted=lost and not handed,
                    )
                )
            return take(entry, session, consumer, deliveries)

        return noting


def _callers(frame: Any) -> Iterator[str]:
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back


def _subscription(one: Any) -> Subscription:
    selector = "" if one.selector is None else one.selector.text
    return Subscription(
        *(one.created_position, "topic:" + one.topic.name, one.topic.created_position),
        *(one.key.kind, one.key.name, one.key.client_id, one.shared, selector, one.no_local),
    )


def deliveries(position: int, outcomes: list[Outcome]) -> Iterator[WalkEvent]:
    """The deliveries of an entry; those before its reply were made before it acted."""
    replies = [one.index for one in outcomes if not isinstance(one, Delivered) and not is_late(one)]
    late = any(is_late(one) for one in outcomes)
    for outcome in outcomes:
        if not isinstance(outcome, Delivered):
            continue
        before = outcome.index < min(replies) if replies else late
        for offset, one in enumerate(outcome.messages):
            yield WalkEvent(
                *(position, 0 if before else 2, outcome.index, offset, "delivered"),
                queue=store_of(outcome.destination),
                put_position=one["put_position"],
                put_index=one["put_index"],
                sequence=one["sequence"],
                session=outcome.session,
                delivery=outcome.first_delivery + offset,
                consumer=outcome.consumer,
            )
