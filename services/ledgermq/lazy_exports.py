"""Loads the parts of the client that `ledgermq` exports when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

__all__ = ["HOMES", "load"]

HOMES: Final = {
    "AckMode": "ledgermq.client.acknowledge_mode",
    "AddressError": "ledgermq.client.settings",
    "Admin": "ledgermq.client.admin",
    "BodyCacheStatus": "ledgermq.client.storage_status",
    "Browser": "ledgermq.client.browser",
    "BytesMessage": "ledgermq.client.bytes_message",
    "CheckpointStatus": "ledgermq.client.status",
    "ConsumerState": "ledgermq.client.work_status",
    "DeliveryState": "ledgermq.client.work_status",
    "DestinationWork": "ledgermq.client.work_status",
    "SessionState": "ledgermq.client.work_status",
    "TransactionStatus": "ledgermq.client.work_status",
    "CommitReceipt": "ledgermq.client.receipts",
    "Connection": "ledgermq.client.connection",
    "Consumer": "ledgermq.client.consumer",
    "EnqueuedRun": "ledgermq.client.receipts",
    "GetMatch": "ledgermq.client.getting",
    "GroupHolder": "ledgermq.client.group_state",
    "GroupMember": "ledgermq.client.group_state",
    "GroupPlace": "ledgermq.client.grouping",
    "GroupSender": "ledgermq.client.group_sender",
    "GroupState": "ledgermq.client.group_state",
    "GroupStatus": "ledgermq.client.getting",
    "LogPins": "ledgermq.client.pins",
    "MapMessage": "ledgermq.client.map_message",
    "Message": "ledgermq.client.message",
    "MissingSegments": "ledgermq.client.group_state",
    "ObjectBody": "ledgermq.wire.objects",
    "ObjectMessage": "ledgermq.client.typed_message",
    "OldestMessage": "ledgermq.client.storage_status",
    "Order": "ledgermq.client.getting",
    "Origin": "ledgermq.client.origin",
    "PickleWarning": "ledgermq.client.settings",
    "Pin": "ledgermq.client.pins",
    "PlainMessage": "ledgermq.client.typed_message",
    "Producer": "ledgermq.client.producer",
    "QueueManagerStatus": "ledgermq.client.status",
    "QueueSettings": "ledgermq.client.queue_settings",
    "QueueStatus": "ledgermq.client.status",
    "ReceiptFuture": "ledgermq.client.receipts",
    "Requestor": "ledgermq.client.requesting",
    "SegmentState": "ledgermq.client.storage_status",
    "SegmentStatus": "ledgermq.client.getting",
    "SendReceipt": "ledgermq.client.receipts",
    "Session": "ledgermq.client.session",
    "SessionStatus": "ledgermq.client.status",
    "StorageStatus": "ledgermq.client.storage_status",
    "StreamBody": "ledgermq.wire.bodies",
    "StreamMessage": "ledgermq.client.stream_message",
    "SubscriptionStatus": "ledgermq.client.status",
    "TextMessage": "ledgermq.client.typed_message",
    "TopicStatus": "ledgermq.client.status",
    "TypedMessage": "ledgermq.client.typed_message",
    "connect": "ledgermq.client.connecting",
    "get_group": "ledgermq.client.group_transfer",
    "put_group": "ledgermq.client.group_transfer",
}


def load(name: str) -> Any:
    """An exported name; AttributeError if `ledgermq` exports none of this name."""
    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ledgermq' has no attribute {name!r}")
    return getattr(import_module(home), name)
