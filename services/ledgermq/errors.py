"""Errors that LedgerMQ raises: what happened, where, and what to do.

Every error has a stable `code` for programs (`queue-unknown`, `outcome-unknown`, ...), says whether
trying again can help (`retryable`), and names the destination where there is one. Refusals of the
queue manager keep the reason code of the protocol as their `code`. An operation ends in one of
three ways: it worked, it failed, or its outcome is **unknown** (`OutcomeUnknownError`,
`TransactionInDoubtError`): then it may have been applied, or may yet be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.base_errors import (
    ArgumentTypeError,
    IllegalStateError,
    InvalidDestinationError,
    LedgerMQError,
    UnexpectedReplyError,
)
from ledgermq.group_errors import (
    GetOptionsError,
    GroupClashError,
    GroupNotAllowedError,
    GroupNotFoundError,
    IncompleteGroupError,
    IncompleteMessageError,
    InconsistentBrowseError,
    InconsistentUnitOfWorkError,
    InvalidGroupError,
    MatchOptionsError,
)

__all__ = [
    "AlreadySettledError",
    "ArgumentTypeError",
    "BrokerUnavailableError",
    "ClientIDMissingError",
    "ConnectionClosedError",
    "DeliveryUnknownError",
    "DestinationExistsError",
    "DestinationInUseError",
    "GetOptionsError",
    "GroupClashError",
    "GroupNotAllowedError",
    "GroupNotFoundError",
    "IllegalStateError",
    "IncompleteGroupError",
    "IncompleteMessageError",
    "InconsistentBrowseError",
    "InconsistentUnitOfWorkError",
    "InvalidClientIDError",
    "InvalidDestinationError",
    "InvalidGroupError",
    "InvalidSelectorError",
    "InvalidSubscriptionError",
    "LedgerMQError",
    "LogError",
    "MatchOptionsError",
    "MessageEOFError",
    "MessageFormatError",
    "MessageNotReadableError",
    "MessageNotWriteableError",
    "MessageTooLargeError",
    "MessageUndecodableError",
    "NameTooLongError",
    "OutOfTurnError",
    "OutcomeUnknownError",
    "PropertyNameError",
    "PutsDisabledError",
    "QueueManagerNotFoundError",
    "QueueNotFoundError",
    "QuotaExceededError",
    "RefusedError",
    "RepublishStoppedError",
    "SessionLostError",
    "SessionNotFoundError",
    "StorageFullError",
    "SubscriptionDiffersError",
    "SubscriptionInUseError",
    "SubscriptionNotFoundError",
    "TemporaryDestinationDeletedError",
    "TemporaryDestinationForeignError",
    "TimeoutExceededError",
    "TopicNotFoundError",
    "TransactionError",
    "TransactionInDoubtError",
    "TransactionRolledBackError",
    "TransactionTooLargeError",
    "UnexpectedReplyError",
    "UnsupportedValueError",
    "WorkerUnavailableError",
]


class ConnectionClosedError(LedgerMQError, ConnectionError):
    """The connection is closed, or cannot go on."""

    code = "connection-closed"


class BrokerUnavailableError(LedgerMQError, ConnectionError):
    """No Kafka broker answers at the address given."""

    code = "broker-unavailable"
    retryable = True


class LogError(LedgerMQError):
    """The log is there, but not as LedgerMQ needs it: topics missing, or another layout."""

    code = "log-invalid"


class QueueManagerNotFoundError(LedgerMQError, LookupError):
    """The registry knows no queue manager of this name."""

    code = "queue-manager-unknown"


class TimeoutExceededError(LedgerMQError, TimeoutError):
    """Something did not happen within its time-out."""

    code = "timeout"
    retryable = True


class WorkerUnavailableError(TimeoutExceededError):
    """The log is there, but no worker answered for this queue manager."""

    code = "worker-unavailable"


class OutcomeUnknownError(TimeoutExceededError):
    """No outcome came within the time-out: the operation may have been applied, or may yet be.

    Sending again could act twice. `resolve` does not: it goes on waiting for the same operation.
    """

    code = "outcome-unknown"
    retryable = False
    resolver: Callable[[float], Any] | None = None

    def resolve(self, timeout_seconds: float) -> Any:
        """Goes on waiting for the outcome and returns what the call would have returned.

        Raises:
            OutcomeUnknownError: the outcome is still unknown after the time-out.
            LedgerMQError: the operation was refused.
        """
        if self.resolver is None:
            raise self
        return self.resolver(timeout_seconds)


class SessionLostError(IllegalStateError):
    """The session was ended by the queue manager; what it held went back to its queues."""

    code = "session-unknown"
    retryable = True


class AlreadySettledError(IllegalStateError):
    """The message was acknowledged before, or went back to its queue."""

    code = "already-settled"


class DeliveryUnknownError(IllegalStateError):
    """A message named by the operation is not in flight in this session (any more)."""

    code = "delivery-unknown"


class ClientIDMissingError(IllegalStateError):
    """An unshared durable subscription needs a connection with a client id (SES-45)."""

    code = "client-id-missing"


class InvalidClientIDError(LedgerMQError, ValueError):
    """The client id is another connection's; it can be had when that one has ended."""

    code = "client-id-in-use"
    retryable = True


class OutOfTurnError(LedgerMQError):
    """A message was to be settled before one that was received before it (FIFO mode PROTECTED).

    Nothing changed: the same can be asked again once that one is settled.
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


class TransactionInDoubtError(TransactionError, OutcomeUnknownError):
    """No outcome of the commit came within the time-out: committed or not is unknown."""

    code = "transaction-in-doubt"
    retryable = False


class QueueNotFoundError(InvalidDestinationError):
    """There is no such queue, and queues are not created on first use."""

    code = "queue-unknown"


class TopicNotFoundError(InvalidDestinationError):
    """There is no such topic, and topics are not created on first use."""

    code = "topic-unknown"


class DestinationExistsError(InvalidDestinationError):
    """A queue or topic of this name exists already."""

    code = "queue-exists"


class DestinationInUseError(InvalidDestinationError):
    """It has consumers, uncommitted puts, deliveries in flight, messages or subscriptions."""

    code = "queue-in-use"
    retryable = True


class TemporaryDestinationDeletedError(InvalidDestinationError):
    """The temporary destination was deleted, or ended with its connection (SES-39)."""

    code = "destination-unknown"


class TemporaryDestinationForeignError(InvalidDestinationError):
    """Only the connection that made a temporary destination gets from it and deletes it."""

    code = "temporary-foreign"


class InvalidSelectorError(LedgerMQError, ValueError):
    """The text is no message selector; the error says at which of its characters and why."""

    code = "selector-invalid"


class InvalidSubscriptionError(LedgerMQError, ValueError):
    """Name and kind of the subscription do not go together, or the name is none."""

    code = "subscription-invalid"


class SubscriptionDiffersError(LedgerMQError):
    """The name is a shared durable subscription's and this is unshared, or vice versa (SES-60)."""

    code = "subscription-differs"


class SubscriptionInUseError(LedgerMQError):
    """The subscription has consumers or deliveries in flight that stand in the way."""

    code = "subscription-in-use"
    retryable = True


class SubscriptionNotFoundError(InvalidDestinationError):
    """The connection's client id has no durable subscription of this name (SES-64)."""

    code = "subscription-unknown"


class PutsDisabledError(LedgerMQError):
    """Puts to the destination are disabled; an administrator may enable them again."""

    code = "puts-disabled"


class MessageTooLargeError(LedgerMQError, ValueError):
    """The message is over the size limit; nothing was sent."""

    code = "message-too-large"


class QuotaExceededError(LedgerMQError):
    """The queue, topic or queue manager is full, and stayed so for the blocking time (INF-20)."""

    code = "quota-exceeded"


class TransactionTooLargeError(LedgerMQError, ValueError):
    """The unit of work, or the message, would take more than a segment of the storage (DB-09).

    The unit of work stays as it was, for commit or rollback.
    """

    code = "transaction-too-large"


class StorageFullError(LedgerMQError):
    """The storage has as many segments as it may, and none has room for the message (DB-20).

    Nothing was sent; it works again when messages have left the segments that they pin.
    """

    code = "storage-full"
    retryable = True


class MessageFormatError(LedgerMQError, ValueError):
    """A body, property or header field that a message cannot carry, or that cannot be read so."""

    code = "message-invalid"


class UnsupportedValueError(MessageFormatError):
    """A body, property or entry is of a type, or so large, that a message cannot carry it."""

    code = "value-unsupported"


class PropertyNameError(MessageFormatError):
    """The name of a property is no identifier of selectors, or is reserved."""

    code = "property-name-invalid"


class NameTooLongError(MessageFormatError):
    """The name of a property or map entry has more than 255 characters."""

    code = "name-too-long"


class MessageUndecodableError(MessageFormatError):
    """A received body or object does not decode; the message can be settled all the same."""

    code = "message-undecodable"


class MessageEOFError(LedgerMQError, EOFError):
    """A stream or bytes message was read past its end."""

    code = "message-end"


class MessageNotReadableError(LedgerMQError):
    """A stream or bytes message that is being written was read; `reset` makes it readable."""

    code = "message-not-readable"


class MessageNotWriteableError(LedgerMQError, TypeError):
    """Something read-only was to be changed; `clear_body` and `clear_properties` allow it."""

    code = "message-not-writeable"


class RefusedError(LedgerMQError):
    """The queue manager refused the operation for a reason without an error of its own."""

    code = "refused"


class RepublishStoppedError(LedgerMQError):
    """Not all messages could be republished: those before are, and the text says how many."""

    code = "republish-stopped"
