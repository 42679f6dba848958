"""How a producer puts: plain sends, groups and segments (GRP-19, GRP-30, GRP-39..43)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sized
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, Unpack

from ledgermq.client.arguments import check_flag
from ledgermq.client.closing import SetWhileOpen, Uncopied, WhileOpen
from ledgermq.client.destinations import checked_destination, is_topic
from ledgermq.client.engine.outgoing import Batch
from ledgermq.client.engine.steps import Steps, aside
from ledgermq.client.engine.work import Work
from ledgermq.client.link.transport import LogReceipt
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.options import USUAL, MessageOptions, ProducerOptions, SendOptions
from ledgermq.client.sending.grouping import GroupPlace, PutState, left_open
from ledgermq.client.sending.making import Sending, checked_priority, checked_timing, make_message
from ledgermq.client.sending.putting import Grouping, Putting
from ledgermq.client.sending.receipts import ReceiptFuture, SendReceipt, settle
from ledgermq.client.settings import checked_whole
from ledgermq.client.tracing import sent
from ledgermq.errors import IllegalStateError, OutcomeUnknownError, QueueNotFoundError
from ledgermq.errors.shown import shown
from ledgermq.errors.warnings import give_warning
from ledgermq.protocol.limits import (
    CONTENT_BYTES_MAX,
    DEDUPLICATION_ID_CHARACTERS_MAX,
    REDELIVERY_LIMIT_MAX,
)
from ledgermq.protocol.operations import PutMessage

CLOSED: Final = "the producer is closed; make another one"
# What a unit of work has is there at once.
TAKEN_IN: Final[Future[None]] = Future()
settle(TAKEN_IN)


class Putter:
    """The puts of one producer, for threads and coroutines.

    Attributes:
        states: By destination; empty as long as nothing was put to a group, so that plain sends
            stay plain.
    """

    redelivery_limit: int
    priority: int
    persistent: bool
    time_to_live: float
    delivery_delay: float

    def __init__(self, work: Work, destination: str | None, options: ProducerOptions) -> None:
        self.work = work
        self._owner = work.owner()
        self.engine = work.engine
        self.engine.check_open()
        self.destination = None if destination is None else checked_destination(destination)
        given = options.get("redelivery_limit")
        limit = self.engine.settings.redelivery_limit if given is None else given
        self.set("redelivery_limit", limit)
        for name in ("priority", "persistent", "time_to_live", "delivery_delay"):
            self.set(name, options.get(name, USUAL[name]))
        self.states: dict[str, PutState] = {}
        self._closed = False
        self._bytes_max: dict[str, int] = {}
        with self.engine.lock:
            self.engine.check_usable_locked()

    def set(self, name: str, value: Any) -> None:
        """Sets what its messages have that do not say otherwise; refused here, not at a send."""
        if name == "redelivery_limit":
            value = checked_whole(name, value, -1, REDELIVERY_LIMIT_MAX)
        elif name == "priority":
            value = checked_priority(value, self.destination)
        elif name == "persistent":
            check_flag(name, value)
        else:
            value = checked_timing(name, value, self.destination)
        setattr(self, name, value)

    def check_open(self) -> None:
        self.engine.check_open()
        if self._closed:
            raise IllegalStateError(CLOSED)

    def check_locked(self) -> None:
        self.engine.check_usable_locked()
        if self._closed:
            raise IllegalStateError(CLOSED)
        self.engine.check_unit_of_work_locked()

    def target(self, destination: str | None) -> str:
        """Where one message goes: the producer's destination, or the one given along."""
        if self.destination is None and destination is not None:
            return checked_destination(destination)
        if self.destination is None:
            raise IllegalStateError(
                "this producer has no destination: name one, as in send(body, "
                'destination="queue:orders")'
            )
        if destination not in (None, self.destination):
            raise IllegalStateError(
                f"this producer sends to {self.destination}, not to {shown(destination)}: use a "
                "producer made without a destination",
                destination=self.destination,
            )
        return self.destination

    def sending(self, options: MessageOptions) -> Sending:
        """What is said of a message, and the producer's own where nothing is."""
        priority, persistent = options.get("priority"), options.get("persistent")
        time_to_live, delivery_delay = options.get("time_to_live"), options.get("delivery_delay")
        reply_to = options.get("reply_to")
        if reply_to is not None:
            checked_destination(reply_to)
        return Sending(
            options.get("properties"),
            options.get("correlation_id"),
            reply_to,
            options.get("type"),
            self.priority if priority is None else priority,
            self.persistent if persistent is None else persistent,
            self.time_to_live if time_to_live is None else time_to_live,
            self.delivery_delay if delivery_delay is None else delivery_delay,
            self.redelivery_limit,
        )

    def send(
        self, body: Sendable, *, timeout: float | None = None, **options: Unpack[SendOptions]
    ) -> Steps[SendReceipt]:
        """See `ledgermq.Producer.send`."""
        return self.send_one(body, timeout, options)

    def send_one(
        self, body: Sendable, timeout: float | None, options: SendOptions, *, landing: bool = False
    ) -> Steps[SendReceipt]:
        """Sends one message: into the unit of work, or else its outcome is waited for.

        `landing`: only that it is on the log is waited for.
        """
        target = options.get("destination") or self.destination
        return sent(target, lambda: self._send_one(body, timeout, options, landing))

    def _send_one(
        self, body: Sendable, timeout: float | None, options: SendOptions, landing: bool
    ) -> Steps[SendReceipt]:
        if not self._is_plain(options):
            return self._put_one(body, timeout, options)
        target, message = self._made(body, options)
        name = _checked_id(options, target)
        if self.work.transacted:
            return self._join(target, message, name)
        return (self._land if landing else self._send)(target, message, timeout, name)

    def _is_plain(self, options: SendOptions) -> bool:
        """Whether nothing is said of groups or segments."""
        return not self.states and not (
            options
            and (
                options.get("group") is not None
                or options.get("logical_order")
                or options.get("segmentation_allowed")
            )
        )

    def _made(self, body: Sendable, options: SendOptions) -> tuple[str, PutMessage]:
        """Where a message goes, and it; without the lock, as a large body takes its time."""
        target = self.target(options.get("destination"))
        return target, make_message(target, body, self.sending(options))

    def _join(self, target: str, message: PutMessage, name: str | None) -> Steps[SendReceipt]:
        self.check_locked()
        return (yield from self.work.commits.join(target, message, name))

    def _send(
        self, target: str, message: PutMessage, timeout: float | None, name: str | None
    ) -> Steps[SendReceipt]:
        self.check_locked()
        self.work.sends.write_locked()
        yield from self.engine.room(timeout)
        batch = Batch(target, name)
        batch.add(message, 1)
        # What the session received may be what leaves room for this.
        self.work.settling.write_locked()
        pending = self.engine.put_locked(
            target, batch.messages, deduplication_id=name, timeout_seconds=timeout
        )
        pending.result = batch.answered
        return batch.answered((yield from self.engine.reply(pending, timeout)))

    def _land(
        self, target: str, message: PutMessage, timeout: float | None, name: str | None
    ) -> Steps[SendReceipt]:
        self.check_locked()
        self.work.sends.write_locked()
        yield from self.engine.room(timeout)
        landed = LogReceipt()
        self.engine.put_locked(
            target,
            [message],
            deduplication_id=name,
            receipt=landed,
            on_settled=self.engine.defer_refusal,
        )
        wanted = self.engine.timeout_seconds if timeout is None else timeout
        is_there = yield from aside(lambda: self.engine.transport.wait_landed(landed, wanted))
        if not is_there or landed.error is not None:
            raise OutcomeUnknownError(
                f"message {message['message_id'].hex()} to {target} was not confirmed by "
                f"the log within {wanted:g} s ({landed.error or 'no answer'}): it may be there, or "
                "may yet be; do not send it again before its id is known not to be in the queue",
                destination=target,
            )
        receipt = SendReceipt(message["message_id"], target)
        receipt.position = landed.position
        return receipt

    def send_async(self, body: Sendable, options: SendOptions) -> Steps[ReceiptFuture[SendReceipt]]:
        """Sends one message; its outcome is waited for by the future."""
        if not self._is_plain(options):
            return self._put_async(body, options)
        target, message = self._made(body, options)
        return self._send_async(target, message, _checked_id(options, target))

    def _send_async(
        self, target: str, message: PutMessage, name: str | None
    ) -> Steps[ReceiptFuture[SendReceipt]]:
        if self.work.transacted:
            outcome, receipt = TAKEN_IN, (yield from self._join(target, message, name))
        else:
            self.check_locked()
            while (sent := self.work.sends.add_locked(target, message, name)) is None:
                yield from self.engine.room()
                self.check_locked()
            outcome, receipt = sent
        return ReceiptFuture(outcome, lambda: receipt, self.engine.callbacks)

    @contextlib.contextmanager
    def counting(self, sent: Sized) -> Iterator[None]:
        """Around the sends of many bodies: what ends them has a note of how many were sent.

        To encode all before the first is sent would hold them all in memory, while nothing is sent.
        """
        try:
            yield
        except Exception as error:
            where = "in the unit of work" if self.work.transacted else "sent all the same"
            error.add_note(f"send_many: bodies before this that are {where}: {len(sent):,}")
            raise

    def flush(self, *, timeout: float | None = None) -> Steps[None]:
        """Waits until everything this session sent so far has its outcome.

        In a transacted session that is: until it stands in the unit of work, uncommitted.
        `timeout` is in seconds; None: the connection's time-out.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.
            SessionLostError, LedgerMQError: see `Session.flush`.
        """
        self.check_locked()
        if self.work.transacted:
            yield from self.work.flush(timeout=timeout)
            return
        wanted = self.engine.timeout_seconds if timeout is None else timeout
        deadline = time.monotonic() + wanted
        self.work.sends.write_locked()
        unfinished = list(self.work.sends.unfinished)
        while not all(one.done() for one in unfinished):
            if not (yield deadline):
                raise OutcomeUnknownError(
                    f"not all messages of this session had an outcome within {wanted:g} s; their "
                    "futures go on waiting",
                    destination=self.destination,
                )
        failure = next((error for one in unfinished if (error := one.exception())), None)
        if failure is not None and self.engine.lost is not None:
            raise failure

    def _said(self, options: SendOptions) -> tuple[str, Sending, Grouping]:
        if options.get("deduplication_id") is not None:
            raise IllegalStateError(
                "a deduplication id is for a message in no group that is not cut into segments, "
                "of a producer that put no group before: use another producer for it",
                destination=options.get("destination") or self.destination,
            )
        grouping = Grouping(
            options.get("group"),
            options.get("logical_order", False),
            options.get("segmentation_allowed", False),
        )
        return self.target(options.get("destination")), self.sending(options), grouping

    def _put_one(
        self, body: Sendable, timeout: float | None, options: SendOptions
    ) -> Steps[SendReceipt]:
        return (yield from self.put(body, *self._said(options), timeout))[0]

    def send_segmented(
        self,
        body: Sendable,
        *,
        max_segment: int,
        destination: str | None = None,
        group: GroupPlace | None = None,
        logical_order: bool = False,
        timeout: float | None = None,
        **options: Unpack[MessageOptions],
    ) -> Steps[list[SendReceipt]]:
        """Sends text or bytes in segments of at most `max_segment` bytes each (of text: UTF-8).

        Each segment is a message of its own with its piece as body, and carries properties,
        correlation_id, type and reply_to; text is cut between characters. A getter puts them
        together again with `complete_message=True`. A body that is short enough is one message
        without segments. The other options are those of `send`.

        In a transacted session all are put together with the commit. Otherwise so is what goes
        into one operation, of up to 4 MiB; a larger message is put one operation after the other.

        Returns:
            The receipts of the segments, in their order.

        Raises:
            IllegalStateError: `max_segment` is below 1.
            MessageFormatError: another kind of body, or a character larger than a segment.
            MessageTooLargeError: the queue takes no message as large as a segment.
            GroupNotAllowedError: the destination is a topic (GRP-45).
            LedgerMQError: what `send` raises; segments in earlier operations stay put.
        """
        grouping = Grouping(group, logical_order, max_segment=max_segment)
        target, sending = self.target(destination), self.sending(options)
        return sent(target, lambda: self.put(body, target, sending, grouping, timeout), len)

    def put(
        self,
        body: Sendable,
        target: str,
        sending: Sending,
        grouping: Grouping,
        timeout: float | None,
    ) -> Steps[list[SendReceipt]]:
        putting = yield from self._putting(body, target, sending, grouping)
        while True:
            self.check_locked()
            yield from self.engine.room(timeout)
            pending = yield from putting.begin(timeout)
            if pending is None:
                return putting.finished()
            try:
                reply = yield from self.engine.reply(pending, timeout)
            except BaseException:
                putting.failed(pending)
                raise
            assert pending.result is not None, "a put knows what its reply means"
            pending.result(reply)

    def _put_async(self, body: Sendable, options: SendOptions) -> Steps[ReceiptFuture[SendReceipt]]:
        putting = yield from self._putting(body, *self._said(options))
        self.check_locked()
        return putting.future((yield from putting.write_async()))

    def _putting(
        self, body: Sendable, target: str, sending: Sending, grouping: Grouping
    ) -> Steps[Putting]:
        if grouping.segmentation_allowed and not is_topic(target):
            grouping = grouping._replace(bytes_max=(yield from self._learn_bytes_max(target)))
        make = partial(Putting, self.work, self.states, target, body, sending, grouping)
        if grouping.bytes_max is None and grouping.max_segment is None:
            return make()
        # A large body takes its time, for which the lock is not held.
        return (yield from aside(make))

    def _learn_bytes_max(self, target: str) -> Steps[int]:
        """Largest content that a queue takes, in bytes; asked once, then remembered."""
        known = self._bytes_max.get(target)
        if known is not None:
            return known
        ask = partial(self.work.services.questions.bytes_max_of, target.partition(":")[2])
        try:
            found = (yield from aside(ask)) or CONTENT_BYTES_MAX
        except QueueNotFoundError:
            return CONTENT_BYTES_MAX  # the send may create it; it is asked again then
        self._bytes_max[target] = found
        return found

    def close(self) -> None:
        """Ends it; warns of what logical order left open (GRP-41, GRP-42)."""
        self._closed = True
        states, self.states = self.states, {}
        for destination, state in states.items():
            state.settle()
            current = state.current
            if current is not None and current["logical_order"]:
                warning = left_open(current, f"a producer of {destination} was closed")
                if warning is not None:
                    give_warning(warning)


class OfProducer(Uncopied):
    """What a producer says of itself, to threads and to coroutines.

    It has nothing else that could be set: a misspelled setting is an AttributeError.
    """

    __slots__ = ("__weakref__", "_shared")

    _shared: Putter

    destination = WhileOpen["str | None"]("_shared.destination")
    priority = SetWhileOpen[int]("_shared.priority")
    persistent = SetWhileOpen[bool]("_shared.persistent")
    time_to_live = SetWhileOpen[float]("_shared.time_to_live")
    delivery_delay = SetWhileOpen[float]("_shared.delivery_delay")
    redelivery_limit = SetWhileOpen[int]("_shared.redelivery_limit")

    def _check_open(self) -> None:
        self._shared.check_open()

    def __repr__(self) -> str:
        return f"Producer({self._shared.destination or 'each send names its destination'})"


def _checked_id(options: SendOptions, target: str) -> str | None:
    """The deduplication id, if a send may have it."""
    name = options.get("deduplication_id") if options else None
    if name is None:
        return None
    if not 1 <= len(name) <= DEDUPLICATION_ID_CHARACTERS_MAX:
        raise IllegalStateError(
            f"deduplication_id is {shown(name)}, it has 1 to {DEDUPLICATION_ID_CHARACTERS_MAX} "
            "characters",
            destination=target,
        )
    return name
