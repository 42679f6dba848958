"""How a consumer asks for messages and takes them: credit, options, waits (PROTOCOL.md §13).

Credit is for the options asked for last. Options that change go with the credit of a call, which a
consumer without prefetch asks for alone; what refuses them is raised by the call.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from ledgermq.client import tracing
from ledgermq.client.arguments import Rejection
from ledgermq.client.closing import WhileOpen
from ledgermq.client.destinations import checked_destination, is_topic
from ledgermq.client.engine.steps import Outside, Steps
from ledgermq.client.engine.work import Work
from ledgermq.client.messages.message import Message
from ledgermq.client.options import ConsumerOptions, GetOptionsOfCall
from ledgermq.client.receiving.getting import GetMatch, options_of
from ledgermq.client.sansio.buffer import NEVER, ConsumerBuffer
from ledgermq.client.sansio.protocol import Pending
from ledgermq.client.sansio.segments import further_of, left_open
from ledgermq.client.settings import PREFETCH_DEFAULT, checked_delay_ms, checked_whole
from ledgermq.errors import (
    DeliveryUnknownError,
    GetOptionsError,
    IllegalStateError,
    InvalidDestinationError,
    LedgerMQError,
)
from ledgermq.errors.shown import shown
from ledgermq.errors.warnings import give_warning
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.protocol.limits import CONSUMER_PRIORITY_MAX, CONSUMER_PRIORITY_MIN, CREDIT_MAX
from ledgermq.protocol.operations import Alive, Get, OpenConsumer
from ledgermq.protocol.outcomes import DeliveredMessage

M = TypeVar("M", bound=Message)
CLOSED: Final = "the consumer is closed; make another one"
# The first and the last of a message's deliveries, and the message.
Taken = tuple[int, int, DeliveredMessage]


class Cursor(Protocol):
    """A browser, of threads or of coroutines."""

    def cursor_on(self, destination: str) -> int: ...


class Getter(Generic[M]):
    """The gets of one consumer, for threads and coroutines.

    Attributes:
        own: What it asks for where a call has no options of its own.
        closed: Whether it was closed by itself.
        buffer: What has been delivered to it and not handed over; there once it was opened.
        taken: What the call under way, or else the last one that got something, has taken of that.
    """

    buffer: ConsumerBuffer

    def __init__(
        self,
        work: Work,
        destination: str,
        options: ConsumerOptions,
        kind: type[M],
        run: Callable[[Steps[None]], Any],
    ) -> None:
        # Of which kind its messages are, and how they take the steps of being acknowledged.
        self._kind = kind
        self._run = run
        self._given = options
        self._redelivery_delay_ms = checked_delay_ms(options.get("redelivery_delay_ms"), -1)
        self.work = work
        self._owner = work.owner()
        self._engine = work.engine
        self._engine.check_open()
        self.allow_pickle = work.engine.settings.allow_pickle
        self.destination = checked_destination(destination)
        self.selector = options.get("selector") or ""
        self.subscription = options.get("subscription") or None
        self._durable, self._shared = options.get("durable", False), options.get("shared", False)
        if not is_topic(destination) and (self.subscription or self._durable or self._shared):
            raise InvalidDestinationError(
                f"{destination} is a queue, which has no subscriptions: name a topic, or leave "
                "out subscription, durable and shared",
                destination=destination,
            )
        given = options.get("prefetch")
        self.prefetch = PREFETCH_DEFAULT if given is None else given
        if not 0 <= self.prefetch <= CREDIT_MAX:
            raise IllegalStateError(f"prefetch is {shown(given)}, must be 0 to {CREDIT_MAX:,}")
        self._consumer_priority = checked_whole(
            "consumer_priority",
            options.get("consumer_priority", 0),
            CONSUMER_PRIORITY_MIN,
            CONSUMER_PRIORITY_MAX,
        )
        self.own = self._checked(options_of(options))
        self.closed = False
        # What the call under way wants, and the Get that asked for it by options that changed.
        self._wanted = self.own
        self._asked: Pending | None = None
        self.taken: list[tuple[int, DeliveredMessage]] = []
        # Up to which operation of the session all outcomes have come, as far as somebody asked.
        self._heard_through = 0

    def open(self, consumer: object) -> Steps[None]:
        """Opens the consumer at the queue manager; resolving a wait for that returns `consumer`."""
        engine = self._engine
        engine.check_usable_locked()
        yield from engine.room()
        self.work.leave_forgotten_locked()
        self.buffer = engine.protocol.open_consumer(self.destination, max(1, self.prefetch))
        try:
            pending = engine.write_locked(
                OpenConsumer,
                target=self.destination,
                consumer=self.buffer.number,
                destination=self.destination,
                selector=self.selector,
                no_local=self._given.get("no_local", False),
                subscription=self.subscription or "",
                durable=self._durable,
                shared=self._shared,
                redelivery_delay_ms=self._redelivery_delay_ms,
                consumer_priority=self._consumer_priority,
            )
        except LedgerMQError:
            self._drop_locked()
            raise
        pending.undo = self._drop_locked
        pending.result = lambda _: consumer
        yield from engine.reply(pending)

    def _drop_locked(self) -> None:
        """The queue manager has no such consumer."""
        self._engine.protocol.consumers.pop(self.buffer.number, None)

    def forget(self) -> None:
        """Whoever received from it is gone without a close; called at any moment, in any thread.

        A consumer of a topic stays: its subscription may end with it.
        """
        if not self.closed and hasattr(self, "buffer") and not is_topic(self.destination):
            leave = partial(_leave_locked, weakref.ref(self), weakref.ref(self.work))
            self.work.forgotten.append(partial(leave, self.buffer.number))

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """Around a close: if that is not on its way at the end of it, it can be done again."""
        self.closed = True
        try:
            yield
        except BaseException:
            self.closed = self.buffer.number not in self._engine.protocol.consumers
            raise

    def close(self, timeout: float | None) -> Steps[None]:
        """Closes it at the queue manager; it counts as `closed` before."""
        if self._engine.ended or self._engine.closing:
            return
        self.work.settling.write_acknowledgements_locked()
        pending = self.work.unseen.close_consumer_locked(self.buffer.number)
        yield from self._engine.reply(pending, timeout)

    def warn_of_rest(self) -> None:
        """Warns of what it leaves incomplete at its end (GRP-41, GRP-42)."""
        unfinished = self.buffer.unfinished
        if unfinished is not None:
            give_warning(
                unfinished(f"a consumer of {self.destination} was closed before the end of it")
            )

    def check_open(self) -> None:
        self._engine.check_open()
        if self.closed:
            raise IllegalStateError(CLOSED)

    def begin_locked(self, wanted: Options) -> None:
        """Begins a call that gets by these options."""
        self._engine.check_usable_locked()
        if self.closed:
            raise IllegalStateError(CLOSED)
        if self._engine.owner is not None:
            raise IllegalStateError(
                "the session has message listeners, which get its messages: take them away with "
                "set_message_listener(None), or receive in another session"
            )
        self.work.commits.check_whole_locked()
        self._engine.check_unit_of_work_locked()
        self._wanted = wanted

    def wanted(self, given: GetOptionsOfCall, under_cursor: Cursor | None) -> Options:
        """What one call asks for: the consumer's own options unless it says otherwise (GRP-34).

        Warns of a change that leaves a group or message incomplete (GRP-41, GRP-42).
        """
        wanted = self.own
        if under_cursor is not None or (given and any(one is not None for one in given.values())):
            if self.prefetch:
                raise IllegalStateError(
                    "a call can have options of its own only with prefetch=0: this consumer asks "
                    f"for up to {self.prefetch} messages ahead of need, by the options it was made "
                    "with"
                )
            if under_cursor is None:
                wanted = self._checked(options_of(self._given, given))
            else:
                if given.get("match") is not None:
                    raise IllegalStateError("give match or under_cursor, not both")
                match = GetMatch(sequence=under_cursor.cursor_on(self.destination))
                wanted = self._checked(options_of(self._given, given, {"match": match}))
        unfinished = self.buffer.unfinished
        if unfinished is not None and not wanted.logical_order:
            give_warning(
                unfinished(
                    f"a get from {self.destination} without logical order, though the group or "
                    "message that it was in with logical order is not complete"
                )
            )
        return wanted

    def _wanted_of_groups(self) -> Options:
        own = self.own
        if own.logical_order and own.all_messages_available:
            return own
        if self.prefetch:
            raise IllegalStateError(
                "receive_group needs a consumer made with prefetch=0, or with order=Order.LOGICAL "
                "and all_messages_available=True"
            )
        return self._checked(own._replace(logical_order=True, all_messages_available=True))

    def _checked(self, options: Options) -> Options:
        """Options, if the kind of session and destination allow them."""
        if options != PLAIN and is_topic(self.destination):
            raise GetOptionsError(
                "messages of a topic are in no groups, and are chosen by selectors alone",
                destination=self.destination,
            )
        if options.logical_order and self._engine.mode == "INDIVIDUAL":
            raise GetOptionsError(
                "logical order cannot be kept in an INDIVIDUAL session, where messages are "
                "acknowledged in any order; use another acknowledge mode",
                destination=self.destination,
            )
        return options

    def receive(
        self, timeout: float | None, under_cursor: Cursor | None, options: GetOptionsOfCall
    ) -> Steps[M | None]:
        """Waits for a message and hands it over; none after the time-out, or when closed."""
        if under_cursor is not None and timeout is None:
            timeout = 0.0
        return self._receive(timeout, self.wanted(options, under_cursor))

    def _receive(self, timeout: float | None, wanted: Options) -> Steps[M | None]:
        begun_ns = tracing.begun()
        self.begin_locked(wanted)
        self.buffer.put_back_gathered()
        if not (self._is_ready() or (yield from self.fill(timeout))):
            return None
        first, last, raw = self.take_locked()
        self.work.settling.hand_over_run_locked(first, last)
        if begun_ns:
            yield Outside(self._got, begun_ns, [raw])
        return self.message(raw, first)

    def receive_group(self, timeout: float | None = None) -> Steps[list[M]]:
        """See `ledgermq.Consumer.receive_group`."""
        begun_ns = tracing.begun()
        self.begin_locked(self._wanted_of_groups())
        if not (yield from self.fill(timeout, group=True)):
            return []
        self.buffer.unfinished = None
        gathered = self.taken = self.buffer.take_gathered()
        for first, raw in gathered:
            self.work.settling.hand_over_run_locked(first, first + len(further_of(raw)))
        if begun_ns:
            yield Outside(self._got, begun_ns, [raw for _, raw in gathered])
        return [self.message(raw, first) for first, raw in gathered]

    def receive_many(self, max: int, timeout: float | None = None) -> Steps[list[M]]:  # noqa: A002
        """See `ledgermq.Consumer.receive_many`."""
        if max < 1:
            raise IllegalStateError(f"max is {shown(max)}, must be at least 1")
        begun_ns, buffer = tracing.begun(), self.buffer
        self.begin_locked(self.own)
        buffer.put_back_gathered()
        if not (yield from self.fill(timeout)):
            return []
        taken = self.taken = []
        while buffer.count and len(taken) < max and not buffer.in_doubt:
            first, run = buffer.take_run(max - len(taken))
            taken.extend(enumerate(run, first))
            # What was joined comes in a run of its own.
            last = first + len(run) - 1 + len(further_of(run[-1]))
            self.work.settling.hand_over_run_locked(first, last)
            self.note_order(run[-1])
        if begun_ns:
            yield Outside(self._got, begun_ns, [raw for _, raw in taken])
        return [self.message(raw, delivery) for delivery, raw in taken]

    def _got(self, begun_ns: int, raw: list[DeliveredMessage]) -> None:
        tracing.got(begun_ns, self.destination, self.subscription, raw)

    def take_locked(self) -> Taken:
        """Takes the next message with the first and the last of its deliveries."""
        first, raw = self.buffer.take()
        self.taken = [(first, raw)]
        self.note_order(raw)
        return first, first + len(further_of(raw)), raw

    def take_back(self) -> None:
        """What was taken by a call that was interrupted before it returned goes to the next one."""
        taken, self.taken = self.taken, []
        with self._engine.lock:
            for first, raw in taken:
                self.work.settling.take_back_locked(first, first + len(further_of(raw)))
            if not (self._is_over() or self._engine.ended):
                self.buffer.put_back(taken)

    def note_order(self, raw: DeliveredMessage) -> None:
        """Remembers what a get without logical order would now leave incomplete (GRP-41)."""
        if self._wanted.logical_order:
            self.buffer.unfinished = left_open(raw)
        elif self.buffer.unfinished is not None:
            self.buffer.unfinished = None

    def message(self, raw: DeliveredMessage, delivery: int) -> M:
        return self._kind(raw, self.destination, delivery, self, allow_pickle=self.allow_pickle)

    def acknowledge(self, deliveries: range, timeout: float | None, wait: bool) -> Any:
        return self._run(self.work.acknowledge_message(deliveries, timeout, wait=wait))

    def leave_aside(self, message: Message) -> Steps[None]:
        """Settles, alone, a message that its application will not get to see."""
        return self.work.settling.acknowledge(message.deliveries, wait=False)

    def reject(self, deliveries: range, how: Rejection, timeout: float | None) -> Any:
        steps = self.work.settling.reject(self.buffer.number, deliveries, how, timeout)
        return self._run(tracing.settled("reject", len(deliveries), steps))

    def _is_ready(self) -> bool:
        """Whether a message can be taken at once, with nothing to write, as most of them can."""
        buffer = self.buffer
        if not buffer.count or buffer.due >= buffer.threshold or buffer.in_doubt:
            return False
        return buffer.expires_at == NEVER and self.work.lease.holds_locked()

    def fill(self, timeout: float | None, *, group: bool = False) -> Steps[bool]:
        """Writes what is due, then waits for a message or group; False if there is none to come."""
        buffer = self.buffer
        deadline = None if timeout is None else time.monotonic() + timeout
        # Whoever does not wait for messages does wait to learn whether those here are still its.
        sure_by = deadline if timeout != 0 else time.monotonic() + self._engine.timeout_seconds
        heard = -1
        if not (yield from self.work.settling.gone_back(deadline)):
            return False
        while True:
            yield from self.ask()
            if not (yield from self._may_hand_over(sure_by)):
                return False
            if self._is_there(group):
                return True
            if group and self._goes_on():
                continue
            gathers_until = self.work.settling.gather_locked(deadline)
            if timeout == 0 and buffer.gathered > heard and self._unheard():
                heard = buffer.gathered
                yield from self._hear()
                if self._is_over():
                    return False
                continue
            if gathers_until is not None:
                yield gathers_until
                if self._is_over():
                    return False
            elif not (yield from self._news(deadline)):
                gathered = buffer.gathered
                if (yield from self._ask_no_longer(group)):
                    return True
                if buffer.gathered == gathered or self._is_over():
                    return False
                # The group was there as a whole, so its rest is not waited for.
            self._check_usable_locked()

    def _may_hand_over(self, deadline: float | None) -> Steps[bool]:
        """Asks whether what is here is still its own, if that is not sure, and tells of a doubt.

        False: there is no answer within the time, or it was closed meanwhile.
        """
        buffer = self.buffer
        while buffer.lowest:
            if not self.work.lease.holds_locked():
                if not (yield from self._news(deadline)):
                    return False
                self._check_usable_locked()
            elif not buffer.in_doubt:
                return True
            else:
                yield from self.work.unseen.report_doubt(buffer)
                if self._is_over():
                    return False
        return True

    def _check_usable_locked(self) -> None:
        self._engine.check_usable_locked()
        # What comes while the rollback is on its way is dropped.
        if self.work.commits.stays_broken and not self._engine.protocol.withdrawals:
            self.work.commits.check_whole_locked()
        self._engine.check_unit_of_work_locked()

    def _unheard(self) -> bool:
        """Whether the session has written what may have brought messages that are on their way."""
        return self.prefetch > 0 and self._engine.protocol.next_number - 1 > self._heard_through

    def _hear(self) -> Steps[None]:
        """Waits until everything that the queue manager has for the credit granted is here.

        The reply to any operation comes behind all that those before it brought.
        """
        yield from self._engine.room()
        pending = self._engine.write_locked(Alive)
        yield from self._engine.reply(pending)
        self._heard_through = max(self._heard_through, pending.number)

    def _is_there(self, group: bool) -> bool:
        """Whether a message can be taken, or a whole group has been gathered."""
        return self.buffer.gather() if group else self.buffer.count > 0

    def _goes_on(self) -> bool:
        """Whether gathering a group can go on at once: by asking, or by telling of a doubt."""
        buffer = self.buffer
        asks = buffer.due >= buffer.threshold and not self._engine.protocol.full
        return asks or buffer.in_doubt

    def _ask_no_longer(self, group: bool) -> Steps[bool]:
        """With prefetch 0, withdraws what was asked for; True if a message crossed that."""
        engine, buffer = self._engine, self.buffer
        if self.prefetch or buffer.due or self.closed or engine.closing or engine.ended:
            return False
        pending = engine.write_locked(
            Get, target=self.destination, consumer=buffer.number, credit=0
        )
        yield from engine.reply(pending)
        self._check_asked()
        buffer.withdrawn()
        # Nobody else may have what crossed that, so the end of the call waits to learn whose it is.
        sure_by = time.monotonic() + engine.timeout_seconds
        may = yield from self._may_hand_over(sure_by)
        return may and not self._is_over() and self._is_there(group)

    def _news(self, deadline: float | None) -> Steps[bool]:
        """Waits for news of the session; False where nobody is to wait, or not any longer."""
        return not self._is_over() and (yield deadline) and not self._is_over()

    def _is_over(self) -> bool:
        """Whether it was closed, perhaps by another thread while this one waited."""
        return self.closed or self._engine.closing or self._engine.leaving

    def ask(self) -> Steps[None]:
        """Asks for as many messages as were taken since the last time, once that pays."""
        engine, buffer = self._engine, self.buffer
        self.work.unseen.give_back_expired_locked(buffer)
        if self.work.settling.refused:
            try:
                yield from self.work.settling.repair()
            except DeliveryUnknownError as error:
                engine.defer_locked(error)
        if self._asked is not None:
            self._check_asked()
        if engine.protocol.full:
            return
        changes = self._wanted != buffer.options
        if changes and not buffer.due and not buffer.count:
            # A call that was interrupted has left its request standing.
            self._ask_for(0)
            buffer.withdrawn()
        if buffer.due >= buffer.threshold:
            self.work.settling.write_acknowledgements_locked()
            if changes:
                self._ask_with_options()
            else:
                self._ask_for(buffer.grant())

    def _ask_for(self, credit: int) -> None:
        try:
            self._engine.write_locked(
                Get,
                on_settled=self._engine.defer_refusal,
                target=self.destination,
                consumer=self.buffer.number,
                credit=credit,
            )
        except LedgerMQError:
            self.buffer.due += credit
            raise

    def _ask_with_options(self) -> None:
        """Asks by other options than before; whoever waits for the message hears of a refusal."""
        buffer, before = self.buffer, self.buffer.options
        credit = buffer.grant()
        buffer.options = self._wanted
        try:
            pending = self._engine.write_locked(
                Get,
                target=self.destination,
                consumer=buffer.number,
                credit=credit,
                options=buffer.options.record(),
            )
        except LedgerMQError:
            buffer.refused(before, credit)
            raise
        pending.undo = partial(buffer.refused, before, credit)
        self._asked = pending

    def _check_asked(self) -> None:
        asked = self._asked
        if asked is not None and asked.settled:
            self._asked = None
            self._engine.reply_of(asked)


def _leave_locked(
    getter: Callable[[], Getter[Any] | None], work: Callable[[], Work | None], number: int
) -> None:
    """Closes a consumer, unless a listener goes on with it; what waits for this keeps neither."""
    one, of = getter(), work()
    if of is None or (one is not None and (one.closed or of.listening.get(one) is not None)):
        return
    if number in of.engine.protocol.consumers:
        of.unseen.close_consumer_locked(number)
    if one is not None:
        one.closed = True


class OfConsumer:
    """What a consumer says of itself, to threads and to coroutines; nothing of it can be set."""

    __slots__ = ("__weakref__", "_shared")

    _shared: Getter[Any]

    destination = WhileOpen[str]("_shared.destination")
    selector = WhileOpen[str]("_shared.selector")
    subscription = WhileOpen["str | None"]("_shared.subscription")
    prefetch = WhileOpen[int]("_shared.prefetch")

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by itself or with its session."""
        return self._shared.closed or self._shared.work.is_closed

    def _check_open(self) -> None:
        self._shared.check_open()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        return f"Consumer({self._shared.destination}, {state})"

    def __del__(self) -> None:
        # It may have been refused before it had any.
        if hasattr(self, "_shared"):
            self._shared.forget()
