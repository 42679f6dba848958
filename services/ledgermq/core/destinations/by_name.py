"""Destinations by name: found, made on first use, made as temporary ones, ended (SES-38, SES-39).

A temporary destination is named `temporary/CONNECTION/NAME` and belongs to that connection: only
its sessions get from it, everybody may put to it, and it ends with the connection.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ledgermq.core.entry import Entry
from ledgermq.core.moves import move, purge
from ledgermq.core.order.fifo import use_fifo_mode
from ledgermq.core.order.orders import use_group_order
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import GONE, PURGED, UNCOMMITTED
from ledgermq.core.state.records import Connection, Queue, Session, Topic, bytes_of
from ledgermq.protocol.limits import TEMPORARY, is_name
from ledgermq.protocol.operations import CreateTemporary
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.settings import DEFAULTS, Given, Settings, inherited, targets_of
from ledgermq.protocol.topic_patterns import takes_in

QUEUE_PREFIX = "queue:"
TOPIC_PREFIX = "topic:"
THE_QUEUE_MANAGER: Final = "the queue manager"

UNKNOWN: Final = {"queue": Reason.QUEUE_UNKNOWN, "topic": Reason.TOPIC_UNKNOWN}


def find_destination(state: QueueManager, destination: str) -> Queue | None:
    if destination.startswith(QUEUE_PREFIX):
        return state.queues.get(destination[len(QUEUE_PREFIX) :])
    if destination.startswith(TOPIC_PREFIX):
        return state.topics.get(destination[len(TOPIC_PREFIX) :])
    return None


def use_destination(state: QueueManager, destination: str, position: int) -> Queue | Refusal:
    """The queue or topic of a destination; one to be added, where one may be made on first use.

    `position` is that of the operation that uses it, and the created position of what is made.
    """
    found = find_destination(state, destination) or _check_kind(destination)
    if found is not None:
        return found
    kind, _, name = destination.partition(":")
    if not is_name(name):
        detail = f"destination {quoted(destination)} has no valid {kind} name"
        return Refusal(Reason.DESTINATION_INVALID, detail)
    if name.startswith(TEMPORARY):
        return Refusal(
            Reason.DESTINATION_UNKNOWN,
            f"temporary {kind} {name} is not there: it was deleted, or its connection has ended",
        )
    if not state.automatic_creation:
        return Refusal(
            UNKNOWN[kind],
            f"{kind} {name} does not exist and automatic creation is off; create it",
        )
    return new_destination(state, destination, position)


def find_given(state: QueueManager, destination: str) -> Queue | Refusal:
    """The queue or topic that an operation by hand names; refused if it is not there."""
    found = find_destination(state, destination) or _check_kind(destination)
    if found is not None:
        return found
    kind, _, name = destination.partition(":")
    return Refusal(UNKNOWN[kind], f"{kind} {quoted(name)} does not exist")


def _check_kind(destination: str) -> Refusal | None:
    if destination.startswith((QUEUE_PREFIX, TOPIC_PREFIX)):
        return None
    return Refusal(
        Reason.DESTINATION_INVALID,
        f"destination {quoted(destination)} is not queue:NAME or topic:NAME",
    )


def new_destination(state: QueueManager, destination: str, position: int) -> Queue:
    kind, _, name = destination.partition(":")
    made = Queue(name, position) if kind == "queue" else Topic(name, position)
    made.settings = _settings_in_force(state, made)
    return made


def add_destination(state: QueueManager, found: Queue) -> None:
    """Adds a queue or topic, unless it is there."""
    known = state.topics if isinstance(found, Topic) else state.queues
    standing = known.get(found.name)
    if standing is found:
        return
    assert standing is None, f"there is a {found.name}"
    if isinstance(found, Topic):
        state.topics[found.name] = found
        bindings = state.bindings.values()
        found.bindings = [one for one in bindings if takes_in(one.names, found.name)]
    else:
        add_store(state, found)
        state.queues[found.name] = found


def add_store(state: QueueManager, store: Queue) -> None:
    created = store.created_position
    assert created not in state.stores, f"{store.destination}: another was made at {created}"
    state.stores[created] = store


def remove_store(state: QueueManager, store: Queue) -> None:
    """Takes out a queue or subscription that is gone, and all that waits for its messages' age."""
    del state.stores[store.created_position]
    state.lifetimes.forget(store)


def remove_destination(entry: Entry, found: Queue) -> None:
    state = entry.state
    configure(state, found, DEFAULTS)
    purge(entry, found)
    if isinstance(found, Topic):
        del state.topics[found.name]
        for subscription in found.subscriptions.values():
            del state.subscriptions[subscription.key]
            remove_store(state, subscription)
    else:
        del state.queues[found.name]
        remove_store(state, found)
    if found.owner is not None:
        del found.owner.owned[found.destination]


def configure(state: QueueManager, found: Queue, settings: Settings) -> None:
    """Gives a queue or topic settings that were checked; a topic's are its subscriptions' too."""
    _name_targets(state, found.destination, found.own_settings, settings)
    found.own_settings = settings
    _put_in_force(state, found)


def configure_all(state: QueueManager, redelivery: Settings) -> None:
    """Gives the queue manager a redelivery that was checked, and so all that take from it."""
    _name_targets(state, THE_QUEUE_MANAGER, state.redelivery, redelivery)
    state.redelivery = DEFAULTS if redelivery == DEFAULTS else redelivery
    for found in state.destinations:
        _put_in_force(state, found)


def _name_targets(state: QueueManager, by: str, before: Settings, settings: Settings) -> None:
    """Notes which destinations settings name: those are not deleted."""
    for name, destination in targets_of(before).items():
        unname(state, destination, by, name)
    for name, destination in targets_of(settings).items():
        state.named.setdefault(destination, {})[(by, name)] = None


def unname(state: QueueManager, destination: str, by: str, name: str) -> None:
    """Forgets that something names a destination as where messages go."""
    del state.named[destination][(by, name)]
    if not state.named[destination]:
        del state.named[destination]


def check_target(state: QueueManager, of: str, name: str, destination: str) -> Refusal | None:
    """Whether messages of something may go to a destination that it names so (INF-16)."""
    if destination == of:
        return Refusal(Reason.SETTING_INVALID, f"{name} of {destination} may not be itself")
    if not destination.startswith((QUEUE_PREFIX, TOPIC_PREFIX)):
        return Refusal(
            Reason.DESTINATION_INVALID,
            f"{name} {quoted(destination)} is not queue:NAME or topic:NAME",
        )
    if destination.partition(":")[2].startswith(TEMPORARY):
        return Refusal(
            Reason.SETTING_INVALID,
            f"{name} {quoted(destination)}: it would end with its connection",
        )
    if find_destination(state, destination) is None:
        return Refusal(
            Reason.DESTINATION_UNKNOWN,
            f"{name} {quoted(destination)} does not exist; create it first",
        )
    return None


def _put_in_force(state: QueueManager, found: Queue) -> None:
    settings = found.settings = _settings_in_force(state, found)
    use_fifo_mode(found)
    use_group_order(found)
    if isinstance(found, Topic):
        for subscription in found.subscriptions.values():
            subscription.settings = settings
            use_fifo_mode(subscription)
            use_group_order(subscription)


def inherited_by(state: QueueManager, found: Queue) -> Given:
    """What a queue or topic takes from the redelivery of the queue manager, by name.

    The error destination takes nothing: what is there would be dropped.
    """
    rule = state.redelivery
    if not found.inherits_redelivery or found.destination == rule.error_destination:
        return {}
    return inherited(found.own_settings, rule)


def _settings_in_force(state: QueueManager, found: Queue) -> Settings:
    own, rule = found.own_settings, state.redelivery
    if rule is DEFAULTS:
        return own
    taken = inherited_by(state, found)
    # All that say nothing share one.
    return rule if taken and own is DEFAULTS else replace(own, **taken) if taken else own


def check_new_name(kind: str, name: str) -> Refusal | None:
    if not is_name(name):
        return Refusal(
            Reason.NAME_INVALID,
            f"{quoted(name)} is no {kind} name: 1 to 128 of A-Z a-z 0-9 . _ / % -",
        )
    if name.startswith(TEMPORARY):
        detail = f"{quoted(name)}: names of temporary destinations are not given"
        return Refusal(Reason.NAME_INVALID, detail)
    return None


def check_owner(found: Queue, session: Session) -> Refusal | None:
    if found.owner in (None, session.connection):
        return None
    return Refusal(Reason.TEMPORARY_FOREIGN, f"{found.destination} belongs to another connection")


def create_temporary(entry: Entry, session: Session, operation: CreateTemporary) -> Refusal | None:
    destination, connection = operation.destination, session.connection
    kind, _, name = destination.partition(":")
    own = f"{TEMPORARY}{connection.identity.hex()}/"
    if kind not in ("queue", "topic") or not is_name(name) or not name.startswith(own):
        detail = f"{quoted(destination)} is not queue:{own}NAME or topic:{own}NAME"
        return Refusal(Reason.NAME_INVALID, detail)
    if find_destination(entry.state, destination) is not None:
        return Refusal(Reason.QUEUE_EXISTS, f"{destination} exists already")
    made = new_destination(entry.state, destination, entry.position)
    made.owner = connection
    connection.owned[destination] = made
    add_destination(entry.state, made)
    return None


def end_temporaries(entry: Entry, connection: Connection) -> None:
    """Ends what belongs to a connection that is over; open puts of others to it vanish."""
    for found in list(connection.owned.values()):
        if found.counts[UNCOMMITTED]:
            for session in entry.state.sessions.values():
                _drop_open_puts(entry, session, found)
        remove_destination(entry, found)


def _drop_open_puts(entry: Entry, session: Session, found: Queue) -> None:
    messages = session.open_puts.pop(found.destination, [])
    move(entry, found, messages, UNCOMMITTED, GONE, cause=PURGED, session=session)
    session.open_bytes -= bytes_of(messages)
    session.open_ids = [one for one in session.open_ids if one.destination != found.destination]
    for key in [one for one in session.open_groups if one[0] == found.destination]:
        del session.open_groups[key]
