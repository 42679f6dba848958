"""FIFO modes: in which order messages are received and settled (PROTOCOL.md §18, DB-22, H19).

A queue whose mode is not CONCURRENT remembers, in the order of their first delivery, which of its
messages were received and are there still: in somebody's hands, or returned. PROTECTED settles a
message only when those of them that come before it are settled; SERIALIZED delivers one message at
a time, and what came back first.
"""

from __future__ import annotations

from collections import OrderedDict

from ledgermq.core.state.records import SORT_KEY, Message, Queue, Session
from ledgermq.protocol.operations import DeliveryRange, deliveries_in
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.settings import CONCURRENT, PROTECTED, SERIALIZED


def use_fifo_mode(queue: Queue) -> None:
    """Begins or ends to remember what was received, as the settings of a queue now ask."""
    if queue.settings.fifo_mode == CONCURRENT:
        queue.received = None
    elif queue.received is None:
        held = [one for one in queue.messages.values() if one.consumer is not None]
        held.sort(key=SORT_KEY)
        # An ordered one, because the first of many is asked for again and again.
        queue.received = OrderedDict.fromkeys(one.sequence for one in held)


def is_serialized(queue: Queue) -> bool:
    return queue.received is not None and queue.settings.fifo_mode == SERIALIZED


def first_received(queue: Queue) -> Message | None:
    """What a serialized queue delivers again before anything new: the first that was received."""
    if not queue.received:
        return None
    return min((queue.messages[sequence] for sequence in queue.received), key=SORT_KEY)


def check_order(session: Session, ranges: list[DeliveryRange]) -> Refusal | None:
    """Refuses to settle deliveries of protected queues before others that come before them.

    The deliveries must be in flight; those that are settled together are in order together.
    """
    held = session.deliveries
    named: dict[Queue, dict[int, int]] = {}
    for delivery in deliveries_in(ranges):
        queue = held[delivery].queue
        if queue.received is not None and queue.settings.fifo_mode == PROTECTED:
            named.setdefault(queue, {})[held[delivery].sequence] = delivery
    if len(named) > 1:
        # Of several it is the one of the first consumer that is told of.
        queues = [one.queue for one in session.consumers.values()]
        named = {queue: named[queue] for queue in queues if queue in named}
    for queue, deliveries in named.items():
        refusal = _check_queue(queue, deliveries)
        if refusal is not None:
            return refusal
    return None


def _check_queue(queue: Queue, deliveries: dict[int, int]) -> Refusal | None:
    """Refuses deliveries, by sequence number, if one left out comes before one of them."""
    left = len(deliveries)
    assert queue.received is not None, "a protected queue remembers"
    before: Message | None = None
    for sequence in queue.received:
        message = queue.messages[sequence]
        if sequence not in deliveries:
            if before is None or message.sort_key < before.sort_key:
                before = message
            continue
        if before is not None and before.sort_key < message.sort_key:
            return Refusal(
                Reason.OUT_OF_TURN,
                f"delivery {deliveries[sequence]} is message {sequence} of {queue.destination}: "
                f"message {before.sequence} was received before it and is not settled; try again "
                "when it is, or settle both together",
            )
        left -= 1
        if not left:
            break
    assert not left, "what is in flight was received"
    return None
