"""Consumers: get messages from one destination."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from ledgermq.client.destinations import checked_destination
from ledgermq.client.listening import Listener
from ledgermq.client.message import Message
from ledgermq.client.settings import PREFETCH_DEFAULT
from ledgermq.core.limits import CREDIT_MAX
from ledgermq.core.operations import Get, OpenConsumer
from ledgermq.errors import DeliveryUnknownError, IllegalStateError, LedgerMQError

if TYPE_CHECKING:
    from ledgermq.client.session import Session

__all__ = ["Consumer", "Source"]


class Source(NamedTuple):
    """Which messages of a destination a consumer is for; see `Session.consumer`."""

    selector: str = ""
    no_local: bool = False
    subscription: str = ""
    durable: bool = False
    shared: bool = False


class Consumer:
    """Made by `session.consumer(destination)`; counts as a receiver of the queue while open.

    Messages are asked for with the first `receive`, and from then on ahead of need, up to
    `prefetch`. Time-outs run here: a `receive` that ran out of time leaves its request standing.

    Attributes:
        destination: Where it gets from.
        selector: Which messages it gets; empty: all.
        subscription: Name of the topic's subscription, if it has one.
        prefetch: Up to how many messages are asked for ahead of need.
    """

    def __init__(
        self, session: Session, destination: str, source: Source, prefetch: int | None
    ) -> None:
        self._session = session
        self._core = session._core
        self._settling = session._settling
        self.destination = checked_destination(destination)
        self.prefetch = PREFETCH_DEFAULT if prefetch is None else prefetch
        if not 0 <= self.prefetch <= CREDIT_MAX:
            raise IllegalStateError(f"prefetch is {prefetch}, must be 0 to {CREDIT_MAX:,}")
        self.selector = source.selector
        self.subscription = source.subscription or None
        self._closed = False
        core = self._core
        with core.lock:
            core.check_usable_locked()
            core.wait_for_room_locked()
            self._buffer = core.protocol.open_consumer(self.destination, max(1, self.prefetch))
            pending = core.write_locked(
                OpenConsumer,
                target=self.destination,
                consumer=self._buffer.number,
                destination=self.destination,
                **source._asdict(),
            )
            try:
                core.await_locked(pending)
            except LedgerMQError:
                core.protocol.consumers.pop(self._buffer.number, None)
                raise

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None after `timeout` seconds without one, or when closed meanwhile.

        Without a time-out it waits for as long as it takes; with 0 it takes only what is here.

        Raises:
            IllegalStateError: consumer or session are closed already.
            SessionLostError: the queue manager ended the session.
        """
        buffer = self._buffer
        with self._core.lock:
            self._check_locked()
            ready = buffer.count and buffer.due < buffer.threshold and not buffer.in_doubt
            if not ready and not self._fill_locked(timeout):
                return None
            delivery, raw = buffer.take()
            self._settling.hand_over_locked(delivery)
        return Message(raw, self.destination, delivery, self._session)

    def receive_many(self, max: int, timeout: float | None = None) -> list[Message]:  # noqa: A002
        """Up to `max` messages: waits like `receive` for the first, takes what is here of the rest.

        Raises:
            IllegalStateError: consumer or session are closed already, or `max` is below 1.
            SessionLostError: the queue manager ended the session.
        """
        if max < 1:
            raise IllegalStateError(f"max is {max}, must be at least 1")
        buffer = self._buffer
        found: list[Message] = []
        with self._core.lock:
            self._check_locked()
            if not self._fill_locked(timeout):
                return found
            while buffer.count and len(found) < max and not buffer.in_doubt:
                first, run = buffer.take_run(max - len(found))
                self._settling.hand_over_run_locked(first, first + len(run) - 1)
                destination, session = self.destination, self._session
                found += [
                    Message(raw, destination, delivery, session)
                    for delivery, raw in enumerate(run, first)
                ]
        return found

    def _check_locked(self) -> None:
        self._core.check_usable_locked()
        if self._closed:
            raise IllegalStateError("the consumer is closed; make another one")
        if self._session._listening.active:
            raise IllegalStateError(
                "the session has message listeners, which get its messages: take them away with "
                "set_message_listener(None), or receive in another session"
            )
        if self._session._broken is not None:
            raise IllegalStateError(
                f"an earlier commit of this session failed ({self._session._broken}); roll back"
            )

    def _fill_locked(self, timeout: float | None) -> bool:
        """Writes what is due, then waits for a message; False if there is none to come."""
        core, buffer = self._core, self._buffer
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self.ask_locked()
            if buffer.in_doubt:
                core.tell_doubt_locked(buffer)
                if self._closed or core.closing:
                    return False
            if buffer.count:
                return True
            self._settling.write_locked()
            if not core.wait_locked(deadline) or self._closed or core.closing:
                return self._ask_no_longer_locked()
            core.check_usable_locked()

    def _crossed(self) -> bool:
        """As `_ask_no_longer_locked`, for a coroutine that ran out of time."""
        with self._core.lock:
            return self._ask_no_longer_locked()

    def _ask_no_longer_locked(self) -> bool:
        """With prefetch 0, withdraws what was asked for; True if a message crossed that."""
        core, buffer = self._core, self._buffer
        if self.prefetch or buffer.due or self._closed or core.closing or core.ended:
            return False
        pending = core.write_locked(Get, target=self.destination, consumer=buffer.number, credit=0)
        core.await_locked(pending)
        if not buffer.count:
            buffer.due = buffer.prefetch
        return buffer.count > 0

    def ask_locked(self) -> None:
        """Asks for as many messages as were taken since the last time, once that pays."""
        core, buffer = self._core, self._buffer
        if core.refused:
            self._repair_locked()
        if buffer.due >= buffer.threshold and not core.protocol.full:
            core.write_acknowledgements_locked()
            core.write_locked(
                Get,
                on_settled=core.defer_refusal,
                target=self.destination,
                consumer=buffer.number,
                credit=buffer.grant(),
            )

    @property
    def message_listener(self) -> Listener | None:
        """The callback that gets the messages, if there is one."""
        return self._session._listening.get(self)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by itself or with its session."""
        return self._closed or self._session.is_closed

    def set_message_listener(self, listener: Listener | None) -> None:
        """Lets a callback have the messages, in a thread of the session; None ends that.

        The listeners of a session are called one at a time, in the order of delivery over all its
        consumers. From then on the session is for the callbacks alone: other threads may close it
        or its consumers, and set listeners, and `receive` is refused. So make its producers and
        consumers first.

        AUTO and DUPS_OK: a message is acknowledged once its listener has returned; when it
        raises, that is logged, the message goes back to its place with its delivery count raised,
        and comes again after a pause that grows from 0.05 to 5 seconds while the failures go on. In
        the other modes the listener acknowledges, commits or rolls back, also after an error.

        Raises:
            IllegalStateError: consumer or session are closed.
        """
        core = self._core
        with core.lock:
            if not self._session._listening.active:
                core.check_usable_locked()
            if self._closed or core.closing:
                raise IllegalStateError("the consumer is closed; make another one")
            self._session._listening.set_locked(self, listener)

    def _repair_locked(self) -> None:
        core = self._core
        core.lock.release()
        try:
            self._settling.repair(None)
        except DeliveryUnknownError as error:
            core.defer(error)
        finally:
            core.lock.acquire()

    def __iter__(self) -> Iterator[Message]:
        """Messages for as long as consumer and session are open."""
        while not self._closed:
            message = self.receive()
            if message is None:
                return
            yield message

    def until_idle(self, seconds: float) -> Iterator[Message]:
        """Messages until none has come for so many seconds."""
        while not self._closed:
            message = self.receive(seconds)
            if message is None:
                return
            yield message

    def close(self, *, timeout: float | None = None) -> None:
        """Ends it: what was never handed over goes back, what was stays with the session.

        Closing twice does nothing. May be called from any thread.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.
        """
        core = self._core
        with core.lock:
            if self._closed:
                return
            self._closed = True
            self._session._listening.leave_locked(self)
            if core.ended or core.closing:
                return
            core.write_acknowledgements_locked()
            pending = core.close_consumer_locked(self._buffer.number)
            core.await_locked(pending, timeout)

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
