"""LedgerMQ: a message-queue system whose only source of truth is a transaction log on Kafka.

The client is loaded when it is first used, so that the fold, the worker and the Spark jobs, which
live in this package too, load without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.errors import (
    AlreadySettledError,
    ArgumentTypeError,
    BrokerUnavailableError,
    ClientIDMissingError,
    ConnectionClosedError,
    DeliveryUnknownError,
    DestinationExistsError,
    DestinationInUseError,
    GetOptionsError,
    GroupClashError,
    GroupNotAllowedError,
    GroupNotFoundError,
    IllegalStateError,
    IncompleteGroupError,
    IncompleteMessageError,
    InconsistentBrowseError,
    InconsistentUnitOfWorkError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidGroupError,
    InvalidSelectorError,
    InvalidSubscriptionError,
    LedgerMQError,
    LogError,
    MatchOptionsError,
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
    MessageTooLargeError,
    MessageUndecodableError,
    NameTooLongError,
    OutcomeUnknownError,
    OutOfTurnError,
    PropertyNameError,
    PutsDisabledError,
    QueueManagerNotFoundError,
    QueueNotFoundError,
    QuotaExceededError,
    RefusedError,
    RepublishStoppedError,
    SessionLostError,
    SessionNotFoundError,
    StorageFullError,
    SubscriptionDiffersError,
    SubscriptionInUseError,
    SubscriptionNotFoundError,
    TemporaryDestinationDeletedError,
    TemporaryDestinationForeignError,
    TimeoutExceededError,
    TopicNotFoundError,
    TransactionError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    TransactionTooLargeError,
    UnexpectedReplyError,
    UnsupportedValueError,
    WorkerUnavailableError,
)
from ledgermq.lazy_exports import load as __getattr__  # noqa: F401
from ledgermq.warning_kinds import (
    IncompleteGroupWarning,
    IncompleteMessageWarning,
    InconsistentUnitOfWorkWarning,
    LedgerMQWarning,
)

if TYPE_CHECKING:
    from ledgermq.client.acknowledge_mode import AckMode
    from ledgermq.client.admin import Admin
    from ledgermq.client.browser import Browser
    from ledgermq.client.bytes_message import BytesMessage
    from ledgermq.client.connecting import connect
    from ledgermq.client.connection import Connection
    from ledgermq.client.consumer import Consumer
    from ledgermq.client.getting import GetMatch, GroupStatus, Order, SegmentStatus
    from ledgermq.client.group_sender import GroupSender
    from ledgermq.client.group_state import (
        GroupHolder,
        GroupMember,
        GroupState,
        MissingSegments,
    )
    from ledgermq.client.group_transfer import get_group, put_group
    from ledgermq.client.grouping import GroupPlace
    from ledgermq.client.handling import Handled, OriginCount
    from ledgermq.client.map_message import MapMessage
    from ledgermq.client.message import Message
    from ledgermq.client.origin import Origin
    from ledgermq.client.pins import LogPins, Pin
    from ledgermq.client.producer import Producer
    from ledgermq.client.queue_settings import QueueSettings
    from ledgermq.client.receipts import CommitReceipt, EnqueuedRun, ReceiptFuture, SendReceipt
    from ledgermq.client.requesting import Requestor
    from ledgermq.client.session import Session
    from ledgermq.client.settings import AddressError, PickleWarning
    from ledgermq.client.status import (
        CheckpointStatus,
        QueueManagerStatus,
        QueueStatus,
        SessionStatus,
        SubscriptionStatus,
        TopicStatus,
    )
    from ledgermq.client.storage_status import (
        BodyCacheStatus,
        OldestMessage,
        SegmentState,
        StorageStatus,
    )
    from ledgermq.client.stream_message import StreamMessage
    from ledgermq.client.typed_message import (
        ObjectMessage,
        PlainMessage,
        TextMessage,
        TypedMessage,
    )
    from ledgermq.client.work_status import (
        ConsumerState,
        DeliveryState,
        DestinationWork,
        SessionState,
        TransactionStatus,
    )
    from ledgermq.wire.bodies import StreamBody
    from ledgermq.wire.objects import ObjectBody

__all__ = [
    "AckMode",
    "AddressError",
    "Admin",
    "AlreadySettledError",
    "ArgumentTypeError",
    "BodyCacheStatus",
    "BrokerUnavailableError",
    "Browser",
    "BytesMessage",
    "CheckpointStatus",
    "ClientIDMissingError",
    "CommitReceipt",
    "Connection",
    "ConnectionClosedError",
    "Consumer",
    "ConsumerState",
    "DeliveryState",
    "DeliveryUnknownError",
    "DestinationExistsError",
    "DestinationInUseError",
    "DestinationWork",
    "EnqueuedRun",
    "GetMatch",
    "GetOptionsError",
    "GroupClashError",
    "GroupHolder",
    "GroupMember",
    "GroupNotAllowedError",
    "GroupNotFoundError",
    "GroupPlace",
    "GroupSender",
    "GroupState",
    "GroupStatus",
    "Handled",
    "IllegalStateError",
    "IncompleteGroupError",
    "IncompleteGroupWarning",
    "IncompleteMessageError",
    "IncompleteMessageWarning",
    "InconsistentBrowseError",
    "InconsistentUnitOfWorkError",
    "InconsistentUnitOfWorkWarning",
    "InvalidClientIDError",
    "InvalidDestinationError",
    "InvalidGroupError",
    "InvalidSelectorError",
    "InvalidSubscriptionError",
    "LedgerMQError",
    "LedgerMQWarning",
    "LogError",
    "LogPins",
    "MapMessage",
    "MatchOptionsError",
    "Message",
    "MessageEOFError",
    "MessageFormatError",
    "MessageNotReadableError",
    "MessageNotWriteableError",
    "MessageTooLargeError",
    "MessageUndecodableError",
    "MissingSegments",
    "NameTooLongError",
    "ObjectBody",
    "ObjectMessage",
    "OldestMessage",
    "Order",
    "Origin",
    "OriginCount",
    "OutOfTurnError",
    "OutcomeUnknownError",
    "PickleWarning",
    "Pin",
    "PlainMessage",
    "Producer",
    "PropertyNameError",
    "PutsDisabledError",
    "QueueManagerNotFoundError",
    "QueueManagerStatus",
    "QueueNotFoundError",
    "QueueSettings",
    "QueueStatus",
    "QuotaExceededError",
    "ReceiptFuture",
    "RefusedError",
    "RepublishStoppedError",
    "Requestor",
    "SegmentState",
    "SegmentStatus",
    "SendReceipt",
    "Session",
    "SessionLostError",
    "SessionNotFoundError",
    "SessionState",
    "SessionStatus",
    "StorageFullError",
    "StorageStatus",
    "StreamBody",
    "StreamMessage",
    "SubscriptionDiffersError",
    "SubscriptionInUseError",
    "SubscriptionNotFoundError",
    "SubscriptionStatus",
    "TemporaryDestinationDeletedError",
    "TemporaryDestinationForeignError",
    "TextMessage",
    "TimeoutExceededError",
    "TopicNotFoundError",
    "TopicStatus",
    "TransactionError",
    "TransactionInDoubtError",
    "TransactionRolledBackError",
    "TransactionStatus",
    "TransactionTooLargeError",
    "TypedMessage",
    "UnexpectedReplyError",
    "UnsupportedValueError",
    "WorkerUnavailableError",
    "connect",
    "get_group",
    "put_group",
]
