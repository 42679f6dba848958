"""Messages on their way out: encoded one by one, written by the batch.

In a transacted session, batches gather per destination and are written when full, at the latest
before Commit: numbering is per queue, so the order between destinations does not matter. Otherwise
one batch gathers at a time and a change of destination writes it, so that messages are put in the
order in which they were sent.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ledgermq.client.protocol import Pending
from ledgermq.client.receipts import CommitReceipt, EnqueuedRun, Eventual, SendReceipt
from ledgermq.client.session_core import SessionCore
from ledgermq.client.sizes import encoded_bytes
from ledgermq.errors import (
    LedgerMQError,
    OutOfTurnError,
    SessionLostError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    TransactionTooLargeError,
    UnexpectedReplyError,
)
from ledgermq.protocol.operations import PutMessage
from ledgermq.protocol.outcomes import Accepted, Committed, Enqueued, Refused
from ledgermq.warning_kinds import (
    InconsistentUnitOfWorkWarning,
    LedgerMQWarning,
    give_warning,
)

__all__ = ["AsynchronousSends", "Batch", "Commitment", "UnitOfWork"]

PUT_BYTES_MAX: Final = 1024 * 1024
ASYNCHRONOUS_EAGER_MAX: Final = 2


class Batch:
    """Messages to one destination that become one Put."""

    __slots__ = ("destination", "eventual", "messages", "receipts", "ripe", "size_bytes")

    def __init__(self, destination: str, eventual: Eventual | None) -> None:
        self.destination = destination
        self.messages: list[PutMessage] = []
        self.receipts: list[SendReceipt] = []
        self.size_bytes = 0
        self.eventual = eventual
        # Whether a round of the keeper has found it waiting.
        self.ripe = False

    def add(self, message: PutMessage) -> SendReceipt:
        """Adds a message."""
        receipt = SendReceipt(message["message_id"], self.destination)
        self.messages.append(message)
        self.receipts.append(receipt)
        self.size_bytes += encoded_bytes(message)
        return receipt

    def takes(self, message: PutMessage, messages_max: int) -> bool:
        """Whether a further message fits."""
        return (
            len(self.messages) < messages_max
            and self.size_bytes + encoded_bytes(message) <= PUT_BYTES_MAX
        )

    def take_back(self) -> None:
        """Takes the message back that was added last."""
        self.size_bytes -= encoded_bytes(self.messages.pop())
        self.receipts.pop()

    def number(self, enqueued: Enqueued) -> None:
        """Tells the receipts what the queue manager answered."""
        position, sequence = enqueued.position, enqueued.first_sequence
        for receipt in self.receipts:
            receipt.position = position
            receipt.sequence = sequence
            sequence += 1
        if enqueued.warning:
            for receipt in self.receipts:
                receipt._warning = enqueued.warning


class AsynchronousSends:
    """Sends of a session that is not transacted, gathered while earlier ones are on their way."""

    def __init__(self, core: SessionCore, messages_max: int) -> None:
        self._core = core
        self._messages_max = messages_max
        self._batch: Batch | None = None
        self._under_way = 0
        self.unfinished: dict[Eventual, None] = {}

    def add_locked(self, destination: str, message: PutMessage) -> tuple[Eventual, SendReceipt]:
        """Takes a message; waits while too much is unanswered."""
        batch = self._batch
        if batch is not None and (
            batch.destination != destination or not batch.takes(message, self._messages_max)
        ):
            self.write_locked()
            batch = None
        if self._batch is None:
            # Waiting for room lets go of the lock, so it comes before the batch is there.
            self._core.wait_for_room_locked()
            self._batch = Batch(destination, Eventual())
        batch = self._batch
        receipt = batch.add(message)
        eventual = batch.eventual
        assert eventual is not None, "an asynchronous batch has something to wait for"
        if self._under_way < ASYNCHRONOUS_EAGER_MAX or len(batch.messages) >= self._messages_max:
            try:
                self.write_locked()
            except LedgerMQError:
                batch.take_back()
                self._batch = batch if batch.messages else None
                raise
        return eventual, receipt

    def write_locked(self) -> None:
        """Writes what has gathered; if that cannot be handed over now, it is kept."""
        batch = self._batch
        if batch is None:
            return
        assert batch.eventual is not None, "an asynchronous batch has something to wait for"
        self._core.put_locked(
            batch.destination, batch.messages, on_settled=partial(self._settled, batch)
        )
        self._batch = None
        self._under_way += 1
        self.unfinished[batch.eventual] = None

    def _settled(self, batch: Batch, pending: Pending) -> None:
        assert batch.eventual is not None, "an asynchronous batch has something to wait for"
        error = pending.error
        reply = pending.reply
        if isinstance(reply, Enqueued):
            batch.number(reply)
        elif isinstance(reply, Refused):
            error = self._core.error_of(reply, batch.destination)
        with self._core.lock:
            self._under_way -= 1
            self.unfinished.pop(batch.eventual, None)
            orphan, failure = None, self._core.lost
            if failure is not None:
                orphan, self._batch = self._batch, None
            elif not self._core.protocol.crowded:
                try:
                    self.write_locked()
                except LedgerMQError as problem:
                    orphan, failure, self._batch = self._batch, problem, None
            self._core.condition.notify_all()
        batch.eventual.happen(error)
        if orphan is not None and orphan.eventual is not None:
            orphan.eventual.happen(failure)


class Commitment:
    """A commit under way; `finished` is told under the session's lock."""

    __slots__ = ("error", "eventual", "finished", "pending", "receipt", "waited", "warning")

    def __init__(self, *, waited: bool) -> None:
        # Whether the session does nothing else until it is finished.
        self.waited = waited
        self.eventual = Eventual()
        self.finished = False
        self.pending: Pending | None = None
        self.receipt: CommitReceipt | None = None
        self.error: LedgerMQError | None = None
        self.warning: LedgerMQWarning | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether nobody can say what became of the unit of work, or it ended with its session."""
        doubtful = (SessionLostError, TransactionInDoubtError, UnexpectedReplyError)
        return isinstance(self.error, doubtful)

    @property
    def out_of_turn(self) -> bool:
        """Whether it was refused because others are to be settled first, and may be repeated."""
        return self.waited and isinstance(self.error, OutOfTurnError)

    @property
    def goes_on(self) -> bool:
        """Whether its unit of work does: out of turn, or without the put that was too large for it.

        Whoever waited for the commit has sent nothing since (DB-09, DB-22).
        """
        too_large = self.waited and isinstance(self.error, TransactionTooLargeError)
        return self.out_of_turn or too_large

    @property
    def stays(self) -> bool:
        """Whether there is nothing to roll back after its error."""
        return self.in_doubt or self.goes_on

    def rolled_back(self) -> TransactionRolledBackError:
        """What a refused commit raises once its unit of work was rolled back."""
        error = self.error
        assert error is not None, "it was refused"
        cause = error.__cause__ or error
        raised = TransactionRolledBackError(
            f"the unit of work was rolled back, because {cause}", destination=error.destination
        )
        raised.__cause__ = cause
        return raised

    def get(self) -> CommitReceipt:
        """The receipt of a commit that worked; gives the warning of one of its puts, once."""
        warning, self.warning = self.warning, None
        if warning is not None:
            give_warning(warning)
        assert self.receipt is not None, "a commit without error has a receipt"
        return self.receipt


class UnitOfWork:
    """The puts of one unit of work, from the first send to the commit's outcome."""

    __slots__ = ("_core", "_messages_max", "_waiting", "_written", "puts", "warning")

    def __init__(self, core: SessionCore, messages_max: int) -> None:
        self._core = core
        self._messages_max = messages_max
        self._waiting: dict[str, Batch] = {}
        self._written: list[tuple[Pending, Batch]] = []
        self.puts = 0
        self.warning: LedgerMQWarning | None = None

    def add_locked(self, destination: str, message: PutMessage) -> SendReceipt:
        """Takes a message; writes its destination's batch when that is full."""
        batch = self._waiting.get(destination)
        if batch is not None and not batch.takes(message, self._messages_max):
            self._write_locked(destination)
            batch = None
        if batch is None:
            batch = self._waiting[destination] = Batch(destination, None)
        receipt = batch.add(message)
        self.puts += 1
        return receipt

    def write_all_locked(self, *, with_next: bool = False) -> None:
        """Writes every put that was not written yet: at once, or with the commit that follows."""
        for destination in list(self._waiting):
            self._write_locked(destination, with_next=with_next)

    def write_ripe_locked(self) -> None:
        """Writes what waits since the keeper's last round, so that others see it (INF-02).

        A unit of work that is shorter than that is written at once, with its commit.
        """
        for destination, batch in list(self._waiting.items()):
            if not batch.ripe:
                batch.ripe = True
            elif not self._core.protocol.crowded:
                self._write_locked(destination)

    def _write_locked(self, destination: str, *, with_next: bool = False) -> None:
        self._core.wait_for_room_locked()
        batch = self._waiting.pop(destination, None)
        if batch is None:
            return  # the keeper wrote it while there was no room
        try:
            pending = self._core.put_locked(
                destination,
                batch.messages,
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
        kept: list[tuple[Pending, Batch]] = []
        for pending, batch in self._written:
            error = pending.error
            if isinstance(pending.reply, Refused):
                error = self._core.error_of(pending.reply, pending.destination)
            if error is None:
                kept.append((pending, batch))
                continue
            self.puts -= len(batch.messages)
            if failure is None or isinstance(failure, TransactionTooLargeError):
                failure = error
        self._written = kept
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
        """Tells the receipts their sequence numbers."""
        receipts: dict[str, list[SendReceipt]] = {}
        for _, batch in self._written:
            receipts.setdefault(batch.destination, []).extend(batch.receipts)
        runs = tuple(EnqueuedRun(**run) for run in reply.enqueued)
        for run in runs:
            for place, receipt in enumerate(receipts.get(run.destination, ())):
                receipt.sequence = run.first_sequence + place
        return CommitReceipt(position=reply.position, enqueued=runs, consumed=reply.consumed)
