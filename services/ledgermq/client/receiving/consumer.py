"""Consumers: get messages from one destination."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any, TypeVar, Unpack

from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_callback
from ledgermq.client.closing import Closing, close_aside, is_interrupted
from ledgermq.client.engine.listening import Listener
from ledgermq.client.engine.work import Work
from ledgermq.client.messages.message import Message
from ledgermq.client.options import ConsumerOptions, GetOptionsOfCall
from ledgermq.client.receiving.browser import Browser
from ledgermq.client.receiving.getter import CLOSED, Getter, OfConsumer
from ledgermq.errors import IllegalStateError, LedgerMQError

Receives = TypeVar("Receives", bound=type[Any])


def _until_returned(receive: Callable[..., Any]) -> Callable[..., Any]:
    """A call that has handed over what it returns, and nothing else.

    Ctrl-C, or what another signal handler raises, may end it once it has taken a message: whoever
    goes on then and commits or acknowledges would settle what nobody has seen. This is the outmost
    part of the call, because Python runs signal handlers wherever one that it calls has returned.
    """

    @wraps(receive)
    def call(consumer: Consumer, /, *args: Any, **kwargs: Any) -> Any:
        getter = getattr(consumer, "_shared", None)
        before = getter and getter.taken
        try:
            return receive(consumer, *args, **kwargs)
        except LedgerMQError:
            raise
        except BaseException:
            if getter is not None and getter.taken is not before:
                getter.take_back()
            raise

    return call


def _hands_over_what_it_returns(marked: Receives) -> Receives:
    for name in ("receive", "receive_group", "receive_many"):
        setattr(marked, name, _until_returned(getattr(marked, name)))
    return marked


@_hands_over_what_it_returns
@typed
class Consumer(OfConsumer, Closing):
    """Made by `session.consumer(destination)`; counts as a receiver of the queue while open.

    Messages are asked for with the first `receive`, and from then on ahead of need, up to
    `prefetch`. A `receive` that ran out of time leaves its request standing, save with prefetch 0.
    One of a queue that is dropped without a close and has no listener is closed soon, or when the
    next one is made, once all that its session was given is settled.

    Attributes:
        destination: Where it gets from.
        selector: Which messages it gets; empty: all.
        subscription: Name of the topic's subscription, if it has one.
        prefetch: Up to how many messages are asked for ahead of need.
    """

    __slots__ = ("_engine", "_work")

    _shared: Getter[Message]

    def __init__(self, work: Work, destination: str, **options: Unpack[ConsumerOptions]) -> None:
        self._work = work
        self._engine = work.engine
        self._shared = Getter(work, destination, options, Message, work.engine.run)
        self._engine.run(self._shared.open(self))

    def receive(
        self,
        timeout: float | None = None,
        *,
        under_cursor: Browser | None = None,
        **options: Unpack[GetOptionsOfCall],
    ) -> Message | None:
        """The next message; None after `timeout` seconds without one, or when closed meanwhile.

        With None it waits for as long as it takes. With 0 it does not wait for what is yet
        to be put: it asks the queue manager for what is there, unless that was asked before. While
        nobody answers, that takes up to the connection's time-out, and so it does with messages
        that are here already, once it is no longer sure that they are still its own.

        With prefetch 0 a call can have options of its own in place of the consumer's; see
        `Session.consumer`. `under_cursor` gets the message that a browser has shown last, unless
        somebody has got it meanwhile, and waits only if it is told to; within a group, in logical
        order, only if it comes next. What a call that was
        interrupted has asked for comes first, whatever this one asks for.

        Raises:
            IllegalStateError: consumer or session are closed already; options of a call without
                prefetch 0; a cursor that is nowhere, or on another queue; the session has listeners
                (SES-02), or a `commit_async` of it failed and it was not rolled back.
            SessionLostError: the queue manager ended the session.
            TransactionRolledBackError: a time limit ended the unit of work; roll back.
            MatchOptionsError: in logical order another message comes next (GRP-44).
            GetOptionsError: options that do not go together, or out of range.

        Warns:
            IncompleteGroupWarning: before it gets without logical order what may be outside of the
                group that it was in with logical order (GRP-41).
            IncompleteMessageWarning: the same within the segments of a message (GRP-42).
        """
        return self._engine.run(self._shared.receive(timeout, under_cursor, options))

    def receive_group(self, timeout: float | None = None) -> list[Message]:
        """A whole group in logical order, or one message that is in none; [] after a time-out.

        It comes once all of the group is there, and nothing of it counts as received before that,
        so that nothing is lost by a time-out. Inside of a group, it gets the rest of that. The
        segments of a message in no group come together too. `timeout` is in seconds; None: as long
        as it takes (GRP-20, GRP-21).

        Raises:
            IllegalStateError: consumer or session are closed already, or the consumer gets ahead
                of need without `order=Order.LOGICAL, all_messages_available=True`.
            LedgerMQError: what `receive` raises.
        """
        return self._engine.run(self._shared.receive_group(timeout))

    def receive_many(self, max: int, timeout: float | None = None) -> list[Message]:  # noqa: A002
        """Up to `max` messages: waits like `receive` for the first, takes what is here of the rest.

        [] after `timeout` seconds without one; None: it waits as long as it takes.

        Raises:
            IllegalStateError: consumer or session are closed already, or `max` is below 1.
            LedgerMQError: what `receive` raises.
        """
        return self._engine.run(self._shared.receive_many(max, timeout))

    @property
    def message_listener(self) -> Listener | None:
        """The callback that gets the messages, if there is one."""
        self._check_open()
        return self._work.listening.get(self._shared)

    def set_message_listener(self, listener: Listener | None) -> None:
        """Lets a callback have the messages, in a thread of the session; None ends that.

        With None it waits for a callback that is running, as `close` does; after the last one the
        session is anybody's again.

        The listeners of a session are called one at a time, in the order of delivery over all its
        consumers (SES-04). From then on the session is for the callbacks alone (SES-02): other
        threads may close it or its consumers, and set listeners, and `receive` is refused. So make
        its producers and consumers first.

        AUTO and DUPS_OK: a message is acknowledged once its listener has returned; when it
        raises, that is logged, the message goes back to its place with its delivery count raised,
        and comes again after a pause that grows from 0.05 to 5 seconds while the failures go on. In
        the other modes the listener acknowledges, commits or rolls back, also after an error.

        Raises:
            IllegalStateError: consumer or session are closed; a coroutine function, or one with a
                yield, which does nothing yet when it is called.
        """
        if listener is not None:
            check_callback(listener, ", or consume in a coroutine of ledgermq.aio")
        engine, listening = self._engine, self._work.listening
        with engine.lock:
            if not listening.active:
                engine.check_usable_locked()
            if self._shared.closed:
                raise IllegalStateError(CLOSED)
            engine.check_open()
            listening.set_locked(self._shared, listener)

    def __iter__(self) -> Iterator[Message]:
        """Messages for as long as consumer and session are open; raises what `receive` raises."""
        self._check_open()
        return self._until_idle(None)

    def until_idle(self, seconds: float) -> Iterator[Message]:
        """Messages, until a wait for the next one has lasted so many seconds.

        The time that the caller needs for a message does not count. With 0 it ends with the first
        wait: what is there is got.

        Raises:
            IllegalStateError: the consumer is closed, or `seconds` is negative; at once.
            LedgerMQError: what `receive` raises; with the messages.
        """
        self._check_open()
        return self._until_idle(seconds)

    def _until_idle(self, seconds: float | None) -> Iterator[Message]:
        while not self._shared.closed:
            message = self.receive(seconds)
            if message is None:
                return
            yield message

    def close(self, *, timeout: float | None = None) -> None:
        """Ends it: what was never handed over goes back, what was stays with the session.

        Closing twice does nothing. May be called from any thread, and by a signal handler as
        `Session.close`. It waits for a listener of it that is being called (SES-21). `timeout` is
        in seconds; None: the connection's time-out.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.

        Warns:
            IncompleteGroupWarning: it was in a group, in logical order (GRP-41).
            IncompleteMessageWarning: it was within the segments of a message (GRP-42).
        """
        getter = self._shared
        if is_interrupted(self._engine.lock):
            close_aside(partial(self.close, timeout=timeout))
            return
        with self._engine.lock:
            if getter.closed:
                return
            with getter.closing():
                self._work.listening.leave_locked(getter)
                self._engine.run_locked(getter.close(timeout), claims=False)
        getter.warn_of_rest()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            # Whoever is interrupted has no choice but to leave its group.
            self._shared.buffer.unfinished = None
        super().__exit__(kind)
