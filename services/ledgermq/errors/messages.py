"""Errors of messages: their size, their kinds, their properties."""

from __future__ import annotations

from ledgermq.errors.base import LedgerMQError


class MessageTooLargeError(LedgerMQError, ValueError):
    """The message is over the size limit; nothing was sent."""

    code = "message-too-large"


class TransactionTooLargeError(LedgerMQError, ValueError):
    """The unit of work, or the message, would take more than a segment of the storage (DB-09).

    The unit of work stays as it was, for commit or rollback.
    """

    code = "transaction-too-large"


class MessageFormatError(LedgerMQError, ValueError):
    """A message cannot carry the body, property or header field, or cannot be read as asked."""

    code = "message-invalid"


class UnsupportedValueError(MessageFormatError):
    """A body, property or entry is of a type, or so large, that a message cannot carry it."""

    code = "value-unsupported"


class PropertyNameError(MessageFormatError):
    """The property's name is not an identifier of the selector language, or is reserved."""

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
    """A stream or bytes message was read while it is being written; call `reset` first."""

    code = "message-not-readable"


class MessageNotWriteableError(LedgerMQError, TypeError):
    """The body or properties are read-only; call `clear_body` or `clear_properties` first."""

    code = "message-not-writeable"
