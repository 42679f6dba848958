"""Reasons of refusals, as PROTOCOL.md lists them: codes that programs test, in words for people."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """Whether the same operation may be accepted another time, and whether anybody is told."""

    # It does not fit the state as it is; later it may.
    STATE = "state"
    # It is wrong in itself.
    OPERATION = "operation"
    # Clients and workers settle it between them, or no client wrote it; no application meets it.
    INTERNAL = "internal"


class Reason(StrEnum):
    """A reason code; equal to its text on the log, which is its name in lower case with hyphens."""

    severity: Severity
    text: str

    def __new__(cls, value: str, severity: Severity, text: str) -> Reason:
        """A member is its code, and bears the other two beside it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.severity = severity
        member.text = text
        return member

    ANSWER_EXPIRED = "answer-expired", Severity.INTERNAL, "the rest of an answer is there no longer"
    ANSWER_TOO_LARGE = "answer-too-large", Severity.STATE, "an answer does not fit a record"
    BACKUP_INVALID = "backup-invalid", Severity.STATE, "a backup goes back behind an earlier one"
    BINDING_UNKNOWN = "binding-unknown", Severity.STATE, "there is no such binding"
    CLIENT_ID_IN_USE = "client-id-in-use", Severity.STATE, "another connection has the client id"
    CLIENT_ID_MISSING = "client-id-missing", Severity.OPERATION, "it takes a client id"
    COMMIT_WAITING = "commit-waiting", Severity.STATE, "a commit of the session waits for room"
    CONSUMER_EXISTS = "consumer-exists", Severity.OPERATION, "the number of a consumer was used"
    CONSUMER_UNKNOWN = "consumer-unknown", Severity.OPERATION, "no open consumer has the number"
    CORRECTION_INVALID = "correction-invalid", Severity.STATE, "it does not fit the message's state"
    CREDIT_INVALID = "credit-invalid", Severity.OPERATION, "the credit is out of range"
    DEDUPLICATION_INVALID = (
        "deduplication-invalid",
        Severity.OPERATION,
        "no put can have that deduplication id",
    )
    DEDUPLICATION_OFF = (
        "deduplication-off",
        Severity.STATE,
        "the destination does not look for puts that come twice",
    )
    DELIVERY_UNKNOWN = "delivery-unknown", Severity.OPERATION, "a delivery is not in flight"
    DESTINATION_INVALID = "destination-invalid", Severity.OPERATION, "it names no destination"
    DESTINATION_UNKNOWN = "destination-unknown", Severity.STATE, "a temporary destination is gone"
    DUPLICATE_PUT = "duplicate-put", Severity.STATE, "a unit of work has a put that was put before"
    GROUP_CLASH = "group-clash", Severity.STATE, "an item contradicts others of its group"
    GROUP_INVALID = "group-invalid", Severity.OPERATION, "no message can have that place in a group"
    GROUP_NOT_ALLOWED = "group-not-allowed", Severity.OPERATION, "topics take no groups"
    GROUP_UNKNOWN = "group-unknown", Severity.STATE, "the queue holds nothing of the group"
    JOURNAL_EMPTY = "journal-empty", Severity.STATE, "there is nothing in the journal"
    KIND_UNKNOWN = "kind-unknown", Severity.OPERATION, "the worker does not know such questions"
    MATCH_OPTIONS_INVALID = (
        "match-options-invalid",
        Severity.OPERATION,
        "what is to be matched is not what logical order brings next",
    )
    MESSAGE_DIFFERS = "message-differs", Severity.OPERATION, "a body is not the message's"
    MESSAGE_INVALID = "message-invalid", Severity.OPERATION, "no message can be like that"
    MESSAGE_TOO_LARGE = "message-too-large", Severity.OPERATION, "a content exceeds its limit"
    MODE_UNKNOWN = "mode-unknown", Severity.OPERATION, "there is no such acknowledge mode"
    NAME_INVALID = "name-invalid", Severity.OPERATION, "no destination can have that name"
    NOT_TRANSACTED = "not-transacted", Severity.OPERATION, "the session has no units of work"
    OPTIONS_INVALID = "options-invalid", Severity.OPERATION, "options of a get do not go together"
    OUT_OF_TURN = "out-of-turn", Severity.STATE, "a message received before is not settled"
    POSITION_NOT_REACHED = (
        "position-not-reached",
        Severity.STATE,
        "the worker did not come to the log position in time",
    )
    POSITION_SKIPPED = "position-skipped", Severity.INTERNAL, "an operator declared it skipped"
    PUTS_DISABLED = "puts-disabled", Severity.STATE, "the destination takes no puts"
    PUTS_MISMATCH = "puts-mismatch", Severity.OPERATION, "a unit of work lacks some of its puts"
    QUESTION_FAILED = "question-failed", Severity.STATE, "a worker fell over a question"
    QUEUE_EXISTS = "queue-exists", Severity.STATE, "there is a queue of the name"
    QUEUE_IN_USE = "queue-in-use", Severity.STATE, "somebody uses the queue"
    QUEUE_MANAGER_STOPPED = (
        "queue-manager-stopped",
        Severity.STATE,
        "no worker can go on with the queue manager as its log or checkpoints are",
    )
    QUEUE_NOT_EMPTY = "queue-not-empty", Severity.STATE, "the queue holds messages"
    QUEUE_UNKNOWN = "queue-unknown", Severity.STATE, "there is no queue of the name"
    QUOTA_EXCEEDED = "quota-exceeded", Severity.STATE, "the quota of a destination is used up"
    REASON_INVALID = "reason-invalid", Severity.OPERATION, "who asks or why is not said as it must"
    RECORD_EMPTY = "record-empty", Severity.INTERNAL, "a record has no value"
    RECORD_UNREADABLE = "record-unreadable", Severity.INTERNAL, "a record cannot be decoded"
    REPLY_FORGOTTEN = "reply-forgotten", Severity.OPERATION, "the reply was said to be known"
    SCHEMA_UNKNOWN = "schema-unknown", Severity.INTERNAL, "a record is of an unknown schema"
    SELECTION_INVALID = "selection-invalid", Severity.OPERATION, "it selects no messages"
    SELECTOR_INVALID = "selector-invalid", Severity.OPERATION, "the selector cannot be read"
    SEQUENCE_UNKNOWN = "sequence-unknown", Severity.STATE, "no message has the sequence number"
    SESSION_SEQUENCE_GAP = "session-sequence-gap", Severity.INTERNAL, "operations were left out"
    SESSION_UNKNOWN = "session-unknown", Severity.STATE, "the session has ended"
    SESSION_WINDOW_FULL = "session-window-full", Severity.INTERNAL, "too many replies are open"
    SETTING_INVALID = "setting-invalid", Severity.OPERATION, "a setting is out of range"
    SOURCES_FULL = "sources-full", Severity.STATE, "a destination has as many sources as it may"
    SOURCE_GAP = "source-gap", Severity.STATE, "positions of a source were left out"
    SOURCE_INVALID = "source-invalid", Severity.OPERATION, "no put can have such a source"
    SOURCE_TAKEN = "source-taken", Severity.STATE, "positions of a source were taken before"
    STORAGE_FULL = "storage-full", Severity.STATE, "no segment of the storage has room"
    SUBSCRIPTION_DIFFERS = "subscription-differs", Severity.STATE, "the name stands for another one"
    SUBSCRIPTION_INVALID = (
        "subscription-invalid",
        Severity.OPERATION,
        "no subscription is like that",
    )
    SUBSCRIPTION_IN_USE = "subscription-in-use", Severity.STATE, "somebody uses the subscription"
    SUBSCRIPTION_UNKNOWN = "subscription-unknown", Severity.STATE, "there is no such subscription"
    TARGET_UNKNOWN = "target-unknown", Severity.STATE, "there is no such session or unit of work"
    TEMPORARY_FOREIGN = "temporary-foreign", Severity.OPERATION, "it is another connection's"
    TIMESTAMP_UNTRUSTED = "timestamp-untrusted", Severity.INTERNAL, "the writer set the append time"
    TIME_DISAGREES = "time-disagrees", Severity.INTERNAL, "a worker's clock says another time"
    TOPIC_EXISTS = "topic-exists", Severity.STATE, "there is a topic of the name"
    TOPIC_IN_USE = "topic-in-use", Severity.STATE, "somebody uses the topic"
    TOPIC_NOT_EMPTY = "topic-not-empty", Severity.STATE, "the topic has durable subscriptions"
    TOPIC_UNKNOWN = "topic-unknown", Severity.STATE, "there is no topic of the name"
    TRANSACTED = "transacted", Severity.OPERATION, "the session settles by commit and rollback"
    TRANSACTION_TOO_LARGE = (
        "transaction-too-large",
        Severity.OPERATION,
        "a unit of work exceeds a segment of the storage",
    )
    UNIT_OF_WORK_ENDED = "unit-of-work-ended", Severity.STATE, "an administrator rolled it back"
    UNIT_OF_WORK_INCONSISTENT = (
        "unit-of-work-inconsistent",
        Severity.OPERATION,
        "a group is put partly in units of work",
    )
    UNIT_OF_WORK_TIMED_OUT = (
        "unit-of-work-timed-out",
        Severity.STATE,
        "it was open or idle for too long and was rolled back",
    )
    VERSION_INACTIVE = "version-inactive", Severity.STATE, "the protocol version is not active yet"
    VERSION_INVALID = "version-invalid", Severity.STATE, "the protocol version cannot become active"


class Refusal(NamedTuple):
    """Why an operation is refused: a code for programs, a sentence for people."""

    reason: str
    detail: str
