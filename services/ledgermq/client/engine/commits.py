"""How a session commits: what is written before the commit, and what becomes of it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial

from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.outgoing import UnitOfWork
from ledgermq.client.engine.settling import Settling
from ledgermq.client.engine.steps import Steps
from ledgermq.client.sansio.protocol import Pending
from ledgermq.client.sansio.ranges import DeliveryRanges
from ledgermq.client.sending.grouping import Marks, PutStates
from ledgermq.client.sending.receipts import CommitReceipt, SendReceipt, settle
from ledgermq.errors import (
    DuplicatePutError,
    IllegalStateError,
    LedgerMQError,
    OutOfTurnError,
    SessionLostError,
    TransactionError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    TransactionTooLargeError,
    UnexpectedReplyError,
)
from ledgermq.errors.warnings import LedgerMQWarning, give_warning
from ledgermq.protocol.operations import Commit, PutMessage
from ledgermq.protocol.outcomes import Committed, Refused
from ledgermq.protocol.reasons import Reason

LOGGER = logging.getLogger("ledgermq.client")


@dataclass(eq=False, kw_only=True)
class Commitment:
    """A commit under way; `finished` is set with the session's lock held.

    Attributes:
        waited: Whether the session does nothing else until it is finished.
        given_up: Whether whoever waited does not any more, and may take a rollback for its end.
    """

    waited: bool
    outcome: Future[None] = field(default_factory=Future)
    finished: bool = False
    given_up: bool = False
    pending: Pending | None = None
    receipt: CommitReceipt | None = None
    error: LedgerMQError | None = None
    warning: LedgerMQWarning | None = None

    @property
    def goes_on(self) -> bool:
        """Whether its unit of work does: out of turn, or without the put that was too large for it.

        Behind one that nobody waits for there may be others (DB-09, DB-22).
        """
        return self.waited and isinstance(self.error, (OutOfTurnError, TransactionTooLargeError))

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to roll back: it goes on, has ended, or nobody can say."""
        ended = (SessionLostError, TransactionInDoubtError, UnexpectedReplyError)
        return self.goes_on or isinstance(self.error, ended)

    def rolled_back(self) -> TransactionRolledBackError:
        error = self.error
        assert error is not None, "it was refused"
        cause = error.__cause__ or error
        kind = type(error) if isinstance(error, DuplicatePutError) else TransactionRolledBackError
        raised = kind(
            f"the unit of work was rolled back, because {cause}", destination=error.destination
        )
        raised.__cause__ = cause
        return raised

    def resolved(self) -> CommitReceipt:
        """The receipt for whoever resolves: the outcome is known a moment before it is."""
        wait([self.outcome])
        return self.get()

    def get(self) -> CommitReceipt:
        """The receipt of a commit that worked; gives the warning of one of its puts, once."""
        warning, self.warning = self.warning, None
        if warning is not None:
            give_warning(warning)
        assert self.receipt is not None, "a commit without error has a receipt"
        return self.receipt


class Commits:
    """The units of work of one session, the present one and those whose commit is under way.

    Attributes:
        unit: The puts of the present one.
        put_states: The places in groups that it has moved.
        broken: Why an earlier commit failed; the session is to be rolled back then.
        stays_broken: Whether nobody does that by himself, as whoever waits for a commit does.
    """

    def __init__(self, engine: Engine, settling: Settling) -> None:
        self._engine = engine
        self._settling = settling
        self._under_way: dict[Commitment, None] = {}
        self.unit = UnitOfWork(engine)
        self.put_states = PutStates()
        self.broken: LedgerMQError | None = None
        self.stays_broken = False
        self._in_block = False

    def write_ripe_puts(self) -> None:
        """Called by the heartbeats."""
        with self._engine.lock:
            if not self._engine.closing and self._engine.lost is None:
                self.unit.write_ripe_locked()

    def check_whole_locked(self) -> None:
        """Refuses what is not to be done before a rollback."""
        if self.broken is not None:
            raise IllegalStateError(
                f"an earlier commit of this session failed ({self.broken}); roll back"
            )

    def check_no_unit_locked(self) -> None:
        self.check_transacted_locked("transaction")
        if self._in_block:
            raise IllegalStateError(
                "a transaction block of this session is open, and blocks do not nest: leave it "
                "first, or begin the other one in another session"
            )
        if self.unit.puts or self._settling.handed:
            raise IllegalStateError(
                "a unit of work is open already: commit or roll back before another one begins"
            )

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Marks the unit of work as that of a block, so that no other one begins inside of it.

        The inner one would commit a part of what the outer one is to roll back as a whole (SES-11).
        """
        with self._engine.lock:
            self.check_no_unit_locked()
            self._in_block = True
        try:
            yield
        finally:
            self._in_block = False

    def join(
        self, destination: str, message: PutMessage, deduplication_id: str | None = None
    ) -> Steps[SendReceipt]:
        """Takes a message into the present unit of work, which others may end while it waits."""
        while True:
            yield from self._settling.gone_back()
            receipt = self.unit.add_locked(destination, message, deduplication_id)
            if receipt is not None:
                return receipt
            yield from self.unit.write(destination)

    def commit(self, timeout: float | None) -> Steps[CommitReceipt]:
        commitment = yield from self.begin(waited=True)
        try:
            yield from self._finished(commitment, timeout)
        except BaseException:
            commitment.given_up = True
            raise
        error = commitment.error
        if error is None:
            return commitment.get()
        if self._engine.lost is not None or commitment.is_over:
            raise error
        with contextlib.suppress(SessionLostError):
            yield from self.roll_back(timeout)
        raise commitment.rolled_back()

    def roll_back(self, timeout: float | None = None) -> Steps[None]:
        self.check_transacted_locked("rollback")
        with self._settling.about_to_go_back():
            while self._under_way:
                yield from self._finished(next(iter(self._under_way)), timeout)
        self.unit = UnitOfWork(self._engine)
        self.put_states.roll_back()
        yield from self._settling.give_back(timeout, self._begin_anew_locked)

    def _begin_anew_locked(self) -> None:
        self.broken = self._engine.timed_out = None
        self.stays_broken = False

    def _finished(self, commitment: Commitment, timeout: float | None) -> Steps[None]:
        pending = commitment.pending
        assert pending is not None, "a commitment has an operation"
        yield from self._engine.settled(pending, timeout)
        while not commitment.finished:
            yield None

    def begin(self, *, waited: bool = False) -> Steps[Commitment]:
        """Writes a commit; by whoever is `waited` for it, nothing else is done meanwhile."""
        engine = self._engine
        try:
            yield from self._prepare()
        except SessionLostError as lost:
            if engine.closing:
                raise
            raise TransactionRolledBackError(
                f"the unit of work was rolled back with its session: {lost}"
            ) from lost
        unit, handed, number = self.unit, self._settling.handed, engine.protocol.next_number
        commitment = Commitment(waited=waited)
        try:
            marks = self.put_states.marks()
            self._under_way[commitment] = None
            self.unit, self._settling.handed = UnitOfWork(engine), DeliveryRanges()
            if len(handed.parts()) > 1:
                raise TransactionTooLargeError(
                    "the unit of work has got messages with so many others between them that one "
                    "commit cannot name them; roll back, and commit more often"
                )
            pending = engine.write_locked(
                Commit,
                on_settled=partial(self._commit_settled, commitment, unit, handed, marks),
                deliveries=handed.as_list(),
                puts=unit.puts,
            )
        except BaseException:
            self._under_way.pop(commitment, None)
            # Else it was interrupted and may be on its way: a rollback tells.
            if engine.protocol.next_number == number:
                self.unit, self._settling.handed = unit, handed
            raise
        pending.result = lambda _: commitment.resolved()
        commitment.pending = pending
        return commitment

    def _prepare(self) -> Steps[None]:
        self.check_transacted_locked("commit")
        yield from self._settling.gone_back()
        if self.broken is not None:
            raise TransactionError(
                f"an earlier commit of this session failed ({self.broken}); roll back first"
            ) from self.broken
        yield from self._engine.room()
        # While it waits for room, another coroutine may send more, which is part of it too.
        while self.unit.waits:
            yield from self.unit.write_all(with_next=True)
            yield from self._engine.room()

    def _commit_settled(
        self,
        commitment: Commitment,
        unit: UnitOfWork,
        handed: DeliveryRanges,
        marks: Marks,
        pending: Pending,
    ) -> None:
        """Called by the reader with the outcome of a commit."""
        reply, error = pending.reply, pending.error
        receipt = unit.committed(reply) if isinstance(reply, Committed) else None
        if isinstance(reply, Refused):
            error = self._refused_commit(reply, unit, waited=commitment.waited)
        with self._engine.lock:
            if error is not None:
                self._settling.handed.add_all(handed)
                commitment.error = error
                if commitment.goes_on:
                    # Whoever gave up waiting, or another coroutine, may have sent more since.
                    self.unit.take_up(unit)
                else:
                    self.broken = self.broken or error
                    if commitment.given_up or not commitment.waited:
                        self.stays_broken = True
            else:
                self.put_states.commit(marks)
            commitment.warning = unit.warning
            commitment.receipt, commitment.error = receipt, error
            commitment.finished = True
            self._under_way.pop(commitment, None)
            self._engine.notify_locked()
        if commitment.given_up:
            LOGGER.warning(
                "a commit of session %d that was in doubt %s",
                self._engine.handle,
                "has worked" if error is None else f"has failed: {error}",
            )
        settle(commitment.outcome, error)

    def _refused_commit(self, reply: Refused, unit: UnitOfWork, *, waited: bool) -> LedgerMQError:
        """The error of a commit that was refused, which a refused put says better if there is one.

        If the unit of work lacks nothing but what was too large for it, it goes on (DB-09).
        """
        with self._engine.lock:
            failure = unit.take_failure_locked()
        if failure is None:
            return self._engine.error_of(reply)
        lacks_it = waited and reply.reason == Reason.PUTS_MISMATCH
        if lacks_it and isinstance(failure, TransactionTooLargeError):
            return failure
        error = TransactionError(f"a put was refused: {failure}")
        error.__cause__ = failure
        return error

    def check_transacted_locked(self, what: str) -> None:
        self._engine.check_usable_locked()
        mode = self._engine.mode
        if mode != "TRANSACTED":
            raise IllegalStateError(
                f"{what} needs a transacted session; this one is {mode}: "
                "open it with session(transacted=True)"
            )
