"""The engine of a session: its protocol state and its only lock, its writes and its waits.

The application writes and waits, in threads or coroutines; the connection's reader brings outcomes,
and its heartbeats repeat what is unanswered. Neither of the latter ever waits here.
`Pending.on_settled` is called outside the lock. What ends in `_locked` is called with it held.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from ledgermq.client.arguments import check_number, check_seconds
from ledgermq.client.engine.callbacks import Callbacks
from ledgermq.client.engine.steps import Steps, aside
from ledgermq.client.link.route import LogOut
from ledgermq.client.link.transport import LogReceipt
from ledgermq.client.reasons import error_of_reason, why_ended
from ledgermq.client.sansio.fitting import misfit
from ledgermq.client.sansio.log_clock import UNKNOWN
from ledgermq.client.sansio.protocol import Pending, SessionProtocol
from ledgermq.client.sending.making import aged
from ledgermq.client.settings import ConnectionSettings
from ledgermq.errors import (
    BrokerUnavailableError,
    IllegalStateError,
    LedgerMQError,
    OutcomeUnknownError,
    SessionLostError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    UnexpectedReplyError,
)
from ledgermq.protocol.operations import Alive, Commit, Get, Put, PutMessage, SessionOperation
from ledgermq.protocol.outcomes import (
    Delivered,
    Outcome,
    Refused,
    Reply,
    Returned,
    SessionEnded,
    Suspected,
)
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.codec import OPERATION
from ledgermq.wire.framing.headers import Headers, operation_headers, with_identity

T = TypeVar("T")
LOGGER = logging.getLogger("ledgermq.client")
CLOSED: Final = "the session is closed; open another one"
THREAD_INSIDE: Final = (
    "another thread is inside this session: a session is for one thread at a time, "
    "only close() may come from another"
)
LISTENERS_INSIDE: Final = (
    "the session has message listeners, whose thread alone may use it, and any other only close "
    "it: use another session, or take the listeners away with set_message_listener(None)"
)
# How long the refusal of a send that waited in vain may take to arrive.
REFUSAL_SECONDS: Final = 1.0


class Engine:
    """What sessions, their producers and consumers, and administration rest on.

    Attributes:
        lost: Why the session ended without its own doing; None: it did not.
        timed_out: Which end of its unit of work it has not rolled back after; None: none.
        ended: Whether it is over, closed or lost.
        closing: Whether somebody closes it, or has.
        leaving: Whether its connection is being closed, so that nobody waits for messages.
        owner: The thread that it belongs to, if it has message listeners.
        on_news: Called with the lock held when there is news, for whoever waits without a thread.
        each_round: Called by the heartbeats to write what waits; whether more has come since.
        report_handed_over: Called by the heartbeats, with a clock in seconds.
        heard: Called by the heartbeats: when the last one was written that is on the log.
    """

    def __init__(
        self,
        handle: int,
        mode: str,
        settings: ConnectionSettings,
        *,
        lane: int,
        transport: LogOut,
        log_time: Callable[[], int] = lambda: UNKNOWN,
    ) -> None:
        self.handle = handle
        self.mode = mode
        self.settings = settings
        self.queue_manager = settings.queue_manager
        self.timeout_seconds = settings.timeout_seconds
        self.log_time = log_time
        self.protocol = SessionProtocol(handle)
        self.lock = threading.Lock()
        self.condition = threading.Condition(self.lock)
        self.callbacks = Callbacks()
        self.transport = transport
        self.closing = self.leaving = False
        self.lost: LedgerMQError | None = None
        self.timed_out: TransactionRolledBackError | None = None
        self.ended = False
        self._lane = lane
        self._headers: dict[type[SessionOperation], Headers] = {}
        self._held: list[Pending] = []
        self._user: int | None = None
        self.owner: int | None = None
        self._deferred: LedgerMQError | None = None
        self.on_news: Callable[[], None] = lambda: None
        self.each_round: Callable[[], bool] = lambda: False
        self.report_handed_over: Callable[[float], None] = lambda _: None
        self.heard: Callable[[float], None] = lambda _: None
        # Takes what no call may ever raise.
        self.report: Callable[[LedgerMQError], None] = lambda error: LOGGER.error("%s", error)

    def check_usable_locked(self) -> None:
        """Refuses use after the end and by two threads at once; raises what was put off."""
        if self.closing or self.lost is not None or self._deferred is not None:
            self.check_alive_locked()
        user = self.owner or self._user
        if user is not None and user != threading.get_ident():
            raise IllegalStateError(THREAD_INSIDE if self.owner is None else LISTENERS_INSIDE)

    def check_open(self) -> None:
        """Refuses what is asked of a session that was closed, be it only a setting (SES-25).

        To a listener that runs meanwhile it is open until that returns, as close waits (SES-21).
        """
        if self.closing and self.owner != threading.get_ident():
            raise IllegalStateError(CLOSED)

    def _closed_before(self, pending: Pending) -> LedgerMQError:
        name = f"{pending.operation.__name__} {pending.number}"
        return IllegalStateError(f"{CLOSED}; {name} was not applied: it came after the close")

    def check_alive_locked(self) -> None:
        if self._deferred is not None:
            error, self._deferred = self._deferred, None
            raise error
        if self.lost is not None:
            raise self.lost
        self.check_open()

    def write_locked(
        self,
        operation: type[SessionOperation],
        /,
        *,
        receipt: LogReceipt | None = None,
        on_settled: Callable[[Pending], None] | None = None,
        target: str | None = None,
        with_next: bool = False,
        more: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Pending:
        """Numbers an operation and hands it to the log: at once, or together with the next one.

        Operations that are handed over together reach the log in one request, and cost one flush.
        `more` are fields that may be named as the arguments here are.

        Raises:
            IllegalStateError: the session was closed while its caller waited.
            MessageTooLargeError: a record of the log cannot hold it; nothing has changed.
            BrokerUnavailableError, LogError: it cannot be handed over; nothing has changed.
        """
        if self.ended:
            raise self.lost or IllegalStateError(CLOSED)
        pending = self.protocol.prepare(operation, **fields, **(more or {}))
        pending.on_settled = on_settled
        pending.destination = target
        # Interrupted (Ctrl-C) it may be on its way; refused it is not, and uses no number.
        self.protocol.register(pending)
        try:
            if with_next:
                self._held.append(pending)
            else:
                self._send_locked(pending, receipt)
        except LedgerMQError:
            self.protocol.take_number_back(pending)
            raise
        finally:
            self.protocol.withdraw_for(pending)
        return pending

    def put_locked(
        self,
        destination: str,
        messages: list[PutMessage],
        *,
        deduplication_id: str | None = None,
        timeout_seconds: float | None = None,
        receipt: LogReceipt | None = None,
        on_settled: Callable[[Pending], None] | None = None,
        with_next: bool = False,
    ) -> Pending:
        """Writes a Put, which may be held up by a quota for the send time-out (INF-03).

        It ends a second before the call's own time-out: its refusal is to arrive within that.
        """
        waits = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        blocking_seconds = min(self.settings.send_timeout_seconds, waits - REFUSAL_SECONDS)
        return self.write_locked(
            Put,
            receipt=receipt,
            on_settled=on_settled,
            with_next=with_next,
            target=destination,
            destination=destination,
            messages=aged(messages),
            blocking_ms=max(0, round(blocking_seconds * 1000)),
            deduplication_id=deduplication_id,
        )

    def send_held_locked(self) -> None:
        """Hands over what waits for the next operation: somebody is going to wait for it."""
        held, self._held = self._held, []
        for pending in held:
            try:
                self._send_locked(pending)
            except BrokerUnavailableError as error:
                LOGGER.info("an operation is written later: %s", error)
            except LedgerMQError as error:
                pending.error = error
                self._repeat_locked([self.protocol.replace(pending)])

    def _send_locked(self, pending: Pending, receipt: LogReceipt | None = None) -> None:
        if self._held:
            self.send_held_locked()
        shared = self._headers.get(pending.operation)
        if shared is None:
            name = OPERATION + pending.operation.__name__
            shared = operation_headers(
                self.queue_manager, self.settings.identity, self._lane, self.handle, name
            )
            self._headers[pending.operation] = shared
        pending.sends += 1
        pending.sent_at = time.monotonic()
        headers = with_identity(shared, self.handle, pending.number)
        self.transport.write(pending.value, headers, receipt)

    def _repeat_locked(self, again: list[Pending]) -> None:
        """Writes pending operations again, as far as they are taken: the heartbeats come back."""
        try:
            for pending in again:
                self._send_locked(pending)
        except LedgerMQError as error:
            LOGGER.info("operations are written again later: %s", error)

    def room(self, timeout_seconds: float | None = None) -> Steps[None]:
        """Back-pressure: waits while too much is unanswered, not longer than the time-out."""
        if not self.protocol.full:
            return
        wanted = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + wanted
        while self.protocol.full:
            if not (yield deadline):
                oldest = next(iter(self.protocol.pending.values()))
                raise self.unknown(oldest, wanted)
            if self.lost is not None:
                raise self.lost

    def settled(self, pending: Pending, timeout_seconds: float | None = None) -> Steps[None]:
        """Waits until reply or error are there; OutcomeUnknownError after the time-out."""
        wanted = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + wanted
        while pending.reply is None and pending.error is None:
            if not (yield deadline):
                raise self.unknown(pending, wanted)

    def reply(self, pending: Pending, timeout_seconds: float | None = None) -> Steps[Reply]:
        """Waits for the reply; raises for a refusal, a lost session and after the time-out."""
        yield from self.settled(pending, timeout_seconds)
        return self.reply_of(pending)

    def ask(self, call: Callable[[], T]) -> Steps[T]:
        """A call of the session that waits for something else than its outcomes (SES-02)."""
        self.check_usable_locked()
        return (yield from aside(call))

    def administer(
        self,
        operation: type[SessionOperation],
        target: str | None,
        fields: Mapping[str, Any],
        result: Callable[[Reply], Any] | None = None,
    ) -> Steps[Reply]:
        """Writes an operation and waits until it was applied.

        `result` makes of the reply what resolving it returns, if the wait was given up; else that
        returns the reply.
        """
        yield from self.room()
        pending = self.write_locked(operation, target=target, more=fields)
        pending.result = result
        return (yield from self.reply(pending))

    def run(self, steps: Steps[T], *, claims: bool = True) -> T:
        with self.lock:
            return self.run_locked(steps, claims=claims)

    def run_locked(self, steps: Steps[T], *, claims: bool = True) -> T:
        """Takes steps in this thread, which is the session's user meanwhile if it `claims` that."""
        try:
            wanted = next(steps)
            while True:
                try:
                    if callable(wanted):
                        came = self._call_aside_locked(wanted, claims)
                    else:
                        came = self.wait_locked(wanted, claims=claims)
                except BaseException as error:
                    wanted = steps.throw(error)
                else:
                    wanted = steps.send(came)
        except StopIteration as end:
            result: T = end.value
            return result

    def _call_aside_locked(self, call: Callable[[], Any], claims: bool) -> Any:
        with self._used_locked(claims):
            self.lock.release()
            try:
                return call()
            finally:
                self.lock.acquire()

    @contextlib.contextmanager
    def _used_locked(self, claims: bool) -> Iterator[None]:
        """Around a wait without the lock; who may be there beside a user claims nothing."""
        if not claims:
            yield
            return
        before, self._user = self._user, threading.get_ident()
        try:
            yield
        finally:
            self._user = before

    def wait_locked(self, deadline: float | None, *, claims: bool = True) -> bool:
        """Waits for news of the session; False once the deadline has passed."""
        left = None
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
        if self._held:
            self.send_held_locked()
        with self._used_locked(claims):
            self.condition.wait(left)
        return True

    def notify_locked(self) -> None:
        self.condition.notify_all()
        self.on_news()

    def reply_of(self, pending: Pending) -> Reply:
        if pending.error is not None:
            raise pending.error
        reply = pending.reply
        assert reply is not None, "a settled operation has a reply or an error"
        if isinstance(reply, Refused):
            raise self.error_of(reply, pending.destination)
        return reply

    def error_of(self, refused: Refused, destination: str | None = None) -> LedgerMQError:
        return error_of_reason(
            refused.reason,
            refused.detail,
            queue_manager=self.queue_manager,
            position=refused.position,
            destination=destination,
        )

    def unknown(self, pending: Pending, waited: float) -> OutcomeUnknownError:
        """Nobody answered in time: the operation may have been applied, or may yet be."""
        kind = TransactionInDoubtError if pending.operation is Commit else OutcomeUnknownError
        slow = "operations wait here to be sent; is the network to the broker slow?"
        worker = f"does a worker of this release serve {self.queue_manager}?"
        hint = self.transport.away or (slow if self.transport.is_held_up else worker)
        if (unread := self.protocol.unread) is not None and not unread.settled:
            hint = f"the worker does not read operation {unread.number}: is its version older?"
        error = kind(
            f"no outcome of {pending.operation.__name__} {pending.number} of session "
            f"{self.queue_manager}@{self.handle} within {waited:.3g} s ({hint}): it may have been "
            "applied, or may yet be",
            destination=pending.destination,
        )
        error.resolver = lambda timeout_seconds: self._resolve(pending, timeout_seconds)
        return error

    def _resolve(self, pending: Pending, timeout_seconds: float) -> Any:
        check_number("timeout_seconds", timeout_seconds, " of seconds")
        check_seconds("timeout_seconds", timeout_seconds)
        reply = self.run(self.reply(pending, timeout_seconds), claims=False)
        return reply if pending.result is None else pending.result(reply)

    def defer(self, error: LedgerMQError) -> None:
        """Keeps an error that nobody waited for; the next call of the session raises it."""
        with self.lock:
            self.defer_locked(error)

    def defer_locked(self, error: LedgerMQError) -> None:
        self._deferred = self._deferred or error

    def raise_deferred(self) -> None:
        with self.lock:
            error, self._deferred = self._deferred, None
        if error is not None:
            raise error

    def defer_refusal(self, pending: Pending) -> None:
        """on_settled of an operation that nobody waits for: a failure must not pass silently."""
        if pending.error is not None:
            # What came behind the Close is no failure, nor are messages that a lost session lacks.
            if not self.ended or (self.lost is not None and pending.operation is not Get):
                self.defer(pending.error)
        elif isinstance(pending.reply, Refused):
            self.defer(self.error_of(pending.reply, pending.destination))

    # -- outcomes, brought by the reader -----------------------------------------------------------

    def take(self, outcome: Outcome) -> None:
        """Takes one outcome of this session; called by the reader."""
        settled: list[Pending] = []
        with self.lock:
            if isinstance(outcome, Delivered):
                self.protocol.take_delivered(outcome)
            elif isinstance(outcome, Refused):
                self._take_refused_locked(outcome, settled)
            elif isinstance(outcome, SessionEnded) and not outcome.session_sequence:
                self._end_locked(outcome, settled)
            elif isinstance(outcome, Returned) and not outcome.session_sequence:
                self._time_out_locked(outcome)
            elif isinstance(outcome, Reply):
                self._take_reply_locked(outcome, settled)
            elif isinstance(outcome, Suspected):
                self._show_life_locked()
            self.notify_locked()
        _tell_settled(settled)

    def _take_reply_locked(self, reply: Reply, settled: list[Pending]) -> None:
        if reply.session_sequence >= self.protocol.next_number:
            self._refuse_unasked_locked(reply)
            return
        pending = self.protocol.take_reply(reply)
        if pending is not None:
            pending.error = misfit(pending, reply, transacted=self.mode == "TRANSACTED")
            if pending.error is not None:
                pending.reply = None
                LOGGER.error("%s", pending.error)
            settled.append(pending)
        if isinstance(reply, SessionEnded):
            self.ended = True
            # What other threads have written behind the Close finds no session, nor an answer.
            settled.extend(self.protocol.end(self._closed_before))

    def _refuse_unasked_locked(self, reply: Reply) -> None:
        """A reply to an operation that was never written; the session's next call raises it."""
        error = UnexpectedReplyError(
            f"{type(reply).__name__} came for operation {reply.session_sequence} of session "
            f"{self.queue_manager}@{self.handle}, which has written {self.protocol.next_number - 1}"
            ": another client writes in its name, or the queue manager has a fault; report it with "
            "the log position",
            position=reply.position,
        )
        self.report(error)
        self.defer_locked(error)

    def _take_refused_locked(self, refused: Refused, settled: list[Pending]) -> None:
        reason, number = refused.reason, refused.session_sequence
        if reason == Reason.SESSION_SEQUENCE_GAP:
            self._repeat_locked(self.protocol.take_gap(refused))
        elif reason == Reason.SESSION_WINDOW_FULL:
            pass  # the heartbeats repeat it; answers that make room are on their way
        elif reason == Reason.SESSION_UNKNOWN:
            self._lose_locked(refused, settled)
        elif reason == Reason.REPLY_FORGOTTEN and number not in self.protocol.pending:
            pass  # a late repeat of what was answered long ago
        else:
            self._take_reply_locked(refused, settled)

    def _end_locked(self, ended: SessionEnded, settled: list[Pending]) -> None:
        """The queue manager ended the session; everything later in the log finds it gone."""
        self.over_locked(
            f"session {self.queue_manager}@{self.handle} was ended at {self.queue_manager}@"
            f"{ended.position} ({ended.reason.lower()}): {ended.returned} deliveries went back, "
            f"{ended.discarded} uncommitted puts vanished. {why_ended(ended.reason)}",
            settled,
            uncertain=False,
        )

    def check_unit_of_work_locked(self) -> None:
        """Raises what ended the unit of work: nothing is put or got before it is rolled back."""
        if self.timed_out is not None:
            raise self.timed_out

    def _time_out_locked(self, ended: Returned) -> None:
        """A time limit ended the unit of work; whoever puts or gets would do so in vain."""
        self.timed_out = TransactionRolledBackError(
            f"the unit of work of session {self.queue_manager}@{self.handle} broke a time limit at "
            f"{self.queue_manager}@{ended.position}: {ended.returned} deliveries went back, "
            f"{ended.discarded} uncommitted puts vanished; roll back and do it again",
            position=ended.position,
        )
        LOGGER.warning("%s", self.timed_out)

    def _lose_locked(self, refused: Refused, settled: list[Pending]) -> None:
        """Refused for a session that is gone; a repeated operation may have acted before that."""
        pending = self.protocol.pending.get(refused.session_sequence)
        if pending is None and not refused.session_sequence:
            return
        uncertain = any(one.sends > 1 for one in self.protocol.pending.values())
        self.over_locked(
            f"session {self.queue_manager}@{self.handle} is gone: {refused.detail}",
            settled,
            uncertain=uncertain,
        )

    def over_locked(self, text: str, settled: list[Pending], *, uncertain: bool) -> None:
        """Ends the session without its own doing; what is pending fails, or is unknown."""
        if self.ended:
            return
        self.ended = True
        self.lost = SessionLostError(text + "; open another session and go on from there")
        if not self.closing:
            # Nobody may be waiting here: the session's next call raises it.
            self.report(self.lost)

        def error(pending: Pending) -> LedgerMQError:
            name = f"{pending.operation.__name__} {pending.number}"
            if pending.operation is Commit:
                if uncertain:
                    return TransactionInDoubtError(f"{text}; whether {name} was applied is unknown")
                return TransactionRolledBackError(f"{text}; {name} was not applied: do it again")
            if uncertain:
                return OutcomeUnknownError(f"{text}; whether {name} was applied is unknown")
            return SessionLostError(f"{text}; {name} was not applied")

        over = self.protocol.end(error)
        settled.extend(over)
        # AUTO promises that nothing acknowledged comes back; here it may, so close must say so.
        broken = [one.error for one in over if one.promised]
        self._deferred = self._deferred or next(iter(broken), None)

    def forget(self, text: str) -> None:
        """The session turned out to be gone, from an answer that does not say since when."""
        settled: list[Pending] = []
        with self.lock:
            self.over_locked(text, settled, uncertain=True)
            self.notify_locked()
        _tell_settled(settled)

    def stay_behind(self, error: LedgerMQError) -> None:
        """In the child of a fork: the session is the parent's, and with it what it was handed.

        Its locks may be held by threads that are not there.
        """
        self.lock = threading.Lock()
        self.condition = threading.Condition(self.lock)
        self.callbacks.stay_behind(error)
        self.owner = self._user = self._deferred = None
        self.ended = True
        self.lost = error

    def _show_life_locked(self) -> Pending | None:
        """Any operation clears a suspicion (H5); in a crowd, those pending are repeated anyway."""
        return None if self.ended or self.protocol.crowded else self.write_locked(Alive)

    def show_life(self) -> Pending | None:
        """Confirms the session, and clears a suspicion that there may be, by what is returned."""
        with self.lock:
            return self._show_life_locked()

    def repeat_overdue(self, now: float, patience_seconds: float) -> bool:
        """Writes everything pending again if the oldest waits too long; whether it did."""
        with self.lock:
            if self.ended or not self.protocol.pending:
                return False
            oldest = next(iter(self.protocol.pending.values()))
            # Each further repeat waits longer: a worker that starts needs no flood of repeats.
            if now - oldest.sent_at < patience_seconds * oldest.sends:
                return False
            self._repeat_locked(list(self.protocol.pending.values()))
            return True

    def oldest_wait_seconds(self, now: float) -> float:
        with self.lock:
            oldest = next(iter(self.protocol.pending.values()), None)
            return 0.0 if oldest is None or self.ended else now - oldest.sent_at


def _tell_settled(settled: list[Pending]) -> None:
    for pending in settled:
        if pending.on_settled is not None:
            pending.on_settled(pending)
