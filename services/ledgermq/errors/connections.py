"""Errors of connecting to Kafka and the queue manager, and of answers that do not come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.errors.base import LedgerMQError


class ConnectionClosedError(LedgerMQError, ConnectionError):
    """The connection is closed, or cannot go on after a failure: connect again."""

    code = "connection-closed"


class BrokerUnavailableError(LedgerMQError, ConnectionError):
    """No Kafka broker answers at the address given."""

    code = "broker-unavailable"
    retryable = True


class AuthenticationFailedError(LedgerMQError, ConnectionError):
    """Kafka refused the credentials, or this program refused Kafka's TLS certificate."""

    code = "authentication-failed"


class AccessDeniedError(LedgerMQError, PermissionError):
    """Kafka knows the user and refuses the action; the text says which right is missing.

    `ledgermq acl` prints the rights that a client, worker, auditor or administrator needs.
    """

    code = "access-denied"


class LogError(LedgerMQError):
    """The log is there, but not as LedgerMQ needs it: topics missing, or another layout."""

    code = "log-invalid"


class QueueManagerNotFoundError(LedgerMQError, LookupError):
    """The registry knows no queue manager of this name."""

    code = "queue-manager-unknown"


class SchemaRegistryError(LedgerMQError):
    """What answers at the address is not a schema registry, or it forbids a request."""

    code = "schema-registry-invalid"


class SchemaRegistryUnavailableError(SchemaRegistryError, ConnectionError):
    """No schema registry answers at the address given."""

    code = "schema-registry-unavailable"
    retryable = True


class SchemaRefusedError(SchemaRegistryError):
    """The schema registry has versions of the subject that are incompatible with the schema."""

    code = "schema-refused"


class TimeoutExceededError(LedgerMQError, TimeoutError):
    """Something did not happen within its time-out."""

    code = "timeout"
    retryable = True


class WorkerUnavailableError(TimeoutExceededError):
    """The log is there, but no worker answered for this queue manager."""

    code = "worker-unavailable"


class OutcomeUnknownError(TimeoutExceededError):
    """No outcome came within the time-out: the operation may have been applied, or may yet be.

    Calling again could act twice. `resolve` cannot: it goes on waiting for the same operation.

    Attributes:
        advice: What to do, as its text ends. Whoever shows it to somebody who cannot call `resolve`
            says another.
    """

    code = "outcome-unknown"
    retryable = False
    resolver: Callable[[float], Any] | None = None
    advice: str = (
        "Call resolve() on this error to go on waiting for the same operation; do not send again"
    )

    def __str__(self) -> str:
        what = super().__str__()
        return what if self.resolver is None else f"{what}. {self.advice}"

    def resolve(self, timeout_seconds: float) -> Any:
        """Goes on waiting for the outcome and returns what the call would have returned.

        Args:
            timeout_seconds: How long to wait, in seconds.

        Raises:
            OutcomeUnknownError: the outcome is still unknown after the time-out.
            LedgerMQError: the operation was refused.
        """
        if self.resolver is None:
            raise self
        return self.resolver(timeout_seconds)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled for another process, where nobody can go on waiting."""
        return type(self), self.args, {**vars(self), "resolver": None}
