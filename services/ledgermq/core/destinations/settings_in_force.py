"""Settings in force: what a queue or topic says, and what it takes from the queue manager (§14).

Destinations that settings name, as where messages go, are noted here: those are not deleted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ledgermq.core.order.fifo import use_fifo_mode
from ledgermq.core.order.orders import use_group_order
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Queue, Topic
from ledgermq.protocol.settings import DEFAULTS, Given, Settings, inherited, targets_of

THE_QUEUE_MANAGER: Final = "the queue manager"


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


def _put_in_force(state: QueueManager, found: Queue) -> None:
    settings = found.settings = settings_in_force(state, found)
    state.stir(found.destination, each=True)
    use_fifo_mode(found)
    use_group_order(found)
    if isinstance(found, Topic):
        for subscription in found.subscriptions.values():
            subscription.settings = settings
            use_fifo_mode(subscription)
            use_group_order(subscription)


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


def inherited_by(state: QueueManager, found: Queue) -> Given:
    """What a queue or topic takes from the redelivery of the queue manager, by name.

    The error destination takes nothing: what is there would be dropped.
    """
    rule = state.redelivery
    if not found.inherits_redelivery or found.destination == rule.error_destination:
        return {}
    return inherited(found.own_settings, rule)


def settings_in_force(state: QueueManager, found: Queue) -> Settings:
    own, rule = found.own_settings, state.redelivery
    if rule is DEFAULTS:
        return own
    taken = inherited_by(state, found)
    # All that say nothing share one.
    return rule if taken and own is DEFAULTS else replace(own, **taken) if taken else own
