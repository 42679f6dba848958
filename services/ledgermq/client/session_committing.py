"""How a session commits: what stands before the commit, and what becomes of it."""

from __future__ import annotations

from functools import partial

from ledgermq.client.grouping import Marks, PutStates
from ledgermq.client.outgoing import Commitment, UnitOfWork
from ledgermq.client.protocol import Pending
from ledgermq.client.ranges import DeliveryRanges
from ledgermq.client.session_settling import SessionSettling
from ledgermq.errors import (
    IllegalStateError,
    LedgerMQError,
    SessionLostError,
    TransactionError,
    TransactionRolledBackError,
    TransactionTooLargeError,
)
from ledgermq.protocol.operations import Commit
from ledgermq.protocol.outcomes import Committed, Refused
from ledgermq.protocol.reasons import PUTS_MISMATCH

__all__ = ["SessionCommitting"]


class SessionCommitting(SessionSettling):
    """The part of a session that commits; `commit` itself is the session's."""

    _put_messages_max: int
    _put_states: PutStates
    _unit: UnitOfWork
    _commitments: dict[Commitment, None]
    # Why an earlier commit failed; the session is to be rolled back then.
    _broken: LedgerMQError | None

    def _begin_commit_locked(self, *, waited: bool = False) -> Commitment:
        core = self._core
        try:
            self._prepare_commit_locked()
        except SessionLostError as lost:
            if core.closing:
                raise
            raise TransactionRolledBackError(
                f"the unit of work was rolled back with its session: {lost}"
            ) from lost
        unit, self._unit = self._unit, UnitOfWork(core, self._put_messages_max)
        handed = self._settling.handed.take_all()
        marks = self._put_states.marks()
        commitment = Commitment(waited=waited)
        self._commitments[commitment] = None
        try:
            if len(handed.parts()) > 1:
                raise TransactionTooLargeError(
                    "the unit of work has got messages with so many others between them that one "
                    "commit cannot name them; roll back, and commit more often"
                )
            pending = core.write_locked(
                Commit,
                on_settled=partial(self._commit_settled, commitment, unit, handed, marks),
                settles=handed,
                deliveries=handed.as_list(),
                puts=unit.puts,
            )
        except LedgerMQError:
            self._unit = unit
            self._settling.handed.add_all(handed)
            del self._commitments[commitment]
            raise
        pending.result = lambda _: commitment.get()
        commitment.pending = pending
        return commitment

    def _prepare_commit_locked(self) -> None:
        """Writes the puts that have to stand before the commit, and makes room for it."""
        self._check_transacted_locked("commit")
        if self._broken is not None:
            raise TransactionError(
                f"an earlier commit of this session failed ({self._broken}); roll back first"
            ) from self._broken
        self._unit.write_all_locked(with_next=True)
        self._core.wait_for_room_locked()

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
        with self._core.lock:
            if error is not None:
                self._settling.handed.add_all(handed)
                commitment.error = error
                if commitment.goes_on:
                    self._unit = unit
                else:
                    self._broken = self._broken or error
            else:
                self._put_states.commit(marks)
            commitment.warning = unit.warning
            commitment.receipt, commitment.error = receipt, error
            commitment.finished = True
            self._commitments.pop(commitment, None)
            self._core.condition.notify_all()
        commitment.eventual.happen(error)

    def _refused_commit(self, reply: Refused, unit: UnitOfWork, *, waited: bool) -> LedgerMQError:
        """The error of a commit that was refused, which a refused put says better if there is one.

        If the unit of work lacks nothing but what was too large for it, it goes on (DB-09).
        """
        with self._core.lock:
            failure = unit.take_failure_locked()
        if failure is None:
            return self._core.error_of(reply)
        lacks_it = waited and reply.reason == PUTS_MISMATCH
        if lacks_it and isinstance(failure, TransactionTooLargeError):
            return failure
        error = TransactionError(f"a put was refused: {failure}")
        error.__cause__ = failure
        return error

    def _await_commitment_locked(self, commitment: Commitment, timeout: float | None) -> None:
        pending = commitment.pending
        assert pending is not None, "a commitment has an operation"
        self._core.await_settled_locked(pending, timeout)
        while not commitment.finished:
            self._core.wait_locked(None)

    def _check_transacted_locked(self, what: str) -> None:
        self._core.check_usable_locked()
        if not self._transacted:
            raise IllegalStateError(
                f"{what} needs a transacted session; this one is {self._mode.value}: "
                "open it with session(transacted=True)"
            )
