"""What sending and committing give back: receipts, and futures of receipts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_callback
from ledgermq.client.closing import Uncopied
from ledgermq.client.engine.callbacks import Callbacks
from ledgermq.client.sending.grouping import GroupPlace, place_of
from ledgermq.errors import LedgerMQError, TimeoutExceededError
from ledgermq.protocol.operations import Group

Value = TypeVar("Value")


def settle(outcome: Future[None], error: LedgerMQError | None = None) -> None:
    """Lets go on who waits for an outcome; what is called then is called in this thread."""
    if error is None:
        outcome.set_result(None)
    else:
        outcome.set_exception(error)


class SendReceipt:
    """What is known of a message that was sent; more becomes known when its unit of work commits.

    Attributes:
        destination: Where it was sent to.
        position: Log position of the operation that put it; None until known.
        sequence: Its sequence number in the queue or topic; None until it has one (SEQ-04), and
            for ever if the send waited for the log only. Of a duplicate that of the message that
            was put before.
    """

    __slots__ = (
        "_duplicate",
        "_message_id",
        "_put",
        "_warning",
        "destination",
        "position",
        "sequence",
    )
    # These stay unset where they say nothing, so that they cost other messages nothing.
    _put: Group
    _warning: str
    _duplicate: bool

    def __init__(self, message_id: bytes, destination: str) -> None:
        self._message_id = message_id
        self.destination = destination
        self.position: int | None = None
        self.sequence: int | None = None

    @property
    def message_id(self) -> str:
        """Identity: 32 hexadecimal digits."""
        return self._message_id.hex()

    @property
    def duplicate(self) -> bool:
        """Whether its deduplication id was put before: it was accepted and has vanished."""
        return getattr(self, "_duplicate", False)

    @property
    def group(self) -> GroupPlace | None:
        """Its place in a group, as the producer counted it; None if it is in none."""
        put = getattr(self, "_put", None)
        return None if put is None else place_of(put)

    def __repr__(self) -> str:
        return (
            f"SendReceipt(message_id={self.message_id!r}, destination={self.destination!r}, "
            f"position={self.position}, sequence={self.sequence})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueuedRun:
    """Messages of one commit to one destination, numbered from `first_sequence` on."""

    destination: str
    first_sequence: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReceipt:
    """What a commit did.

    Attributes:
        position: Log position of its outcome.
        enqueued: What it numbered, one run for each destination.
        consumed: How many deliveries it consumed; segments that came as one message count each.
    """

    position: int
    enqueued: tuple[EnqueuedRun, ...]
    consumed: int


@typed
class ReceiptFuture(Uncopied, Generic[Value]):
    """A receipt to come; used like `concurrent.futures.Future`, but cannot be cancelled."""

    __slots__ = ("_callbacks", "_get", "_outcome")

    def __init__(
        self, outcome: Future[None], get: Callable[[], Value], callbacks: Callbacks
    ) -> None:
        self._outcome = outcome
        self._get = get
        self._callbacks = callbacks

    def done(self) -> bool:
        """Whether the outcome is there."""
        return self._outcome.done()

    def result(self, timeout: float | None = None) -> Value:
        """The receipt; waits for it, at most `timeout` seconds; None: as long as it takes.

        Raises:
            TimeoutExceededError: it is not there yet; asking again later is fine.
            LedgerMQError: the operation was refused, or its session was lost.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._get()

    def exception(self, timeout: float | None = None) -> LedgerMQError | None:
        """The error, or None if there is a receipt; waits like `result`.

        Raises:
            TimeoutExceededError: the outcome is not there yet.
        """
        if self._callbacks.left is not None and not self._outcome.done():
            raise self._callbacks.left
        try:
            return self._outcome.exception(timeout)  # type: ignore[return-value] # `settle` has it
        except TimeoutError:
            raise TimeoutExceededError(
                f"no outcome within {timeout:g} s yet; ask this future again, do not send again"
            ) from None

    def add_done_callback(self, callback: Callable[[ReceiptFuture[Value]], object]) -> None:
        """Calls back with this future when the outcome is there, in a thread for callbacks.

        If it is there already, calls back at once in this thread. The session's callbacks are
        called one after the other; commit, rollback and close of the session wait for them, and so
        raise IllegalStateError in one (SES-18, SES-19). Other sessions are free.

        Raises:
            IllegalStateError: a coroutine function, or one with a yield.
        """
        check_callback(callback)
        due = partial(callback, self)
        if self._outcome.done():
            self._callbacks.call(due)
        else:
            self._outcome.add_done_callback(lambda _: self._callbacks.soon(due))
