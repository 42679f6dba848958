"""The slow model's deliveries: who gets what next (PROTOCOL.md §5 Delivery and §13)."""

from __future__ import annotations

import zlib
from typing import Any

from support.model.handling import ModelHandling
from support.model.redelivery import AGES_MS

Row = dict[str, Any]
Place = tuple[bytes, int, int]
BATCH_MESSAGES = 1_000
BATCH_BYTES = 1024 * 1024
# The options of a consumer that was never given any.
PLAIN: Row = {
    "logical_order": False,
    "all_messages_available": False,
    "all_segments_available": False,
    "complete_message": False,
    "message_id": b"",
    "correlation_id": None,
    "group_id": b"",
    "group_sequence": 0,
    "offset": -1,
    "sequence": -1,
}


class ModelDelivery(ModelHandling):
    """Options, places and kept groups of consumers, and what they get."""

    def check_options(self, session: Row, consumer: Row, options: Row) -> str | None:
        """Why a Get's options are refused."""
        individual = options["logical_order"] and session["mode"] == "INDIVIDUAL"
        topic = consumer["queue"].startswith("topic:") and options != PLAIN
        wrong_id = options["group_id"] != b"" and len(options["group_id"]) != 24
        wrong_id = wrong_id or len(options["message_id"]) > 16
        wrong_id = wrong_id or len(options["correlation_id"] or "") > 65_536
        number = 0 <= options["group_sequence"] <= 999_999_999 and options["sequence"] >= -1
        if individual or topic or wrong_id or not number or not -1 <= options["offset"] <= 2**53:
            return "options-invalid"
        place = consumer["place"]
        if not options["logical_order"] or place is None:
            return None
        disagrees = self.disagrees(consumer["queue"], place, options)
        return "match-options-invalid" if disagrees else None

    def set_options(self, consumer: Row, options: Row) -> None:
        """Gives a consumer other options."""
        if options != consumer["options"]:
            consumer["options"] = options
            self.go_to(consumer, consumer["place"])

    def do_give_back(self, session: Row, entry: Any) -> str | None:
        """Unseen deliveries return; the consumer is behind what it still has, or settled last."""
        mine = [one for one in self.consumers_of(session) if one["number"] == entry.consumer]
        if not mine or not mine[0]["open"]:
            return "consumer-unknown"
        (consumer,) = mine
        named = self.named(session, entry.unseen)
        if named is None or any(one["consumer"] != entry.consumer for one in named):
            return "delivery-unknown"
        for message in named:
            self.back(message, backout=False)
        if named:
            self._go_behind_the_rest(session, consumer)
        return None

    def do_reject(self, session: Row, entry: Any) -> str | None:
        """Deliveries return, or go at once; the consumer is behind what it still has."""
        mine = [one for one in self.consumers_of(session) if one["number"] == entry.consumer]
        if not mine or not (mine[0]["open"] or self.in_flight(mine[0])):
            return "consumer-unknown"
        named = self.named(session, entry.deliveries)
        if named is None or any(one["consumer"] != entry.consumer for one in named):
            return "delivery-unknown"
        if len(entry.reason) > 1_024:
            return "reason-invalid"
        delay_ms = entry.redelivery_delay_ms
        if not -1 <= delay_ms <= AGES_MS or (delay_ms >= 0 and not entry.requeue):
            return "setting-invalid"
        for message in named:
            self.back(message, backout=True, rejected=not entry.requeue, delay_ms=delay_ms)
        if named and mine[0]["open"]:
            if mine[0]["options"]["logical_order"] and not entry.requeue:
                self.settle_place(session, mine[0])
            else:
                self._go_behind_the_rest(session, mine[0])
        return None

    def _go_behind_the_rest(self, session: Row, consumer: Row) -> None:
        left = [one for one in self.flight(session) if one["consumer"] == consumer["number"]]
        left.sort(key=lambda one: one["delivery"])
        self.go_to(consumer, self.place_after(left[-1]) if left else consumer["settled"])

    def go_to(self, consumer: Row, place: Place | None) -> None:
        """A consumer comes to a place; its group is kept for it if it is for no other."""
        consumer["place"] = place
        wanted = None
        if place is not None and consumer["options"]["logical_order"] and consumer["open"]:
            wanted = place[0]
        if consumer["kept"] == wanted:
            return
        self.let_go(consumer)
        if not any(one["kept"] == wanted for one in self.receivers(consumer["queue"])):
            consumer["kept"] = wanted

    def let_go(self, consumer: Row) -> None:
        """Its group is kept for it no longer."""
        if consumer["kept"] is not None:
            consumer["kept"] = None
            self.touch(consumer["queue"])

    def leave(self, consumer: Row) -> None:
        """A consumer takes nothing more: what was for it alone is for all."""
        queue = self.queue(consumer["queue"])
        self.let_go(consumer)
        key = (consumer["session"], consumer["number"])
        if queue is not None and queue["group_affinity"]:
            bonds = {bucket: one for bucket, one in queue["bonds"].items() if one != key}
            queue["bonds"] = bonds
            self.touch(queue["name"])
        if self.is_single(consumer["queue"]):
            self.touch(consumer["queue"])

    def is_others(self, consumer: Row, message: Row) -> bool:
        """Whether a message's group is kept for another consumer."""
        if message["group"] is None:
            return False
        others = [one for one in self.receivers(consumer["queue"]) if one is not consumer]
        return any(one["kept"] == message["group"]["group_id"] for one in others)

    def bucket(self, message: Row) -> int | None:
        """The bucket of a message's key."""
        key = self.group_key(message)
        return None if key is None else zlib.crc32(key) % 1024

    def group_key(self, message: Row) -> bytes | None:
        """What the group of a message goes by."""
        properties = message["header"]["properties"] if message["header"] else {}
        named = properties.get("JMSXGroupID")
        return named.encode("utf-8") if isinstance(named, str) else self.group_id(message)

    def is_held_back(self, message: Row) -> bool:
        """Whether a delayed message of its group comes before a message, and that matters."""
        key = self.group_key(message)
        if key is None or not self.keeps_group_order(message["queue"]):
            return False
        return any(
            self.group_key(one) == key and _in_delivery_order(one) < _in_delivery_order(message)
            for one in self.messages
            if one["queue"] == message["queue"] and one["place"] == "delayed"
        )

    def is_bonded_away(self, consumer: Row, message: Row) -> bool:
        """Whether a message's bucket is bonded to another consumer."""
        queue = self.queue(consumer["queue"])
        if queue is None or not queue["group_affinity"]:
            return False
        key = (consumer["session"], consumer["number"])
        return queue["bonds"].get(self.bucket(message), key) != key

    def head(self, consumer: Row, order: list[Row]) -> Row | None:
        """What a consumer may be given next of what is available."""
        options, place = consumer["options"], consumer["place"]
        if options["logical_order"] and place is not None:
            item = self.item_at(consumer["queue"], place, options)
            return None if item is None or self.is_others(consumer, item) else item
        for message in order:
            taken = self.is_others(consumer, message) or self.is_bonded_away(consumer, message)
            taken = taken or self.is_held_back(message)
            allowed = not taken and self.selects(consumer["selector"], message)
            if allowed and self.allows(options, message):
                return message
        return None

    def deliver(self, name: str) -> None:
        """§5 Delivery: one message at a time to whoever comes first."""
        shares: list[tuple[Row, list[list[Row]]]] = []
        order = self.available(name)
        while waiting := [one for one in self.receivers(name) if self._waits(one)]:
            turn = self.in_turn(name, order)
            found = [(one, self.head(one, turn)) for one in waiting]
            heads = [(one, head) for one, head in found if any(head is each for each in turn)]
            if not heads:
                break
            first = min((head for _, head in heads), key=_in_delivery_order)
            takers = [one for one, head in heads if head is first]
            best = min(takers, key=self._coming_first)
            unit = self.unit(best["options"], first)
            self._give(best, unit)
            order = [one for one in order if not any(one is each for each in unit)]
            mine = [share for consumer, share in shares if consumer is best]
            if mine:
                mine[0].append(unit)
            else:
                shares.append((best, [unit]))
        for consumer, share in shares:
            self._tell(consumer, share)

    def _coming_first(self, consumer: Row) -> tuple[int, int, int]:
        return -consumer["consumer_priority"], self.in_flight(consumer), consumer["since"]

    def _waits(self, consumer: Row) -> bool:
        session = self.session(consumer["session"])
        assert session is not None
        if consumer["credit"] == 0 or session["suspected"] or self.at_limit(consumer):
            return False
        if session["work_ended"] or self.stands_by(consumer):
            return False
        return not self.has_doubt(consumer)

    def _give(self, consumer: Row, unit: list[Row]) -> None:
        queue = self.queue(consumer["queue"])
        if queue is not None and queue["group_affinity"]:
            bucket = self.bucket(unit[0])
            if bucket is not None:
                queue["bonds"].setdefault(bucket, (consumer["session"], consumer["number"]))
        if self.is_single(consumer["queue"]):
            self.active[consumer["queue"]] = (consumer["session"], consumer["number"])
        consumer["credit"] -= 1
        for message in unit:
            consumer["since"] = self.next_wait()
            self.receive(message)
            message["place"] = "flight"
            message["session"], message["consumer"] = consumer["session"], consumer["number"]
        self.go_to(consumer, self.place_after(unit[-1]))

    def _tell(self, consumer: Row, share: list[list[Row]]) -> None:
        session = self.session(consumer["session"])
        assert session is not None
        batches: list[list[Row]] = [[]]
        for unit in share:
            doubtful = any(one["uncounted_backout_count"] >= 0 for one in unit)
            unit[-1]["told_in_doubt"] = doubtful
            for message in unit:
                size = sum(one["size"] for one in batches[-1]) + message["size"]
                alone = doubtful and message is unit[0]
                full = len(batches[-1]) == BATCH_MESSAGES or size > BATCH_BYTES
                if batches[-1] and (full or alone):
                    batches.append([])
                batches[-1].append(message)
        for batch in batches:
            self._tell_batch(session, consumer, batch)

    def _tell_batch(self, session: Row, consumer: Row, batch: list[Row]) -> None:
        self.begin_work(session)
        first = session["next_delivery"]
        for message in batch:
            message["delivery"] = session["next_delivery"]
            session["next_delivery"] += 1
        told = ("sequence", "put_position", "put_index", "message_id", "priority", "persistent")
        self.emit(
            session,
            kind="Delivered",
            session=session["session"],
            consumer=consumer["number"],
            destination=self.destination_of(consumer["queue"]),
            first_delivery=first,
            in_doubt=batch[-1]["told_in_doubt"],
            messages=[
                {name: one[name] for name in (*told, "backout_count", "enqueued_at")}
                | {"content": b""}
                | ({"body": one["body"]} if one["body"] else {})
                | self.told_header(one)
                for one in batch
            ],
        )

    def browse(
        self, name: str, selector: str = "", options: Row | None = None
    ) -> list[tuple[int, int]]:
        """(put position, put index) of what a browser is shown from the beginning on."""
        asked = options or PLAIN
        shown: list[Row] = []
        for message in self.available(name):
            if not self.selects(selector, message) or not self.allows(asked, message):
                continue
            shown += self.unit(asked, message)
            if asked["logical_order"] and not self._browse_group(name, shown, asked):
                break
        return [(one["put_position"], one["put_index"]) for one in shown]

    def _browse_group(self, name: str, shown: list[Row], options: Row) -> bool:
        """Shows what follows in the group of what was shown last; False: some of it is missing."""
        while (place := self.place_after(shown[-1])) is not None:
            item = self.item_at(name, place, options)
            if item is None:
                return False
            shown += self.unit(options, item)
        return True


def _in_delivery_order(message: Row) -> tuple[int, int]:
    return (-message["priority"], message["sequence"])
