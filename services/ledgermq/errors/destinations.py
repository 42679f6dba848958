"""Errors of destinations, subscriptions, selectors and quotas."""

from __future__ import annotations

from ledgermq.errors.base import InvalidDestinationError, LedgerMQError


class BindingNotFoundError(LedgerMQError):
    """There is no binding of these topics to this destination."""

    code = "binding-unknown"


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
    """The destination has consumers, open work, messages or subscriptions: it cannot be deleted."""

    code = "queue-in-use"
    retryable = True


class TemporaryDestinationDeletedError(InvalidDestinationError):
    """The temporary destination was deleted, or ended with its connection (SES-39).

    Its code is also that of a queue or topic that was deleted while a put waited for its quota, and
    of one that a setting names and that is not there.
    """

    code = "destination-unknown"


class TemporaryDestinationForeignError(InvalidDestinationError):
    """Only the connection that made a temporary destination gets from it and deletes it."""

    code = "temporary-foreign"


class InvalidSelectorError(LedgerMQError, ValueError):
    """The text is not a valid message selector; the error says at which character and why."""

    code = "selector-invalid"


class InvalidSubscriptionError(LedgerMQError, ValueError):
    """The subscription's name and kind do not go together, or its name is not valid."""

    code = "subscription-invalid"


class SubscriptionDiffersError(LedgerMQError):
    """A durable subscription of this name is shared and this one is not, or vice versa (SES-60)."""

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


class QuotaExceededError(LedgerMQError):
    """The queue, topic or queue manager is full and stayed full for the blocking time (INF-20)."""

    code = "quota-exceeded"


class StorageFullError(LedgerMQError):
    """The storage has as many segments as it may, and none has room for the message (DB-20).

    Nothing was sent; sending works again when messages have left and so freed a segment.
    """

    code = "storage-full"
    retryable = True
