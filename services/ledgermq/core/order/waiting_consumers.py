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


def order_waiting(queue: Queue) -> LazyHeap[WaitingKey]:
    ready = queue.ready

    def waits(key: WaitingKey) -> bool:
        consumer = ready.get(key[3:])
        return consumer is not None and key == waiting_key(consumer)

    queue.waiting = LazyHeap(waits, map(waiting_key, ready.values()))
    return queue.waiting


def join_waiting(consumer: Consumer) -> None:
    """Notes that a consumer is new among those that wait, or that its key has changed."""
    if consumer.queue.waiting is not None and consumer.credit:
        consumer.queue.waiting.add(waiting_key(consumer))


def first_waiting(queue: Queue, passed_over: list[WaitingKey]) -> Consumer | None:
    """Which consumer comes first; None if nobody waits who may be given anything.

    Those who may not are `passed_over`; whoever asks adds them again in the end.
    """
    waiting = order_waiting(queue) if queue.waiting is None else queue.waiting
    while (key := waiting.first()) is not None:
        consumer = queue.ready[key[3:]]
        if not is_held_back(consumer):
            return consumer
        passed_over.append(waiting.pop())
    return None
