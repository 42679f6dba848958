"""Messages on their way out: encoded one by one, written by the batch.

In a transacted session, batches gather per destination and are written when full, at the latest
before Commit: numbering is per queue, so the order between destinations does not matter. Otherwise
one batch gathers at a time and a change of destination writes it, so that messages are put in the
order in which they were sent.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Final

from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.steps import Steps
from ledgermq.client.sansio.protocol import Pending
from ledgermq.client.sansio.sizes import encoded_bytes
from ledgermq.client.sending.receipts import CommitReceipt, EnqueuedRun, SendReceipt, settle
from ledgermq.errors import LedgerMQError, TransactionTooLargeError
from ledgermq.errors.warnings import InconsistentUnitOfWorkWarning, LedgerMQWarning
from ledgermq.protocol.operations import PutMessage
from ledgermq.protocol.outcomes import Accepted, Committed, Enqueued, Refused, Reply

PUT_BYTES_MAX: Final = 1024 * 1024
ASYNCHRONOUS_EAGER_MAX: Final = 2


class Batch:
    """Messages to one destination that become one Put; with a deduplication id it is one."""

    __slots__ = ("deduplication_id", "destination", "messages", "receipts", "ripe", "size_bytes")

    def __init__(self, destination: str, deduplication_id: str | None = None) -> None:
        self.destination = destination
        self.deduplication_id = deduplication_id
        self.messages: list[PutMessage] = []
        self.receipts: list[SendReceipt] = []
        self.size_bytes = 0
        # Whether a round of the heartbeats has found it waiting.
        self.ripe = False

    def add(
        self, message: PutMessage, messages_max: int, bytes_max: int = PUT_BYTES_MAX
    ) -> SendReceipt | None:
        """Adds a message; None if it does not fit behind others."""
        size_bytes = self.size_bytes + encoded_bytes(message)
        if self.messages and (size_bytes > bytes_max or len(self.messages) >= messages_max):
            return None
        receipt = SendReceipt(message["message_id"], self.destination)
        self.messages.append(message)
        self.receipts.append(receipt)
        self.size_bytes = size_bytes
        return receipt

    def takes(self, destination: str, deduplication_id: str | None) -> bool:
        """Whether a message may stand in one Put with what is there."""
        named = deduplication_id is not None or self.deduplication_id is not None
        return destination == self.destination and not named

    def take_back(self) -> None:
        self.size_bytes -= encoded_bytes(self.messages.pop())
        self.receipts.pop()

    def answered(self, reply: Reply) -> SendReceipt:
        """Numbers what was put outside a unit of work; the first receipt."""
        assert isinstance(reply, Enqueued), "a Put outside a unit of work is answered by Enqueued"
        self.number(reply)
        return self.receipts[0]

    def number(self, enqueued: Enqueued) -> None:
        position, sequence = enqueued.position, enqueued.first_sequence
        if not enqueued.count:
            self.receipts[0]._duplicate = True
        for receipt in self.receipts:
            receipt.position = position
            receipt.sequence = sequence
            sequence += 1
        if enqueued.warning:
            for receipt in self.receipts:
                receipt._warning = enqueued.warning


class AsynchronousSends:
    """Sends of a session that is not transacted, gathered while earlier ones are on their way."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._messages_max = engine.settings.put_messages_max
        self._batch: Batch | None = None
        # What those wait for who sent what is in the batch.
        self._outcome: Future[None] = Future()
        self._under_way = 0
        self.unfinished: dict[Future[None], None] = {}

    def add_locked(
        self, destination: str, message: PutMessage, deduplication_id: str | None = None
    ) -> tuple[Future[None], SendReceipt] | None:
        """Takes a message; None while it would begin a batch that there is no room for."""
        batch, receipt = self._batch, None
        if batch is not None:
            if batch.takes(destination, deduplication_id):
                receipt = batch.add(message, self._messages_max)
            if receipt is None:
                self.write_locked()
        if batch is None or receipt is None:
            if self._engine.protocol.full:
                return None
            batch, self._outcome = Batch(destination, deduplication_id), Future()
            self._batch = batch
            receipt = batch.add(message, self._messages_max)
        assert receipt is not None, "an empty batch takes any message"
        outcome = self._outcome
        if self._under_way < ASYNCHRONOUS_EAGER_MAX or len(batch.messages) >= self._messages_max:
            try:
                self.write_locked()
            except LedgerMQError:
                batch.take_back()
                self._batch = batch if batch.messages else None
                raise
        return outcome, receipt

    def write_locked(self) -> None:
        """Writes what has gathered; if that cannot be handed over now, it goes on waiting."""
        batch = self._batch
        if batch is None:
            return
        outcome, number = self._outcome, self._engine.protocol.next_number
        on_settled = partial(self._settled, batch, outcome)
        self._batch = None
        self._under_way += 1
        self.unfinished[outcome] = None
        try:
            self._engine.put_locked(
                batch.destination,
                batch.messages,
                deduplication_id=batch.deduplication_id,
                on_settled=on_settled,
            )
        except BaseException:
            # Interrupted later it may be on its way, and would come twice.
            if self._engine.protocol.next_number == number:
                self._batch = batch
                self._under_way -= 1
                del self.unfinished[outcome]
            raise

    def _settled(self, batch: Batch, outcome: Future[None], pending: Pending) -> None:
        error = pending.error
        reply = pending.reply
        if isinstance(reply, Enqueued):
            batch.number(reply)
        elif isinstance(reply, Refused):
            error = self._engine.error_of(reply, batch.destination)
        with self._engine.lock:
            self._under_way -= 1
            self.unfinished.pop(outcome, None)
            failure = self._engine.lost
            if failure is None and not self._engine.protocol.crowded:
                try:
                    self.write_locked()
                except LedgerMQError as problem:
                    failure = problem
            settle(outcome, error)
            if failure is not None and self._batch is not None:
                self._batch = None
                settle(self._outcome, failure)
            self._engine.notify_locked()


class UnitOfWork:
    """The puts of one unit of work, from the first send to the commit's outcome."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._messages_max = engine.settings.put_messages_max
        self._waiting: dict[str, Batch] = {}
        self._written: list[tuple[Pending, Batch]] = []
        self.puts = 0
        self.warning: LedgerMQWarning | None = None

    def add_locked(
        self, destination: str, message: PutMessage, deduplication_id: str | None = None
    ) -> SendReceipt | None:
        """Takes a message; None if what waits for its destination is to be written first."""
        batch = self._waiting.get(destination)
        if batch is None:
            batch = self._waiting[destination] = Batch(destination, deduplication_id)
        elif not batch.takes(destination, deduplication_id):
            return None
        receipt = batch.add(message, self._messages_max)
        if receipt is not None:
            self.puts += 1
        return receipt

    @property
    def waits(self) -> bool:
        """Whether some of it is not written yet."""
        return bool(self._waiting)

    def take_up(self, earlier: UnitOfWork) -> None:
        """Takes in what an earlier one wrote, whose commit was refused so that it goes on."""
        self.puts += earlier.puts
        self.warning = self.warning or earlier.warning
        # In the order of the log, by which the commit numbers them.
        self._written = sorted(earlier._written + self._written, key=lambda one: one[0].number)

    def write_all(self, *, with_next: bool = False) -> Steps[None]:
        for destination in list(self._waiting):
            yield from self.write(destination, with_next=with_next)

    def write_ripe_locked(self) -> None:
        """Writes what waits since the last round of the heartbeats, so that others see it (INF-02).

        A unit of work that is shorter than that is written at once, with its commit.
        """
        for destination, batch in list(self._waiting.items()):
            if not batch.ripe:
                batch.ripe = True
            elif not self._engine.protocol.full:
                self._write_locked(destination)

    def write(self, destination: str, *, with_next: bool = False) -> Steps[None]:
        yield from self._engine.room()
        if destination in self._waiting:  # else the heartbeats wrote it while there was no room
            self._write_locked(destination, with_next=with_next)

    def _write_locked(self, destination: str, *, with_next: bool = False) -> None:
        batch = self._waiting.pop(destination)
        try:
            pending = self._engine.put_locked(
                destination,
                batch.messages,
                deduplication_id=batch.deduplication_id,
                with_next=with_next,
                on_settled=partial(self._put_settled, batch.receipts),
            )
        except LedgerMQError:
            self._waiting[destination] = batch
            raise
        self._written.append((pending, batch))

    def take_failure_locked(self) -> LedgerMQError | None:
        """Why puts were refused, which are no part of it from now on; None if none was.

        Of several errors one that says more than that the unit of work is too large.
        """
        failure: LedgerMQError | None = None
        left: list[tuple[Pending, Batch]] = []
        for pending, batch in self._written:
            error = pending.error
            if isinstance(pending.reply, Refused):
                error = self._engine.error_of(pending.reply, pending.destination)
            if error is None:
                left.append((pending, batch))
                continue
            self.puts -= len(batch.messages)
            if failure is None or isinstance(failure, TransactionTooLargeError):
                failure = error
        self._written = left
        return failure

    def _put_settled(self, receipts: list[SendReceipt], pending: Pending) -> None:
        if pending.reply is not None and not isinstance(pending.reply, Refused):
            for receipt in receipts:
                receipt.position = pending.reply.position
            if isinstance(pending.reply, Accepted) and pending.reply.warning:
                self.warning = InconsistentUnitOfWorkWarning(
                    f"a message was put to {pending.destination} in a unit of work, others of its "
                    "group outside one (GRP-43)"
                )

    def committed(self, reply: Committed) -> CommitReceipt:
        receipts: dict[str, list[SendReceipt]] = {}
        for _, batch in self._written:
            receipts.setdefault(batch.destination, []).extend(batch.receipts)
        runs = tuple(EnqueuedRun(**run) for run in reply.enqueued)
        for run in runs:
            for place, receipt in enumerate(receipts.get(run.destination, ())):
                receipt.sequence = run.first_sequence + place
        return CommitReceipt(position=reply.position, enqueued=runs, consumed=reply.consumed)
