"""The slow model's memory of sources: every part that was ever taken (PROTOCOL.md §5)."""

from __future__ import annotations

from typing import Any

from support.model.quotas import ModelQuotas

Row = dict[str, Any]
POSITION_MAX = 9_007_199_254_740_992
PARTITION_MAX = 2_147_483_647


class ModelSources(ModelQuotas):
    """Each queue and topic has the list of what it took; nothing is remembered but that."""

    def check_part(self, session: Row, place: Row | None, entry: Any) -> str | None:
        """Why a Put is refused for its source."""
        part = entry.source
        if part is None:
            return None
        if session["mode"] == "TRANSACTED" or entry.blocking_ms != 0:
            return "source-invalid"
        if not 0 < len(part["name"]) <= 512 or not 0 <= part["partition"] <= PARTITION_MAX:
            return "source-invalid"
        if part["first"] < 0 or part["last"] < part["first"] or part["last"] > POSITION_MAX:
            return "source-invalid"
        parts = place["parts"] if place else []
        same = [one for one in parts if all(one[key] == part[key] for key in ("name", "partition"))]
        if not same:
            others = {(one["name"], one["partition"]) for one in parts}
            return "sources-full" if len(others) == 1_000 else None
        if any(part["first"] <= one["last"] for one in same):
            return "source-taken"
        return None if any(part["first"] == one["last"] + 1 for one in same) else "source-gap"

    def note_part(self, entry: Any) -> None:
        """A Put was accepted."""
        place = self.place(entry.destination)
        if entry.source is not None and place is not None:
            place["parts"].append(dict(entry.source))

    def source_statuses(self) -> list[Row]:
        """How far sources were taken, as §9 lists it."""
        found = [
            (kind + place["name"], part["partition"], part["name"])
            for kind, places in (("queue:", self.queues), ("topic:", self.topics))
            for place in places
            for part in place["parts"]
        ]
        return [
            {
                "destination": destination,
                "name": name,
                "partition": partition,
                "taken": max(
                    part["last"]
                    for part in (self.place(destination) or {})["parts"]
                    if (part["name"], part["partition"]) == (name, partition)
                ),
            }
            for destination, partition, name in sorted(set(found))
        ]
