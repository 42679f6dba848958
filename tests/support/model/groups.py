"""The slow model's groups, worked out from the list of messages each time (PROTOCOL.md §13)."""

from __future__ import annotations

import itertools
from typing import Any

from support.model.doubts import ModelDoubts

Row = dict[str, Any]
Place = tuple[bytes, int, int]
HERE = ("available", "unborn", "delayed", "flight")
NUMBER_MAX = 999_999_999
DATA_MAX = 2**53


class ModelGroups(ModelDoubts):
    """What of groups is there; a message's `group` is the record of its Put, or None."""

    def group_id(self, message: Row) -> bytes | None:
        """The group of a message."""
        return message["group"]["group_id"] if message["group"] else None

    def number_in_group(self, message: Row) -> int:
        """Its group sequence, 1 outside of groups."""
        return message["group"]["group_sequence"] if message["group"] else 1

    def start(self, message: Row) -> int:
        """Where its data begin in the logical message."""
        return message["group"]["offset"] if message["group"] else 0

    def behind(self, message: Row) -> int:
        """Where its data end in the logical message."""
        return int(message["group"]["offset"] + message["group"]["length"])

    def is_segment(self, message: Row) -> bool:
        """Whether it is a segment."""
        return bool(message["group"] and message["group"]["segment"])

    def items(self, store: str, group_id: bytes) -> list[Row]:
        """The numbered items of a group by sequence number."""
        mine = [one for one in self.messages if one["queue"] == store and one["place"] in HERE]
        mine = [one for one in mine if one["group"] and one["group"]["group_id"] == group_id]
        return sorted(mine, key=lambda one: one["sequence"])

    def members(self, store: str, group_id: bytes) -> list[Row]:
        """Each item that does not clash with the members before it."""
        found: list[Row] = []
        for item in self.items(store, group_id):
            if not any(self.clash(item, one) for one in found):
                found.append(item)
        return found

    def is_member(self, message: Row) -> bool:
        """Whether it is a member of its group."""
        found = self.members(message["queue"], message["group"]["group_id"])
        return any(one is message for one in found)

    def clash(self, one: Row, other: Row) -> bool:
        """Whether two items of a group contradict each other."""
        if one["group"]["in_group"] != other["group"]["in_group"]:
            return True
        return any(self._contradicts(*pair) for pair in ((one, other), (other, one)))

    def _contradicts(self, one: Row, other: Row) -> bool:
        mine, its = one["group"], other["group"]
        if mine["group_sequence"] != its["group_sequence"]:
            higher = its["group_sequence"] > mine["group_sequence"]
            return mine["last_in_group"] and (its["last_in_group"] or higher)
        if not mine["segment"] or mine["last_in_group"] != its["last_in_group"]:
            return True
        if mine["last_segment"] and self.behind(other) > self.behind(one):
            return True
        return mine["offset"] <= its["offset"] < self.behind(one)

    def parts(self, message: Row) -> list[Row]:
        """The members of a message's logical message by offset."""
        found = self.members(message["queue"], message["group"]["group_id"])
        number = self.number_in_group(message)
        return sorted((one for one in found if self.number_in_group(one) == number), key=self.start)

    def whole(self, parts: list[Row]) -> bool:
        """Whether parts are one message, or segments from 0 to the end of the last one."""
        if not self.is_segment(parts[0]):
            return True
        ends = [0, *(self.behind(one) for one in parts)]
        if [self.start(one) for one in parts] != ends[:-1]:
            return False
        return bool(parts[-1]["group"]["last_segment"])

    def complete(self, store: str, group_id: bytes) -> bool:
        """Whether a group's members are whole logical messages 1 to the last one."""
        found = self.members(store, group_id)
        numbers = sorted({self.number_in_group(one) for one in found})
        if not found or (numbers[0], numbers[-1]) != (1, len(numbers)):
            return False
        firsts = [next(one for one in found if self.number_in_group(one) == n) for n in numbers]
        if not all(self.whole(self.parts(one)) for one in firsts):
            return False
        return not found[0]["group"]["in_group"] or bool(firsts[-1]["group"]["last_in_group"])

    def all_available(self, store: str, group_id: bytes) -> bool:
        """Whether a group is complete and all of it available."""
        found = self.members(store, group_id)
        here = all(one["place"] == "available" for one in found)
        return here and self.complete(store, group_id)

    def unit_available(self, message: Row) -> bool:
        """Whether it is a member, and its logical message is whole and all of it available."""
        parts = self.parts(message)
        if not any(one is message for one in parts) or not self.whole(parts):
            return False
        return all(one["place"] == "available" for one in parts)

    def place_after(self, message: Row) -> Place | None:
        """What comes next after an item."""
        group = message["group"]
        if group is None:
            return None
        if group["segment"] and not group["last_segment"]:
            return (group["group_id"], group["group_sequence"], self.behind(message))
        if group["in_group"] and not group["last_in_group"]:
            return (group["group_id"], group["group_sequence"] + 1, 0)
        return None

    def place_of(self, message: Row) -> Place | None:
        """Where a consumer in logical order was when it was given an item."""
        place = (self.number_in_group(message), self.start(message))
        group_id = self.group_id(message)
        return None if group_id is None or place == (1, 0) else (group_id, *place)

    def item_at(self, store: str, place: Place, options: Row) -> Row | None:
        """The available item at a place, as far as options ask for the rest of its message."""
        for one in self.members(store, place[0]):
            if (self.number_in_group(one), self.start(one)) == place[1:]:
                asks = self.asks_for_segments(options) and place[2] == 0 and self.is_segment(one)
                here = one["place"] == "available" and not (asks and not self.unit_available(one))
                return one if here else None
        return None

    def asks_for_segments(self, options: Row) -> bool:
        """Whether segments come only with all of their logical message."""
        names = ("all_messages_available", "all_segments_available", "complete_message")
        return any(options[name] for name in names)

    def has_values(self, options: Row, message: Row) -> bool:
        """Whether a message has the values of match options."""
        correlation = message["header"]["correlation_id"] if message["header"] else None
        return all(
            (
                options["message_id"] in (b"", message["message_id"]),
                options["correlation_id"] in (None, correlation),
                options["group_id"] in (b"", self.group_id(message)),
                options["group_sequence"] in (0, self.number_in_group(message)),
                options["offset"] < 0 or options["offset"] == self.start(message),
                options["sequence"] < 0 or options["sequence"] == message["sequence"],
            )
        )

    def allows(self, options: Row, message: Row) -> bool:
        """Whether options allow that an available message comes, of a consumer without a place."""
        if not self.has_values(options, message):
            return False
        if message["group"] is None:
            return True
        first = self.number_in_group(message) == 1 and self.start(message) == 0
        if options["logical_order"] and not (first and self.is_member(message)):
            return False
        if options["all_messages_available"] and message["group"]["in_group"]:
            available = self.all_available(message["queue"], message["group"]["group_id"])
            if not available or not self.is_member(message):
                return False
        if self.is_segment(message) and self.asks_for_segments(options):
            if options["complete_message"] and self.start(message) > 0:
                return False
            return self.unit_available(message)
        return True

    def unit(self, options: Row, message: Row) -> list[Row]:
        """What comes at once: a message, or all segments of one that is got complete."""
        if options["complete_message"] and self.is_segment(message) and not self.start(message):
            return self.parts(message)
        return [message]

    def disagrees(self, store: str, place: Place, options: Row) -> bool:
        """Whether match options contradict the item at a place."""
        if options["group_id"] not in (b"", place[0]):
            return True
        if options["group_sequence"] not in (0, place[1]) or options["offset"] not in (
            -1,
            place[2],
        ):
            return True
        item = self.item_at(store, place, options)
        return item is not None and not self.has_values(options, item)

    def put_fault(self, group: Row) -> bool:
        """Whether a place in a group is wrong by itself."""
        if len(group["group_id"]) != 24 or group["group_id"] == bytes(24):
            return True
        if not 1 <= group["group_sequence"] <= NUMBER_MAX:
            return True
        if not group["in_group"] and (
            not group["segment"] or group["last_in_group"] or group["group_sequence"] != 1
        ):
            return True
        if not group["segment"]:
            return bool(group["last_segment"] or group["offset"] or group["length"])
        return not 0 <= group["offset"] <= DATA_MAX or not 1 <= group["length"] <= DATA_MAX

    def check_groups(self, open_puts: list[Row], added: list[Row]) -> tuple[str, str]:
        """Why a Put is refused, or the warning that it has; empty: not, or none."""
        warning = ""
        for place, message in enumerate(added):
            group = message["group"]
            if group is None:
                continue
            if message["queue"].startswith("topic:"):
                return "group-not-allowed", ""
            if self.put_fault(group):
                return "group-invalid", ""
            members = self.members(message["queue"], group["group_id"])
            for known in (members, open_puts, added[:place]):
                mine = [one for one in known if one["queue"] == message["queue"]]
                mine = [one for one in mine if self.group_id(one) == group["group_id"]]
                if any(self.clash(message, one) for one in mine):
                    return "group-clash", ""
                if group["logical_order"] and self._other_priority(message, mine):
                    return "group-clash", ""
            if any(one["in_unit_of_work"] != message["in_unit_of_work"] for one in members):
                if group["logical_order"]:
                    return "unit-of-work-inconsistent", ""
                warning = "unit-of-work-inconsistent"
        return "", warning

    def _other_priority(self, message: Row, known: list[Row]) -> bool:
        number = self.number_in_group(message)
        for asked in (1, number, number - 1):
            found = [one for one in known if self.number_in_group(one) == asked]
            if found:
                return bool(found[0]["priority"] != message["priority"])
        return False

    def group_ids(self, store: str) -> list[bytes]:
        """The groups of a queue."""
        mine = [one for one in self.messages if one["queue"] == store and one["place"] in HERE]
        return sorted({one["group"]["group_id"] for one in mine if one["group"]})

    def group_status(self, store: str, group_id: bytes) -> Row:
        """A group as section 9 defines it, with its members."""
        items, members = self.items(store, group_id), self.members(store, group_id)
        clashing = [one for one in items if not any(one is each for each in members)]
        numbers = {self.number_in_group(one) for one in members}
        lasts = [self.number_in_group(one) for one in members if one["group"]["last_in_group"]]
        pairs = itertools.pairwise([0, *sorted(numbers)])
        missing = [[low + 1, high - 1] for low, high in pairs if high > low + 1]
        ordered = sorted(members, key=lambda one: (self.number_in_group(one), self.start(one)))
        holders = [one for one in self.consumers if one["queue"] == store]
        holders = [one for one in holders if one["kept"] == group_id]
        told = [{"session": one["session"], "consumer": one["number"]} for one in holders]
        return {
            "group_id": group_id.hex(),
            "in_group": members[0]["group"]["in_group"],
            "complete": self.complete(store, group_id),
            "available": self.all_available(store, group_id),
            "messages": len(numbers),
            "items": len(items),
            "last_group_sequence": lasts[0] if lasts else 0,
            "missing": missing,
            "missing_segments": self._missing_segments(ordered),
            "clashing": [one["sequence"] for one in clashing],
            "held": len([one for one in items if one["place"] == "flight"]),
            "holder": told[0] if told else None,
            "first_sequence": items[0]["sequence"],
            "first_enqueued_at": items[0]["enqueued_at"],
            "members": [self._member(one, one in clashing) for one in [*ordered, *clashing]],
        }

    def _missing_segments(self, ordered: list[Row]) -> list[Row]:
        missing = []
        segments = [one for one in ordered if self.is_segment(one)]
        for number, found in itertools.groupby(segments, self.number_in_group):
            parts, end = list(found), 0
            for one in parts:
                if self.start(one) > end:
                    hole = {"group_sequence": number, "from": end, "to": self.start(one)}
                    missing.append(hole)
                end = self.behind(one)
            if not parts[-1]["group"]["last_segment"]:
                missing.append({"group_sequence": number, "from": end, "to": -1})
        return missing

    def _member(self, one: Row, clashing: bool) -> Row:
        told = ("group_sequence", "offset", "length", "last_in_group", "segment", "last_segment")
        state = {"flight": "held"}.get(one["place"], one["place"])
        return {
            **{name: one["group"][name] for name in told},
            "sequence": one["sequence"],
            "priority": one["priority"],
            "state": "clashing" if clashing and state != "held" else state,
            "session": one["session"],
            "consumer": one["consumer"],
        }
