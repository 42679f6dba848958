"""The row `groups`: gets in logical order against gets in physical order, on the same queue.

The queue holds groups that were put interleaved, as many publishers at a time would put them: the
messages of a group are as far from one another as they can be. What is compared is the drain of
the whole queue through fold and codec, and what the messages take in memory.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable

from ledgermq.core.apply import apply, new_state
from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol.get_options import Options
from ledgermq.protocol.operations import (
    NO_HEADER,
    Acknowledge,
    Get,
    GetOptions,
    Header,
    OpenConsumer,
    Operation,
    Put,
    PutMessage,
)
from ledgermq.protocol.outcomes import Delivered
from ledgermq.wire.framing.codec import encode_chunk, encode_operation
from ledgermq_benchmarks.fold import BATCH_MESSAGES, START_US, numbered, opening

LOGICAL: GetOptions = Options(logical_order=True, all_messages_available=True).record()


class _Session:
    def __init__(self, state: QueueManager) -> None:
        self.state = state
        self.number = 0
        self._fold(opening(b"b" * 16, "CLIENT"))
        self.handle = state.position

    def _fold(self, operation: Operation) -> list[Delivered]:
        position = self.state.position + 1
        found = apply(self.state, operation, position, START_US + position)
        if found:
            head = found[0]
            outcomes = [one.outcome for one in found]
            encode_chunk(head.previous_position, head.previous_index, outcomes)
        return [one.outcome for one in found if isinstance(one.outcome, Delivered)]

    def put(self, messages: list[PutMessage]) -> None:
        self._do(Put, destination="queue:bench", messages=messages)

    def _do(self, kind: Callable[..., Operation], **fields: object) -> list[Delivered]:
        self.number += 1
        operation = numbered(kind, self.handle, self.number, **fields)
        encode_operation(operation)
        return self._fold(operation)

    def drain(self, options: GetOptions | None) -> int:
        """Gets and acknowledges until nothing is left; returns how many messages came."""
        self._do(OpenConsumer, consumer=1, destination="queue:bench")
        first = 1
        while True:
            wanted = options if first == 1 else None
            found = self._do(Get, consumer=1, credit=BATCH_MESSAGES, options=wanted)
            last = first + sum(len(one.messages) for one in found) - 1
            if last < first:
                return first - 1
            self._do(Acknowledge, deliveries=[{"first": first, "last": last}])
            first = last + 1


def _message(number: int, groups: int, messages: int) -> PutMessage:
    message: PutMessage = {
        "message_id": number.to_bytes(16, "big"),
        "priority": 4,
        "persistent": True,
        "content": b"x" * 200,
    }
    if groups:
        header: Header = {
            **NO_HEADER,
            "group": {
                "group_id": (number % groups + 1).to_bytes(24, "big"),
                "group_sequence": number // groups + 1,
                "offset": 0,
                "length": 0,
                "in_group": True,
                "last_in_group": number >= messages - groups,
                "segment": False,
                "last_segment": False,
                "logical_order": False,
            },
        }
        message["header"] = header
    return message


def filled_queue(messages: int, groups: int) -> _Session:
    """A session whose queue holds so many messages in so many groups, interleaved."""
    session = _Session(new_state())
    for first in range(0, messages, BATCH_MESSAGES):
        batch = range(first, min(first + BATCH_MESSAGES, messages))
        session.put([_message(number, groups, messages) for number in batch])
    return session


def drain_seconds(messages: int, groups: int, *, logical: bool) -> float:
    session = filled_queue(messages, groups)
    gc.collect()
    started = time.perf_counter()
    count = session.drain(LOGICAL if logical else None)
    seconds = time.perf_counter() - started
    assert count == messages, f"{count} of {messages} messages came"
    return seconds


def bytes_per_message(messages: int, groups: int) -> float:
    """What a waiting message takes in the fold's memory, in `groups` groups or in none."""
    gc.collect()
    tracemalloc.start()
    session = filled_queue(messages, groups)
    gc.collect()
    size_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(session.state.queues["bench"].messages) == messages, "all of them wait"
    return size_bytes / messages
