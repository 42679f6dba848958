"""The slow model's memory of puts that may come twice (PROTOCOL.md §5)."""

from __future__ import annotations

from typing import Any

from support.model.base import WINDOW
from support.model.delivery import ModelDelivery

Row = dict[str, Any]
AGES_MS = 100 * 366 * 86_400_000


class ModelDeduplication(ModelDelivery):
    """Each queue and topic has a list of the ids that it remembers, the oldest first."""

    def check_id(self, place: Row | None, name: str | None) -> str | None:
        """Why a Put is refused for its deduplication id."""
        if name is None:
            return None
        if len(name) not in range(1, 129):
            return "deduplication-invalid"
        return None if self.looks(place) else "deduplication-off"

    def looks(self, place: Row | None) -> bool:
        """Whether a queue or topic looks for puts that come twice."""
        return place is not None and place["deduplication_ids_max"] > 0

    def remembered(self, place: Row) -> list[Row]:
        """What is left of what it remembered: the latest, and of those the young."""
        window_us = place["deduplication_window_ms"] * 1000
        last = place["ids"][::-1][: place["deduplication_ids_max"]][::-1]
        place["ids"] = [one for one in last if self.time - one["since"] < window_us]
        return list(place["ids"])

    def first_of(self, place: Row | None, name: str | None) -> int | None:
        """The first number of the put that had the id before."""
        if place is None or name is None:
            return None
        return next((one["first"] for one in self.remembered(place) if one["id"] == name), None)

    def duplicate(self, session: Row, destination: str, name: str | None) -> Row | None:
        """The reply to a put that was put before, outside of units of work."""
        first = self.first_of(self.place(destination), name)
        if first is None or session["mode"] == "TRANSACTED":
            return None
        return {"kind": "Enqueued", "first_sequence": first, "count": 0, "warning": ""}

    def note_ids(self, destination: str, numbered: list[Row]) -> None:
        """Messages have their numbers; the first of each put that had an id bears that."""
        place = self.place(destination)
        if place is None or not self.looks(place):
            return
        for one in numbered:
            if one["deduplication_id"] is not None:
                told = {"id": one["deduplication_id"], "first": one["sequence"]}
                place["ids"].append(told | {"since": max(self.time, self.log_time)})
        self.remembered(place)

    def comes_twice(self, held: list[Row]) -> bool:
        """Whether open puts have one that was put before, or two of one id."""
        named = [one for one in held if one["deduplication_id"] is not None]
        seen: list[tuple[str, str]] = []
        for one in named:
            destination = self.destination_of(one["queue"])
            if not self.looks(self.place(destination)):
                continue
            key = (destination, one["deduplication_id"])
            if key in seen or self.first_of(self.place(destination), key[1]) is not None:
                return True
            seen.append(key)
        return False

    def check_window(self, place: Row | None, entry: Any) -> str | None:
        """Why window and number of ids cannot be as an operation would have them."""
        for name, most in zip(WINDOW, (AGES_MS, 100_000), strict=True):
            if not 0 <= (getattr(entry, name) or 0) <= most:
                return "setting-invalid"
        given = [getattr(entry, name) for name in WINDOW]
        old = [place[name] if place else 0 for name in WINDOW]
        new = [before if one is None else one for one, before in zip(given, old, strict=True)]
        return None if (new[0] == 0) == (new[1] == 0) else "setting-invalid"

    def set_window(self, place: Row, entry: Any) -> None:
        """Sets them; what is forgotten by the old ones or the new ones stays forgotten."""
        self.remembered(place)
        for name in WINDOW:
            if getattr(entry, name) is not None:
                place[name] = getattr(entry, name)
        self.remembered(place)
