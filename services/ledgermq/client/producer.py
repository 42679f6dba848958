"""Producers: send messages to one destination."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_flag, check_seconds, shown
from ledgermq.client.destinations import checked_destination
from ledgermq.client.group_putting import GroupPutting
from ledgermq.client.grouping import GroupPlace, PutState
from ledgermq.client.making import Sending
from ledgermq.client.message_kinds import Sendable
from ledgermq.client.outgoing import Batch
from ledgermq.client.protocol import Pending
from ledgermq.client.putting import Grouping
from ledgermq.client.receipts import Eventual, ReceiptFuture, SendReceipt, wait_all
from ledgermq.client.settings import is_whole
from ledgermq.client.transport import LogReceipt
from ledgermq.client.while_open import WhileOpen
from ledgermq.errors import IllegalStateError, OutcomeUnknownError
from ledgermq.protocol.limits import REDELIVERY_LIMIT_MAX
from ledgermq.protocol.operations import PutMessage
from ledgermq.protocol.outcomes import Enqueued, Reply
from ledgermq.wire.content import PropertyValue

if TYPE_CHECKING:
    from ledgermq.client.session import Session

__all__ = ["Producer"]


@typed
class Producer(GroupPutting):
    """Made by `session.producer(destination)`; writes nothing by itself.

    Attributes:
        destination: Where it sends to; None if each message says so.
        priority: Of messages that do not say otherwise, as the next three.
        persistent: Delivery mode.
        time_to_live: Seconds from the send to the message's end; 0: it never expires.
        delivery_delay: Seconds from the send before which it is not delivered; 0: none.
        redelivery_limit: How often its messages are redelivered at most; -1: no limit.

    The sends' `group` places a message in a group, or as a segment of a message; the receipt's
    `group` tells the place. With `logical_order` the producer counts, and refuses what does not
    come next: IncompleteGroupError, IncompleteMessageError (GRP-41, GRP-42). A message without it
    in between is sent, with a warning. Places that no message can have raise InvalidGroupError,
    those that the queue's messages forbid GroupClashError, topics GroupNotAllowedError (GRP-45), a
    group put partly in units of work InconsistentUnitOfWorkError, or a warning without
    `logical_order` (GRP-43). In a unit of work the commit says so.

    `segmentation_allowed` cuts text and bytes that the queue takes no message of into segments, as
    `send_segmented` does; the receipt is that of the first. How much it takes is asked for once.
    """

    destination = WhileOpen["str | None"]()
    priority = WhileOpen[int]()
    persistent = WhileOpen[bool]()
    time_to_live = WhileOpen[float]()
    delivery_delay = WhileOpen[float]()
    redelivery_limit = WhileOpen[int]()

    def __init__(
        self,
        session: Session,
        destination: str | None,
        *,
        priority: int = 4,
        persistent: bool = True,
        time_to_live: float = 0,
        delivery_delay: float = 0,
        redelivery_limit: int | None = None,
    ) -> None:
        self._session = session
        session._core.check_open()
        limit = session._core.redelivery_limit if redelivery_limit is None else redelivery_limit
        if not is_whole(limit, -1, REDELIVERY_LIMIT_MAX):
            raise IllegalStateError(
                f"redelivery_limit is {limit!r}, must be -1 to {REDELIVERY_LIMIT_MAX}"
            )
        self._redelivery_limit = limit
        check_flag("persistent", persistent)
        self._priority = priority
        self._persistent = persistent
        self._time_to_live = time_to_live
        self._delivery_delay = delivery_delay
        self._core = session._core
        self._destination = None if destination is None else checked_destination(destination)
        self._closed = False
        self._states: dict[str, PutState] = {}
        self._bytes_max: dict[str, int] = {}
        with self._core.lock:
            self._core.check_usable_locked()

    def send(
        self,
        body: Sendable,
        *,
        destination: str | None = None,
        properties: Mapping[str, PropertyValue] | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        type: str | None = None,  # noqa: A002 - the name that the message's field has
        priority: int | None = None,
        persistent: bool | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
        group: GroupPlace | None = None,
        logical_order: bool = False,
        segmentation_allowed: bool = False,
        timeout: float | None = None,
        confirm: Literal["outcome", "log"] = "outcome",
    ) -> SendReceipt:
        """Sends one message: dict (map message), str (text), bytes, StreamBody, ObjectBody or None.

        A TextMessage, MapMessage, ... or one that was received is sent with its body, properties,
        correlation_id, reply_to and type, save those given here; it is a new message each time.

        In a transacted session it joins the unit of work, pending for others to see within a second
        or so (INF-02); the receipt learns position and sequence number when that commits. Otherwise
        it waits until the queue manager has numbered the message, or with `confirm="log"` until it
        is durable on the log (its outcome is certain then, and a refusal is raised by the session's
        next call). `destination` is for a producer that has none of its own. `time_to_live` and
        `delivery_delay` are seconds from now, also in a unit of work (SES-66).

        For `group`, `logical_order` and `segmentation_allowed` see the class.

        Raises:
            IllegalStateError: the producer has a destination and another was given, or neither.
            MessageFormatError: something in the message cannot be carried; nothing was sent.
            MessageTooLargeError: over the size limit; nothing was sent.
            QueueNotFoundError: no such queue, and queues are not created on first use.
            QuotaExceededError: no room within the send time-out, and no trace of it (INF-20).
            OutcomeUnknownError: no outcome within the time-out.
        """
        _check_call(timeout, confirm)
        target = self._target(destination)
        sending = self._sending(
            properties,
            correlation_id,
            reply_to,
            type,
            priority,
            persistent,
            time_to_live,
            delivery_delay,
        )
        if group is not None or logical_order or segmentation_allowed or self._states:
            grouping = Grouping(group, logical_order, segmentation_allowed)
            return self._put(body, destination, sending, grouping, timeout)[0]
        message = self._session._maker.make(target, body, sending)
        core = self._core
        with core.lock:
            self._check_locked()
            if self._session._transacted:
                return self._session._unit.add_locked(target, message)
            self._session._sends.write_locked()
            core.wait_for_room_locked(timeout)
            if confirm == "outcome":
                batch, pending = self._write_locked(target, message, timeout)
                return _numbered(batch, core.await_locked(pending, timeout))
            landed = self._write_landing_locked(target, message)
        return self._await_log(target, landed, message, timeout)

    def _sending(
        self,
        properties: Mapping[str, PropertyValue] | None,
        correlation_id: str | None,
        reply_to: str | None,
        type_: str | None,
        priority: int | None,
        persistent: bool | None,
        time_to_live: float | None,
        delivery_delay: float | None,
    ) -> Sending:
        """What was told of a message, and the producer's own where nothing was."""
        return Sending(
            properties,
            correlation_id,
            reply_to,
            type_,
            self._priority if priority is None else priority,
            self._persistent if persistent is None else persistent,
            self._time_to_live if time_to_live is None else time_to_live,
            self._delivery_delay if delivery_delay is None else delivery_delay,
            self._redelivery_limit,
        )

    def _target(self, destination: str | None) -> str:
        """Where one message goes: the producer's destination, or the one given along."""
        if self._destination is None and destination is not None:
            return checked_destination(destination)
        if self._destination is None:
            raise IllegalStateError(
                "this producer has no destination: name one, as in send(body, "
                'destination="queue:orders")'
            )
        if destination not in (None, self._destination):
            raise IllegalStateError(
                f"this producer sends to {self._destination}, not to {destination}: use a producer "
                "made without a destination",
                destination=self._destination,
            )
        return self._destination

    def _write_locked(
        self, target: str, message: PutMessage, timeout: float | None
    ) -> tuple[Batch, Pending]:
        """Writes one message; the pending operation's result makes a receipt of its reply."""
        batch = Batch(target, None)
        batch.add(message)
        # What the session received may be what leaves room for this.
        self._session._settling.write_locked()
        pending = self._core.put_locked(target, batch.messages, timeout_seconds=timeout)
        pending.result = partial(_numbered, batch)
        return batch, pending

    def _start(
        self,
        body: Sendable,
        destination: str | None,
        sending: Sending,
        timeout: float | None,
    ) -> Pending | SendReceipt:
        """Writes one message and does not wait; its receipt, if a unit of work has it now."""
        target = self._target(destination)
        message = self._session._maker.make(target, body, sending)
        with self._core.lock:
            self._check_locked()
            if self._session._transacted:
                return self._session._unit.add_locked(target, message)
            self._session._sends.write_locked()
            return self._write_locked(target, message, timeout)[1]

    def _write_landing_locked(self, target: str, message: PutMessage) -> LogReceipt:
        """Writes one message whose outcome nobody waits for, only that it is on the log."""
        landed = LogReceipt()
        self._core.put_locked(
            target, [message], receipt=landed, on_settled=self._core.defer_refusal
        )
        return landed

    def _await_log(
        self, target: str, landed: LogReceipt, message: PutMessage, timeout: float | None
    ) -> SendReceipt:
        wanted = self._core.timeout_seconds if timeout is None else timeout
        if not self._core.transport.wait_landed(landed, wanted) or landed.error is not None:
            raise OutcomeUnknownError(
                f"message {message['message_id'].hex()} to {target} was not confirmed by "
                f"the log within {wanted:g} s ({landed.error or 'no answer'}): it may be there, or "
                "may yet be; do not send it again before its id is known not to be in the queue",
                destination=target,
            )
        receipt = SendReceipt(message["message_id"], target)
        receipt.position = landed.position
        return receipt

    def send_async(
        self,
        body: Sendable,
        *,
        destination: str | None = None,
        properties: Mapping[str, PropertyValue] | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        type: str | None = None,  # noqa: A002 - the name that the message's field has
        priority: int | None = None,
        persistent: bool | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
        group: GroupPlace | None = None,
        logical_order: bool = False,
        segmentation_allowed: bool = False,
    ) -> ReceiptFuture[SendReceipt]:
        """Sends without waiting for the outcome; the future has it. For throughput.

        Messages arrive in the order sent. What is sent while earlier ones are on their way is
        gathered into one operation. Blocks while too much is unanswered. In a transacted session
        this is `send`, and the future is done at once.

        Raises:
            MessageFormatError: something in the message cannot be carried; nothing was sent.
            MessageTooLargeError: over the size limit; nothing was sent.
        """
        target = self._target(destination)
        sending = self._sending(
            properties,
            correlation_id,
            reply_to,
            type,
            priority,
            persistent,
            time_to_live,
            delivery_delay,
        )
        if group is not None or logical_order or segmentation_allowed or self._states:
            grouping = Grouping(group, logical_order, segmentation_allowed)
            return self._put_async(body, destination, sending, grouping)
        message = self._session._maker.make(target, body, sending)
        with self._core.lock:
            self._check_locked()
            if self._session._transacted:
                receipt = self._session._unit.add_locked(target, message)
                eventual = Eventual()
                eventual.happen()
            else:
                eventual, receipt = self._session._sends.add_locked(target, message)
        return ReceiptFuture(eventual, lambda: receipt, self._core.callbacks)

    def send_many(
        self,
        bodies: Iterable[Sendable],
        *,
        destination: str | None = None,
        timeout: float | None = None,
    ) -> list[SendReceipt]:
        """Sends many bodies, batched, and waits for all outcomes.

        Raises:
            LedgerMQError: the first failure, after all have their outcomes; use `send_async` to
                know the outcome of each.
        """
        check_seconds("timeout", timeout)
        futures = [self.send_async(body, destination=destination) for body in bodies]
        if not self._session._transacted:
            self.flush(timeout=timeout)
        return [future.result(0) for future in futures]

    def flush(self, *, timeout: float | None = None) -> None:
        """Waits until everything this session sent so far has its outcome.

        In a transacted session that is: until it stands in the unit of work, uncommitted.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.
        """
        check_seconds("timeout", timeout)
        core = self._core
        wanted = core.timeout_seconds if timeout is None else timeout
        with core.lock:
            self._check_locked()
        if self._session._transacted:
            self._session.flush(timeout=timeout)
            return
        with core.lock:
            self._session._sends.write_locked()
            unfinished = list(self._session._sends.unfinished)
        if not wait_all(unfinished, wanted):
            raise OutcomeUnknownError(
                f"not all messages of this session had an outcome within {wanted:g} s; their "
                "futures go on waiting",
                destination=self._destination,
            )

    def _check_open(self) -> None:
        self._core.check_open()
        if self._closed:
            raise IllegalStateError("the producer is closed; make another one")

    def _check_locked(self) -> None:
        self._core.check_usable_locked()
        if self._closed:
            raise IllegalStateError("the producer is closed; make another one")

    def close(self) -> None:
        """Ends it; what was sent stays sent. Closing twice does nothing.

        Warns (IncompleteGroupWarning, IncompleteMessageWarning) of a group that was put with
        `logical_order` and did not get its last message (GRP-41, GRP-42).
        """
        self._closed = True
        if self._states:
            self._warn_of_open_groups()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check_call(timeout: float | None, confirm: str) -> None:
    check_seconds("timeout", timeout)
    if confirm not in ("outcome", "log"):
        raise IllegalStateError(f'confirm is {shown(confirm)}, must be "outcome" or "log"')


def _numbered(batch: Batch, reply: Reply) -> SendReceipt:
    assert isinstance(reply, Enqueued), "a Put outside a unit of work is answered by Enqueued"
    batch.number(reply)
    return batch.receipts[0]
