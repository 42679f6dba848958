"""Messages of a checkpoint that have nothing but what every message has, as columns.

A deep queue is a million of them: a record for each takes longer to make than the message.
"""

from collections.abc import Sequence
from typing import NamedTuple


class PlainMessages(NamedTuple):
    """StoredMessages that follow one another; each other field of theirs has its default.

    Their columns stand in the order of the fields, `segments` last.
    """

    put_positions: Sequence[int]
    put_indexes: Sequence[int]
    sequences: Sequence[int]
    message_ids: Sequence[bytes]
    priorities: Sequence[int]
    persistent: Sequence[bool]
    sizes_bytes: Sequence[int]
    enqueued_at: Sequence[int]
    segments: Sequence[int]
