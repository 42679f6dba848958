"""What happened since a worker took a queue manager over, counted as the fold makes it.

The fold hands over the messages that make one move together; here that is one addition. What the
moves mean, and which series they belong to, is worked out when somebody asks. What a worker folds
again, or for the first time, of what was on the log when it came is not counted: the worker before
it has counted that.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from ledgermq.core.destinations.numbering import ASKED_FOR, REDELIVERY_LIMIT, REJECTED
from ledgermq.core.state.message_states import (
    AVAILABLE,
    CONSUMED,
    DELAYED,
    EXPIRED,
    GONE,
    NEW,
    PUBLISHED,
    PURGED,
    ROLLED_BACK,
    UNACKNOWLEDGED,
    UNCOMMITTED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.records import Message, Queue, Subscription
from ledgermq.processor.metrics.labels import Labels
from ledgermq.processor.metrics.latency import Latency

# A metric without prefix and suffix, the label of the destination, and one label more.
Event = tuple[str, str, str]

# What every destination shows from the start: to Prometheus a first 1 that was no 0 is no rise.
ALWAYS: Final = (
    ("put", ""),
    ("committed", ""),
    ("delivered", "false"),
    ("delivered", "true"),
    ("acknowledged", ""),
    ("rolled_back", "put"),
    ("rolled_back", "get"),
    ("returned", ""),
    ("expired", ""),
    ("dead_lettered", REDELIVERY_LIMIT),
    ("dead_lettered", REJECTED),
    ("dead_lettered", EXPIRED),
)
IN_FLIGHT: Final = (UNACKNOWLEDGED, UNCOMMITTED_GET)
STORES_MAX: Final = 1_000


class Tally:
    """Counts moves, refusals and how long outcomes took; `labels` says who has its own series.

    `live_from` is the first position that counts.
    """

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.live_from = sys.maxsize
        self._moves: dict[tuple[Queue, int, int, str], int] = {}
        self._redelivered: dict[Queue, int] = {}
        self._events: Counter[Event] = Counter()
        self.refused: Counter[str] = Counter()
        self.latency = Latency()

    def count(
        self, store: Queue, messages: Sequence[Message], before: int, after: int, cause: str
    ) -> None:
        key = (store, before, after, cause)
        moves = self._moves
        moves[key] = moves.get(key, 0) + len(messages)
        if before == AVAILABLE:
            again = 0
            if after != GONE:
                for message in messages:
                    if message.backout_count:
                        again += 1
            if again:
                self._redelivered[store] = self._redelivered.get(store, 0) + again
        elif before == NEW and messages[0].origin is not None:
            self._note_transfer(store, messages)

    def _note_transfer(self, store: Queue, messages: Sequence[Message]) -> None:
        """Counts what was moved here by the fold itself at the place that it came from."""
        if isinstance(store, Subscription):
            return
        for message in messages:
            origin = message.origin
            if origin is not None and origin["reason"] not in ASKED_FOR:
                label = self.labels.of(origin["destination"])
                self._events["dead_lettered", label, origin["reason"]] += 1

    @property
    def crowded(self) -> bool:
        """Whether so much waits to be given its series that it should be done now."""
        return len(self._moves) > STORES_MAX

    def settle(self) -> None:
        """Gives what was counted its series, and lets go of queues that are gone."""
        moves, self._moves = self._moves, {}
        again, self._redelivered = self._redelivered, {}
        events = self._events
        for (store, before, after, cause), count in moves.items():
            label = self.labels.of(store.destination)
            for name, detail in events_of(store, before, after, cause):
                events[name, label, detail] += count
        for store, count in again.items():
            label = self.labels.of(store.destination)
            events["delivered", label, "true"] += count
            events["delivered", label, "false"] -= count

    def events(self) -> Mapping[Event, int]:
        self.settle()
        return self._events

    def forget(self, gone: set[str]) -> None:
        """Drops the series of destinations that are gone."""
        for event in [one for one in self._events if one[1] in gone]:
            del self._events[event]


def events_of(store: Queue, before: int, after: int, cause: str) -> list[tuple[str, str]]:
    """What a move means: names of metrics, each with the value of its further label."""
    if before == PUBLISHED:
        # Its subscriptions have told already what became of it.
        return []
    found: list[tuple[str, str]] = []
    if before == NEW and not isinstance(store, Subscription):
        found.append(("put", ""))
    if before in (NEW, UNCOMMITTED):
        if cause == ROLLED_BACK:
            found.append(("rolled_back", "put"))
        elif after != UNCOMMITTED and cause != PURGED and not isinstance(store, Subscription):
            # A topic without subscriptions numbers a message and drops it.
            found.append(("committed", ""))
    if after in IN_FLIGHT:
        found.append(("delivered", "false"))
    elif before == UNACKNOWLEDGED and after in (AVAILABLE, DELAYED):
        found.append(("returned", ""))
    elif before == UNCOMMITTED_GET and after in (AVAILABLE, DELAYED):
        found.append(("rolled_back", "get"))
    if after == GONE and cause != ROLLED_BACK:
        if cause == CONSUMED:
            found.append(("acknowledged", ""))
        elif cause == EXPIRED:
            found.append(("expired", ""))
        else:
            found.append(("removed", cause))
    return found
