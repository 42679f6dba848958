"""The single active consumer of a queue: who that is, and who stands by (PROTOCOL.md §18)."""

from __future__ import annotations

from collections.abc import Collection

from ledgermq.core.order.affinity import drop_bonds
from ledgermq.core.state.records import Consumer, Queue


def active_consumer(queue: Queue) -> Consumer | None:
    """To whom alone a queue delivers: who was given a message of it last, while that is open."""
    active = queue.active
    return active if active is not None and active.key in queue.consumers else None


def ready_consumers(queue: Queue) -> Collection[Consumer]:
    """Those that wait and do not stand by."""
    if not queue.single_active_consumer:
        return queue.ready.values()
    active = active_consumer(queue)
    if active is None:
        return () if queue.in_flight else queue.ready.values()
    return (active,) if active.key in queue.ready else ()


def stands_by(consumer: Consumer) -> bool:
    """Whether a consumer gets nothing because of others, whatever there is."""
    queue = consumer.queue
    active = active_consumer(queue)
    waits = queue.in_flight > 0 if active is None else active is not consumer
    return queue.single_active_consumer and waits


def set_single_active_consumer(queue: Queue, on: bool) -> None:
    queue.single_active_consumer = on
    if not on:
        queue.active = None
    elif queue.affinity is not None:
        # Who stands by would keep its groups from everybody.
        active, bonds = active_consumer(queue), queue.affinity.bonds
        for consumer in {one.key: one for one in bonds.values() if one is not active}.values():
            drop_bonds(consumer)
