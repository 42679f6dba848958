"""The base class of all errors, and the errors that fit none of the other files."""

from __future__ import annotations


class LedgerMQError(Exception):
    """Any error of LedgerMQ.

    Attributes:
        code: Stable text for programs.
        retryable: Whether the same call may work when tried again.
        destination: The destination concerned, as `queue:NAME` or `topic:NAME`, or None.
        position: Log position at which the operation was refused, or None.
    """

    code: str = "error"
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retryable: bool | None = None,
        destination: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable
        self.destination = destination
        self.position = position


class IllegalStateError(LedgerMQError):
    """The call is not allowed in this state or mode: a mistake in the calling program."""

    code = "illegal-state"


class InvalidDestinationError(LedgerMQError, LookupError):
    """The text is not `queue:NAME` or `topic:NAME`, or the name in it is not valid."""

    code = "destination-invalid"


class ArgumentTypeError(LedgerMQError, TypeError):
    """A value of the wrong Python type was given; the text names the argument."""

    code = "argument-type"


class UnexpectedReplyError(LedgerMQError):
    """The queue manager answered something other than what was asked: one of the two has a fault.

    The text says what was asked, what came, and at which position.
    """

    code = "reply-unexpected"


class RefusedError(LedgerMQError):
    """The queue manager refused the operation for a reason without an error of its own."""

    code = "refused"


class RepublishStoppedError(LedgerMQError):
    """A message could not be republished; the text says how many before it were."""

    code = "republish-stopped"


class ReplayStoppedError(LedgerMQError):
    """A message could not be put again; the text names it and says how many before it were put.

    Run the same replay again: it goes on with that message.
    """

    code = "replay-stopped"
