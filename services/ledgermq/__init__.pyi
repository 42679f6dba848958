"""What `ledgermq` exports: listed here alone, for type checkers and for `lazy_exports`."""

from ledgermq import errors as errors
from ledgermq.client.admin.admin import Admin as Admin
from ledgermq.client.admin.manual import Handled as Handled
from ledgermq.client.admin.manual import OriginCount as OriginCount
from ledgermq.client.admin.queue_settings import ManagerSettings as ManagerSettings
from ledgermq.client.admin.queue_settings import QueueSettings as QueueSettings
from ledgermq.client.connection import Connection as Connection
from ledgermq.client.connection import connect as connect
from ledgermq.client.messages.bytes_message import BytesMessage as BytesMessage
from ledgermq.client.messages.map_message import MapMessage as MapMessage
from ledgermq.client.messages.message import Message as Message
from ledgermq.client.messages.origin import Origin as Origin
from ledgermq.client.messages.stream_message import StreamMessage as StreamMessage
from ledgermq.client.messages.typed_message import ObjectMessage as ObjectMessage
from ledgermq.client.messages.typed_message import PlainMessage as PlainMessage
from ledgermq.client.messages.typed_message import TextMessage as TextMessage
from ledgermq.client.messages.typed_message import TypedMessage as TypedMessage
from ledgermq.client.options import AckMode as AckMode
from ledgermq.client.receiving.browser import Browser as Browser
from ledgermq.client.receiving.consumer import Consumer as Consumer
from ledgermq.client.receiving.getting import GetMatch as GetMatch
from ledgermq.client.receiving.getting import GroupStatus as GroupStatus
from ledgermq.client.receiving.getting import Order as Order
from ledgermq.client.receiving.getting import SegmentStatus as SegmentStatus
from ledgermq.client.receiving.requesting import Requestor as Requestor
from ledgermq.client.sending.group_sender import GroupSender as GroupSender
from ledgermq.client.sending.group_transfer import get_group as get_group
from ledgermq.client.sending.group_transfer import put_group as put_group
from ledgermq.client.sending.grouping import GroupPlace as GroupPlace
from ledgermq.client.sending.producer import Producer as Producer
from ledgermq.client.sending.receipts import CommitReceipt as CommitReceipt
from ledgermq.client.sending.receipts import EnqueuedRun as EnqueuedRun
from ledgermq.client.sending.receipts import ReceiptFuture as ReceiptFuture
from ledgermq.client.sending.receipts import SendReceipt as SendReceipt
from ledgermq.client.session import Session as Session
from ledgermq.client.settings import PickleWarning as PickleWarning
from ledgermq.errors.base import *  # noqa: F403
from ledgermq.errors.connections import *  # noqa: F403
from ledgermq.errors.destinations import *  # noqa: F403
from ledgermq.errors.groups import *  # noqa: F403
from ledgermq.errors.messages import *  # noqa: F403
from ledgermq.errors.sessions import *  # noqa: F403
from ledgermq.errors.warnings import IncompleteGroupWarning as IncompleteGroupWarning
from ledgermq.errors.warnings import IncompleteMessageWarning as IncompleteMessageWarning
from ledgermq.errors.warnings import InconsistentUnitOfWorkWarning as InconsistentUnitOfWorkWarning
from ledgermq.errors.warnings import LedgerMQWarning as LedgerMQWarning
from ledgermq.protocol.documents.destinations import QueueStatus as QueueStatus
from ledgermq.protocol.documents.destinations import SourceStatus as SourceStatus
from ledgermq.protocol.documents.destinations import SubscriptionStatus as SubscriptionStatus
from ledgermq.protocol.documents.destinations import TopicStatus as TopicStatus
from ledgermq.protocol.documents.groups import GroupHolder as GroupHolder
from ledgermq.protocol.documents.groups import GroupMember as GroupMember
from ledgermq.protocol.documents.groups import GroupState as GroupState
from ledgermq.protocol.documents.groups import MissingSegments as MissingSegments
from ledgermq.protocol.documents.manager import CheckpointStatus as CheckpointStatus
from ledgermq.protocol.documents.manager import QueueManagerStatus as QueueManagerStatus
from ledgermq.protocol.documents.obstacles import Obstacle as Obstacle
from ledgermq.protocol.documents.obstacles import QueueObstacles as QueueObstacles
from ledgermq.protocol.documents.pins import LogPins as LogPins
from ledgermq.protocol.documents.pins import Pin as Pin
from ledgermq.protocol.documents.sessions import ConsumerState as ConsumerState
from ledgermq.protocol.documents.sessions import DeliveryState as DeliveryState
from ledgermq.protocol.documents.sessions import DestinationWork as DestinationWork
from ledgermq.protocol.documents.sessions import SessionState as SessionState
from ledgermq.protocol.documents.sessions import SessionStatus as SessionStatus
from ledgermq.protocol.documents.sessions import TransactionStatus as TransactionStatus
from ledgermq.protocol.documents.storage import BodyCacheStatus as BodyCacheStatus
from ledgermq.protocol.documents.storage import OldestMessage as OldestMessage
from ledgermq.protocol.documents.storage import SegmentState as SegmentState
from ledgermq.protocol.documents.storage import StorageStatus as StorageStatus
from ledgermq.wire.content.bodies import StreamBody as StreamBody
from ledgermq.wire.content.objects import ObjectBody as ObjectBody
from ledgermq.wire.topics.address import AddressError as AddressError
