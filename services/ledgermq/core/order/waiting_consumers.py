"""Which of many consumers that wait at one queue comes first (H23).

Highest priority first, then fewest deliveries in flight, ties to the longest wait. Kept from one
delivery to the next, so that a message costs the same with ten waiting consumers and with a
thousand. A consumer joins again whenever its key changes; the entry of its old key is passed over
when it comes up.
"""

from __future__ import annotations

from ledgermq.core.state.records import Consumer, Queue, WaitingKey
from ledgermq.core.structures.lazy_heap import LazyHeap


def waiting_key(consumer: Consumer) -> WaitingKey:
    """By what a consumer is ordered; its session and number stand last."""
    return (
        -consumer.consumer_priority,
        consumer.in_flight,
        consumer.waiting_since,
        consumer.session.handle,
        consumer.number,
    )


def is_held_back(consumer: Consumer) -> bool:
    """Whether it gets nothing for now.

    Its session is suspected (H23), or its unit of work was ended by administration; or it has a
    doubt in hand (H20).
    """
    session = consumer.session
    return session.suspected or consumer.doubt != 0 or session.unit_of_work_ended_by != ""


def join_ready(consumer: Consumer) -> None:
    """Lets a consumer wait that has credit, unless it is held back."""
    if consumer.credit and not is_held_back(consumer):
        consumer.queue.ready[consumer.key] = consumer
        join_waiting(consumer)


def _order_waiting(queue: Queue) -> LazyHeap[WaitingKey]:
    ready = queue.ready

    def waits(key: WaitingKey) -> bool:
        consumer = ready.get(key[3:])
        return consumer is not None and key == waiting_key(consumer)

    queue.waiting = LazyHeap(waits, map(waiting_key, ready.values()))
    return queue.waiting


def join_waiting(consumer: Consumer) -> None:
    """Notes that a consumer is new among those that are ready, or that its key has changed."""
    if consumer.queue.waiting is not None and consumer.credit:
        consumer.queue.waiting.add(waiting_key(consumer))


def first_waiting(queue: Queue) -> Consumer | None:
    """Which consumer comes first of those that are ready; None: there is none."""
    waiting = _order_waiting(queue) if queue.waiting is None else queue.waiting
    key = waiting.first()
    return None if key is None else queue.ready[key[3:]]
