"""Queues and topics created, altered and deleted by name (PROTOCOL.md §5, §14; SEQ-10, SEQ-11).

What is said of both is done in one way; the settings that only one has are named in its operations.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ledgermq.core.destinations.by_name import (
    UNKNOWN,
    add_destination,
    check_new_name,
    check_target,
    find_destination,
    new_destination,
    remove_destination,
)
from ledgermq.core.destinations.deduplication import checked_deduplication, set_deduplication
from ledgermq.core.destinations.resume_marks import changed_mark, checked_mark
from ledgermq.core.destinations.settings_in_force import configure
from ledgermq.core.destinations.temporaries import check_owner
from ledgermq.core.entry import Entry
from ledgermq.core.order.affinity import set_affinity
from ledgermq.core.order.displacing import check_key, keep_newest
from ledgermq.core.order.single_active import set_single_active_consumer
from ledgermq.core.quoting import shown_name
from ledgermq.core.ranges import check_range
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import UNCOMMITTED
from ledgermq.core.state.records import Queue, Session, Topic
from ledgermq.protocol.limits import (
    CONTENT_BYTES_MAX,
    CREDIT_MAX,
    DESCRIPTION_CHARACTERS_MAX,
    QUOTA_MAX,
)
from ledgermq.protocol.operations import (
    AlterQueue,
    AlterTopic,
    CreateQueue,
    CreateTopic,
    DeleteQueue,
    DeleteTopic,
)
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.settings import Settings, changed, targets_of, wrong_in

Create = CreateQueue | CreateTopic
Alter = AlterQueue | AlterTopic
Delete = DeleteQueue | DeleteTopic

# Settings that have a field of that name in the operations, None where they stay as they are.
SETTINGS: Final = (
    "description",
    "message_bytes_max",
    "unacknowledged_max",
    "gets_disabled",
    "single_active_consumer",
    "moves_unrouted",
)


class _Reasons(NamedTuple):
    exists: Reason
    in_use: Reason
    not_empty: Reason


REASONS: Final = {
    "queue": _Reasons(Reason.QUEUE_EXISTS, Reason.QUEUE_IN_USE, Reason.QUEUE_NOT_EMPTY),
    "topic": _Reasons(Reason.TOPIC_EXISTS, Reason.TOPIC_IN_USE, Reason.TOPIC_NOT_EMPTY),
}


def _named(operation: Create | Alter | Delete) -> tuple[str, str]:
    """The kind of destination that an operation is about, and its name."""
    if isinstance(operation, CreateQueue | AlterQueue | DeleteQueue):
        return "queue", operation.queue
    return "topic", operation.topic


def create(entry: Entry, session: Session, operation: Create) -> Refusal | None:
    """Creates a queue or topic; its first message gets number 0 (SEQ-10, SEQ-11, SEQ-17)."""
    kind, name = _named(operation)
    refusal = check_new_name(kind, name)
    if refusal is not None:
        return refusal
    made = new_destination(entry.state, f"{kind}:{name}", entry.position)
    if find_destination(entry.state, made.destination) is not None:
        return Refusal(REASONS[kind].exists, f"{kind} {name} exists already")
    refusal = _change(entry, made, operation)
    if refusal is None:
        add_destination(entry.state, made)
    return refusal


def alter(entry: Entry, session: Session, operation: Alter) -> Refusal | None:
    """Changes settings, a topic's for its subscriptions too; what is resumed delivers at once."""
    kind, name = _named(operation)
    found = find_destination(entry.state, f"{kind}:{name}")
    if found is None:
        return unknown(kind, name)
    refusal = _change(entry, found, operation)
    if refusal is not None:
        return refusal
    for store in _stores_of(found):
        store.unacknowledged_max = found.unacknowledged_max
        set_single_active_consumer(store, found.single_active_consumer)
        keep_newest(store, found.available_max, found.last_value_key)
        entry.touch(store)
    return None


def _stores_of(found: Queue) -> list[Queue]:
    return list(found.subscriptions.values()) if isinstance(found, Topic) else [found]


def _change(entry: Entry, found: Queue, operation: Create | Alter) -> Refusal | None:
    description, affinity = operation.description, getattr(operation, "group_affinity", None)
    if description is not None and len(description) > DESCRIPTION_CHARACTERS_MAX:
        return Refusal(
            Reason.SETTING_INVALID,
            f"description has {len(description)} characters, "
            f"at most {DESCRIPTION_CHARACTERS_MAX} fit",
        )
    refusal = (
        check_range("message_bytes_max", operation.message_bytes_max, 0, CONTENT_BYTES_MAX)
        or check_range("unacknowledged_max", operation.unacknowledged_max, 0, CREDIT_MAX)
        or check_range("available_max", operation.available_max, 0, QUOTA_MAX)
        or check_key(operation.last_value_key)
    )
    if refusal is not None:
        return refusal
    deduplication = checked_deduplication(
        found, operation.deduplication_window_ms, operation.deduplication_ids_max
    )
    if isinstance(deduplication, Refusal):
        return deduplication
    settings = changed(found.own_settings, operation.settings)
    wrong = wrong_in(settings)
    if wrong is not None:
        return Refusal(Reason.SETTING_INVALID, wrong)
    marks = checked_mark(
        (operation.messages_resume, operation.bytes_resume),
        found.resume_mark,
        (settings.messages_max, settings.bytes_max),
    )
    if isinstance(marks, Refusal):
        return marks
    refusal = check_targets(entry.state, found.destination, settings)
    if refusal is not None:
        return refusal
    found.taken = None
    found.resume_mark = changed_mark(found.resume_mark, *marks)
    set_deduplication(found, *deduplication, entry.state.time)
    if operation.inherits_redelivery is not None:
        found.inherits_redelivery = operation.inherits_redelivery
    configure(entry.state, found, settings)
    for name in SETTINGS:
        value = getattr(operation, name, None)
        if value is not None:
            setattr(found, name, value)
    most, key = operation.available_max, operation.last_value_key
    keep_newest(
        found,
        found.available_max if most is None else most,
        found.last_value_key if key is None else key,
    )
    if affinity is not None:
        set_affinity(found, affinity)
    return None


def check_targets(state: QueueManager, of: str, settings: Settings) -> Refusal | None:
    """Whether what settings name is there (INF-16), those of the queue manager too."""
    for name, destination in targets_of(settings).items():
        refusal = check_target(state, of, name, destination)
        if refusal is not None:
            return refusal
    return None


def delete(entry: Entry, session: Session, operation: Delete) -> Refusal | None:
    """Deletes what has no consumers and no work in flight; what it holds goes by purge only."""
    kind, name = _named(operation)
    found = find_destination(entry.state, f"{kind}:{name}")
    if found is None:
        return unknown(kind, name)
    refusal = check_owner(found, session)
    if refusal is not None:
        return refusal
    held = sum(one.in_flight for one in _stores_of(found))
    open_puts = found.counts[UNCOMMITTED]
    if found.receivers or open_puts or held:
        return Refusal(
            REASONS[kind].in_use,
            f"{kind} {name} has {found.receivers} consumers, {open_puts} "
            f"uncommitted puts and {held} deliveries in flight; end them first",
        )
    named = entry.state.named.get(found.destination)
    if named is not None:
        # The least: a checkpoint does not keep in which order they were set.
        by, setting = min(named)
        detail = f"{found.destination} is the {setting} of {by}; change that first"
        return Refusal(REASONS[kind].in_use, detail)
    holds = f"holds {len(found.messages)} messages" if found.messages else ""
    if isinstance(found, Topic) and found.subscriptions:
        holds = f"has {len(found.subscriptions)} durable subscriptions"
    if holds and not operation.purge:
        return Refusal(REASONS[kind].not_empty, f"{kind} {name} {holds}; purge to remove")
    remove_destination(entry, found)
    return None


def unknown(kind: str, name: str) -> Refusal:
    return Refusal(UNKNOWN[kind], f"{kind} {shown_name(name)} does not exist")
