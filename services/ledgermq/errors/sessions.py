"""Errors of sessions: settling messages, units of work, client ids."""

from __future__ import annotations

from ledgermq.errors.base import IllegalStateError, LedgerMQError
from ledgermq.errors.connections import OutcomeUnknownError


class SessionLostError(IllegalStateError):
    """The session was ended by the queue manager; what it held went back to its queues."""

    code = "session-unknown"
    retryable = True


class AlreadySettledError(IllegalStateError):
    """The message was acknowledged already, or went back to its queue."""

    code = "already-settled"


class DeliveryUnknownError(IllegalStateError):
    """A message named by the operation is not, or no longer, in flight in this session."""

    code = "delivery-unknown"


class ClientIDMissingError(IllegalStateError):
    """An unshared durable subscription needs a connection with a client id (SES-45)."""

    code = "client-id-missing"


class InvalidClientIDError(LedgerMQError, ValueError):
    """Another connection uses the client id; it is free when that connection has ended.

    Of a text that is no client id the code is `setting-invalid`, and the error is not `retryable`.
    """

    code = "client-id-in-use"
    retryable = True


class OutOfTurnError(LedgerMQError):
    """An earlier received message must be settled before this one (FIFO mode PROTECTED).

    Nothing changed: settle the earlier message, then repeat the call.
    """

    code = "out-of-turn"
    retryable = True


class SessionNotFoundError(LedgerMQError, LookupError):
    """There is no such session, or it has no unit of work that could be rolled back."""

    code = "target-unknown"


class TransactionError(LedgerMQError):
    """A unit of work did not end as asked."""

    code = "transaction"


class TransactionRolledBackError(TransactionError):
    """The commit failed and the whole unit of work was undone."""

    code = "transaction-rolled-back"
    retryable = True


class DuplicatePutError(TransactionRolledBackError):
    """A deduplication id in the unit of work was put before: the whole unit was undone."""

    code = "duplicate-put"
    retryable = False


class TransactionInDoubtError(TransactionError, OutcomeUnknownError):
    """No outcome of the commit came within the time-out: whether it committed is unknown."""

    code = "transaction-in-doubt"
    retryable = False
