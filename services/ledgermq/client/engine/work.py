"""What one session does with its engine: it sends, gets, settles, commits, and ends.

`Session` and its producers and consumers rest on this, and so do those of `ledgermq.aio`; what
waits is made of steps, which each takes in its own way.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ledgermq.client.closing import close_aside, is_interrupted
from ledgermq.client.destinations import checked_destination, is_topic
from ledgermq.client.engine.commits import Commits
from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.lease import Lease
from ledgermq.client.engine.listening import Listening
from ledgermq.client.engine.outgoing import AsynchronousSends
from ledgermq.client.engine.settling import Settling
from ledgermq.client.engine.steps import Steps, again_while_out_of_turn
from ledgermq.client.engine.unseen import Unseen
from ledgermq.client.link.questions import Questions
from ledgermq.client.options import AckMode
from ledgermq.client.sending.receipts import CommitReceipt
from ledgermq.client.tracing import settled
from ledgermq.errors import IllegalStateError, LedgerMQError, OutcomeUnknownError, SessionLostError
from ledgermq.errors.shown import shown
from ledgermq.protocol.operations import (
    Close,
    CreateTemporary,
    DeleteQueue,
    DeleteTopic,
    SessionOperation,
    Unsubscribe,
)
from ledgermq.protocol.outcomes import Reply

LOGGER = logging.getLogger("ledgermq.client")


@dataclass(frozen=True, kw_only=True)
class Services:
    """What a session asks of its connection.

    Attributes:
        questions: Asks the queue manager, and so waits.
        name_temporary: A new name of a temporary queue or topic.
        soon: Has the heartbeats come soon.
        closed: Called when the session has ended.
    """

    questions: Questions
    name_temporary: Callable[[str], str]
    soon: Callable[[], None]
    closed: Callable[[Work], None]


class Work:
    """The work of one session.

    Attributes:
        transacted: Whether it works in units of work.
        commits: Its units of work.
        sends: What it sends asynchronously; what it has not sent yet is in there or in the unit.
        settling: What it has handed over.
        unseen: What its consumers have not handed over.
        lease: How long it may hand over without asking.
        owner: Gives the connection, for what an application has of the session: as long as somebody
            has any of that, nobody has dropped it.
        forgotten: What closes consumers that nobody can receive from any more. They wait here, as
            Python may drop them at any moment, also while the lock is held.
    """

    def __init__(
        self, engine: Engine, services: Services, owner: Callable[[], object] = lambda: None
    ) -> None:
        self.engine = engine
        self.services = services
        self.owner = owner
        self.mode = AckMode(engine.mode)
        self.transacted = self.mode is AckMode.TRANSACTED
        self.settling = Settling(engine, services.questions.in_flight_of, services.soon)
        self.unseen = Unseen(engine)
        self.lease = Lease(engine)
        self.listening = Listening(engine, self.settling, self.unseen, self.lease)
        self.sends = AsynchronousSends(engine)
        self.commits = Commits(engine, self.settling)
        self.forgotten: deque[Callable[[], None]] = deque()
        # The thread that began to close it last.
        self._closer: int | None = None
        engine.each_round = self._write_what_waits
        engine.report_handed_over = self.settling.report_handed_over
        engine.heard = self.lease.renew

    def _write_what_waits(self) -> bool:
        """Called by the heartbeats; whether more has come to acknowledge since the last time."""
        more = self.settling.write_ripe_acknowledgements()
        self.commits.write_ripe_puts()
        self.unseen.give_back_expired()
        with self.engine.lock:
            self.leave_forgotten_locked()
        return more

    def leave_forgotten_locked(self) -> None:
        """What was on its way to them would be nobody's until the session is closed.

        While something is handed over and not settled they stay: they may keep its group together.
        """
        engine = self.engine
        if self.forgotten and not (engine.closing or engine.ended or self.settling.handed):
            while self.forgotten and not engine.protocol.crowded:
                self.forgotten[0]()
                self.forgotten.popleft()

    def commit(
        self, *, timeout: float | None = None, turn_timeout: float = 0.0
    ) -> Steps[CommitReceipt]:
        """See `ledgermq.Session.commit`."""
        steps = again_while_out_of_turn(lambda: self.commits.commit(timeout), turn_timeout)
        return settled("commit", len(self.settling.handed), steps)

    def rollback(self, *, timeout: float | None = None) -> Steps[None]:
        """See `ledgermq.Session.rollback`."""
        return settled("rollback", len(self.settling.handed), self.commits.roll_back(timeout))

    def acknowledge(
        self, *, timeout: float | None = None, turn_timeout: float = 0.0, wait: bool = True
    ) -> Steps[None]:
        """Acknowledges everything that the session has handed over (CLIENT, INDIVIDUAL; SES-06).

        In the other modes it does nothing: there the library settles, or commit does.

        Args:
            timeout: Seconds to wait for its outcome; None: the connection's time-out.
            wait: False: it is written at once, and a failure is raised by the session's next call.
            turn_timeout: For how many seconds it is asked again while the FIFO mode PROTECTED of a
                queue refuses it, because an older message is not settled (DB-22).

        Raises:
            OutOfTurnError: it still is refused; nothing changed.
            DeliveryUnknownError: administration took messages away; the others can still be
                acknowledged.
            OutcomeUnknownError: no outcome within the time-out.
        """
        steps = again_while_out_of_turn(
            lambda: self.settling.acknowledge(None, timeout, wait), turn_timeout
        )
        return self._acknowledging(len(self.settling.handed), steps)

    def acknowledge_message(
        self, deliveries: range, timeout: float | None, *, wait: bool = True
    ) -> Steps[None]:
        """Acknowledges what acknowledging one message settles in this mode."""
        alone = self.mode is AckMode.INDIVIDUAL
        steps = self.settling.acknowledge(deliveries if alone else None, timeout, wait)
        return self._acknowledging(len(deliveries if alone else self.settling.handed), steps)

    def _acknowledging(self, count: int, steps: Steps[None]) -> Steps[None]:
        """The steps that acknowledge so many messages; where the mode does nothing, no settling."""
        does_something = count and self.settling.by_application
        return settled("acknowledge", count, steps) if does_something else steps

    def recover(self, *, timeout: float | None = None) -> Steps[None]:
        """Returns everything unacknowledged; delivery begins again with the oldest (SES-28).

        What was handed over comes back with its delivery count raised, after a redelivery delay if
        there is one (INF-13); what was only prefetched comes back as if it had not been delivered.
        `timeout` is in seconds; None: the connection's time-out.

        Raises:
            IllegalStateError: the session is transacted (SES-31) or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        return settled("recover", len(self.settling.handed), self._recover(timeout))

    def _recover(self, timeout: float | None) -> Steps[None]:
        self.engine.check_usable_locked()
        if self.transacted:
            raise IllegalStateError("recover is not for a transacted session: roll back instead")
        yield from self.settling.give_back(timeout)

    def unsubscribe(self, subscription: str) -> Steps[None]:
        """Ends a durable subscription of the connection's client id, with what it holds (SES-62).

        A connection without a client id ends one that was made without (SES-55).

        Raises:
            SubscriptionInUseError: it has a consumer, or messages that are not settled (SES-63).
            InvalidDestinationError: there is none of that name (SES-64).
        """
        fields = {"subscription": subscription}
        yield from self._administer(Unsubscribe, subscription, fields)

    def _administer(
        self,
        operation: type[SessionOperation],
        target: str,
        fields: dict[str, Any],
        result: Callable[[Reply], Any] = lambda _: None,
    ) -> Steps[Reply]:
        self.engine.check_usable_locked()
        return self.engine.administer(operation, target, fields, result)

    def temporary_queue(self) -> Steps[str]:
        """Makes a queue that lives as long as the connection (SES-39).

        Everybody may send to it, only this connection's consumers get from it.

        Returns:
            Its destination, `queue:temporary/...`.
        """
        return self._make_temporary("queue")

    def temporary_topic(self) -> Steps[str]:
        """Makes a topic that lives as long as the connection (SES-39).

        Returns:
            Its destination, `topic:temporary/...`.
        """
        return self._make_temporary("topic")

    def _make_temporary(self, kind: str) -> Steps[str]:
        destination = self.services.name_temporary(kind)
        fields = {"destination": destination}
        yield from self._administer(CreateTemporary, destination, fields, lambda _: destination)
        return destination

    def delete_temporary(self, destination: str) -> Steps[None]:
        """Ends a temporary destination before its connection ends, with what it holds (SES-39).

        Raises:
            DestinationInUseError: it has consumers, or work in flight.
            InvalidDestinationError: it is another connection's or not there, or the text is no
                destination.
            IllegalStateError: the destination is not a temporary one.
        """
        kind, _, name = checked_destination(destination).partition(":")
        if not name.startswith("temporary/"):
            raise IllegalStateError(
                f"{shown(destination)} is no temporary destination: `connection.admin` deletes "
                "queues and topics"
            )
        operation = DeleteTopic if is_topic(destination) else DeleteQueue
        yield from self._administer(operation, destination, {kind: name, "purge": True})

    def flush(self, *, timeout: float | None = None) -> Steps[None]:
        """Waits until everything sent so far has its outcome; commits nothing.

        In a transacted session what was sent is pending for others to see then (INF-02). `timeout`
        is in seconds, for each outcome; None: the connection's.

        Raises:
            OutcomeUnknownError: no outcome within the time-out; or the session was lost meanwhile,
                and it is unknown whether all of it was applied before.
            SessionLostError: the session was lost meanwhile, and not all of it was applied.
            LedgerMQError: puts of the unit of work were refused, and are no part of it; commit the
                rest, or roll back. The error is that of the put.
        """
        self.engine.check_usable_locked()
        self.sends.write_locked()
        yield from self.commits.unit.write_all()
        unanswered = list(self.engine.protocol.pending.values())
        for pending in unanswered:
            yield from self.engine.settled(pending, timeout)
        failure = self.commits.unit.take_failure_locked()
        if failure is None and self.engine.lost is not None:
            failure = next((one.error for one in unanswered if one.error), None)
        if failure is not None:
            raise failure

    def close(self, timeout: float | None) -> Steps[None]:
        """Ends the session, once its listeners have; `closing` says that somebody does."""
        engine = self.engine
        if not engine.ended:
            try:
                self.sends.write_locked()
                if self.settling.refused:
                    yield from self._repair(timeout)
                yield from self.settling.close(timeout)
            except (SessionLostError, OutcomeUnknownError):
                # Gone is gone, by this Close or before it; what is in doubt was put off for later.
                if not engine.ended:
                    raise
        if self.settling.refused:
            LOGGER.warning("%r: acknowledgements were refused: %r", self, self.settling.refused)

    def _repair(self, timeout: float | None) -> Steps[None]:
        """Acknowledges again what was refused with its neighbours; the session ends in any case."""
        try:
            yield from self.settling.repair(timeout)
        except LedgerMQError as error:
            LOGGER.warning("%r: what was acknowledged may come again: %s", self, error)

    def end(self, timeout: float | None = None) -> None:
        """See `ledgermq.Session.close`; in this thread."""
        self.refuse_close()
        if is_interrupted(self.engine.lock):
            close_aside(partial(self.end, timeout))
            return
        try:
            if self.begin_close():
                self.finish_close(timeout)
        except BaseException:
            # Ctrl-C came between the two, or in the end of the second.
            if self._closer == threading.get_ident():
                self.leave()
            raise

    def write_close(self) -> None:
        """Writes the Close, which `finish_close` then waits for; by who began to close.

        Where that cannot be, or something is to be repaired before, `finish_close` does it.
        """
        engine = self.engine
        with engine.lock, contextlib.suppress(LedgerMQError):
            if not engine.ended and not self.settling.refused:
                self.sends.write_locked()
                self.settling.write_close_locked()

    def finish_close(self, timeout: float | None) -> None:
        """Waits for the listener that is running and ends the session; by who began to close."""
        try:
            self.listening.end()
            self.engine.run(self.close(timeout), claims=False)
        finally:
            self.await_callbacks(timeout)
            self.leave()
        self.engine.raise_deferred()

    def leave(self) -> None:
        """Tells the connection that it is over, unless it is not, and can be closed again.

        So it is where Ctrl-C or an error came before the Close was written: else it would hold what
        it has for as long as the connection lives.
        """
        engine = self.engine
        with engine.lock:
            is_over = engine.ended or engine.protocol.is_pending(Close)
            if not is_over:
                engine.closing = False
        if is_over:
            self.services.closed(self)

    def refuse_close(self) -> None:
        """Refuses that a listener or callback of the session ends it, which would wait for it."""
        self.engine.callbacks.refuse("close")
        self.listening.refuse_close()

    def begin_close(self) -> bool:
        """Says to whoever waits in the session that it is being closed; False if it is already."""
        with self.engine.lock:
            if self.engine.closing:
                return False
            self._closer = threading.get_ident()
            self.engine.closing = True
            self.engine.notify_locked()
        return True

    def end_receives(self) -> None:
        """Lets whoever waits for a message go, with None: the connection is being closed."""
        with self.engine.lock:
            self.engine.leaving = True
            self.engine.notify_locked()

    def await_callbacks(self, timeout: float | None) -> None:
        """Completion callbacks belong to what is under way (SES-18)."""
        self.engine.callbacks.wait(self.engine.timeout_seconds if timeout is None else timeout)

    @property
    def is_closed(self) -> bool:
        return self.engine.closing or self.engine.ended

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        name = f"{self.engine.queue_manager}@{self.engine.handle}"
        return f"Session({name}, {self.mode.value}, {state})"


class OfSession:
    """What a session says of itself, to threads and to coroutines."""

    _work: Work

    @property
    def ack_mode(self) -> AckMode:
        """How this session settles what it gets."""
        self._work.engine.check_open()
        return self._work.mode

    @property
    def transacted(self) -> bool:
        """Whether it works in units of work."""
        self._work.engine.check_open()
        return self._work.transacted

    @property
    def handle(self) -> int:
        """The log position of the operation that opened it; its name in the queue manager."""
        self._work.engine.check_open()
        return self._work.engine.handle

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or lost."""
        return self._work.is_closed

    def __repr__(self) -> str:
        return repr(self._work)
