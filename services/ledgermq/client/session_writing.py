"""The engine of a session, the application's side: writes operations and waits for outcomes.

One lock per session guards its protocol state. The application's thread writes and waits; the
connection's reader takes outcomes; its keeper repeats what stays unanswered. Neither of the latter
ever waits here. `Pending.on_settled` is called outside the lock.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ledgermq.client.arguments import check_number, check_seconds
from ledgermq.client.callbacks import Callbacks
from ledgermq.client.log_clock import UNKNOWN
from ledgermq.client.making import aged
from ledgermq.client.protocol import Pending, SessionProtocol
from ledgermq.client.ranges import DeliveryRanges
from ledgermq.client.reasons import error_of_reason
from ledgermq.client.route import LogOut
from ledgermq.client.settings import SEND_TIMEOUT_SECONDS_DEFAULT
from ledgermq.client.transport import LogReceipt
from ledgermq.errors import (
    BrokerUnavailableError,
    IllegalStateError,
    LedgerMQError,
    OutcomeUnknownError,
    TransactionInDoubtError,
)
from ledgermq.protocol.operations import (
    Commit,
    Put,
    PutMessage,
    SessionOperation,
)
from ledgermq.protocol.outcomes import Refused, Reply
from ledgermq.wire.headers import Headers, operation_headers, with_identity

__all__ = ["SessionWriting"]

LOGGER = logging.getLogger("ledgermq.client")
OPERATION: Final = "ledgermq.operation."
# How long the refusal of a send that waited in vain may take to arrive.
REFUSAL_SECONDS: Final = 1.0


class SessionWriting:
    """The application's side of a session: numbers, writes, waits, turns refusals into errors."""

    def __init__(
        self,
        handle: int,
        *,
        mode: str,
        queue_manager: str,
        identity: bytes,
        lane: int,
        transport: LogOut,
        timeout_seconds: float,
        send_timeout_seconds: float = SEND_TIMEOUT_SECONDS_DEFAULT,
        allow_pickle: bool = False,
        redelivery_limit: int = -1,
        log_time: Callable[[], int] = lambda: UNKNOWN,
    ) -> None:
        self.handle = handle
        self.mode = mode
        self.queue_manager = queue_manager
        self.timeout_seconds = timeout_seconds
        self._send_timeout_seconds = send_timeout_seconds
        self.allow_pickle = allow_pickle
        self.redelivery_limit = redelivery_limit
        self.log_time = log_time
        self.protocol = SessionProtocol(handle)
        self.lock = threading.Lock()
        self.condition = threading.Condition(self.lock)
        self.callbacks = Callbacks()
        self.transport = transport
        self.closing = False
        self.lost: LedgerMQError | None = None
        self.ended = False
        self._identity = identity
        self._lane = lane
        self._headers: dict[type[SessionOperation], Headers] = {}
        self._held: list[Pending] = []
        self._user: int | None = None
        self.owner: int | None = None
        self._deferred: LedgerMQError | None = None
        # Handed over, and neither settled nor given back; and, where the library acknowledges, what
        # it has not written yet, what it writes next, and what was refused.
        self.handed = DeliveryRanges()
        self.unwritten = DeliveryRanges()
        self.ripe = DeliveryRanges()
        self.refused = DeliveryRanges()
        # Writes the puts that wait in the unit of work; the session says how.
        self.write_ripe_puts: Callable[[], None] = lambda: None

    # -- the application's side; the lock is held where a method's name ends in _locked ------------

    def check_usable_locked(self) -> None:
        """Refuses use after the end and by two threads at once; raises what was put off."""
        self.check_alive_locked()
        user = self.owner or self._user
        if user is not None and user != threading.get_ident():
            raise IllegalStateError(
                "another thread is inside this session: a session is for one thread at a time, "
                "only close() may come from another"
            )

    def check_open(self) -> None:
        """Refuses what is asked of a session that was closed, be it only a setting (SES-25)."""
        if self.closing:
            raise IllegalStateError("the session is closed; open another one")

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """A call of the session that waits for something else than its outcomes (SES-02)."""
        with self.lock:
            self.check_usable_locked()
            before, self._user = self._user, threading.get_ident()
        try:
            yield
        finally:
            with self.lock:
                self._user = before

    @contextlib.contextmanager
    def alive(self) -> Iterator[None]:
        """The same for sessions that several coroutines may use at a time."""
        with self.lock:
            self.check_alive_locked()
        yield

    def check_alive_locked(self) -> None:
        """Refuses use after the end; raises what was put off."""
        if self._deferred is not None:
            error, self._deferred = self._deferred, None
            raise error
        if self.lost is not None:
            raise self.lost
        if self.closing:
            raise IllegalStateError("the session is closed; open another one")

    def write_locked(
        self,
        operation: type[SessionOperation],
        /,
        *,
        receipt: LogReceipt | None = None,
        on_settled: Callable[[Pending], None] | None = None,
        settles: DeliveryRanges | None = None,
        target: str | None = None,
        with_next: bool = False,
        more: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Pending:
        """Numbers an operation and hands it to the log: at once, or together with the next one.

        Operations that are handed over together reach the log in one request, and cost one flush.
        `more` are fields that may be named as the arguments here are.

        Raises:
            MessageTooLargeError: a record of the log cannot hold it; nothing has changed.
            BrokerUnavailableError, LogError: it cannot be handed over; nothing has changed.
        """
        pending = self.protocol.prepare(operation, **fields, **(more or {}))
        pending.on_settled = on_settled
        pending.deliveries = settles
        pending.destination = target
        if with_next:
            self._held.append(pending)
        else:
            # What is refused before it is on its way uses no number: the session goes on.
            self._send_locked(pending, receipt)
        self.protocol.register(pending)
        return pending

    def put_locked(
        self,
        destination: str,
        messages: list[PutMessage],
        *,
        timeout_seconds: float | None = None,
        receipt: LogReceipt | None = None,
        on_settled: Callable[[Pending], None] | None = None,
        with_next: bool = False,
    ) -> Pending:
        """Writes a Put, which may be held up by a quota for the send time-out (INF-03).

        It ends a second before the call's own time-out: its refusal is to arrive within that.
        """
        waits = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        blocking_seconds = min(self._send_timeout_seconds, waits - REFUSAL_SECONDS)
        return self.write_locked(
            Put,
            receipt=receipt,
            on_settled=on_settled,
            with_next=with_next,
            target=destination,
            destination=destination,
            messages=aged(messages),
            blocking_ms=max(0, round(blocking_seconds * 1000)),
        )

    def send_held_locked(self) -> None:
        """Hands over what was kept for the next operation: somebody is going to wait for it."""
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
                self.queue_manager, self._identity, self._lane, self.handle, name
            )
            self._headers[pending.operation] = shared
        pending.sends += 1
        pending.sent_at = time.monotonic()
        headers = with_identity(shared, self.handle, pending.number)
        self.transport.write(pending.value, headers, receipt)

    def _repeat_locked(self, again: list[Pending]) -> None:
        """Writes pending operations again, as far as they are taken: the keeper comes back."""
        try:
            for pending in again:
                self._send_locked(pending)
        except LedgerMQError as error:
            LOGGER.info("operations are written again later: %s", error)

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
                raise self.unknown(oldest, wanted)
            if self.lost is not None:
                raise self.lost

    def wait_locked(self, deadline: float | None) -> bool:
        """Waits for news of the session; False once the deadline has passed."""
        left = None
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
        if self._held:
            self.send_held_locked()
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
                raise self.unknown(pending, wanted)

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

    def unknown(self, pending: Pending, waited: float) -> OutcomeUnknownError:
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
        check_number("timeout_seconds", timeout_seconds, " of seconds")
        check_seconds("timeout_seconds", timeout_seconds)
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
