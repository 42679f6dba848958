"""Consumers: get messages from one destination."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_number, check_seconds
from ledgermq.client.asking import Asking
from ledgermq.client.buffer import NEVER
from ledgermq.client.call_options import NONE_GIVEN, CallOptions
from ledgermq.client.destinations import checked_destination, is_topic
from ledgermq.client.getting import GetMatch, Getting, Order
from ledgermq.client.listening import Listener
from ledgermq.client.message import Message
from ledgermq.client.segments import further_of
from ledgermq.client.settings import PREFETCH_DEFAULT
from ledgermq.client.while_open import WhileOpen
from ledgermq.errors import IllegalStateError, InvalidDestinationError, LedgerMQError
from ledgermq.protocol.limits import CREDIT_MAX
from ledgermq.protocol.operations import OpenConsumer
from ledgermq.warning_kinds import give_warning

if TYPE_CHECKING:
    from ledgermq.client.browser import Browser
    from ledgermq.client.session import Session

__all__ = ["Consumer", "Source"]


class Source(NamedTuple):
    """Which messages of a destination a consumer is for; see `Session.consumer`."""

    selector: str = ""
    no_local: bool = False
    subscription: str = ""
    durable: bool = False
    shared: bool = False
    redelivery_delay_ms: int = -1


@typed
class Consumer(Asking):
    """Made by `session.consumer(destination)`; counts as a receiver of the queue while open.

    Messages are asked for with the first `receive`, and from then on ahead of need, up to
    `prefetch`. Time-outs run here: a `receive` that ran out of time leaves its request standing.

    Attributes:
        destination: Where it gets from.
        selector: Which messages it gets; empty: all.
        subscription: Name of the topic's subscription, if it has one.
        prefetch: Up to how many messages are asked for ahead of need.
    """

    destination = WhileOpen[str]()
    selector = WhileOpen[str]()
    subscription = WhileOpen["str | None"]()
    prefetch = WhileOpen[int]()

    def __init__(
        self,
        session: Session,
        destination: str,
        source: Source,
        prefetch: int | None,
        getting: Getting,
    ) -> None:
        self._session = session
        self._core = session._core
        self._core.check_open()
        self._settling = session._settling
        self._destination = checked_destination(destination)
        if not is_topic(self._destination) and (
            source.subscription or source.durable or source.shared
        ):
            raise InvalidDestinationError(
                f"{destination} is a queue, which has no subscriptions: name a topic, or leave "
                "out subscription, durable and shared",
                destination=destination,
            )
        self._prefetch = PREFETCH_DEFAULT if prefetch is None else prefetch
        if not 0 <= self._prefetch <= CREDIT_MAX:
            raise IllegalStateError(f"prefetch is {prefetch}, must be 0 to {CREDIT_MAX:,}")
        self._selector = source.selector
        self._subscription = source.subscription or None
        self._closed = False
        self._options = CallOptions(
            getting,
            destination=self._destination,
            acknowledge_mode=self._core.mode,
            prefetch=self._prefetch,
        )
        self._wanted = self._options.own
        self._asked = None
        self._heard_through = 0
        core = self._core
        with core.lock:
            core.check_usable_locked()
            core.wait_for_room_locked()
            self._buffer = core.protocol.open_consumer(self._destination, max(1, self._prefetch))
            try:
                pending = core.write_locked(
                    OpenConsumer,
                    target=self._destination,
                    consumer=self._buffer.number,
                    destination=self._destination,
                    **source._asdict(),
                )
                core.await_locked(pending)
            except LedgerMQError:
                core.protocol.consumers.pop(self._buffer.number, None)
                raise

    def receive(
        self,
        timeout: float | None = None,
        *,
        order: Order | str | None = None,
        all_messages_available: bool | None = None,
        all_segments_available: bool | None = None,
        complete_message: bool | None = None,
        match: GetMatch | None = None,
        under_cursor: Browser | None = None,
    ) -> Message | None:
        """The next message; None after `timeout` seconds without one, or when closed meanwhile.

        Without a time-out it waits for as long as it takes. With 0 it does not wait for what is yet
        to be put: it asks the queue manager for what is there, unless that was asked before.

        With prefetch 0 a call can have options of its own in place of the consumer's; see
        `Session.consumer`. `under_cursor` gets the message that a browser has shown last, unless
        somebody has got it meanwhile, and waits only if it is told to. What a call that was
        interrupted has asked for comes first, whatever this one asks for.

        Raises:
            IllegalStateError: consumer or session are closed already; options of a call without
                prefetch 0; a cursor that is nowhere, or on another queue.
            SessionLostError: the queue manager ended the session.
            MatchOptionsError: in logical order another message comes next (GRP-44).
            GetOptionsError: options that do not go together, or out of range.

        Warns:
            IncompleteGroupWarning: before it gets without logical order what may be outside of the
                group that it was in with logical order (GRP-41).
            IncompleteMessageWarning: the same within the segments of a message (GRP-42).
        """
        check_seconds("timeout", timeout)
        if under_cursor is not None and timeout is None:
            timeout = 0.0
        buffer, wanted = self._buffer, self._options.own
        given = (order, all_messages_available, all_segments_available, complete_message, match)
        if given != NONE_GIVEN or under_cursor is not None or buffer.unfinished is not None:
            wanted = self._options.of_call(*given, under_cursor, buffer)
        with self._core.lock:
            self._check_locked()
            self._wanted = wanted
            buffer.put_back_gathered()
            ready = buffer.count and buffer.due < buffer.threshold and not buffer.in_doubt
            ready = ready and buffer.expires_at == NEVER
            if not ready and not self._fill_locked(timeout):
                return None
            first, last, raw = self.take_locked()
            self._settling.hand_over_run_locked(first, last)
        return Message(raw, self._destination, first, self._session)

    def receive_group(self, timeout: float | None = None) -> list[Message]:
        """A whole group in logical order, or one message that is in none; [] after a time-out.

        It comes once all of the group is there, and nothing of it counts as received before that,
        so that nothing is lost by a time-out. Inside of a group, it gets the rest of that. The
        segments of a message in no group come together too.

        Raises:
            IllegalStateError: consumer or session are closed already, or the consumer gets ahead
                of need without `order=Order.LOGICAL, all_messages_available=True`.
            SessionLostError: the queue manager ended the session.
        """
        check_seconds("timeout", timeout)
        wanted = self._options.of_groups()
        with self._core.lock:
            self._check_locked()
            self._wanted = wanted
            if not self._fill_locked(timeout, group=True):
                return []
            taken = self.take_group_locked()
            for first, last, _ in taken:
                self._settling.hand_over_run_locked(first, last)
        return [Message(raw, self._destination, first, self._session) for first, _, raw in taken]

    def receive_many(self, max: int, timeout: float | None = None) -> list[Message]:  # noqa: A002
        """Up to `max` messages: waits like `receive` for the first, takes what is here of the rest.

        Raises:
            IllegalStateError: consumer or session are closed already, or `max` is below 1.
            SessionLostError: the queue manager ended the session.
        """
        check_seconds("timeout", timeout)
        if max < 1:
            raise IllegalStateError(f"max is {max}, must be at least 1")
        buffer = self._buffer
        found: list[Message] = []
        with self._core.lock:
            self._check_locked()
            self._wanted = self._options.own
            buffer.put_back_gathered()
            if not self._fill_locked(timeout):
                return found
            while buffer.count and len(found) < max and not buffer.in_doubt:
                first, run = buffer.take_run(max - len(found))
                # What was joined comes in a run of its own.
                last = first + len(run) - 1 + len(further_of(run[-1]))
                self._settling.hand_over_run_locked(first, last)
                self._note_order(run[-1])
                destination, session = self._destination, self._session
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

    def _check_open(self) -> None:
        self._core.check_open()
        if self._closed:
            raise IllegalStateError("the consumer is closed; make another one")

    @property
    def message_listener(self) -> Listener | None:
        """The callback that gets the messages, if there is one."""
        self._check_open()
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

    def __iter__(self) -> Iterator[Message]:
        """Messages for as long as consumer and session are open."""
        self._check_open()
        while not self._closed:
            message = self.receive()
            if message is None:
                return
            yield message

    def until_idle(self, seconds: float) -> Iterator[Message]:
        """Messages until none has come for so many seconds."""
        self._check_open()
        check_number("seconds", seconds)
        check_seconds("seconds", seconds)
        return self._until_idle(seconds)

    def _until_idle(self, seconds: float) -> Iterator[Message]:
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

        Warns:
            IncompleteGroupWarning: it was in a group, in logical order (GRP-41).
            IncompleteMessageWarning: it was within the segments of a message (GRP-42).
        """
        check_seconds("timeout", timeout)
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
        unfinished = self._buffer.unfinished
        if unfinished is not None:
            give_warning(
                unfinished(f"a consumer of {self._destination} was closed before the end of it")
            )

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            # Whoever is interrupted has no choice but to leave its group.
            self._buffer.unfinished = None
        self.close()
