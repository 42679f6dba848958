"""Sessions: where an application sends, gets, acknowledges, commits and rolls back.

For one thread at a time; only `close` may come from another, and makes a `receive` that waits
return None. A connection may have many sessions, each in a thread of its own.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from ledgermq.client.acknowledge_mode import AckMode
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.grouping import PutStates
from ledgermq.client.listening import Listening
from ledgermq.client.making import MessageMaker
from ledgermq.client.outgoing import AsynchronousSends, Commitment, UnitOfWork
from ledgermq.client.receipts import CommitReceipt, ReceiptFuture
from ledgermq.client.session_committing import SessionCommitting
from ledgermq.client.session_core import SessionCore
from ledgermq.client.settling import Settling
from ledgermq.client.taking_turns import ask_in_turn
from ledgermq.errors import (
    DeliveryUnknownError,
    IllegalStateError,
    LedgerMQError,
    OutcomeUnknownError,
    OutOfTurnError,
    SessionLostError,
    TransactionTooLargeError,
)
from ledgermq.protocol.operations import Close

if TYPE_CHECKING:
    from ledgermq.client.browser import Browser

__all__ = ["Session"]

LOGGER = logging.getLogger("ledgermq.client")


@typed
class Session(SessionCommitting):
    """Made by `connection.session(...)`; closes itself at the end of a `with` block."""

    def __init__(
        self,
        core: SessionCore,
        *,
        browse: Callable[..., Browser],
        name_temporary: Callable[[str], str],
        in_flight: Callable[[int], set[int]],
        soon: Callable[[], None],
        closed: Callable[[Session], None],
        put_messages_max: int,
        ask_bytes_max: Callable[[str], int],
    ) -> None:
        self._core = core
        self._mode = AckMode(core.mode)
        self._browse = browse
        self._name_temporary = name_temporary
        self._closed = closed
        self._put_messages_max = put_messages_max
        self._ask_bytes_max = ask_bytes_max
        self._maker = MessageMaker()
        self._settling = Settling(core, in_flight, soon)
        self._listening = Listening(core, self._settling)
        self._sends = AsynchronousSends(core, put_messages_max)
        self._unit = UnitOfWork(core, put_messages_max)
        self._put_states = PutStates()
        self._commitments: dict[Commitment, None] = {}
        self._broken: LedgerMQError | None = None
        core.write_ripe_puts = self._write_ripe_puts

    @property
    def ack_mode(self) -> AckMode:
        """How this session settles what it gets."""
        self._core.check_open()
        return self._mode

    @property
    def handle(self) -> int:
        """The log position of the operation that opened it; its name in the queue manager."""
        self._core.check_open()
        return self._core.handle

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or lost."""
        return self._core.closing or self._core.ended

    # -- units of work -----------------------------------------------------------------------------

    def commit(self, *, timeout: float | None = None, turn_timeout: float = 0.0) -> CommitReceipt:
        """Puts everything sent and consumes everything handed over since the last commit, as one.

        Args:
            timeout: Seconds to wait for its outcome; None: as the connection says.
            turn_timeout: For how many seconds it is asked again while the FIFO mode PROTECTED of a
                queue refuses it, because an older message is not settled.

        Raises:
            OutOfTurnError: it still is refused; the unit of work is as it was, so commit again, or
                roll back.
            TransactionTooLargeError: a put was refused that was too large for a segment together
                with those before it; commit again without it, or roll back (DB-09). Or more was
                got than one commit can name: roll back.
            TransactionRolledBackError: it could not be done, and all of it was undone; or the
                session was lost, or ended by administration (SES-20).
            TransactionInDoubtError: no outcome within the time-out; see its `resolve`.
            IllegalStateError: the session is not transacted, or closed.
        """
        self._core.callbacks.refuse("commit")
        check_seconds("timeout", timeout)
        try:
            return ask_in_turn(lambda: self._commit(timeout), turn_timeout)
        finally:
            self._await_callbacks(timeout)

    def _commit(self, timeout: float | None) -> CommitReceipt:
        core = self._core
        with core.lock:
            commitment = self._begin_commit_locked(waited=True)
            self._await_commitment_locked(commitment, timeout)
        error = commitment.error
        if error is None:
            return commitment.get()
        if core.lost is not None or commitment.stays:
            raise error
        with contextlib.suppress(SessionLostError):
            self.rollback(timeout=timeout)
        raise commitment.rolled_back()

    def commit_async(self) -> ReceiptFuture[CommitReceipt]:
        """Writes a commit and returns at once; commits take effect in the order written.

        When one fails, those after it fail too, and the session must be rolled back: the
        futures raise TransactionError until then.
        """
        core = self._core
        with core.lock:
            commitment = self._begin_commit_locked()
        return ReceiptFuture(commitment.eventual, commitment.get, core.callbacks)

    def rollback(self, *, timeout: float | None = None) -> None:
        """Undoes everything sent and everything got since the last commit.

        What was handed over goes back to its place with its delivery count raised; what was
        prefetched goes back as if it had never been delivered. A commit that is still under way is
        waited for first.

        Raises:
            IllegalStateError: the session is not transacted, or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        self._core.callbacks.refuse("rollback")
        check_seconds("timeout", timeout)
        with self._core.lock:
            self._check_transacted_locked("rollback")
            while self._commitments:
                oldest = next(iter(self._commitments))
                self._await_commitment_locked(oldest, timeout)
            self._unit = UnitOfWork(self._core, self._put_messages_max)
            self._put_states.roll_back()
        self._settling.give_back(timeout)
        self._broken = None
        self._await_callbacks(timeout)

    @contextlib.contextmanager
    def transaction(self, *, turn_timeout: float = 0.0) -> Iterator[Session]:
        """A unit of work as a block: commits at its end, rolls back when it raises.

        A commit that is out of turn for longer than `turn_timeout` seconds is rolled back too, as
        is one that lacks a put which was too large.
        """
        check_seconds("turn_timeout", turn_timeout)
        self._check_no_unit()
        try:
            yield self
        except BaseException:
            try:
                self.rollback()
            except LedgerMQError as error:
                LOGGER.warning("the rollback after an exception did not work: %s", error)
            raise
        self._commit_or_undo(turn_timeout)

    def _commit_or_undo(self, turn_timeout: float = 0.0) -> None:
        """Commits; what would leave the unit of work open rolls it back."""
        try:
            self.commit(turn_timeout=turn_timeout)
        except (OutOfTurnError, TransactionTooLargeError):
            self.rollback()
            raise

    def _await_callbacks(self, timeout: float | None) -> None:
        """Completion callbacks belong to what is under way (SES-18)."""
        self._core.callbacks.wait(self._core.timeout_seconds if timeout is None else timeout)

    def _write_ripe_puts(self) -> None:
        """Called by the keeper of the connection."""
        with self._core.lock:
            if not self._core.closing and self._core.lost is None:
                self._unit.write_ripe_locked()

    def _check_no_unit(self) -> None:
        with self._core.lock:
            self._check_transacted_locked("transaction")
            if self._unit.puts or self._settling.handed:
                raise IllegalStateError(
                    "a unit of work is open already: commit or roll back before transaction()"
                )

    # -- the end -----------------------------------------------------------------------------------

    def flush(self, *, timeout: float | None = None) -> None:
        """Waits until everything sent so far has its outcome; commits nothing.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.
            LedgerMQError: puts of the unit of work were refused, and are no part of it; commit the
                rest, or roll back. The error is that of the put.
        """
        check_seconds("timeout", timeout)
        core = self._core
        with core.lock:
            core.check_usable_locked()
            self._sends.write_locked()
            self._unit.write_all_locked()
            for pending in list(core.protocol.pending.values()):
                core.await_settled_locked(pending, timeout)
            failure = self._unit.take_failure_locked()
        if failure is not None:
            raise failure

    def close(self, *, timeout: float | None = None) -> None:
        """Ends the session: what was sent asynchronously arrives, an open unit of work is undone.

        What was handed over and not settled goes back. Closing twice does nothing. May be called
        from any thread.

        Waits for a message listener that is being called.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.
            SessionLostError: AUTO: the session was lost before its last acknowledgements counted.
            IllegalStateError: called by one of its own listeners or completion callbacks.
        """
        core = self._core
        core.callbacks.refuse("close")
        check_seconds("timeout", timeout)
        self._listening.refuse_close()
        with core.lock:
            if core.closing:
                return
            core.closing = True
            core.condition.notify_all()
        self._listening.end()
        try:
            if not core.ended:
                self._close(timeout)
            if core.refused:
                LOGGER.warning("%r: acknowledgements were refused: %r", self, core.refused)
        finally:
            self._await_callbacks(timeout)
            self._closed(self)
        core.raise_deferred()

    def _close(self, timeout: float | None) -> None:
        core = self._core
        try:
            with core.lock:
                self._sends.write_locked()
                core.write_acknowledgements_locked()
                seen = self._settling.handed
                pending = core.write_locked(Close, seen=seen.as_seen())
                core.await_locked(pending, timeout)
        except DeliveryUnknownError:
            known = self._settling.in_flight()
            with core.lock:
                seen.keep_only(known)
                pending = core.write_locked(Close, seen=seen.as_seen())
                core.await_locked(pending, timeout)
        except (SessionLostError, OutcomeUnknownError):
            # Gone is gone, by this Close or before it; what is in doubt was put off for later.
            if not core.ended:
                raise

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except LedgerMQError as problem:
            if kind is None:
                raise
            LOGGER.warning("closing a session after an exception did not work: %s", problem)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        return (
            f"Session({self._core.queue_manager}@{self._core.handle}, {self._mode.value}, {state})"
        )
