"""Questions about queues, topics and subscriptions (PROTOCOL.md section 9; SEQ-06..19).

A status counts what that section names; current + pending = message count + uncommitted puts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ledgermq.core.destinations.by_name import find_destination
from ledgermq.core.destinations.settings_in_force import inherited_by
from ledgermq.core.queries.paging import place_in
from ledgermq.core.state.known_ids import Deduplication
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import (
    AVAILABLE,
    DELAYED,
    GONE_BY,
    UNACKNOWLEDGED,
    UNBORN,
    UNCOMMITTED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.records import Queue, Subscription, Topic
from ledgermq.core.state.resume_mark import ResumeMark
from ledgermq.protocol.documents.destinations import (
    BindingStatus,
    BlockedStatus,
    QueueStatus,
    SubscriptionStatus,
    TopicStatus,
)
from ledgermq.protocol.documents.fields import Document, document_of
from ledgermq.protocol.settings import told_settings
from ledgermq.selector import text_of

# What is pending, and the counter of it.
COUNTED: Final = {
    "unborn": UNBORN,
    "delayed": DELAYED,
    "uncommitted_puts": UNCOMMITTED,
    "unacknowledged": UNACKNOWLEDGED,
    "uncommitted_gets": UNCOMMITTED_GET,
}


def destination_status(state: QueueManager, destination: str) -> Document | None:
    """The status of one queue or topic with what waits for it, or None if it is not there."""
    found = find_destination(state, destination)
    if found is None:
        return None
    return _status(state, found) | {"blocked": blocked_status(state, destination)}


def queue_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    return _by_name(state, state.queues, after)


def queue_statuses(state: QueueManager) -> list[Document]:
    return [status for _, status in queue_entries(state, "")]


def topic_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    return _by_name(state, state.topics, after)


def topic_statuses(state: QueueManager) -> list[Document]:
    return [status for _, status in topic_entries(state, "")]


def source_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    """How far sources were taken, by destination, partition and name, behind one of them."""
    found = sorted(
        (one.destination, partition, name, taken)
        for one in state.destinations
        for (name, partition), taken in one.sources.items()
    )
    destination, _, rest = after.partition(" ")
    partition_after, _, name_after = rest.partition(" ")
    behind = (destination, place_in(partition_after), name_after)
    for destination, partition, name, taken in found:
        if not after or (destination, partition, name) > behind:
            told = {"destination": destination, "name": name, "partition": partition}
            yield f"{destination} {partition} {name}", told | {"taken": taken}


def binding_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    """Bindings behind the one that was made at a position, in the order in which they were made."""
    behind = place_in(after)
    for binding in state.bindings.values():
        if binding.created_position > behind:
            told = document_of(BindingStatus, binding, selector=text_of(binding.selector))
            yield str(binding.created_position), told


def _by_name(
    state: QueueManager, found: Mapping[str, Queue], after: str
) -> Iterator[tuple[str, Document]]:
    """The statuses of what comes behind a name, by name; with each the place behind it."""
    for name in sorted(one for one in found if one > after):
        yield name, _status(state, found[name])


def _status(state: QueueManager, found: Queue) -> Document:
    return _topic_status(state, found) if isinstance(found, Topic) else _queue_status(state, found)


def _queue_status(state: QueueManager, queue: Queue) -> Document:
    return document_of(
        QueueStatus,
        queue,
        group_affinity=queue.affinity is not None,
        groups=len(queue.groups),
        settings=_settings(queue),
        inherited=inherited_by(state, queue),
        **_enqueue_times(queue),
        **_counted(queue),
    )


def _counted(queue: Queue) -> Document:
    counts = {name: queue.counts[state] for name, state in COUNTED.items()}
    sizes = {name + "_bytes": queue.sizes[state] for name, state in COUNTED.items()}
    gone = {name: queue.gone[cause] for name, cause in GONE_BY.items()}
    current = queue.sizes[AVAILABLE]
    return {
        **counts,
        **sizes,
        **gone,
        "current": queue.counts[AVAILABLE],
        "pending": sum(counts.values()),
        "current_bytes": current,
        "pending_bytes": queue.held_bytes - current,
    }


def _settings(found: Queue) -> Document:
    remembers = found.deduplication or Deduplication(0, 0)
    mark = found.resume_mark or ResumeMark(0, 0)
    return {
        **told_settings(found.own_settings),
        "inherits_redelivery": found.inherits_redelivery,
        "single_active_consumer": found.single_active_consumer,
        "available_max": found.available_max,
        "last_value_key": found.last_value_key,
        "deduplication_window_ms": remembers.window_ms,
        "deduplication_ids_max": remembers.ids_max,
        "messages_resume": mark.messages,
        "bytes_resume": mark.bytes,
    }


def _enqueue_times(queue: Queue) -> Document:
    """Enqueue times in µs of the first and last unconsumed message (SEQ-19 without any)."""
    consumed = queue.last_consumed_enqueued_at
    first = last = None if consumed < 0 else consumed
    if queue.unconsumed:
        first = queue.unconsumed[queue.min_sequence].enqueued_at
        last = queue.unconsumed[queue.max_sequence].enqueued_at
    return {"first_enqueued_at": first, "last_enqueued_at": last}


def blocked_status(state: QueueManager, destination: str) -> Document:
    """The blocked puts to a destination; in no other figure of it (INF-05)."""
    waiting = list(state.blocked_at.get(destination, {}).values())
    return document_of(
        BlockedStatus,
        None,
        puts=len(waiting),
        messages=sum(len(one.messages) for one in waiting),
        bytes=sum(one.size_bytes for one in waiting),
        since=waiting[0].since if waiting else None,
    )


def _topic_status(state: QueueManager, topic: Topic) -> Document:
    """A message counts while any subscription still has it (SEQ-17)."""
    return document_of(
        TopicStatus,
        topic,
        settings=_settings(topic) | {"moves_unrouted": topic.moves_unrouted},
        inherited=inherited_by(state, topic),
        subscriptions=len(topic.subscriptions),
        **_enqueue_times(topic),
        **_counted(topic),
    )


def subscription_statuses(state: QueueManager) -> list[Document]:
    return [status for _, status in subscription_entries(state, "")]


def subscription_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    """The statuses of the subscriptions behind a place; with each the place behind it."""
    behind = (after.partition(" ")[2], place_in(after))
    places = {(one.topic.name, one.created_position): one for one in state.subscriptions.values()}
    for place in sorted(one for one in places if one > behind):
        yield f"{place[1]} {place[0]}", _subscription_status(places[place])


def _subscription_status(one: Subscription) -> Document:
    return document_of(
        SubscriptionStatus,
        one,
        **one.key._asdict(),
        topic=one.topic.name,
        selector=text_of(one.selector),
        **_enqueue_times(one),
        **_counted(one),
    )
