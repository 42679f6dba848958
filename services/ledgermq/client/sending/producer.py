"""Producers: send messages to one destination."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Unpack

from ledgermq.client.argument_types import typed
from ledgermq.client.closing import Closing
from ledgermq.client.engine.steps import taken
from ledgermq.client.engine.work import Work
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.options import ProducerOptions, SendOptions
from ledgermq.client.sending.group_sender import GroupSender
from ledgermq.client.sending.making import check_bodies
from ledgermq.client.sending.putter import OfProducer, Putter
from ledgermq.client.sending.receipts import ReceiptFuture, SendReceipt
from ledgermq.client.tracing import sending_batch, sent
from ledgermq.errors import IllegalStateError
from ledgermq.errors.shown import shown


@typed
class Producer(OfProducer, Closing):
    """Made by `session.producer(destination)`; closing its session ends it too (SES-27).

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

    __slots__ = ("_engine",)

    def __init__(
        self, work: Work, destination: str | None, **options: Unpack[ProducerOptions]
    ) -> None:
        self._shared = Putter(work, destination, options)
        self._engine = work.engine

    def send(
        self,
        body: Sendable,
        *,
        timeout: float | None = None,
        confirm: Literal["outcome", "log"] = "outcome",
        **options: Unpack[SendOptions],
    ) -> SendReceipt:
        """Sends one message: dict (map message), str (text), bytes, StreamBody, ObjectBody or None.

        A TextMessage, MapMessage, ... or one that was received is sent with its body, properties,
        correlation_id, reply_to and type, save those given here; it is a new message each time.

        In a transacted session it joins the unit of work, pending for others to see within a second
        or so (INF-02); the receipt has a sequence number when that has committed (SEQ-04), and what
        the queue manager refuses is raised by `commit` or `flush`. Otherwise it waits until the
        queue manager has numbered the message (SEQ-05).

        Args:
            body: What is sent.
            timeout: Seconds to wait for the outcome; None: the connection's time-out.
            confirm: "log" waits only until the message is durable on the log: its outcome is
                certain then, a refusal is raised by the session's next call, and the receipt never
                has a sequence number.
            destination: For a producer that has none of its own.
            properties: Names and values, for selectors and receivers.
            correlation_id: Links the message to another.
            reply_to: Destination for a reply.
            type: The sender's name for the kind of message.
            priority: 0 (lowest) to 9; None, as with the next three: as the producer has it.
            persistent: Delivery mode.
            time_to_live: Seconds from now, also in a unit of work (SES-66); 0: for ever.
            delivery_delay: Seconds from now before which it is not delivered; 0: none.
            deduplication_id: 1 to 128 characters. A destination that has a deduplication window
                takes a message once: sent again under that id, it vanishes, and the receipt says
                `duplicate`, unless it waited for the log only; in a transacted session commit
                raises DuplicatePutError. A destination without a window refuses it (RefusedError).
            group, logical_order, segmentation_allowed: See the class.

        Raises:
            IllegalStateError: the producer has a destination and another was given, or neither.
            InvalidDestinationError: `destination` or `reply_to` is no destination.
            MessageFormatError: something in the message cannot be carried; nothing was sent.
            MessageTooLargeError: over the size limit; nothing was sent.
            QueueNotFoundError, TopicNotFoundError: there is no such destination, and none is
                created on first use.
            PutsDisabledError: puts to it are disabled.
            QuotaExceededError: no room within the send time-out, and no trace of it (INF-20).
            StorageFullError, TransactionTooLargeError: no segment has room for it, or can have
                (DB-20, DB-09).
            TransactionRolledBackError: a time limit ended the unit of work; roll back.
            OutcomeUnknownError: no outcome within the time-out.
        """
        if confirm not in ("outcome", "log"):
            raise IllegalStateError(f'confirm is {shown(confirm)}, must be "outcome" or "log"')
        landing = confirm == "log"
        return self._engine.run(self._shared.send_one(body, timeout, options, landing=landing))

    def send_async(
        self, body: Sendable, **options: Unpack[SendOptions]
    ) -> ReceiptFuture[SendReceipt]:
        """Sends without waiting for the outcome; the future has it. For throughput.

        Messages arrive in the order sent. What is sent while earlier ones are on their way is
        gathered into one operation. Blocks while too much is unanswered. In a transacted session
        this is `send`, and the future is done at once. The options are those of `send`; what the
        queue manager refuses is raised by the future.

        Raises:
            MessageFormatError: something in the message cannot be carried; nothing was sent.
            MessageTooLargeError: over the size limit; nothing was sent.
            OutcomeUnknownError: too much was unanswered for the connection's time-out; nothing was
                sent.
        """
        target = options.get("destination") or self._shared.destination
        return self._engine.run(sent(target, lambda: self._shared.send_async(body, options)))

    def send_many(
        self,
        bodies: Iterable[Sendable],
        *,
        destination: str | None = None,
        timeout: float | None = None,
    ) -> list[SendReceipt]:
        """Sends many bodies, batched, and waits for all outcomes, `timeout` seconds together.

        In a transacted session they join the unit of work, and nothing is waited for.

        Returns:
            The receipts, in the order of the bodies.

        Raises:
            MessageFormatError, MessageTooLargeError: a body cannot be sent. Those before it were,
                or are in the unit of work; how many they are, a note of the error says. So has what
                `bodies` itself raises.
            LedgerMQError: the first failure, after all have their outcomes; use `send_async` to
                know the outcome of each.
        """
        check_bodies(bodies)
        futures: list[ReceiptFuture[SendReceipt]] = []
        with sending_batch(destination or self._shared.destination, futures):
            with self._shared.counting(futures):
                for body in bodies:
                    # One by one, so that those before a failure are counted.
                    future = self.send_async(body, destination=destination)
                    futures.append(future)
            if not self._shared.work.transacted:
                self.flush(timeout=timeout)
            return [future.result(0) for future in futures]

    send_segmented = taken(Putter.send_segmented)

    def group(
        self, group_id: bytes | None = None, after: int = 0, *, destination: str | None = None
    ) -> GroupSender:
        """A sender of one group's messages in logical order, for a `with` block.

            with producer.group() as group:
                group.send("first")
                group.send("second", last=True)

        Args:
            group_id: 24 bytes; None: a new random one (GRP-39).
            after: To go on with a group that was put up to this number, as a putter does that was
                started again: the next message has the number after it (GRP-30). 0: a new group.
            destination: For a producer that has none of its own.

        Raises:
            InvalidGroupError: the id is none, or the number, or a number came without an id.
        """
        return GroupSender(self._shared, group_id, after, destination)

    flush = taken(Putter.flush)

    def close(self) -> None:
        """Ends it; what was sent stays sent. Closing twice does nothing.

        Warns (IncompleteGroupWarning, IncompleteMessageWarning) of a group that was put with
        `logical_order` and did not get its last message (GRP-41, GRP-42).
        """
        self._shared.close()
