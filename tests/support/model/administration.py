"""The slow model's queues and topics by name: made, altered, deleted (PROTOCOL.md §5, §14)."""

from __future__ import annotations

from string import ascii_letters, digits
from typing import Any

from support.model.base import BODY_MAX, INT_MAX
from support.model.topics import ModelTopics

Row = dict[str, Any]
AGES_MS = 100 * 366 * 86_400_000
TARGETS = ("expiry_destination", "error_destination")
RANGES = {
    "time_to_live_override_ms": (-1, AGES_MS),
    "delivery_delay_override_ms": (-1, AGES_MS),
    "redelivery_delay_override_ms": (-1, AGES_MS),
    "redelivery_limit": (-1, INT_MAX),
    "redelivery_delay_multiplier_percent": (100, 10_000),
    "redelivery_delay_max_ms": (0, AGES_MS),
    "messages_max": (0, 2**53),
    "bytes_max": (0, 2**53),
}


def _given(settings: Row | None) -> Row:
    return {name: value for name, value in (settings or {}).items() if value is not None}


class ModelAdministration(ModelTopics):
    """Operations on queues, topics and their settings."""

    def check_given(self, destination: str, entry: Any) -> str | None:
        """Why what an operation makes or alters cannot be so; None leaves a value as it is."""
        if len(entry.description or "") > 1024:
            return "setting-invalid"
        if not 0 <= (entry.message_bytes_max or 0) <= BODY_MAX:
            return "setting-invalid"
        if not 0 <= (entry.unacknowledged_max or 0) <= 1_000_000:
            return "setting-invalid"
        if not 0 <= (entry.available_max or 0) <= 2**53:
            return "setting-invalid"
        key = entry.last_value_key or "a"
        letters = set(ascii_letters + "_$")
        if len(key) > 250 or key[0] not in letters or set(key) - letters - set(digits):
            return "setting-invalid"
        place = self.place(destination)
        reason = self.check_window(place, entry)
        limits = {**(place["settings"] if place else {}), **_given(entry.settings)}
        reason = reason or self.check_marks(place, entry, limits)
        return reason or self.check_settings(destination, entry.settings)

    def check_settings(self, destination: str, given: Row | None) -> str | None:
        """Why settings cannot be given to a queue or topic."""
        settings = given or {}
        for name, (lowest, highest) in RANGES.items():
            value = settings.get(name)
            if value is not None and not lowest <= value <= highest:
                return "setting-invalid"
        steps = settings.get("redelivery_steps") or []
        retries = [-1, *(one["retries"] for one in steps), INT_MAX + 1]
        if len(steps) > 100 or retries != sorted(set(retries)):
            return "setting-invalid"
        if not all(0 <= one["delay_ms"] <= AGES_MS for one in steps):
            return "setting-invalid"
        if settings.get("blocking_send_policy") not in (None, "FIFO", "PREEMPTIVE"):
            return "setting-invalid"
        if settings.get("fifo_mode") not in (None, "CONCURRENT", "PROTECTED", "SERIALIZED"):
            return "setting-invalid"
        for name in TARGETS:
            target = settings.get(name)
            reason = self.check_target(destination, target) if target else None
            if reason is not None:
                return reason
        return None

    def set_settings(self, place: Row, given: Row | None) -> None:
        """Gives a queue or topic those settings that are given."""
        before = place["settings"]["fifo_mode"]
        for name, value in (given or {}).items():
            if value is not None:
                place["settings"][name] = value
        for store in self.stores_of(place):
            self.change_mode(store, before)
            self.end_parking(store)
            self.touch(store)

    def stores_of(self, place: Row) -> list[str]:
        """A queue itself, or the subscriptions of a topic."""
        mine = [one["id"] for one in self.subscriptions if "topic:" + one["topic"] == place["id"]]
        return mine if place["id"].startswith("topic:") else [place["id"]]

    def set_own_flags(self, place: Row, entry: Any) -> None:
        """Whether it inherits redelivery, has one consumer at a time, moves what nobody wants; how
        much of it is available at most.
        """
        if entry.available_max is not None:
            place["available_max"] = entry.available_max
        if entry.last_value_key is not None:
            place["last_value_key"] = entry.last_value_key
        if entry.inherits_redelivery is not None:
            place["inherits_redelivery"] = entry.inherits_redelivery
        if entry.single_active_consumer is not None:
            place["single_active_consumer"] = entry.single_active_consumer
        if getattr(entry, "moves_unrouted", None) is not None:
            place["moves_unrouted"] = entry.moves_unrouted
        if not place["single_active_consumer"]:
            for store in self.stores_of(place):
                self.active.pop(store, None)

    def is_named(self, destination: str) -> bool:
        """Whether a setting or a binding names it as where messages go."""
        places = [*self.queues, *self.topics]
        if self.redelivery.get("error_destination") == destination:
            return True
        if any(one["destination"] == destination for one in self.bindings):
            return True
        return any(one["settings"][name] == destination for one in places for name in TARGETS)

    def do_create_topic(self, session: Row, entry: Any) -> str | None:
        """A new topic."""
        if not self.good_name(entry.topic) or entry.topic.startswith("temporary/"):
            return "name-invalid"
        if self.topic(entry.topic) is not None:
            return "topic-exists"
        reason = self.check_given("topic:" + entry.topic, entry)
        if reason is not None:
            return reason
        topic = self.add_topic(entry.topic)
        self.set_window(topic, entry)
        self.set_marks(topic, entry)
        self.set_own_flags(topic, entry)
        self.set_settings(topic, entry.settings)
        topic["description"] = entry.description
        topic["message_bytes_max"] = entry.message_bytes_max
        topic["unacknowledged_max"] = entry.unacknowledged_max
        return None

    def do_alter_topic(self, session: Row, entry: Any) -> str | None:
        """Settings change."""
        topic = self.topic(entry.topic)
        if topic is None:
            return "topic-unknown"
        reason = self.check_given("topic:" + entry.topic, entry)
        if reason is not None:
            return reason
        self.set_window(topic, entry)
        self.set_marks(topic, entry)
        self.set_own_flags(topic, entry)
        self.set_settings(topic, entry.settings)
        for name in ("description", "message_bytes_max", "unacknowledged_max"):
            if getattr(entry, name) is not None:
                topic[name] = getattr(entry, name)
        return None

    def do_delete_topic(self, session: Row, entry: Any) -> str | None:
        """The topic is gone."""
        topic = self.topic(entry.topic)
        if topic is None:
            return "topic-unknown"
        if topic["owner"] not in (None, session["connection"]):
            return "temporary-foreign"
        mine = [one for one in self.subscriptions if one["topic"] == topic["name"]]
        puts = any(one["queue"] == topic["id"] for one in self.messages)
        if puts or any(self.used(one) for one in mine):
            return "topic-in-use"
        if self.is_named(topic["id"]):
            return "topic-in-use"
        if mine and not entry.purge:
            return "topic-not-empty"
        self.remove(topic)
        return None

    def do_create_queue(self, session: Row, entry: Any) -> str | None:
        """A new queue."""
        if not self.good_name(entry.queue) or entry.queue.startswith("temporary/"):
            return "name-invalid"
        if self.queue(entry.queue) is not None:
            return "queue-exists"
        reason = self.check_given("queue:" + entry.queue, entry)
        if reason is not None:
            return reason
        queue = self.add_queue(entry.queue)
        self.set_window(queue, entry)
        self.set_marks(queue, entry)
        self.set_own_flags(queue, entry)
        self.set_settings(queue, entry.settings)
        queue["description"] = entry.description
        queue["message_bytes_max"] = entry.message_bytes_max
        queue["unacknowledged_max"] = entry.unacknowledged_max
        queue["group_affinity"] = entry.group_affinity
        return None

    def do_alter_queue(self, session: Row, entry: Any) -> str | None:
        """Settings change."""
        queue = self.queue(entry.queue)
        if queue is None:
            return "queue-unknown"
        reason = self.check_given("queue:" + entry.queue, entry)
        if reason is not None:
            return reason
        self.set_window(queue, entry)
        self.set_marks(queue, entry)
        self.set_own_flags(queue, entry)
        self.set_settings(queue, entry.settings)
        for name in ("description", "message_bytes_max", "gets_disabled", "unacknowledged_max"):
            if getattr(entry, name) is not None:
                queue[name] = getattr(entry, name)
        if entry.group_affinity is not None:
            queue["group_affinity"] = entry.group_affinity
            queue["bonds"] = queue["bonds"] if entry.group_affinity else {}
        if self.is_single(entry.queue):
            active = self.active_of(entry.queue)
            bonds = {bucket: one for bucket, one in queue["bonds"].items() if one == active}
            queue["bonds"] = bonds
        self.touch(entry.queue)
        return None

    def do_delete_queue(self, session: Row, entry: Any) -> str | None:
        """The queue is gone."""
        name = entry.queue
        queue = self.queue(name)
        if queue is None:
            return "queue-unknown"
        if queue["owner"] not in (None, session["connection"]):
            return "temporary-foreign"
        mine = [one for one in self.messages if one["queue"] == name]
        places = [one["place"] for one in mine]
        receivers = [one for one in self.consumers if one["queue"] == name and one["open"]]
        if receivers or "open" in places or "flight" in places:
            return "queue-in-use"
        if self.is_named("queue:" + name):
            return "queue-in-use"
        if set(places) & {"available", "unborn", "delayed"} and not entry.purge:
            return "queue-not-empty"
        self.queues = [one for one in self.queues if one["name"] != name]
        self.messages = [one for one in self.messages if one["queue"] != name]
        return None

    def do_alter_queue_manager(self, session: Row, entry: Any) -> str | None:
        """Automatic creation, maximum lifetime, quotas, storage."""
        if not 0 <= (entry.maximum_lifetime_ms or 0) <= AGES_MS:
            return "setting-invalid"
        if not all(0 <= (one or 0) <= 2**53 for one in (entry.messages_max, entry.bytes_max)):
            return "setting-invalid"
        limits_ms = {name: getattr(entry, name) for name in self.unit_limits_ms}
        if not all(0 <= (one or 0) <= AGES_MS for one in limits_ms.values()):
            return "setting-invalid"
        if self.check_storage_settings(entry) or self.check_journal(entry):
            return "setting-invalid"
        limits = {"messages_max": self.messages_max, "bytes_max": self.bytes_max}
        told = {name: getattr(entry, name) for name in limits}
        if self.check_marks(self.marks, entry, limits | _given(told)):
            return "setting-invalid"
        reason = self.check_settings("", entry.redelivery)
        if reason is not None:
            return reason
        if entry.redelivery is not None:
            self.redelivery_rule(entry.redelivery)
        self.set_marks(self.marks, entry)
        self.messages_max = self.messages_max if entry.messages_max is None else entry.messages_max
        self.bytes_max = self.bytes_max if entry.bytes_max is None else entry.bytes_max
        if entry.maximum_lifetime_ms is not None:
            self.maximum_lifetime_ms = entry.maximum_lifetime_ms
        if entry.automatic_creation is not None:
            self.automatic_creation = entry.automatic_creation
        given = {name: one for name, one in limits_ms.items() if one is not None}
        if given:
            self.unit_limits_ms |= given
            for one in filter(self.has_work, self.sessions):
                one["open_from"] = one["began_at"]
                one["active_at"] = max(self.time, self.log_time)
        self.set_storage(entry)
        self.set_journal(entry)
        return None

    def do_upgrade(self, session: Row, entry: Any) -> str | None:
        """The active version changes."""
        if not self.version < entry.version <= self.offered:
            return "version-invalid"
        self.version = entry.version
        return None

    def do_version_offered(self, entry: Any) -> str | None:
        """A worker knows a version."""
        if not 1 <= entry.version <= 2**31 - 1:
            return "version-invalid"
        self.offered = max(self.offered, entry.version)
        return None

    def do_positions_skipped(self, entry: Any) -> str | None:
        """Nothing happens: whoever reads the log looks ahead for it."""
        if not (0 < len(entry.actor) <= 128 and 0 < len(entry.reason) <= 1_024):
            return "reason-invalid"
        below = 0 <= entry.first <= entry.last < self.position
        return None if below else "selection-invalid"
