"""Settings changed by operation, and the destinations that they name (PROTOCOL.md §14, INF-16)."""

from __future__ import annotations

from ledgermq.core.destinations.by_name import TEMPORARY, find_destination
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Queue, Topic
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.settings import Given, Settings, changed, targets_of, wrong_in


def checked_settings(state: QueueManager, found: Queue, given: Given | None) -> Settings | Refusal:
    settings = changed(found.settings, given)
    wrong = wrong_in(settings)
    if wrong is not None:
        return Refusal(Reason.SETTING_INVALID, wrong)
    for name, destination in targets_of(settings).items():
        if destination == found.destination:
            return Refusal(Reason.SETTING_INVALID, f"{name} of {destination} may not be itself")
        if not destination.startswith(("queue:", "topic:")):
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
    return settings


def check_not_named(state: QueueManager, found: Queue) -> Refusal | None:
    """Refuses to delete what settings of others name as where messages go."""
    named = state.named.get(found.destination)
    if named is None:
        return None
    # The least: a checkpoint does not keep in which order they were set.
    by, setting = min(named)
    return Refusal(
        Reason.TOPIC_IN_USE if isinstance(found, Topic) else Reason.QUEUE_IN_USE,
        f"{found.destination} is the {setting} of {by}; change that first",
    )
