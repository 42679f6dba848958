"""The slow model's time: what expires, what is born, what goes elsewhere (PROTOCOL.md §6, §14)."""

from __future__ import annotations

from typing import Any

from support.model.fifo import ModelFifo
from support.model.groups import ModelGroups

Row = dict[str, Any]
ENDS_PARKING = ("moved", "copied", "retried", "group-parked")
ONE_BY_ONE = ("redelivery_limit", "error_destination")
WAITING = ("available", "unborn", "delayed")
SETTINGS: Row = {
    "time_to_live_override_ms": -1,
    "delivery_delay_override_ms": -1,
    "expiry_destination": "",
    "redelivery_delay_override_ms": -1,
    "redelivery_limit": -1,
    "redelivery_delay_multiplier_percent": 100,
    "redelivery_delay_max_ms": 0,
    "redelivery_steps": [],
    "error_destination": "",
    "puts_disabled": False,
    "messages_max": 0,
    "bytes_max": 0,
    "blocking_send_policy": "FIFO",
    "fifo_mode": "CONCURRENT",
    "keeps_group_order": False,
}

DELAYS = {name for name in SETTINGS if "redelivery" in name} - {"redelivery_limit"}


class ModelMoves(ModelGroups, ModelFifo):
    """Messages that leave a queue by themselves, and where they go."""

    def birth_place(self, message: Row) -> str:
        """Whether a numbered message may be delivered already."""
        return "unborn" if message["deliver_at"] > self.time else "available"

    def expire(self) -> None:
        """What is over and nobody holds goes."""
        waiting = [one for one in self.messages if one["place"] in WAITING]
        over = [one for one in waiting if 0 <= one["expires_at"] <= self.time]
        for message in sorted(over, key=lambda one: (one["expires_at"], self.by_creation(one))):
            self._expire_one(message)
        waiting = [one for one in waiting if one["place"] in WAITING]
        there = {id(one) for one in self.messages}
        waiting = [one for one in waiting if id(one) in there]
        old = [one for one in waiting if 0 <= self.life_ends(one) <= self.time]
        for message in sorted(old, key=self.by_creation):
            self._expire_one(message)

    def settle(self) -> None:
        """What follows into the error destination goes, what is over expires."""
        self.follow()
        self.expire()
        self.follow()

    def follow(self) -> None:
        """What nobody holds of parked groups goes after what they are parked for."""
        for store in sorted(
            [*self.queues, *self.subscriptions], key=lambda one: int(one["created_position"])
        ):
            mine = [one for one in self.messages if one["queue"] == store["id"]]
            mine = [one for one in mine if one["place"] in WAITING and self.is_parked(one)]
            for message in sorted(mine, key=lambda one: int(one["sequence"])):
                if self.is_parked(message):
                    if message["group"] and message["group"]["last_in_group"]:
                        self.unpark(store, message)
                    target = self.settings_of(store["id"])["error_destination"]
                    self.gone(message, "moved")
                    self.transfer(message, target, "group-parked")

    def park(self, message: Row) -> None:
        """A message goes for its limit: its group follows."""
        store, key = self.store_of(message), self.group_key(message)
        if key is None or not self.keeps_group_order(message["queue"]):
            return
        if message["group"] and message["group"]["last_in_group"]:
            self.unpark(store, message)
            return
        for one in store["parked"]:
            if one["key"] == key:
                one["behind"] = min(one["behind"], message["sequence"])
                return
        store["parked"].append({"key": key, "behind": message["sequence"]})
        store["parked"] = store["parked"][-10_000:]

    def unpark(self, store: Row, message: Row) -> None:
        """The group of a message is parked no longer."""
        key = self.group_key(message)
        store["parked"] = [one for one in store["parked"] if one["key"] != key]

    def end_parking(self, id_of_store: str) -> None:
        """Settings changed: nothing is parked where nothing asks for it."""
        settings = self.settings_of(id_of_store)
        for one in [*self.queues, *self.subscriptions]:
            if one["id"] == id_of_store and not (
                settings["keeps_group_order"] and settings["error_destination"]
            ):
                one["parked"] = []

    def came(self, store: Row, message: Row) -> None:
        """A message is numbered; its group may be parked no longer by that."""
        if message["origin"] and message["origin"]["reason"] in ENDS_PARKING:
            self.unpark(store, message)

    def is_parked(self, message: Row) -> bool:
        """Whether its group is parked, and it is numbered behind that."""
        key = self.group_key(message)
        return any(
            one["key"] == key and message["sequence"] > one["behind"]
            for one in self.store_of(message)["parked"]
        )

    def store_of(self, message: Row) -> Row:
        """The queue or subscription that has a message."""
        stores = [*self.queues, *self.subscriptions]
        return next(one for one in stores if one["id"] == message["queue"])

    def group_key(self, message: Row) -> bytes | None:
        """What the group of a message goes by."""
        raise NotImplementedError

    def redelivery_rule(self, given: Row | None) -> None:
        """The queue manager has other redelivery; a setting of it that was never given is none."""
        told = {name: one for name, one in (given or {}).items() if one is not None}
        before = {name: SETTINGS[name] for name in (*DELAYS, *ONE_BY_ONE)} | self.redelivery
        self.redelivery = before | told
        for store in [*self.queues, *self.subscriptions]:
            self.end_parking(store["id"])

    def life_ends(self, message: Row) -> int:
        """When the queue manager's maximum lifetime of a numbered message ends; -1: never."""
        life = self.maximum_lifetime_ms
        return self.rounded(message["enqueued_at"] + life * 1000) if life else -1

    def _expire_one(self, message: Row) -> None:
        settings = self.settings_of(message["queue"])
        self.gone(message, "expired")
        if settings["expiry_destination"]:
            self.transfer(message, settings["expiry_destination"], "expired")

    def destination_row(self, store: str) -> Row:
        """A queue, or the topic of a subscription."""
        is_topic = store.startswith("topic:")
        place = self.topic(store[6:].partition("#")[0]) if is_topic else self.queue(store)
        assert place is not None
        return place

    def settings_of(self, store: str) -> Row:
        """The settings of a queue, or of the topic of a subscription."""
        place = self.destination_row(store)
        return place["settings"] | self.inherited(place)

    def inherited(self, place: Row) -> Row:
        """What a queue or topic takes from the queue manager: delays only all together."""
        own, taken = place["settings"], {}
        is_topic = place["id"].startswith("topic:")
        name = place["id"] if is_topic else "queue:" + place["id"]
        if not place["inherits_redelivery"] or name == self.redelivery.get("error_destination"):
            return {}
        unsaid = {key for key in self.redelivery if own[key] == SETTINGS[key]}
        for key in unsaid:
            if key in ONE_BY_ONE or unsaid >= DELAYS:
                taken[key] = self.redelivery[key]
        return {key: value for key, value in taken.items() if value != SETTINGS[key]}

    def transfer(self, message: Row, destination: str, reason: str) -> None:
        """A message that is gone is put elsewhere, as a new one that says where it was."""
        told = ("sequence", "backout_count", "enqueued_at")
        origin = {"destination": self.destination_of(message["queue"]), "reason": reason}
        to_topic = destination.startswith("topic:")
        header = None if reason in ("redelivery-limit", "rejected") else message["header"]
        moved = message | {
            "queue": destination if to_topic else destination.removeprefix("queue:"),
            "origin": origin | {name: message[name] for name in told},
            "expires_at": -1 if reason == "expired" else message["expires_at"],
            "deliver_at": self._stays_unborn(message, reason),
            "redelivery_limit": self.limit_of(header, self.place(destination)),
            "delayed_until": -1,
            "group": None if to_topic else message["group"],
            "in_unit_of_work": False,
            "told_in_doubt": False,
            "sequence": None,
            "backout_count": 0,
            "uncounted_backout_count": -1,
            "received": None,
            "handing": False,
            "place": "open",
            "session": None,
            "consumer": None,
            "delivery": None,
        }
        self.messages.append(moved)
        self.number(moved["queue"], [moved])

    def _stays_unborn(self, message: Row, reason: str) -> int:
        """When what goes elsewhere may be delivered there; -1: at once."""
        asked_for = reason in ("bound", "moved", "copied", "retried")
        return int(message["deliver_at"]) if asked_for and message["deliver_at"] > self.time else -1

    def destination_of(self, store: str) -> str:
        """How a queue, topic or subscription is told."""
        raise NotImplementedError

    def place(self, destination: str) -> Row | None:
        """The queue or topic of a destination."""
        raise NotImplementedError

    def limit_of(self, header: Any, place: Row | None) -> int:
        """The redelivery limit of a message that comes to a place."""
        settings = place["settings"] | self.inherited(place) if place else self.redelivery
        limit = int(settings.get("redelivery_limit", -1))
        asked = (header or {}).get("redelivery_limit", -1)
        return int(asked) if limit < 0 else limit

    def by_creation(self, message: Row) -> tuple[int, int]:
        """Where a message comes among those of all queues and subscriptions."""
        stores = [*self.queues, *self.subscriptions]
        store = next(one for one in stores if one["id"] == message["queue"])
        return (store["created_position"], message["sequence"])

    def rounded(self, time: int) -> int:
        """Up to the next multiple of 50 ms."""
        rest = time % 50_000
        return time if rest == 0 else time + 50_000 - rest
