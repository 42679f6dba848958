"""Where messages have waited for long, and why nobody gets them: what `ledgermq queue why` says."""

from __future__ import annotations

from typing import Any, Final

from ledgermq.core.queries.obstacles import obstacles_document
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Subscription
from ledgermq.protocol.documents.fields import status_of
from ledgermq.protocol.documents.obstacles import QueueObstacles

# How long the oldest message of a queue or subscription has been there where that is told.
STALL_SECONDS: Final = 300
# Whoever put a message with a delay, or a rule with one, wants it to wait.
WANTED: Final = ("unborn", "delayed")


def stalls_of(state: QueueManager) -> list[dict[str, Any]]:
    """Queues and subscriptions in which messages wait for no time of theirs, the oldest first.

    Each with since when its oldest message is there (µs) and a sentence on each thing that holds
    messages or consumers up.
    """
    found = []
    for store in state.stores.values():
        if not store.messages:
            continue
        oldest = store.messages[min(store.messages)].enqueued_at
        if state.time - oldest < STALL_SECONDS * 1_000_000:
            continue
        told = status_of(QueueObstacles, obstacles_document(state, store), position=state.position)
        causes = {one.cause for one in told.obstacles if one.messages}
        if told.available or causes - set(WANTED):
            found.append(
                {
                    "destination": store.destination,
                    "subscription": store.key.name if isinstance(store, Subscription) else "",
                    "messages": told.message_count,
                    "since": oldest,
                    "obstacles": [
                        *(one.text for one in told.obstacles),
                        *(["there are more"] if told.more else []),
                    ],
                }
            )
    return sorted(found, key=lambda one: (one["since"], one["destination"]))
