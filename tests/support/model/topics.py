"""The slow model's topics, subscriptions, selectors and temporary destinations."""

from __future__ import annotations

from typing import Any

from ledgermq.selector import SelectorError, parse_selector, text_of
from support.model.base import LIVE, OWN_FIELDS
from support.model.bindings import ModelBindings

Row = dict[str, Any]


class ModelTopics(ModelBindings):
    """What is asked for by consumers of topics, and what becomes of what is published."""

    def destination_of(self, store: str) -> str:
        """How a queue, topic or subscription is told: `topic:T#7` is a subscription of T."""
        return store.partition("#")[0] if store.startswith("topic:") else "queue:" + store

    def selects(self, text: str, message: Row) -> bool:
        """Whether a selector is true of a message."""
        selector = parse_selector(text)
        if selector is None:
            return True
        return selector.matches(self.known_of(message).get)

    def known_of(self, message: Row) -> Row:
        """What selectors know of a message, by name."""
        header = message["header"]
        fields = header if header else {"properties": {}, "correlation_id": None, "type": None}
        known = {
            "JMSPriority": message["priority"],
            "JMSDeliveryMode": "PERSISTENT" if message["persistent"] else "NON_PERSISTENT",
            "JMSMessageID": "ID:" + message["message_id"].hex(),
            "JMSTimestamp": (message["enqueued_at"] or 0) // 1000,
            "JMSCorrelationID": fields["correlation_id"],
            "JMSType": fields["type"],
        }
        grouped: Row = {}
        if message["group"]:
            grouped["JMSXGroupID"] = "ID:" + message["group"]["group_id"].hex()
            grouped["JMSXGroupSeq"] = message["group"]["group_sequence"]
        return {**grouped, **fields["properties"], **known}

    def at_limit(self, consumer: Row) -> bool:
        """Whether its session has as many deliveries of this queue as it may."""
        most = self.place(self.destination_of(consumer["queue"]))["unacknowledged_max"]
        session = consumer["session"]
        held = [one for one in self.messages if one["place"] == "flight"]
        held = [one for one in held if one["session"] == session]
        return 0 < most <= len([one for one in held if one["queue"] == consumer["queue"]])

    def paused(self, consumer: Row) -> bool:
        """Whether a consumer waits for its session's acknowledgements."""
        return consumer["open"] and consumer["credit"] > 0 and self.at_limit(consumer)

    def check_client_id(self, entry: Any) -> str | None:
        """One connection at a time has a client id, unless it takes over."""
        if entry.client_id and not self.good_name(entry.client_id):
            return "setting-invalid"
        if len(entry.client) > 1024 or len(entry.takeover) > 1024:
            return "setting-invalid"
        for one in self.sessions:
            if one["connection"] == entry.connection:
                return None if one["client_id"] == entry.client_id else "setting-invalid"
        others = [one for one in self.sessions if one["client_id"] == entry.client_id]
        if not entry.client_id or not others:
            return None
        if not others[0]["takeover"] or others[0]["takeover"] != entry.takeover:
            return "client-id-in-use"
        for other in others:
            self.end(other, "TAKEN_OVER", None, 0)
        return None

    def key(self, session: Row, entry: Any) -> tuple[str, str, str]:
        """The identity of the subscription that a consumer asks for."""
        client_id = session["client_id"]
        if entry.durable or entry.shared:
            kind = "durable" if entry.durable else "shared"
            return (kind, entry.subscription, client_id)
        return ("consumer", f"{session['session']}/{entry.consumer}", client_id)

    def subscription(self, key: tuple[str, str, str]) -> Row | None:
        """A subscription by identity."""
        return next((one for one in self.subscriptions if one["key"] == key), None)

    def check_source(self, session: Row, entry: Any) -> str | None:
        """Why a consumer cannot be had of a destination that could be used."""
        place = self.place(entry.destination)
        if place is not None and place["owner"] not in (None, session["connection"]):
            return "temporary-foreign"
        try:
            parse_selector(entry.selector)
        except SelectorError:
            return "selector-invalid"
        named = entry.durable or entry.shared
        if entry.destination.startswith("queue:"):
            return "subscription-invalid" if named or entry.subscription else None
        if not named:
            return "subscription-invalid" if entry.subscription else None
        if not self.good_name(entry.subscription) or (entry.shared and entry.no_local):
            return "subscription-invalid"
        if entry.durable and not entry.shared and not session["client_id"]:
            return "client-id-missing"
        if entry.durable and place is not None and place["owner"] is not None:
            return "destination-invalid"
        return self._check_standing(self.subscription(self.key(session, entry)), entry)

    def _check_standing(self, standing: Row | None, entry: Any) -> str | None:
        if standing is None:
            return None
        if standing["shared"] != entry.shared:
            return "subscription-differs"
        if self.receivers(standing["id"]) and not entry.shared:
            return "subscription-in-use"
        if not self._alike(standing, entry) and self.used(standing):
            return "subscription-in-use"
        return None

    def _alike(self, standing: Row, entry: Any) -> bool:
        told = (standing["topic"], standing["selector"], standing["no_local"])
        return told == (entry.destination[6:], self._text(entry.selector), entry.no_local)

    def _text(self, selector: str) -> str:
        return text_of(parse_selector(selector))

    def receivers(self, store: str) -> list[Row]:
        """Open consumers of a queue or subscription."""
        return [one for one in self.consumers if one["queue"] == store and one["open"]]

    def used(self, subscription: Row) -> bool:
        """Whether it has consumers or deliveries in flight."""
        mine = [one for one in self.messages if one["queue"] == subscription["id"]]
        flight = any(one["place"] == "flight" for one in mine)
        return flight or bool(self.receivers(subscription["id"]))

    def source(self, session: Row, entry: Any) -> str:
        """The queue or subscription of a consumer that was accepted."""
        place = self.use(entry.destination)
        if entry.destination.startswith("queue:"):
            return str(place["id"])
        key = self.key(session, entry)
        standing = self.subscription(key)
        if standing is not None and self._alike(standing, entry):
            return str(standing["id"])
        if standing is not None:
            self.end_subscription(standing)
        made = {
            "id": f"topic:{place['name']}#{self.position}",
            "topic": place["name"],
            "key": key,
            "created_position": self.position,
            "shared": entry.shared,
            "selector": self._text(entry.selector),
            "no_local": entry.no_local,
            "gone": [],
            "added": 0,
            "last": -1,
            "parked": [],
            **dict.fromkeys(("messages_high", "bytes_high"), 0),
        }
        self.subscriptions.append(made)
        return str(made["id"])

    def number(self, name: str, messages: list[Row]) -> int:
        """Numbers messages of a queue or publishes them to a topic; returns the first number."""
        if not name.startswith("topic:"):
            return super().number(name, messages)
        topic = self.topic(name[6:])
        assert topic is not None
        first = int(topic["given"])
        target = (
            self.settings_of(topic["id"])["error_destination"] if topic["moves_unrouted"] else ""
        )
        leaving = []
        bound: dict[str, list[Row]] = {}
        for message in messages:
            self.messages = [one for one in self.messages if one is not message]
            sender = self.session(message["session"])
            message |= {"sequence": topic["given"], "enqueued_at": self.time, "session": None}
            topic["given"] += 1
            onward = [] if sender is None else self.bound_to(topic, message)
            for destination in onward:
                bound.setdefault(destination, []).append(message)
            if self._publish(topic, message, sender):
                continue
            if onward:
                topic["gone"].append(message | {"place": "moved"})
            else:
                moves = target != "" and not self._came_unrouted(message)
                topic["gone"].append(message | {"place": "moved" if moves else "dropped"})
                leaving += [message] if moves else []
        self.note_high(topic["id"])
        for destination, those in bound.items():
            for message in those:
                self.transfer(message, destination, "bound")
        for message in leaving:
            self.transfer(message, target, "unrouted")
        return first

    def _came_unrouted(self, message: Row) -> bool:
        """Whether it is here because no subscription of another topic wanted it."""
        return message["origin"] is not None and message["origin"]["reason"] == "unrouted"

    def _publish(self, topic: Row, message: Row, sender: Row | None) -> bool:
        """Whether any subscription wants it."""
        copies = []
        for one in self.subscriptions:
            if one["topic"] == topic["name"] and self._wants(one, message, sender):
                copies.append(message | {"queue": one["id"], "place": self.birth_place(message)})
                one["added"] += 1
                one["last"] = message["sequence"]
                self.came(one, message)
        self.messages += copies
        for copy in copies:
            self.note_high(copy["queue"])
            self.touch(copy["queue"])
        return bool(copies)

    def _wants(self, one: Row, message: Row, sender: Row | None) -> bool:
        if one["key"][0] == "ended":
            return False
        if sender is None:
            return self.selects(one["selector"], message)
        own = {self.session(each["session"])["connection"] for each in self.receivers(one["id"])}
        same_id = sender["client_id"] != "" and sender["client_id"] == one["key"][2]
        if one["no_local"] and (same_id or sender["connection"] in own):
            return False
        return self.selects(one["selector"], message)

    def copy_gone(self, copy: Row, how: str) -> None:
        """A subscription lets go of a message; the last one decides how it is counted."""
        self.messages = [one for one in self.messages if one is not copy]
        owner = next(one for one in self.subscriptions if one["id"] == copy["queue"])
        owner["gone"].append(copy | {"place": how})
        topic = self.topic(owner["topic"])
        assert topic is not None
        prefix = topic["id"] + "#"
        mine = [one for one in self.messages if one["queue"].startswith(prefix)]
        if all(one["sequence"] != copy["sequence"] for one in mine):
            topic["gone"].append(copy | {"place": how})

    def end_subscription(self, subscription: Row) -> None:
        """It goes with its messages."""
        mine = [one for one in self.messages if one["queue"] == subscription["id"]]
        for copy in sorted(mine, key=lambda one: one["sequence"]):
            self.copy_gone(copy, "dropped")
        self.subscriptions = [one for one in self.subscriptions if one is not subscription]

    def retire(self) -> None:
        """Subscriptions that nothing keeps go."""
        for one in list(self.subscriptions):
            if one["key"][0] == "durable" or self.receivers(one["id"]):
                continue
            if not self.used(one):
                self.end_subscription(one)
            elif one["shared"]:
                self._end_all_but_held(one)

    def _end_all_but_held(self, one: Row) -> None:
        """A shared subscription is over, though deliveries of it can still be settled."""
        kind, name, client_id = one["key"]
        if kind == "shared":
            one["key"] = ("ended", f"{name}#{one['created_position']}", client_id)
        mine = [each for each in self.messages if each["queue"] == one["id"]]
        free = [each for each in mine if each["place"] != "flight"]
        for copy in sorted(free, key=lambda each: each["sequence"]):
            self.copy_gone(copy, "dropped")

    def end_temporaries(self, connection: bytes) -> None:
        """What belongs to a connection goes with it."""
        for place in [*self.queues, *self.topics]:
            if place["owner"] == connection:
                self.remove(place)

    def remove(self, place: Row) -> None:
        """A queue or topic is gone with all it holds."""
        stores = [place["id"]]
        if place in self.topics:
            mine = [one for one in self.subscriptions if one["topic"] == place["name"]]
            stores += [one["id"] for one in mine]
        self.subscriptions = [one for one in self.subscriptions if one["id"] not in stores]
        self.messages = [one for one in self.messages if one["queue"] not in stores]
        self.queues = [one for one in self.queues if one is not place]
        self.topics = [one for one in self.topics if one is not place]

    def do_create_temporary(self, session: Row, entry: Any) -> str | None:
        """A queue or topic of the connection."""
        kind, name = entry.destination[:6], entry.destination[6:]
        own = "temporary/" + session["connection"].hex() + "/"
        if kind not in ("queue:", "topic:") or not self.good_name(name):
            return "name-invalid"
        if not name.startswith(own):
            return "name-invalid"
        if self.place(entry.destination) is not None:
            return "queue-exists"
        self.use(entry.destination)["owner"] = session["connection"]
        return None

    def do_unsubscribe(self, session: Row, entry: Any) -> str | None:
        """A durable subscription is gone."""
        standing = self.subscription(("durable", entry.subscription, session["client_id"]))
        if standing is None:
            return "subscription-unknown"
        if self.used(standing):
            return "subscription-in-use"
        self.end_subscription(standing)
        return None

    def topic_status(self, topic: Row) -> Row:
        """The status of a topic as section 9 defines it."""
        prefix = topic["id"] + "#"
        kept: dict[int, Row] = {}
        for one in self.messages:
            if one["queue"].startswith(prefix):
                kept[one["sequence"]] = one
        numbers = sorted(kept)
        ends = [kept[number] for number in numbers] or topic["gone"][-1:]
        mine = [one for one in self.subscriptions if one["topic"] == topic["name"]]
        fates = [one["place"] for one in topic["gone"]]
        return {
            "name": topic["name"],
            "created_position": topic["created_position"],
            "description": topic["description"],
            "message_bytes_max": topic["message_bytes_max"],
            "unacknowledged_max": topic["unacknowledged_max"],
            "temporary": topic["owner"] is not None,
            "settings": topic["settings"]
            | {name: topic[name] for name in (*OWN_FIELDS, "moves_unrouted")},
            "inherited": self.inherited(topic),
            "subscriptions": len(mine),
            "receivers": sum(len(self.receivers(one["id"])) for one in mine),
            "message_count": len(numbers),
            "sent_and_committed": fates.count("sent"),
            "expired": fates.count("expired"),
            "displaced": fates.count("displaced"),
            "moved": fates.count("moved"),
            "dropped": fates.count("dropped") + fates.count("removed"),
            "min_sequence": numbers[0] if numbers else topic["given"],
            "max_sequence": numbers[-1] if numbers else topic["given"],
            "next_sequence": topic["given"],
            "first_enqueued_at": ends[0]["enqueued_at"] if ends else None,
            "last_enqueued_at": ends[-1]["enqueued_at"] if ends else None,
            "uncommitted_puts": len([1 for one in self.messages if one["queue"] == topic["id"]]),
            "message_bytes": sum(one["size"] for one in kept.values()),
            "uncommitted_puts_bytes": sum(
                one["size"] for one in self.messages if one["queue"] == topic["id"]
            ),
            **{name: topic[name] for name in ("messages_high", "bytes_high")},
        }

    def topic_statuses(self) -> list[Row]:
        """All topics by name."""
        return [self.topic_status(one) for one in sorted(self.topics, key=lambda one: one["name"])]

    def subscription_statuses(self) -> list[Row]:
        """All subscriptions by topic and creation."""
        order = sorted(self.subscriptions, key=lambda one: (one["topic"], one["created_position"]))
        return [self._subscription_status(one) for one in order]

    def bytes_by_state(self, store: Row, *without: str) -> Row:
        """Bytes of a queue or subscription by state, and the most it ever held."""
        mine = [one for one in self.messages if one["queue"] == store["id"]]
        transacted = [one["session"] for one in self.sessions if one["mode"] == "TRANSACTED"]
        held = [one for one in mine if one["place"] == "flight"]
        gets = [one for one in held if one["session"] in transacted]
        states = {
            "message": [one for one in mine if one["place"] in LIVE and one["place"] != "open"],
            "current": [one for one in mine if one["place"] == "available"],
            "pending": [
                one for one in mine if one["place"] in LIVE and one["place"] != "available"
            ],
            "unborn": [one for one in mine if one["place"] == "unborn"],
            "delayed": [one for one in mine if one["place"] == "delayed"],
            "uncommitted_puts": [one for one in mine if one["place"] == "open"],
            "unacknowledged": [one for one in held if one["session"] not in transacted],
            "uncommitted_gets": gets,
        }
        return {
            name + "_bytes": sum(one["size"] for one in found)
            for name, found in states.items()
            if name not in without
        } | {name: store[name] for name in ("messages_high", "bytes_high")}

    def _subscription_status(self, one: Row) -> Row:
        mine = [each for each in self.messages if each["queue"] == one["id"]]
        mine.sort(key=lambda each: each["sequence"])
        flight = [each["session"] for each in mine if each["place"] == "flight"]
        unborn = len([1 for each in mine if each["place"] == "unborn"])
        delayed = len([1 for each in mine if each["place"] == "delayed"])
        fates = [each["place"] for each in one["gone"]]
        transacted = [each["session"] for each in self.sessions if each["mode"] == "TRANSACTED"]
        gets = len([each for each in flight if each in transacted])
        ends = mine or one["gone"][-1:]
        return {
            "topic": one["topic"],
            "created_position": one["created_position"],
            "kind": one["key"][0],
            "name": one["key"][1],
            "client_id": one["key"][2],
            "shared": one["shared"],
            "selector": one["selector"],
            "no_local": one["no_local"],
            "receivers": len(self.receivers(one["id"])),
            "message_count": len(mine),
            "added": one["added"],
            "sent_and_committed": fates.count("sent"),
            "expired": fates.count("expired"),
            "displaced": fates.count("displaced"),
            "removed_by_administration": fates.count("removed"),
            "moved": fates.count("moved"),
            "dropped": fates.count("dropped"),
            "min_sequence": mine[0]["sequence"] if mine else one["last"] + 1,
            "max_sequence": mine[-1]["sequence"] if mine else one["last"] + 1,
            "first_enqueued_at": ends[0]["enqueued_at"] if ends else None,
            "last_enqueued_at": ends[-1]["enqueued_at"] if ends else None,
            "current": len(mine) - len(flight) - unborn - delayed,
            "pending": len(flight) + unborn + delayed,
            "unborn": unborn,
            "delayed": delayed,
            "unacknowledged": len(flight) - gets,
            "uncommitted_gets": gets,
            **self.bytes_by_state(one, "uncommitted_puts"),
        }
