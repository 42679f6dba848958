"""The collector: reads at a scrape what owners know, without looking at any message.

What it reads is counted already, so that a deep queue costs what an empty one does. It runs on the
event loop, between two slices of the fold; the text is made of its copy elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Final

from prometheus_client import ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import (
    AVAILABLE,
    DELAYED,
    PUBLISHED,
    UNACKNOWLEDGED,
    UNBORN,
    UNCOMMITTED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.records import Queue, Topic
from ledgermq.processor.metrics.families import FAMILIES
from ledgermq.processor.metrics.tally import ALWAYS, Tally
from ledgermq.processor.owner.folding import Folder
from ledgermq.processor.owner.owner import Owner

STATES: Final = {
    UNCOMMITTED: "uncommitted_put",
    UNBORN: "unborn",
    AVAILABLE: "available",
    DELAYED: "redelivery_delay",
    UNACKNOWLEDGED: "unacknowledged",
    UNCOMMITTED_GET: "uncommitted_get",
}
TOPIC_STATES: Final = {
    UNCOMMITTED: "uncommitted_put",
    PUBLISHED: "published",
}
NAMED: Final = ("durable", "shared")
MICROSECONDS: Final = 1_000_000
KINDS: Final[dict[str, type[Any]]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}

# By labels; of a histogram a pair, of its buckets and its sum.
Values = dict[tuple[str, ...], Any]


def encoder_for(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    """What makes the text that a scraper accepts, and the content type of that."""
    try:
        return choose_encoder(accept)
    except Exception:
        # The library reads a version that is none with several errors; all can read plain text.
        return choose_encoder("")


class Scrape(Collector):
    """What a worker shows at one moment."""

    def __init__(
        self,
        owners: Iterable[Owner],
        unsent_bytes: int,
        worker: str,
        stopped: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._values: dict[str, Values] = {one.name: {} for one in FAMILIES}
        self._set("outcomes_unacknowledged_bytes", (), unsent_bytes)
        self._set("build_info", (version("ledgermq"), worker), 1)
        for name, code in stopped.items():
            self._set("queue_manager_stopped", (name, code), 1)
        for owner in owners:
            self._take_owner(owner)

    def collect(self) -> Iterable[Metric]:
        """The families, those of the process at the end."""
        for family in FAMILIES:
            kind = KINDS[family.kind]
            made = kind("ledgermq_" + family.name, family.meaning, labels=family.labels)
            for labels, value in sorted(self._values[family.name].items()):
                made.add_metric(labels, *(value if isinstance(value, tuple) else (value,)))
            yield made
        yield from ProcessCollector(registry=None).collect()

    def _set(self, name: str, labels: tuple[str, ...], value: float) -> None:
        self._values[name][labels] = value

    def _add(self, name: str, labels: tuple[str, ...], value: float) -> None:
        values = self._values[name]
        values[labels] = values.get(labels, 0) + value

    # A queue manager --------------------------------------------------------------------------

    def _take_owner(self, owner: Owner) -> None:
        manager = (owner.claim.queue_manager,)
        self._set("projection_caught_up", manager, owner.has_caught_up)
        self._set("outcomes_written", manager, owner.lanes.outcomes_written)
        self._set("bodies_read_back", manager, owner.bodies.read_back)
        self._set("questions_answered", manager, owner.answers.answered)
        self._set("worker_entries", manager, owner.time.written)
        self._take_events(owner.tally, manager)
        self._take_checkpoints(owner, manager)
        if owner.folder is not None:
            self._take_position(owner, owner.folder, manager)
            self._take_sessions(owner.folder.state, manager)
            self._take_destinations(owner.folder.state, owner.tally, manager)

    def _take_events(self, tally: Tally, manager: tuple[str]) -> None:
        for (name, destination, detail), count in tally.events().items():
            more = (detail,) if detail else ()
            self._set("messages_" + name, (*manager, destination, *more), count)
        for reason, count in tally.refused.items():
            self._set("projection_rejected_events", (*manager, reason), count)
        latency = tally.latency
        measured = (latency.buckets(), latency.sum_seconds)
        self._values["outcome_latency_seconds"][manager] = measured

    def _take_checkpoints(self, owner: Owner, manager: tuple[str]) -> None:
        if owner.checkpoints is None:
            return
        checkpointer = owner.checkpoints.checkpointer
        age_seconds = time.monotonic() - checkpointer.durable_at
        self._set("checkpoint_age_seconds", manager, age_seconds)
        if checkpointer.durable is not None:
            self._set("checkpoint_position", manager, checkpointer.durable["position"])
        if checkpointer.written_bytes is not None:
            self._set("checkpoint_written_bytes", manager, checkpointer.written_bytes)
        if checkpointer.duration_seconds is not None:
            self._set("checkpoint_duration_seconds", manager, checkpointer.duration_seconds)

    def _take_position(self, owner: Owner, folder: Folder, manager: tuple[str]) -> None:
        position, end = folder.state.position, owner.end_offset
        lag_records = max(0, end - position - 1) if end is not None else 0
        self._set("projection_lag_records", manager, lag_records)
        self._set("projection_lag_seconds", manager, owner.lag_seconds if lag_records else 0)
        self._set("projection_position", manager, position)
        self._set("log_time_ahead_seconds", manager, owner.time.ahead_seconds(folder.state))
        self._set("operations_folded", manager, folder.operations)
        if folder.appended_ms >= 0:
            self._set("projection_position_timestamp_seconds", manager, folder.appended_ms / 1000)

    def _take_sessions(self, state: QueueManager, manager: tuple[str]) -> None:
        began = [
            one.unit_of_work_began_at for one in state.sessions.values() if one.has_unit_of_work
        ]
        self._set("sessions_open", manager, len(state.sessions))
        self._set("puts_blocked", manager, len(state.blocked_puts))
        self._set("transactions_open", manager, len(began))
        if began:
            oldest = min(began) / MICROSECONDS
            self._set("transaction_oldest_timestamp_seconds", manager, oldest)

    # Destinations -----------------------------------------------------------------------------

    def _take_destinations(self, state: QueueManager, tally: Tally, manager: tuple[str]) -> None:
        labels = tally.labels
        there = {one.destination: one for one in state.destinations}
        # What is gone was shown a last time above; others may have its label now.
        tally.forget(labels.forget_all_but(there.keys()))
        sharing: dict[str, list[Queue]] = {}
        for destination, one in there.items():
            sharing.setdefault(labels.of(destination), []).append(one)
        for label, those in sharing.items():
            self._take_label(those, (*manager, label))
            if label in there:
                self._take_own(those[0], (*manager, label))
        left = labels.own_max
        unnamed: dict[Topic, list[Queue]] = {}
        for subscription in state.subscriptions.values():
            key, topic = subscription.key, subscription.topic
            if left > 0 and key.kind in NAMED and labels.of(topic.destination) in there:
                left -= 1
                at = (*manager, topic.destination, key.name, key.client_id)
                self._take_states("subscription", [subscription], at, STATES)
            else:
                unnamed.setdefault(topic, []).append(subscription)
        for topic, those in unnamed.items():
            at = (*manager, labels.of(topic.destination), "", "")
            self._take_states("subscription", those, at, STATES)

    def _take_label(self, those: list[Queue], at: tuple[str, ...]) -> None:
        """What the destinations of a label have together."""
        for name, detail in ALWAYS:
            self._add("messages_" + name, (*at, *([detail] if detail else ())), 0)
        states: dict[int, str] = {}
        for is_topic in {isinstance(one, Topic): None for one in those}:
            states |= TOPIC_STATES if is_topic else STATES
        self._take_states("queue", those, at, states)
        oldest = min((_oldest(one) for one in those if one.unconsumed), default=None)
        if oldest is not None:
            self._set("queue_oldest_message_timestamp_seconds", at, oldest / MICROSECONDS)
        self._set("queue_consumers", at, sum([one.receivers for one in those]))

    def _take_own(self, found: Queue, at: tuple[str, ...]) -> None:
        """What is told only of a destination that has its label to itself."""
        if found.next_sequence:
            self._set("sequence_last", at, found.next_sequence - 1)
        used = [
            held / most
            for held, most in (
                (found.held_messages, found.settings.messages_max),
                (found.held_bytes, found.settings.bytes_max),
            )
            if most
        ]
        if used:
            self._set("queue_quota_used_ratio", at, max(used))

    def _take_states(
        self, kind: str, stores: list[Queue], at: tuple[str, ...], states: dict[int, str]
    ) -> None:
        counts = [*map(sum, zip(*[one.counts for one in stores], strict=True))]
        sizes = [*map(sum, zip(*[one.sizes for one in stores], strict=True))]
        for state, name in states.items():
            self._add(kind + "_messages", (*at, name), counts[state])
            self._add(kind + "_bytes", (*at, name), sizes[state])


def _oldest(found: Queue) -> int:
    """When what a destination has had for longest got its number, in µs."""
    return found.unconsumed[found.min_sequence].enqueued_at
