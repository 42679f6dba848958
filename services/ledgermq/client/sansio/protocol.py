"""The client's side of one session's protocol, without threads, clocks or Kafka (PROTOCOL.md §4).

Rules: operations are numbered 1, 2, 3 … and stay pending until their reply has come, so that the
same bytes can be written again; a retry acts once. A gap refusal says from which number on to write
again. While a rollback or recover is pending, deliveries are dropped: they go back with it.
Delivery numbers rise, so a number seen before is a repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ledgermq.client.sansio.buffer import ConsumerBuffer
from ledgermq.client.sansio.handed_over import HandedOver
from ledgermq.client.sansio.ranges import DeliveryRanges
from ledgermq.client.sansio.sizes import VALUE_BYTES_MAX, not_encodable, too_large
from ledgermq.errors import IllegalStateError, LedgerMQError
from ledgermq.protocol.operations import Alive, Commit, Put, Recover, Rollback, SessionOperation
from ledgermq.protocol.outcomes import Delivered, Refused, Reply
from ledgermq.wire.framing.codec import encode_operation

# The queue manager keeps 256 replies; Alive and Close must always find room.
OUTSTANDING_MAX: Final = 200
CROWDED: Final = 240
# That so many repeats of one operation are lost one after the other does not happen.
MISSED_TIMES_MAX: Final = 10
OUTSTANDING_BYTES_MAX: Final = 32 * 1024 * 1024
WITHDRAWING: Final = (Rollback, Recover)


@dataclass(slots=True, eq=False, repr=False)
class Pending:
    """An operation whose reply has not been seen to the end.

    Attributes:
        sends: How often it was written to the log.
        gap_refusals: How many of these were refused for a gap; when all were, it is due again.
        sent_at: Clock of the shell at the last send, in seconds.
        reply: What answered it; None until then.
        error: Why there is no reply and will be none; None otherwise.
        on_settled: Called once by the shell, outside its locks, when reply or error is there.
        puts: How many messages a Put brings, or a Commit names; 0 for others.
        may_vanish: Whether a Put has a deduplication id, and may have been put before.
        settles: How many deliveries a Commit names; 0 for others.
        result: What the caller's function makes of the reply; for `resolve`.
        undo: Called with the reply taken when that is a refusal, under the shell's lock.
        applied: Called likewise when it is none.
        promised: Whether its loss is an error, though nobody waits for it.
    """

    number: int
    operation: type[SessionOperation]
    value: bytes
    sends: int = 0
    gap_refusals: int = 0
    sent_at: float = 0.0
    reply: Reply | None = None
    error: LedgerMQError | None = None
    on_settled: Callable[[Pending], None] | None = None
    destination: str | None = None
    result: Callable[[Reply], Any] | None = None
    undo: Callable[[], None] | None = None
    applied: Callable[[], None] | None = None
    puts: int = 0
    may_vanish: bool = False
    settles: int = 0
    promised: bool = False

    @property
    def settled(self) -> bool:
        return self.reply is not None or self.error is not None


class SessionProtocol:
    """Numbers, pending operations and deliveries of one session."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        # Not of a relay: no application sees what it moves, whatever becomes of the relay.
        self.has_application = True
        self.pending: dict[int, Pending] = {}
        self.pending_bytes = 0
        self.next_number = 1
        self.answered_through = 0
        self.consumers: dict[int, ConsumerBuffer] = {}
        self.consumer_highest = 0
        self.delivery_highest = 0
        self.withdrawals = 0
        self.late: dict[int, DeliveryRanges] = {}
        self.handed_over = HandedOver()
        # The operation that the worker cannot read; None: it reads all of them.
        self.unread: Pending | None = None
        self._through_prepared = 0
        # The operation that the queue manager missed last, and how often it was repeated for that.
        self._missed = 0
        self._missed_times = 0

    @property
    def full(self) -> bool:
        """Whether the next operation must wait for replies."""
        return (
            self.next_number - 1 - self.answered_through >= OUTSTANDING_MAX
            or self.pending_bytes >= OUTSTANDING_BYTES_MAX
        )

    @property
    def crowded(self) -> bool:
        """Whether even a small operation of the library's own may be one too many."""
        return self.next_number - 1 - self.answered_through >= CROWDED

    def is_pending(self, operation: type[SessionOperation]) -> bool:
        """Whether one of a kind has no reply yet."""
        return any(one.operation is operation for one in self.pending.values())

    @property
    def handed_through(self) -> int:
        """Up to which delivery everything was handed to the application, or went back (H20)."""
        if not self.has_application:
            return 0
        lowest = self.delivery_highest + 1
        for buffer in self.consumers.values():
            lowest = min(lowest, buffer.lowest or lowest)
        for late in self.late.values():
            if late:
                lowest = min(lowest, late.lowest)
        return lowest - 1

    def prepare(self, operation: type[SessionOperation], **fields: Any) -> Pending:
        """An operation with the next number, which it has for good once it is registered."""
        number = self.next_number
        self._through_prepared = self.handed_through
        numbered = operation(
            session=self.handle,
            session_sequence=number,
            answered_through=self.answered_through,
            handed_through=self._through_prepared,
            **fields,
        )
        try:
            value = encode_operation(numbered)
        except (ValueError, OverflowError) as error:
            raise IllegalStateError(not_encodable(operation.__name__, fields)) from error
        if len(value) > VALUE_BYTES_MAX:
            raise too_large(operation.__name__, fields, value)
        pending = Pending(number, operation, value)
        if operation is Put:
            pending.puts = len(fields["messages"])
            pending.may_vanish = fields.get("deduplication_id") is not None
        elif operation is Commit:
            pending.puts = fields["puts"]
            pending.settles = sum(one["last"] - one["first"] + 1 for one in fields["deliveries"])
        return pending

    def register(self, pending: Pending) -> None:
        """An operation that was prepared last is about to be on its way: its number is used."""
        size_bytes, withdraws = len(pending.value), pending.operation in WITHDRAWING
        # Ctrl-C comes where something is called: all of this is done, or nothing.
        self.next_number = pending.number + 1
        self.pending[pending.number] = pending
        self.pending_bytes += size_bytes
        self.withdrawals += withdraws

    def take_number_back(self, pending: Pending) -> None:
        """What was registered last is not on its way: the log did not take it."""
        del self.pending[pending.number]
        self.next_number = pending.number
        self._forget(pending)

    def withdraw_for(self, pending: Pending) -> None:
        """What an operation that is on its way changes here."""
        if pending.number not in self.pending:
            return
        self.handed_over.reported_through = self._through_prepared
        if pending.operation in WITHDRAWING:
            for consumer in self.consumers.values():
                consumer.withdraw()

    def replace(self, pending: Pending) -> Pending:
        """An Alive in place of an operation that the log never took, so that no number is missing.

        Only for what changes nothing here, such as a Put.
        """
        alive = Alive(
            session=self.handle,
            session_sequence=pending.number,
            answered_through=self.answered_through,
            handed_through=self.handed_through,
        )
        filler = Pending(pending.number, Alive, encode_operation(alive))
        self.pending[pending.number] = filler
        self.pending_bytes += len(filler.value) - len(pending.value)
        return filler

    def take_reply(self, reply: Reply) -> Pending | None:
        """Settles the operation that a reply names; None if it was settled before."""
        pending = self.pending.pop(reply.session_sequence, None)
        if pending is None:
            return None
        self._forget(pending)
        pending.reply = reply
        then = pending.undo if isinstance(reply, Refused) else pending.applied
        if then is not None:
            then()
        return pending

    def _forget(self, pending: Pending) -> None:
        self.pending_bytes -= len(pending.value)
        if pending.operation in WITHDRAWING:
            self.withdrawals -= 1
        if self.pending:
            self.answered_through = next(iter(self.pending)) - 1
        else:
            self.answered_through = self.next_number - 1

    def take_gap(self, refused: Refused) -> list[Pending]:
        """What to write again at once after a gap refusal; nothing while a repeat is on its way.

        What was written again and again and is missed still was not lost: nobody can read it, as
        where the worker is older. Heartbeats repeat it, after pauses that grow.
        """
        pending = self.pending.get(refused.session_sequence)
        if pending is None:
            return []
        pending.gap_refusals += 1
        if pending.gap_refusals < pending.sends:
            return []
        if refused.expected_sequence != self._missed:
            self._missed, self._missed_times = refused.expected_sequence, 0
        self._missed_times += 1
        if self._missed_times > MISSED_TIMES_MAX:
            self.unread = self.pending.get(refused.expected_sequence)
            return []
        return [one for one in self.pending.values() if one.number >= refused.expected_sequence]

    def open_consumer(self, destination: str, prefetch: int) -> ConsumerBuffer:
        self.consumer_highest += 1
        buffer = ConsumerBuffer(self.consumer_highest, destination, prefetch)
        self.consumers[buffer.number] = buffer
        return buffer

    def close_consumer(self, number: int) -> DeliveryRanges:
        """Removes a consumer; returns its deliveries that were never handed over."""
        unseen = self.consumers.pop(number).unseen()
        self.late[number] = DeliveryRanges()
        return unseen

    def keep_consumer(self, buffer: ConsumerBuffer) -> None:
        """A consumer was not closed: the log did not take that."""
        self.late.pop(buffer.number, None)
        self.consumers[buffer.number] = buffer

    def take_late(self, number: int) -> DeliveryRanges:
        """Deliveries that crossed the close of their consumer."""
        return self.late.pop(number, None) or DeliveryRanges()

    def take_delivered(self, outcome: Delivered) -> ConsumerBuffer | None:
        """Buffers what is new of a delivery; returns the consumer that got something."""
        first, messages = outcome.first_delivery, outcome.messages
        last = first + len(messages) - 1
        if first <= self.delivery_highest:
            if last <= self.delivery_highest:
                return None
            messages = messages[self.delivery_highest + 1 - first :]
            first = self.delivery_highest + 1
        self.delivery_highest = last
        if self.withdrawals:
            return None
        buffer = self.consumers.get(outcome.consumer)
        if buffer is not None:
            buffer.deliver(first, messages)
            self.handed_over.give(buffer.number, first, last)
            if outcome.in_doubt:
                # Of several segments that came complete it is the last.
                buffer.doubt = last
            return buffer
        if outcome.consumer in self.late:
            self.late[outcome.consumer].add_range(first, last)
        return None

    def end(self, error: Callable[[Pending], LedgerMQError]) -> list[Pending]:
        """Settles every pending operation with an error, because the session is over."""
        over = list(self.pending.values())
        self.pending.clear()
        self.pending_bytes = 0
        self.withdrawals = 0
        self.answered_through = self.next_number - 1
        for pending in over:
            pending.error = error(pending)
        for consumer in self.consumers.values():
            consumer.withdraw()
        return over
