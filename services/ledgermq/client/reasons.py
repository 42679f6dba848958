"""What the queue manager says as a code: refusals as exceptions, ends of sessions as sentences."""

from __future__ import annotations

from typing import Final

from ledgermq import errors
from ledgermq.errors.names import NAMES
from ledgermq.errors.shown import cut
from ledgermq.protocol.reasons import Reason, Severity

# The class whose code a reason is; else one of these, or RefusedError.
_SHARED: Final[dict[str, type[errors.LedgerMQError]]] = {
    Reason.COMMIT_WAITING: errors.IllegalStateError,
    Reason.CONSUMER_EXISTS: errors.IllegalStateError,
    Reason.CONSUMER_UNKNOWN: errors.IllegalStateError,
    Reason.CREDIT_INVALID: errors.IllegalStateError,
    Reason.MODE_UNKNOWN: errors.IllegalStateError,
    Reason.NAME_INVALID: errors.InvalidDestinationError,
    Reason.NOT_TRANSACTED: errors.IllegalStateError,
    Reason.POSITION_NOT_REACHED: errors.TimeoutExceededError,
    Reason.PUTS_MISMATCH: errors.TransactionError,
    Reason.QUEUE_MANAGER_STOPPED: errors.WorkerUnavailableError,
    Reason.QUEUE_NOT_EMPTY: errors.DestinationInUseError,
    Reason.REPLY_FORGOTTEN: errors.OutcomeUnknownError,
    Reason.TOPIC_EXISTS: errors.DestinationExistsError,
    Reason.TOPIC_IN_USE: errors.DestinationInUseError,
    Reason.TOPIC_NOT_EMPTY: errors.DestinationInUseError,
    Reason.TRANSACTED: errors.IllegalStateError,
    Reason.UNIT_OF_WORK_ENDED: errors.TransactionRolledBackError,
    Reason.UNIT_OF_WORK_TIMED_OUT: errors.TransactionRolledBackError,
}
_ALL: Final = [getattr(errors, name) for name in NAMES]
_RAISED: Final = {kind.code: kind for kind in _ALL} | _SHARED
REASON_ERRORS: Final[dict[str, type[errors.LedgerMQError]]] = {
    reason: _RAISED.get(reason, errors.RefusedError)
    for reason in Reason
    if reason.severity is not Severity.INTERNAL
}

_ENDS: Final[dict[str, str]] = {
    "ENDED": "Administration ended it; who and why stands on the log",
    "TAKEN_OVER": (
        "Another connection took over its client id: leave the work to that one, or take over "
        "from it"
    ),
}

# What can be done, where the queue manager names nothing that can be typed.
_NOTES: Final[dict[str, str]] = {
    Reason.MESSAGE_TOO_LARGE: (
        "A body of text or bytes goes in segments: send_segmented(body, max_segment=...), or "
        "send(body, segmentation_allowed=True), which cuts it where the queue's limit asks for"
    ),
    Reason.QUEUE_NOT_EMPTY: (
        "It goes with its messages by `ledgermq queue delete {name} --purge`, or by purge=True"
    ),
    Reason.TOPIC_NOT_EMPTY: (
        "It goes with its subscriptions by `ledgermq topic delete {name} --purge`, or by purge=True"
    ),
    Reason.TRANSACTION_TOO_LARGE: (
        "Segments that take more are had by `ledgermq manager alter --segment-bytes`"
    ),
}


def why_ended(reason: str) -> str:
    """Why the queue manager ended a session (SessionEnded)."""
    return _ENDS.get(reason, "Its client was not heard of in time")


def error_of_reason(
    reason: str,
    detail: str,
    *,
    queue_manager: str,
    position: int | None = None,
    destination: str | None = None,
) -> errors.LedgerMQError:
    """The exception for a refusal; an unlisted reason gives RefusedError with that code."""
    kind = REASON_ERRORS.get(reason, errors.RefusedError)
    where = queue_manager if position is None else f"{queue_manager}@{position}"
    target = f" for {cut(destination)}" if destination else ""
    error = kind(
        f"refused by {where}{target}: {detail} [{reason}]",
        code=reason,
        destination=destination,
        position=position,
    )
    note = _NOTES.get(reason)
    if note:
        error.add_note(note.format(name=(destination or "").partition(":")[2]))
    return error
