"""Reason codes of refusals, as PROTOCOL.md lists them; stable, for programs to test."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "BACKUP_INVALID",
    "CLIENT_ID_IN_USE",
    "CLIENT_ID_MISSING",
    "COMMIT_WAITING",
    "CONSUMER_EXISTS",
    "CONSUMER_UNKNOWN",
    "CORRECTION_INVALID",
    "CREDIT_INVALID",
    "DELIVERY_UNKNOWN",
    "DESTINATION_INVALID",
    "DESTINATION_UNKNOWN",
    "GROUP_CLASH",
    "GROUP_INVALID",
    "GROUP_NOT_ALLOWED",
    "GROUP_UNKNOWN",
    "JOURNAL_EMPTY",
    "MATCH_OPTIONS_INVALID",
    "MESSAGE_DIFFERS",
    "MESSAGE_INVALID",
    "MESSAGE_TOO_LARGE",
    "MODE_UNKNOWN",
    "NAME_INVALID",
    "NOT_TRANSACTED",
    "OPTIONS_INVALID",
    "OUT_OF_TURN",
    "POSITION_NOT_REACHED",
    "POSITION_SKIPPED",
    "PUTS_DISABLED",
    "PUTS_MISMATCH",
    "QUEUE_EXISTS",
    "QUEUE_IN_USE",
    "QUEUE_NOT_EMPTY",
    "QUEUE_UNKNOWN",
    "QUOTA_EXCEEDED",
    "REASON_INVALID",
    "RECORD_EMPTY",
    "RECORD_UNREADABLE",
    "REPLY_FORGOTTEN",
    "SCHEMA_UNKNOWN",
    "SELECTION_INVALID",
    "SELECTOR_INVALID",
    "SEQUENCE_UNKNOWN",
    "SESSION_SEQUENCE_GAP",
    "SESSION_UNKNOWN",
    "SESSION_WINDOW_FULL",
    "SETTING_INVALID",
    "STORAGE_FULL",
    "SUBSCRIPTION_DIFFERS",
    "SUBSCRIPTION_INVALID",
    "SUBSCRIPTION_IN_USE",
    "SUBSCRIPTION_UNKNOWN",
    "TARGET_UNKNOWN",
    "TEMPORARY_FOREIGN",
    "TIMESTAMP_UNTRUSTED",
    "TIME_DISAGREES",
    "TOPIC_EXISTS",
    "TOPIC_IN_USE",
    "TOPIC_NOT_EMPTY",
    "TOPIC_UNKNOWN",
    "TRANSACTED",
    "TRANSACTION_TOO_LARGE",
    "UNIT_OF_WORK_ENDED",
    "UNIT_OF_WORK_INCONSISTENT",
    "VERSION_INACTIVE",
    "VERSION_INVALID",
    "Refusal",
]

BACKUP_INVALID: Final = "backup-invalid"
CLIENT_ID_IN_USE: Final = "client-id-in-use"
CLIENT_ID_MISSING: Final = "client-id-missing"
COMMIT_WAITING: Final = "commit-waiting"
CONSUMER_EXISTS: Final = "consumer-exists"
CONSUMER_UNKNOWN: Final = "consumer-unknown"
CORRECTION_INVALID: Final = "correction-invalid"
CREDIT_INVALID: Final = "credit-invalid"
DELIVERY_UNKNOWN: Final = "delivery-unknown"
DESTINATION_INVALID: Final = "destination-invalid"
DESTINATION_UNKNOWN: Final = "destination-unknown"
GROUP_CLASH: Final = "group-clash"
GROUP_INVALID: Final = "group-invalid"
GROUP_NOT_ALLOWED: Final = "group-not-allowed"
GROUP_UNKNOWN: Final = "group-unknown"
JOURNAL_EMPTY: Final = "journal-empty"
MATCH_OPTIONS_INVALID: Final = "match-options-invalid"
MESSAGE_DIFFERS: Final = "message-differs"
MESSAGE_INVALID: Final = "message-invalid"
MESSAGE_TOO_LARGE: Final = "message-too-large"
MODE_UNKNOWN: Final = "mode-unknown"
NAME_INVALID: Final = "name-invalid"
NOT_TRANSACTED: Final = "not-transacted"
OPTIONS_INVALID: Final = "options-invalid"
OUT_OF_TURN: Final = "out-of-turn"
POSITION_NOT_REACHED: Final = "position-not-reached"
POSITION_SKIPPED: Final = "position-skipped"
PUTS_DISABLED: Final = "puts-disabled"
PUTS_MISMATCH: Final = "puts-mismatch"
QUEUE_EXISTS: Final = "queue-exists"
QUEUE_IN_USE: Final = "queue-in-use"
QUEUE_NOT_EMPTY: Final = "queue-not-empty"
QUEUE_UNKNOWN: Final = "queue-unknown"
QUOTA_EXCEEDED: Final = "quota-exceeded"
REASON_INVALID: Final = "reason-invalid"
RECORD_EMPTY: Final = "record-empty"
RECORD_UNREADABLE: Final = "record-unreadable"
REPLY_FORGOTTEN: Final = "reply-forgotten"
SCHEMA_UNKNOWN: Final = "schema-unknown"
SELECTION_INVALID: Final = "selection-invalid"
SELECTOR_INVALID: Final = "selector-invalid"
SEQUENCE_UNKNOWN: Final = "sequence-unknown"
SESSION_SEQUENCE_GAP: Final = "session-sequence-gap"
SESSION_UNKNOWN: Final = "session-unknown"
SESSION_WINDOW_FULL: Final = "session-window-full"
SETTING_INVALID: Final = "setting-invalid"
STORAGE_FULL: Final = "storage-full"
SUBSCRIPTION_DIFFERS: Final = "subscription-differs"
SUBSCRIPTION_INVALID: Final = "subscription-invalid"
SUBSCRIPTION_IN_USE: Final = "subscription-in-use"
SUBSCRIPTION_UNKNOWN: Final = "subscription-unknown"
TARGET_UNKNOWN: Final = "target-unknown"
TEMPORARY_FOREIGN: Final = "temporary-foreign"
TIMESTAMP_UNTRUSTED: Final = "timestamp-untrusted"
TIME_DISAGREES: Final = "time-disagrees"
TOPIC_EXISTS: Final = "topic-exists"
TOPIC_IN_USE: Final = "topic-in-use"
TOPIC_NOT_EMPTY: Final = "topic-not-empty"
TOPIC_UNKNOWN: Final = "topic-unknown"
TRANSACTED: Final = "transacted"
TRANSACTION_TOO_LARGE: Final = "transaction-too-large"
UNIT_OF_WORK_ENDED: Final = "unit-of-work-ended"
UNIT_OF_WORK_INCONSISTENT: Final = "unit-of-work-inconsistent"
VERSION_INACTIVE: Final = "version-inactive"
VERSION_INVALID: Final = "version-invalid"


class Refusal(NamedTuple):
    """Why an operation is refused: a code for programs, a sentence for people."""

    reason: str
    detail: str
