"""The Root of a checkpoint as bytes, so that its cost follows what changed.

Most of a Root are queues, topics and subscriptions, of which there may be many thousands. Each that
did not change since an earlier checkpoint has its bytes already.
"""

from __future__ import annotations

from typing import Final

from ledgermq.core.snapshot.destination_records import entry_of
from ledgermq.core.snapshot.state_records import TakenRoot
from ledgermq.core.state.taken import Taken
from ledgermq.wire.framing.checkpoint_chunks import encode_root
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.framing.confluent import SINGLE_OBJECT_BYTES

_SCHEMAS: Final = {
    "queues": "ledgermq.checkpoint.QueueEntry",
    "topics": "ledgermq.checkpoint.TopicEntry",
    "subscriptions": "ledgermq.checkpoint.SubscriptionEntry",
}


def encode_taken_root(root: TakenRoot) -> bytes:
    """The bytes of a Root as it was when it was taken, whatever the state is by now."""
    lists = {name: [_encoded(name, one) for one in found] for name, found in root.stores.items()}
    return encode_root(root.rest() | lists)


def _encoded(name: str, taken: Taken) -> bytes:
    if taken.encoded is None:
        value = encode_record(_SCHEMAS[name], entry_of(name, taken))
        taken.encoded = value[SINGLE_OBJECT_BYTES:]
    return taken.encoded
