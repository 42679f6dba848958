"""Histories in which any destination, a temporary one too, is given any settings at any time.

Other generators keep to the settings of their subject; here each may meet each other one, comes
while much is open, and is taken away again.
"""

from __future__ import annotations

import random
from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.generators.generators import WEIGHTS, Entry, Writer
from support.generators.group_generators import item
from support.generators.mixed_histories import WRITERS, mixed_history
from support.generators.naive_operations import COLORS, TIMINGS, sample_message
from support.scripts.verbs import group_id

# Values of each setting; what stands first is as if it were not set, and comes as often as others.
SETTINGS: dict[str, tuple[Any, ...]] = {
    "time_to_live_override_ms": (-1, 0, 1_000, 20_000),
    "delivery_delay_override_ms": (-1, 0, 1_000),
    "expiry_destination": ("", "queue:r", "topic:t"),
    "redelivery_delay_override_ms": (-1, 0, 50, 5_000),
    "redelivery_limit": (-1, 0, 1),
    "error_destination": ("", "queue:q", "queue:s", "topic:u"),
    "puts_disabled": (False, False, False, True),
    "messages_max": (0, 0, 1, 4),
    "bytes_max": (0, 0, 3),
    "blocking_send_policy": ("FIFO", "PREEMPTIVE"),
    "fifo_mode": ("CONCURRENT", "PROTECTED", "SERIALIZED"),
    "keeps_group_order": (False, True),
}
FIELDS: dict[str, tuple[Any, ...]] = {
    "unacknowledged_max": (0, 1, 3),
    "deduplication_window_ms": (0, 1_000, 60_000),
    "deduplication_ids_max": (0, 1, 9),
    "messages_resume": (0, 0, 1),
    "inherits_redelivery": (True, False),
    "single_active_consumer": (False, True),
    "available_max": (0, 0, 1, 3),
    "last_value_key": ("", "", "color", "JMSXGroupID", "JMSCorrelationID"),
}
OF_QUEUES: dict[str, tuple[Any, ...]] = {"group_affinity": (False, True), "gets_disabled": (False,)}
OF_TOPICS: dict[str, tuple[Any, ...]] = {"moves_unrouted": (False, True)}
OF_MANAGER: dict[str, tuple[Any, ...]] = {
    "automatic_creation": (True, True, False),
    "maximum_lifetime_ms": (0, 0, 2_000, 60_000),
    "messages_max": (0, 0, 6),
    "bytes_max": (0, 0, 9),
    "messages_resume": (0, 0, 2),
    "unit_of_work_time_limit_ms": (0, 0, 0, 1_000, 5_000),
    "unit_of_work_idle_limit_ms": (0, 0, 0, 500, 3_000),
    "journaling": (False, True),
}
IDS = (None, None, "a", "a", "b")
PATTERNS = ("#", "t", "*", "u")
TARGETS = ("queue:q", "queue:r", "topic:t", "topic:u")
SETTINGS_WEIGHTS = (
    *(one for one in WEIGHTS if one not in ("naive", "configure")),
    *("alter",) * 6,
    *("alter_manager", "alter_manager", "alter_manager", "bind", "bind", "unbind"),
    *("put",) * 6,
)


class SettingsWriter(Writer):
    """Draws any settings of any destination, and puts that meet them."""

    weights = SETTINGS_WEIGHTS

    def some(self, values: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Some of the settings, mostly few, and now and then all as if they were not set."""
        if self.one((False,) * 7 + (True,)):
            return {name: choices[0] for name, choices in values.items()}
        given = self.one((2, 3, 6))
        return {
            name: self.one(choices)
            for name, choices in values.items()
            if not self.one(range(given))
        }

    def alter(self, session: dict[str, Any]) -> None:
        """Any settings of a queue or topic that is there, or of one that is then made."""
        place = self.destination()
        kind, _, name = place.partition(":")
        common, is_there = self.common(session), self.model.place(place) is not None
        settings = given_settings(self.some(SETTINGS)) if self.one((True, True, False)) else None
        fields = self.some(FIELDS)
        if kind == "topic":
            made: Any = op.AlterTopic if is_there else op.CreateTopic
            more = self.some(OF_TOPICS)
        else:
            made = op.AlterQueue if is_there else op.CreateQueue
            more = self.some(OF_QUEUES)
            if made is op.CreateQueue:
                more.pop("gets_disabled", None)
        self.write(made(**common, **{kind: name}, settings=settings, **fields, **more))

    def alter_manager(self, session: dict[str, Any]) -> None:
        """Any of the queue manager; its limits come and go while units of work are open."""
        self.write(op.AlterQueueManager(**self.common(session), **self.some(OF_MANAGER)))

    def bind(self, session: dict[str, Any]) -> None:
        """Some topics are bound to somewhere."""
        fields = {"topics": self.one(PATTERNS), "destination": self.one(TARGETS)}
        selector = self.one(("", "", "color = 'red'", "JMSXGroupSeq = 1"))
        self.write(op.Bind(**self.common(session), selector=selector, **fields))

    def unbind(self, session: dict[str, Any]) -> None:
        """And no longer, if they were."""
        known = self.model.bindings or [{"topics": "t", "destination": "queue:q"}]
        one = self.one(known)
        fields = {name: one[name] for name in ("topics", "destination")}
        self.write(op.Unbind(**self.common(session), **fields))

    def put(self, session: dict[str, Any], destination: str | None = None) -> None:
        """Messages of few ids and few groups, which may wait for room."""
        place = destination or self.destination()
        number = len(self.history) * 10
        messages = []
        for at in range(self.one((1, 1, 2, 4))):
            timing = self.one(TIMINGS) or (0, 0, 0)
            message = sample_message(
                number + at, self.one((4, 4, 9)), 1, self.one(COLORS), timing, self.one((-1, 0))
            )
            if self.one((False, False, True)):
                header = message.setdefault("header", self.header())
                header["properties"]["JMSXGroupID"] = self.one("xy")
                header["correlation_id"] = self.one((None, "c"))
            elif place.startswith("queue:") and self.one((False, True)):
                message.setdefault("header", self.header())["group"] = self.group()
            messages.append(message)
        self.write(
            op.Put(
                **self.common(session),
                destination=place,
                messages=messages,
                deduplication_id=self.one(IDS),
                blocking_ms=self.one((0, 0, 1_000, 60_000)),
            )
        )

    def header(self) -> op.Header:
        """One that says nothing yet."""
        return sample_message(0, 4, 1, "red")["header"] | {"properties": {}}

    def group(self) -> op.Group:
        """A message of one of two groups, which may clash with others."""
        of, number = group_id(self.one("GH")), self.one((1, 1, 2, 3))
        last = self.one((False, False, True))
        return item(of, number, last=last, ordered=self.one((False, True)))


def settings_history(seed: int, steps: int = 150) -> list[Entry]:
    """A history in which settings of all kinds meet, mostly what two other writers do as well."""
    chance = random.Random(seed)
    kinds: list[type[Writer]] = [SettingsWriter]
    if seed % 3:
        kinds += [chance.choice(WRITERS), SettingsWriter, chance.choice(WRITERS)]
    return mixed_history(seed, steps, kinds)
