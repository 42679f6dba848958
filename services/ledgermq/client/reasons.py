"""Refusals as exceptions: which error each reason code of the protocol raises."""

from __future__ import annotations

from typing import Final

from ledgermq import errors

__all__ = ["REASON_ERRORS", "error_of_reason"]

REASON_ERRORS: Final[dict[str, type[errors.LedgerMQError]]] = {
    "answer-too-large": errors.RefusedError,
    "backup-invalid": errors.RefusedError,
    "client-id-in-use": errors.InvalidClientIDError,
    "client-id-missing": errors.ClientIDMissingError,
    "commit-waiting": errors.IllegalStateError,
    "consumer-exists": errors.IllegalStateError,
    "consumer-unknown": errors.IllegalStateError,
    "correction-invalid": errors.RefusedError,
    "credit-invalid": errors.IllegalStateError,
    "delivery-unknown": errors.DeliveryUnknownError,
    "destination-invalid": errors.InvalidDestinationError,
    "destination-unknown": errors.TemporaryDestinationDeletedError,
    "group-clash": errors.GroupClashError,
    "group-invalid": errors.InvalidGroupError,
    "group-not-allowed": errors.GroupNotAllowedError,
    "group-unknown": errors.GroupNotFoundError,
    "journal-empty": errors.RefusedError,
    "kind-unknown": errors.RefusedError,
    "match-options-invalid": errors.MatchOptionsError,
    "message-differs": errors.RefusedError,
    "message-invalid": errors.MessageFormatError,
    "message-too-large": errors.MessageTooLargeError,
    "mode-unknown": errors.IllegalStateError,
    "name-invalid": errors.InvalidDestinationError,
    "not-transacted": errors.IllegalStateError,
    "options-invalid": errors.GetOptionsError,
    "out-of-turn": errors.OutOfTurnError,
    "position-not-reached": errors.TimeoutExceededError,
    "puts-disabled": errors.PutsDisabledError,
    "puts-mismatch": errors.TransactionError,
    "queue-exists": errors.DestinationExistsError,
    "queue-in-use": errors.DestinationInUseError,
    "queue-not-empty": errors.DestinationInUseError,
    "queue-unknown": errors.QueueNotFoundError,
    "quota-exceeded": errors.QuotaExceededError,
    "reason-invalid": errors.RefusedError,
    "reply-forgotten": errors.OutcomeUnknownError,
    "selection-invalid": errors.RefusedError,
    "selector-invalid": errors.InvalidSelectorError,
    "sequence-unknown": errors.RefusedError,
    "session-unknown": errors.SessionLostError,
    "setting-invalid": errors.RefusedError,
    "storage-full": errors.StorageFullError,
    "subscription-differs": errors.SubscriptionDiffersError,
    "subscription-in-use": errors.SubscriptionInUseError,
    "subscription-invalid": errors.InvalidSubscriptionError,
    "subscription-unknown": errors.SubscriptionNotFoundError,
    "target-unknown": errors.SessionNotFoundError,
    "temporary-foreign": errors.TemporaryDestinationForeignError,
    "topic-exists": errors.DestinationExistsError,
    "topic-in-use": errors.DestinationInUseError,
    "topic-not-empty": errors.DestinationInUseError,
    "topic-unknown": errors.TopicNotFoundError,
    "transacted": errors.IllegalStateError,
    "transaction-too-large": errors.TransactionTooLargeError,
    "unit-of-work-ended": errors.TransactionRolledBackError,
    "unit-of-work-inconsistent": errors.InconsistentUnitOfWorkError,
    "version-inactive": errors.RefusedError,
    "version-invalid": errors.RefusedError,
}


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
    target = f" for {destination}" if destination else ""
    error = kind(
        f"refused by {where}{target}: {detail} [{reason}]",
        code=reason,
        destination=destination,
        position=position,
    )
    if kind is errors.MessageTooLargeError:
        error.add_note(
            "A body of text or bytes goes in segments: send_segmented(body, max_segment=...), or "
            "send(body, segmentation_allowed=True), which cuts it where the queue's limit asks for"
        )
    return error
