"""LedgerMQ: a message-queue system whose only source of truth is a transaction log on Kafka.

The client is loaded when it is first used, so that the fold, the worker and the Spark jobs, which
live in this package too, load without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.errors import (
    AlreadySettledError,
    BrokerUnavailableError,
    ConnectionClosedError,
    DeliveryUnknownError,
    DestinationExistsError,
    DestinationInUseError,
    IllegalStateError,
    InvalidDestinationError,
    LedgerMQError,
    LogError,
    MessageFormatError,
    MessageTooLargeError,
    OutcomeUnknownError,
    QueueManagerNotFoundError,
    QueueNotFoundError,
    RefusedError,
    SessionLostError,
    TimeoutExceededError,
    TransactionError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    WorkerUnavailableError,
)
from ledgermq.lazy_exports import load as __getattr__  # noqa: F401

if TYPE_CHECKING:
    from ledgermq.client.acknowledge_mode import AckMode
    from ledgermq.client.admin import Admin
    from ledgermq.client.browser import Browser
    from ledgermq.client.connection import Connection, connect
    from ledgermq.client.consumer import Consumer
    from ledgermq.client.message import Message
    from ledgermq.client.producer import Producer
    from ledgermq.client.receipts import CommitReceipt, EnqueuedRun, ReceiptFuture, SendReceipt
    from ledgermq.client.session import Session
    from ledgermq.client.settings import AddressError
    from ledgermq.client.status import (
        CheckpointStatus,
        QueueManagerStatus,
        QueueStatus,
        SessionStatus,
    )

__all__ = [
    "AckMode",
    "AddressError",
    "Admin",
    "AlreadySettledError",
    "BrokerUnavailableError",
    "Browser",
    "CheckpointStatus",
    "CommitReceipt",
    "Connection",
    "ConnectionClosedError",
    "Consumer",
    "DeliveryUnknownError",
    "DestinationExistsError",
    "DestinationInUseError",
    "EnqueuedRun",
    "IllegalStateError",
    "InvalidDestinationError",
    "LedgerMQError",
    "LogError",
    "Message",
    "MessageFormatError",
    "MessageTooLargeError",
    "OutcomeUnknownError",
    "Producer",
    "QueueManagerNotFoundError",
    "QueueManagerStatus",
    "QueueNotFoundError",
    "QueueStatus",
    "ReceiptFuture",
    "RefusedError",
    "SendReceipt",
    "Session",
    "SessionLostError",
    "SessionStatus",
    "TimeoutExceededError",
    "TransactionError",
    "TransactionInDoubtError",
    "TransactionRolledBackError",
    "WorkerUnavailableError",
    "connect",
]
