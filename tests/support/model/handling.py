"""The slow model's operations by hand: purge, delete, move, copy, relocate (§17, §22)."""

from __future__ import annotations

from typing import Any

from ledgermq.selector import SelectorError, parse_selector
from support.model.administration import ModelAdministration

Row = dict[str, Any]


class ModelHandling(ModelAdministration):
    """What an administrator does to messages that nobody holds."""

    def do_purge_queue(self, session: Row, entry: Any) -> Row | str:
        """They are removed."""
        return self._remove(entry)

    def do_delete_messages(self, session: Row, entry: Any) -> Row | str:
        """They are removed, if they are named."""
        return self._remove(entry, named=True)

    def _remove(self, entry: Any, *, named: bool = False) -> Row | str:
        reason = self._check(entry, named=named)
        if reason is not None:
            return reason
        chosen, told = self.chosen(entry.selection)
        for message in chosen:
            self.gone(message, "removed")
        return told

    def do_move_messages(self, session: Row, entry: Any) -> Row | str:
        """They leave, and go elsewhere."""
        reason = self._check(entry) or self._check_target(entry, to_origin=entry.to_origin)
        if reason is not None:
            return reason
        chosen, told = self.chosen(entry.selection, to_origin=entry.to_origin)
        for message in chosen:
            self.gone(message, "moved")
            if entry.to_origin:
                self.transfer(message, message["origin"]["destination"], "retried")
            else:
                self.transfer(message, entry.target, "moved")
        return told

    def do_copy_messages(self, session: Row, entry: Any) -> Row | str:
        """They stay, and copies go elsewhere."""
        reason = self._check(entry) or self._check_target(entry)
        if reason is not None:
            return reason
        chosen, told = self.chosen(entry.selection)
        for message in chosen:
            self.transfer(message, entry.target, "copied")
        return told

    def do_relocate(self, session: Row, entry: Any) -> Row | str:
        """Their bodies are somewhere else."""
        if len(entry.actor) not in range(1, 129) or len(entry.reason) not in range(1, 1025):
            return "reason-invalid"
        copies = entry.messages
        places = [place for one in copies for place in one["places"]]
        if len(copies) not in range(1, 1_001) or len(places) > 10_000:
            return "message-invalid"
        if any(len(one["header"]) > 1 for one in copies):
            return "message-invalid"
        found = [
            (self._at(one, place), at) for at, one in enumerate(copies) for place in one["places"]
        ]
        told = ("message_id", "priority", "persistent")
        for message, at in found:
            copy = copies[at]["message"]
            size = len(copy["content"]) + self.header_size(next(iter(copies[at]["header"]), None))
            if message is not None and (
                message["size"] != size or any(message[one] != copy[one] for one in told)
            ):
                return "message-differs"
        for message, at in found:
            if message is not None:
                message["body"] = (self.position, at)
        missing = len([message for message, _ in found if message is None])
        return {
            "kind": "Administered",
            "affected": len(found) - missing,
            "skipped": missing,
            "more": False,
            "last_sequence": -1,
            "next_sequence": -1,
        }

    def _at(self, copy: Row, place: Row) -> Row | None:
        """The live message at a place that was put there."""
        resident = ("available", "unborn", "delayed", "flight")
        stores = {one["id"]: one["created_position"] for one in (*self.queues, *self.subscriptions)}
        for one in self.messages:
            if (
                one["place"] in resident
                and stores.get(one["queue"]) == place["created_position"]
                and one["sequence"] == place["sequence"]
                and (one["put_position"], one["put_index"])
                == (copy["put_position"], copy["put_index"])
            ):
                return one
        return None

    def _check(self, entry: Any, *, named: bool = False) -> str | None:
        selection = entry.selection
        reason = self.check_selection(selection)
        if reason is not None:
            return reason
        if named and not selection["selector"].strip() and not selection["sequences"]:
            return "selection-invalid"
        if len(entry.actor) not in range(1, 129) or len(entry.reason) not in range(1, 1025):
            return "reason-invalid"
        return None

    def check_selection(self, selection: Row) -> str | None:
        """Why a selection is refused."""
        source = selection["source"]
        reason = self._missing(source)
        if reason is not None:
            return reason
        if source.startswith("topic:") is not bool(selection["subscription"]):
            return "subscription-invalid"
        if self._store(selection) is None:
            return "subscription-unknown"
        try:
            parse_selector(selection["selector"])
        except SelectorError:
            return "selector-invalid"
        ends = [number for one in selection["sequences"] for number in (one["first"], one["last"])]
        falls = any(ends[at] <= ends[at - 1] for at in range(2, len(ends), 2))
        falls = falls or any(ends[at] < ends[at - 1] for at in range(1, len(ends), 2))
        if falls or any(number < 0 for number in ends) or len(ends) > 2_000:
            return "selection-invalid"
        if selection["limit"] < 0 or selection["after_sequence"] < -1:
            return "selection-invalid"
        return None

    def _missing(self, destination: str) -> str | None:
        if destination[:6] not in ("queue:", "topic:"):
            return "destination-invalid"
        if self.place(destination) is None:
            return destination[:5] + "-unknown"
        return None

    def _check_target(self, entry: Any, *, to_origin: bool = False) -> str | None:
        if to_origin:
            return "destination-invalid" if entry.target else None
        reason = self._missing(entry.target)
        if reason is None and entry.target == entry.selection["source"]:
            return "destination-invalid"
        return reason

    def _store(self, selection: Row) -> str | None:
        """The queue or subscription that is meant."""
        if selection["source"].startswith("queue:"):
            return str(selection["source"][6:])
        kind = "durable" if selection["durable"] else "shared"
        found = self.subscription((kind, selection["subscription"], selection["client_id"]))
        if found is None or found["topic"] != selection["source"][6:]:
            return None
        return str(found["id"])

    def _after_last(self, store: str) -> int:
        """The next number of a queue, or the one behind the last that a subscription got."""
        if store.startswith("topic:"):
            return int(next(one for one in self.subscriptions if one["id"] == store)["last"]) + 1
        mine = [one for one in self.messages if one["queue"] == store]
        return len([one for one in mine if one["sequence"] is not None])

    def chosen(self, selection: Row, *, to_origin: bool = False) -> tuple[list[Row], Row]:
        """What is touched, and the reply that says so."""
        store = self._store(selection)
        assert store is not None
        resident = ("available", "unborn", "delayed", "flight")
        mine = [one for one in self.messages if one["queue"] == store]
        by_number = {one["sequence"]: one for one in mine if one["place"] in resident}
        following, last = self._after_last(store), selection["after_sequence"]
        ranges = selection["sequences"] or [{"first": 0, "last": following}]
        touched: list[Row] = []
        skipped = looked_at = 0
        more = False
        for number in range(max(0, last + 1, min(by_number, default=following)), following):
            if not any(one["first"] <= number <= one["last"] for one in ranges):
                continue
            if looked_at == 20_000 or len(touched) in (selection["limit"] or 10_000, 10_000):
                more = True
                break
            looked_at, last = looked_at + 1, number
            message = by_number.get(number)
            if message is None or not self.selects(selection["selector"], message):
                continue
            if message["place"] == "flight" or (to_origin and not self._has_way_back(message)):
                skipped += 1
            else:
                touched.append(message)
        reply = {"kind": "Administered", "affected": len(touched), "skipped": skipped}
        return touched, reply | {"more": more, "last_sequence": last, "next_sequence": following}

    def _has_way_back(self, message: Row) -> bool:
        origin = message["origin"]
        if origin is None or origin["reason"] == "bound":
            return False
        if self.place(origin["destination"]) is None:
            return False
        subscribed = {"topic:" + one["topic"] for one in self.subscriptions}
        if origin["destination"].startswith("topic:") and origin["destination"] not in subscribed:
            return False
        return bool(origin["destination"] != self.destination_of(message["queue"]))
