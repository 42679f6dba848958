"""The engine of a session: writes its operations, takes its outcomes, waits, repeats.

One lock per session guards its protocol state. The application's thread writes and waits; the
connection's reader takes outcomes; its keeper repeats what stays unanswered. Neither of the latter
ever waits here. `Pending.on_settled` is called outside the lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from ledgermq.client.protocol import Pending, SessionProtocol
from ledgermq.client.ranges import DeliveryRanges
from ledgermq.client.reasons import error_of_reason
from ledgermq.client.transport import LogReceipt, Transport
from ledgermq.core.operations import (
    Acknowledge,
    Alive,
    CloseConsumer,
    Commit,
    SessionOperation,
)
from ledgermq.core.outcomes import Delivered, Outcome, Refused, Reply, SessionEnded, Suspected
from ledgermq.errors import (
    IllegalStateError,
    LedgerMQError,
    OutcomeUnknownError,
    SessionLostError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from ledgermq.wire.headers import Headers, operation_headers, with_identity

__all__ = ["SessionCore"]

LOGGER = logging.getLogger("ledgermq.client")
OPERATION: Final = "ledgermq.operation."


class SessionCore:
    """What the public session, its producers and its consumers stand on."""

    def __init__(
        self,
        handle: int,
        *,
        mode: str,
        queue_manager: str,
        identity: bytes,
        lane: int,
        transport: Transport,
        timeout_seconds: float,
    ) -> None:
        self.handle = handle
        self.mode = mode
        self.queue_manager = queue_manager
        self.timeout_seconds = timeout_seconds
        self.protocol = SessionProtocol(handle)
        self.lock = threading.Lock()
        self.condition = threading.Condition(self.lock)
        self.transport = transport
        self.closing = False
        self.lost: LedgerMQError | None = None
        self.ended = False
        self.suspected = False
        self._identity = identity
        self._lane = lane
        self._headers: dict[type[SessionOperation], Headers] = {}
        self._user: int | None = None
        self._deferred: LedgerMQError | None = None
        self.unwritten = DeliveryRanges()
        self.ripe = DeliveryRanges()
        self.refused = DeliveryRanges()

    # -- the application's side; the lock is held where a method's name ends in _locked ------------

    def check_usable_locked(self) -> None:
        """Refuses use after the end and by two threads at once; raises what was put off."""
        if self._deferred is not None:
            error, self._deferred = self._deferred, None
            raise error
        if self.lost is not None:
            raise self.lost
        if self.closing:
            raise IllegalStateError("the session is closed; open another one")
        if self._user is not None and self._user != threading.get_ident():
            raise IllegalStateError(
                "another thread is inside this session: a session is for one thread at a time, "
                "only close() may come from another"
            )

    def write_locked(
        self,
        operation: type[SessionOperation],
        /,
        *,
        receipt: LogReceipt | None = None,
        on_settled: Callable[[Pending], None] | None = None,
        settles: DeliveryRanges | None = None,
        target: str | None = None,
        **fields: Any,
    ) -> Pending:
        """Numbers an operation and hands it to the log, at once."""
        pending = self.protocol.write(operation, **fields)
        pending.on_settled = on_settled
        pending.deliveries = settles
        pending.destination = target
        self._send_locked(pending, receipt)
        return pending

    def _send_locked(self, pending: Pending, receipt: LogReceipt | None = None) -> None:
        shared = self._headers.get(pending.operation)
        if shared is None:
            name = OPERATION + pending.operation.__name__
            shared = operation_headers(
                self.queue_manager, self._identity, self._lane, self.handle, name
            )
            self._headers[pending.operation] = shared
        pending.sends += 1
        pending.sent_at = time.monotonic()
        headers = with_identity(shared, self.handle, pending.number)
        self.transport.write(pending.value, headers, receipt)

    def wait_for_room_locked(self, timeout_seconds: float | None = None) -> None:
        """Waits while too many operations are unanswered: the back-pressure of everything sent.

        Raises:
            OutcomeUnknownError: nothing was answered within the time-out.
        """
        if not self.protocol.full:
            return
        wanted = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + wanted
        while self.protocol.full:
            if not self.wait_locked(deadline):
                oldest = next(iter(self.protocol.pending.values()))
                raise self._unknown(oldest, wanted)
            if self.lost is not None:
                raise self.lost

    def wait_locked(self, deadline: float | None) -> bool:
        """Waits for news of the session; False once the deadline has passed."""
        left = None
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
        before, self._user = self._user, threading.get_ident()
        try:
            self.condition.wait(left)
        finally:
            self._user = before
        return True

    def await_settled_locked(self, pending: Pending, timeout_seconds: float | None = None) -> None:
        """Waits until an operation has a reply or an error.

        Raises:
            OutcomeUnknownError: neither came within the time-out.
        """
        if pending.settled:
            return
        wanted = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + wanted
        while not pending.settled:
            if not self.wait_locked(deadline):
                raise self._unknown(pending, wanted)

    def await_locked(self, pending: Pending, timeout_seconds: float | None = None) -> Reply:
        """Waits for an operation's reply and returns it.

        Raises:
            OutcomeUnknownError: no reply within the time-out.
            LedgerMQError: the operation was refused, or the session was lost.
        """
        self.await_settled_locked(pending, timeout_seconds)
        return self.reply_of(pending)

    def reply_of(self, pending: Pending) -> Reply:
        """The reply of a settled operation; raises if it was refused or has none."""
        if pending.error is not None:
            raise pending.error
        reply = pending.reply
        assert reply is not None, "a settled operation has a reply or an error"
        if isinstance(reply, Refused):
            raise self.error_of(reply, pending.destination)
        return reply

    def error_of(self, refused: Refused, destination: str | None = None) -> LedgerMQError:
        """The exception that a refusal becomes."""
        return error_of_reason(
            refused.reason,
            refused.detail,
            queue_manager=self.queue_manager,
            position=refused.position,
            destination=destination,
        )

    def _unknown(self, pending: Pending, waited: float) -> OutcomeUnknownError:
        """Nobody answered in time: the operation may have been applied, or may yet be."""
        kind = TransactionInDoubtError if pending.operation is Commit else OutcomeUnknownError
        error = kind(
            f"no outcome of {pending.operation.__name__} {pending.number} of session "
            f"{self.queue_manager}@{self.handle} within {waited:g} s: it may have been applied, or "
            "may yet be. Call resolve() on this error to go on waiting for the same operation; do "
            f"not send again. Is a worker running for {self.queue_manager}?",
            destination=pending.destination,
        )
        error.resolver = lambda timeout_seconds: self._resolve(pending, timeout_seconds)
        return error

    def _resolve(self, pending: Pending, timeout_seconds: float) -> Any:
        with self.lock:
            reply = self.await_locked(pending, timeout_seconds)
        return reply if pending.result is None else pending.result(reply)

    def defer(self, error: LedgerMQError) -> None:
        """Keeps an error that nobody waited for; the next call of the session raises it."""
        with self.lock:
            if self._deferred is None:
                self._deferred = error

    def raise_deferred(self) -> None:
        """Raises an error that nobody waited for, if there is one."""
        with self.lock:
            error, self._deferred = self._deferred, None
        if error is not None:
            raise error

    def defer_refusal(self, pending: Pending) -> None:
        """on_settled of an operation that nobody waits for: a failure must not pass silently."""
        if pending.error is not None:
            self.defer(pending.error)
        elif isinstance(pending.reply, Refused):
            self.defer(self.error_of(pending.reply, pending.destination))

    # -- the reader's and the keeper's side --------------------------------------------------------

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
            elif isinstance(outcome, Reply):
                self._take_reply_locked(outcome, settled)
            elif isinstance(outcome, Suspected):
                self._show_life_locked()
            self.condition.notify_all()
        for pending in settled:
            if pending.on_settled is not None:
                pending.on_settled(pending)

    def _take_reply_locked(self, reply: Reply, settled: list[Pending]) -> None:
        pending = self.protocol.take_reply(reply)
        if pending is not None:
            settled.append(pending)
        if isinstance(reply, SessionEnded):
            self.ended = True

    def _take_refused_locked(self, refused: Refused, settled: list[Pending]) -> None:
        reason = refused.reason
        if reason == "session-sequence-gap":
            self._repeat_locked(self.protocol.take_gap(refused))
        elif reason == "session-window-full":
            pass  # the keeper repeats it; answers that make room are on their way
        elif reason == "session-unknown":
            self._lose_locked(refused, settled)
        elif reason == "reply-forgotten" and refused.session_sequence not in self.protocol.pending:
            pass  # a late repeat of what was answered long ago
        else:
            self._take_reply_locked(refused, settled)

    def _repeat_locked(self, again: list[Pending]) -> None:
        for pending in again:
            self._send_locked(pending)

    def _end_locked(self, ended: SessionEnded, settled: list[Pending]) -> None:
        """The queue manager ended the session; everything later in the log finds it gone."""
        self.over_locked(
            f"session {self.queue_manager}@{self.handle} was ended at {self.queue_manager}@"
            f"{ended.position} ({ended.reason.lower()}): {ended.returned} deliveries went back, "
            f"{ended.discarded} uncommitted puts vanished. Its client was not heard of in time",
            settled,
            uncertain=False,
        )

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
        """Ends the session without its own doing; what is pending fails, or stays unknown."""
        if self.ended:
            return
        self.ended = True
        self.lost = SessionLostError(text + "; open another session and go on from there")

        def error(pending: Pending) -> LedgerMQError:
            name = f"{pending.operation.__name__} {pending.number}"
            if pending.operation is Commit:
                if uncertain:
                    return TransactionInDoubtError(f"{text}; whether {name} was applied is unknown")
                return TransactionRolledBackError(f"{text}; {name} was not applied: do it again")
            if uncertain:
                return OutcomeUnknownError(f"{text}; whether {name} was applied is unknown")
            return SessionLostError(f"{text}; {name} was not applied")

        settled.extend(self.protocol.end(error, applied_unknown=uncertain))

    def forget(self, text: str) -> None:
        """The session turned out to be gone, from an answer that does not say since when."""
        settled: list[Pending] = []
        with self.lock:
            self.over_locked(text, settled, uncertain=True)
            self.condition.notify_all()
        for pending in settled:
            if pending.on_settled is not None:
                pending.on_settled(pending)

    def _show_life_locked(self) -> None:
        """Any operation clears a suspicion (H5); in a crowd, those pending are repeated anyway."""
        if not self.ended and not self.protocol.crowded:
            self.write_locked(Alive)

    def show_life(self) -> None:
        """Confirms the session, and clears a suspicion that may stand."""
        with self.lock:
            self._show_life_locked()

    def repeat_overdue(self, now: float, patience_seconds: float) -> bool:
        """Writes everything pending again if the oldest waits too long; tells whether it did."""
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
        """For how long the oldest pending operation has been waiting since it was last written."""
        with self.lock:
            oldest = next(iter(self.protocol.pending.values()), None)
            return 0.0 if oldest is None or self.ended else now - oldest.sent_at

    def write_acknowledgements_locked(self) -> None:
        """Writes everything acknowledged and not written yet (AUTO); by the session's user."""
        self.ripe.add_all(self.unwritten.take_all())
        self._write_ripe_locked()

    def _write_ripe_locked(self) -> None:
        if self.ripe and not self.ended:
            ranges = self.ripe.take_all()
            self.write_locked(
                Acknowledge,
                on_settled=self._take_back_refused,
                settles=ranges,
                deliveries=ranges.as_list(),
            )

    def write_ripe_acknowledgements(self) -> bool:
        """Writes what waits since the keeper's last round; tells whether more has come since.

        What was handed over this very moment stays for the next round: `receive` may not have
        returned yet, and a message is acknowledged once it has.
        """
        with self.lock:
            if not self.protocol.crowded:
                self._write_ripe_locked()
            self.ripe.add_all(self.unwritten.take_all())
            return bool(self.ripe)

    def _take_back_refused(self, pending: Pending) -> None:
        """An acknowledgement was refused because administration took one of its messages away."""
        if isinstance(pending.reply, Refused) and pending.deliveries is not None:
            with self.lock:
                self.refused.add_all(pending.deliveries)
        elif pending.error is not None:
            self.defer(pending.error)

    def close_consumer_locked(self, number: int) -> Pending:
        """Closes a consumer; deliveries that cross the close are given back after it."""
        unseen = self.protocol.close_consumer(number)
        return self.write_locked(
            CloseConsumer,
            on_settled=lambda pending: self._give_back_late(number, pending),
            consumer=number,
            unseen=unseen.as_list(),
        )

    def _give_back_late(self, number: int, pending: Pending) -> None:
        """Messages delivered while the close was on its way were seen by nobody."""
        if isinstance(pending.reply, Refused):
            return
        with self.lock:
            late = self.protocol.take_late(number)
            if late and not self.ended:
                self.write_locked(CloseConsumer, consumer=number, unseen=late.as_list())
