"""The slow model's lists, and what its operations have in common."""

from __future__ import annotations

from typing import Any

from ledgermq.protocol.operations import NO_HEADER
from support.model.journal import ModelJournal
from support.model.moves import SETTINGS
from support.model.storage import LIVE

__all__ = ["BODY_MAX", "INT_MAX", "LIVE", "MARKS", "OWN_FIELDS", "WINDOW", "ModelBase"]

Row = dict[str, Any]
BODY_MAX = 8 * 1024 * 1024 - 4 * 1024
INT_MAX = 2147483647
# How long and how many deduplication ids a queue or topic remembers.
MARKS = ("messages_resume", "bytes_resume")
WINDOW = ("deduplication_window_ms", "deduplication_ids_max")
# Settings of queues and topics that operations give in fields of their own.
OWN_FIELDS = (
    *(*WINDOW, *MARKS),
    *("inherits_redelivery", "single_active_consumer", "available_max", "last_value_key"),
)


class ModelBase(ModelJournal):
    """Queues, consumers, sessions and messages as lists of mappings."""

    def __init__(self) -> None:
        self.position = -1
        self.time = -1
        self.log_time = -1
        self.reference = -1
        self.stood_still = False
        self.version = self.offered = 1
        self.automatic_creation = True
        self.maximum_lifetime_ms = 30 * 86_400_000
        self.messages_max = self.bytes_max = 0
        self.redelivery: Row = {}
        self.marks = {**dict.fromkeys(MARKS, 0), "holds_up": False}
        self.unit_limits_ms = {"unit_of_work_time_limit_ms": 0, "unit_of_work_idle_limit_ms": 0}
        self.blocked: list[Row] = []
        self.waits = 0
        self.receipts = 0
        self.active = {}
        self.storage = self.first_storage()
        self.journal = self.first_journal()
        self.queues: list[Row] = []
        self.topics: list[Row] = []
        self.subscriptions: list[Row] = []
        self.bindings: list[Row] = []
        self.published: list[Row] = []
        self.sessions: list[Row] = []
        self.consumers: list[Row] = []
        self.messages: list[Row] = []
        self.ends: dict[bytes, tuple[int, int]] = {}
        self.outcomes: list[Row] = []
        self.touched: list[str] = []

    def agrees(self, entry: Any) -> bool:
        """Whether the writer's clock is within 10 s of the log's."""
        return -10_000_000 <= entry.writer_time - self.log_time <= 10_000_000

    def told_header(self, message: Row) -> Row:
        """What a delivery says beside, where the sender gave anything."""
        header = message["header"]
        times = {name: message[name] for name in ("expires_at", "deliver_at")}
        beside = times | {"group": self.told_group(message), "origin": message["origin"]}
        fields = header or {"properties": {}, "correlation_id": None, "type": None}
        given = {name: fields[name] for name in ("properties", "correlation_id", "type")}
        told = given | beside
        return {"header": told} if any(one not in ({}, None, -1) for one in told.values()) else {}

    def told_group(self, message: Row) -> Row | None:
        """A message's place in a group; whether its writer kept the order is forgotten."""
        return message["group"] and message["group"] | {"logical_order": False}

    def kept_header(self, message: Row) -> list[Row]:
        """A message's header, unless it says nothing, as when a copy is in no group any more."""
        told = (message["header"] or NO_HEADER) | {"group": self.told_group(message)}
        return [told] if told != NO_HEADER else []

    def header_size(self, header: Any) -> int:
        """§3: UTF-8 of texts and names, 8 for everything else."""
        if header is None:
            return 0
        fields = header
        texts = [fields["correlation_id"] or "", fields["type"] or "", *fields["properties"]]
        texts += [one for one in fields["properties"].values() if isinstance(one, str)]
        others = [one for one in fields["properties"].values() if not isinstance(one, str)]
        return sum(len(one.encode("utf-8")) for one in texts) + 8 * len(others)

    def session(self, handle: int) -> Row | None:
        """An open session."""
        return next((one for one in self.sessions if one["session"] == handle), None)

    def queue(self, name: str) -> Row | None:
        """A queue by name."""
        return next((one for one in self.queues if one["name"] == name), None)

    def consumers_of(self, session: Row) -> list[Row]:
        """All consumers that a session ever opened, by number."""
        return [one for one in self.consumers if one["session"] == session["session"]]

    def consumer(self, session: Row, number: int) -> Row | None:
        """An open consumer."""
        mine = self.consumers_of(session)
        return next((one for one in mine if one["number"] == number and one["open"]), None)

    def flight(self, session: Row) -> list[Row]:
        """Deliveries in flight of a session by number."""
        handle = session["session"]
        mine = [one for one in self.messages if one["place"] == "flight"]
        mine = [one for one in mine if one["session"] == handle and one["delivery"] is not None]
        return sorted(mine, key=lambda one: one["delivery"])

    def open_puts(self, session: Row) -> list[Row]:
        """Uncommitted puts of a session in put order."""
        handle = session["session"]
        return [one for one in self.messages if one["place"] == "open" and one["session"] == handle]

    def available(self, name: str) -> list[Row]:
        """Available messages in delivery order."""
        mine = [one for one in self.messages if one["queue"] == name]
        mine = [one for one in mine if one["place"] == "available"]
        return sorted(mine, key=lambda one: (-one["priority"], one["sequence"]))

    def named(self, session: Row, ranges: list[Any]) -> list[Row] | None:
        """The deliveries that ranges name; None if they do not rise or name what is not there."""
        held = {one["delivery"]: one for one in self.flight(session)}
        numbers: list[int] = []
        for one in ranges:
            if one["last"] < one["first"] or one["last"] - one["first"] > len(held):
                return None
            numbers += range(one["first"], one["last"] + 1)
        if numbers != sorted(set(numbers)) or not set(numbers) <= set(held):
            return None
        return [held[number] for number in numbers]

    def check_destination(self, destination: str) -> str | None:
        """Why a destination cannot be used."""
        kind, name = destination[:6], destination[6:]
        if kind not in ("queue:", "topic:") or not self.good_name(name):
            return "destination-invalid"
        if self.place(destination) is not None:
            return None
        if name.startswith("temporary/"):
            return "destination-unknown"
        if not self.automatic_creation:
            return "queue-unknown" if kind == "queue:" else "topic-unknown"
        return None

    def good_name(self, name: str) -> bool:
        """1 to 128 of the letters that names are made of."""
        good = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/%-"
        return 1 <= len(name) <= 128 and all(letter in good for letter in name)

    def place(self, destination: str) -> Row | None:
        """The queue or topic of a destination."""
        if destination.startswith("topic:"):
            return self.topic(destination[6:])
        return self.queue(destination[6:])

    def topic(self, name: str) -> Row | None:
        """A topic by name."""
        return next((one for one in self.topics if one["name"] == name), None)

    def use(self, destination: str, position: int | None = None) -> Row:
        """A destination's queue or topic, which is there now: made by this entry or another."""
        found = self.place(destination)
        if found is not None:
            return found
        add = self.add_topic if destination.startswith("topic:") else self.add_queue
        made = add(destination[6:])
        if position is not None:
            made["created_position"] = position
        return made

    def add_topic(self, name: str) -> Row:
        """A topic without subscriptions."""
        topic = {"id": "topic:" + name, "given": 0, "moves_unrouted": False, **self._place(name)}
        self.topics.append(topic)
        return topic

    def add_queue(self, name: str) -> Row:
        """A queue without messages."""
        queue: Row = {"id": name, "gets_disabled": False, "group_affinity": False}
        queue |= {"bonds": {}, "parked": [], **self._place(name)}
        self.queues.append(queue)
        return queue

    def _place(self, name: str) -> Row:
        return {
            "name": name,
            "created_position": self.position,
            "description": "",
            "message_bytes_max": 0,
            "unacknowledged_max": 0,
            "owner": None,
            "gone": [],
            "parts": [],
            "ids": [],
            **dict.fromkeys((*WINDOW, *MARKS), 0),
            "holds_up": False,
            "inherits_redelivery": True,
            "single_active_consumer": False,
            "available_max": 0,
            "last_value_key": "",
            **dict.fromkeys(("messages_high", "bytes_high"), 0),
            "settings": dict(SETTINGS),
        }

    def number(self, name: str, messages: list[Row]) -> int:
        """Gives the next sequence numbers; returns the first."""
        given = [one for one in self.messages if one["queue"] == name]
        first = len([one for one in given if one["sequence"] is not None])
        for place, message in enumerate(messages):
            message["sequence"] = first + place
            message["enqueued_at"] = self.time
            message["place"] = self.birth_place(message)
            message["session"] = None
            self.came(next(one for one in self.queues if one["id"] == name), message)
        self.note_high(name)
        self.touch(name)
        return first

    def known_of(self, message: Row) -> Row:
        """What selectors know of a message, by name."""
        raise NotImplementedError

    def note_high(self, store: str) -> None:
        """Notes what a queue, topic or subscription holds, if that is the most so far."""
        places = [*self.queues, *self.topics, *self.subscriptions]
        place = next(one for one in places if one["id"] == store)
        held = self.held(store)
        place["messages_high"] = max(place["messages_high"], len(held))
        place["bytes_high"] = max(place["bytes_high"], sum(one["size"] for one in held))

    def held(self, store: str) -> list[Row]:
        """What counts against a quota."""
        raise NotImplementedError

    def drop_blocked(self, session: Row) -> None:
        """What waits in a session is refused."""
        raise NotImplementedError

    def release(self) -> None:
        """What waits is put if it can be."""
        raise NotImplementedError

    def gone(self, message: Row, place: str) -> None:
        """A message leaves: consumed, or removed by administration."""
        waited = message["place"] == "delayed" and self.keeps_group_order(message["queue"])
        if waited or self.fifo_mode(message["queue"]) != "CONCURRENT":
            self.touch(message["queue"])
        if message["group"]:
            items = self.items(message["queue"], message["group"]["group_id"])
            if not all(self.is_member(one) for one in items):
                self.touch(message["queue"])
        self.leave_flight(message, place)
        queue = self.queue(message["queue"])
        if queue is not None:
            queue["gone"].append(message)
            if queue["unacknowledged_max"] or queue["single_active_consumer"]:
                self.touch(queue["name"])
            return
        self.copy_gone(message, {"consumed": "sent"}.get(place, place))
        topic = self.place(self.destination_of(message["queue"]))
        if topic["unacknowledged_max"] or topic["single_active_consumer"]:
            self.touch(message["queue"])

    def back(
        self, message: Row, *, backout: bool, rejected: bool = False, delay_ms: int = -1
    ) -> None:
        """A delivery returns to its place, or goes as its application will not have it."""
        holder = next(one for one in self.consumers if self.holds(one, message))
        self.leave_flight(message, "available")
        message["backout_count"] += backout
        self.touch(message["queue"])
        self.expire()
        if rejected and message["place"] == "available":
            self.send_away(message, "rejected")
        elif backout and message["place"] == "available":
            self.come_back(message, holder, delay_ms)

    def holds(self, consumer: Row, message: Row) -> bool:
        """Whether a message in flight is a consumer's."""
        told = (message["session"], message["consumer"])
        return told == (consumer["session"], consumer["number"])

    def all_back(self, session: Row, seen: list[Row] | None) -> int:
        """Every delivery of a session returns; seen None: all count as backed out, and are in
        doubt.
        """
        held = self.flight(session)
        for message in held:
            if seen is None:
                told = message["handing"] or message["delivery"] <= session["handed_through"]
                uncounted = max(message["uncounted_backout_count"], 0)
                message["uncounted_backout_count"] = uncounted + (not told)
            self.back(message, backout=seen is None or any(one is message for one in seen))
        return len(held)

    def begin_work(self, session: Row) -> None:
        """A unit of work that holds nothing yet begins now."""
        if not self.open_puts(session) and not self.flight(session):
            session["began_at"] = self.time
            session["open_from"] = max(self.time, self.log_time)
        session["active_at"] = max(self.time, self.log_time)

    def unit_ends(self, session: Row) -> int | None:
        """When a unit of work breaks a limit; None: it does not."""
        if not self.has_work(session):
            return None
        found = []
        counted = {"time": session["open_from"], "idle": session["active_at"]}
        for kind, since in counted.items():
            name = f"unit_of_work_{kind}_limit_ms"
            limits = [one for one in (self.unit_limits_ms[name], session[name]) if one]
            found += [self.rounded(since + min(limits) * 1000)] if limits else []
        return min(found, default=None)

    def has_work(self, session: Row) -> bool:
        """Whether a session has a unit of work that holds something."""
        holds = bool(self.open_puts(session) or self.flight(session))
        return session["mode"] == "TRANSACTED" and holds

    def discard(self, session: Row) -> int:
        """Uncommitted puts vanish."""
        held = self.open_puts(session)
        self.messages = [one for one in self.messages if not any(one is gone for gone in held)]
        return len(held)

    def end(self, session: Row, reason: str, seen: list[Row] | None, number: int) -> None:
        """A session ends."""
        for consumer in self.consumers_of(session):
            if consumer["open"]:
                self.leave(consumer)
        self.drop_blocked(session)
        discarded = self.discard(session)
        returned = self.all_back(session, seen)
        handle = session["session"]
        self.consumers = [one for one in self.consumers if one["session"] != handle]
        self.emit(
            session,
            kind="SessionEnded",
            session=handle,
            session_sequence=number,
            reason=reason,
            returned=returned,
            discarded=discarded,
        )
        self.sessions = [one for one in self.sessions if one is not session]
        if session["connection"] not in [one["connection"] for one in self.sessions]:
            self.retire()
            self.end_temporaries(session["connection"])
            del self.ends[session["connection"]]

    def next_wait(self) -> int:
        """The counter behind the longest wait."""
        self.waits += 1
        return self.waits

    def touch(self, name: str) -> None:
        """Notes a queue for delivery."""
        if name not in self.touched:
            self.touched.append(name)

    def deliver_touched(self) -> None:
        """Delivers queue by queue, and lets go of what is too much then, until nothing is."""
        while True:
            self.release()
            self.retire()
            self.settle()
            for name in self.touched:
                queue = self.queue(name)
                if queue is None or not queue["gets_disabled"]:
                    self.deliver(name)
            touched, self.touched = self.touched, []
            displaced = [self.displace(name) for name in touched]
            if not any(displaced):
                return

    def displace(self, store: str) -> bool:
        """Older ones of a value go, then the first by number, while more are available than there
        may be.
        """
        place = self.place(self.destination_of(store))
        if not place or not (place["available_max"] or place["last_value_key"]):
            return False
        most, key = place["available_max"], place["last_value_key"]
        mine = [one for one in self.messages if one["queue"] == store]
        mine = [one for one in mine if one["place"] == "available"]
        mine.sort(key=lambda one: int(one["sequence"]))
        values = [self.known_of(one).get(key) for one in mine]
        those = [
            one
            for at, one in enumerate(mine)
            if values[at] is not None and repr(values[at]) in map(repr, values[at + 1 :])
        ]
        left = [one for one in mine if one not in those]
        those += left[: len(left) - most] if 0 < most < len(left) else []
        for message in those:
            self.gone(message, "displaced")
        return bool(those)

    def deliver(self, name: str) -> None:
        """Gives what is available of a queue to those who wait."""
        raise NotImplementedError

    def in_flight(self, consumer: Row) -> int:
        """How many deliveries a consumer holds."""
        mine = [one for one in self.messages if one["place"] == "flight"]
        mine = [one for one in mine if one["session"] == consumer["session"]]
        return len([one for one in mine if one["consumer"] == consumer["number"]])

    def leave(self, consumer: Row) -> None:
        """A consumer takes nothing more."""
        raise NotImplementedError

    def emit(self, session: Row, /, **fields: Any) -> None:
        """Appends an outcome to the chain of the session's connection."""
        connection = session["connection"]
        identity = (self.position, len(self.outcomes))
        fields |= {
            "position": identity[0],
            "index": identity[1],
            "connection": connection,
            "lane": session["lane"],
            "previous": self.ends.get(connection, (-1, -1)),
        }
        self.ends[connection] = identity
        self.outcomes.append(fields)

    def refuse(self, session: Row, reason: str, number: int, expected_sequence: int = 0) -> None:
        """A refusal that consumes no number."""
        self.emit(
            session,
            kind="Refused",
            session=session["session"],
            session_sequence=number,
            reason=reason,
            expected_sequence=expected_sequence,
        )

    def refuse_unaddressed(self, reason: str, handle: int, number: int) -> None:
        """A refusal without a known session."""
        self.outcomes.append(
            {
                "kind": "Refused",
                "position": self.position,
                "index": len(self.outcomes),
                "session": handle,
                "session_sequence": number,
                "reason": reason,
                "expected_sequence": 0,
                "connection": None,
                "lane": -1,
                "previous": (-1, -2),
            }
        )
