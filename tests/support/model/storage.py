"""The slow model's storage: segments in a list, what is live in them counted anew (§19)."""

from __future__ import annotations

from typing import Any

from support.model.redelivery import ModelRedelivery

Row = dict[str, Any]
# Where a message is that counts, as current or pending.
LIVE = ("available", "unborn", "delayed", "flight", "open")
RANGES = {"segment_bytes": 1 << 40, "segments_min": 99_999, "segments_max": 99_999}


class ModelStorage(ModelRedelivery):
    """Segments, where messages go, and which are clean."""

    def first_storage(self) -> Row:
        """Four segments, the first of them active."""
        return {
            "segment_bytes": 16 << 20,
            "segments_min": 4,
            "segments_max": 0,
            "given": 4,
            "active": 0x7EF325,
            "segments": [{"number": 0x7EF325 + one, "bytes": 0} for one in range(4)],
        }

    def new_segment(self) -> Row:
        """One more segment, with a number of its own."""
        made = {"number": 0x7EF325 + self.storage["given"], "bytes": 0}
        self.storage["given"] += 1
        self.storage["segments"].append(made)
        return made

    def live(self) -> dict[int, list[Row]]:
        """The live messages by segment, those put first in front; one of a topic once, but for
        those that were moved.
        """
        places = [*self.queues, *self.subscriptions, *self.topics]
        created = {one["id"]: one["created_position"] for one in places}
        rows = []
        for one in self.messages:
            if one["place"] in LIVE:
                where = (one["put_position"], one["put_index"], one["sequence"] is None)
                rows.append(((*where, created[one["queue"]], one["sequence"] or 0), one))
        rows.sort(key=lambda row: row[0])
        found: dict[int, list[Row]] = {one["number"]: [] for one in self.storage["segments"]}
        told = set()
        for place, one in rows:
            # Of a topic message: its topic and number; the copy made first comes first.
            key = (one["queue"].partition("#")[0], one["sequence"], *place[:3])
            if key not in told:
                told.add(key)
                found[one["segment"]].append(one)
        return found

    def clean_segments(self) -> None:
        """Segments without a live message are free, or gone."""
        storage = self.storage
        live = self.live()
        for one in list(storage["segments"]):
            if one["bytes"] and not live[one["number"]]:
                one["bytes"] = 0
                over = 0 < storage["segments_max"] < len(storage["segments"])
                if over and one["number"] != storage["active"]:
                    storage["segments"].remove(one)

    def free_segments(self) -> list[Row]:
        """Those that are neither active nor have live messages."""
        live = self.live()
        idle = [one for one in self.storage["segments"] if not live[one["number"]]]
        return [one for one in idle if one["number"] != self.storage["active"]]

    def check_size(self, session: Row, added: list[Row], held: list[Row]) -> str | None:
        """Why messages of a Put can never be stored."""
        limit = self.storage["segment_bytes"]
        sizes = [one["size"] for one in added]
        places = {one["queue"] for one in held}
        if len(places) >= 10_000 and added[0]["queue"] not in places:
            return "transaction-too-large"
        if session["mode"] == "TRANSACTED" and sum(sizes + [one["size"] for one in held]) > limit:
            return "transaction-too-large"
        if max(sizes) > limit:
            return "transaction-too-large"
        return None

    def has_room(self, added: list[Row]) -> bool:
        """Whether messages of a Put can be stored now."""
        limit = self.storage["segment_bytes"]
        sizes = [one["size"] for one in added]
        filled = [one["bytes"] for one in self.storage["segments"] if self._is_active(one)]
        for size in sizes:
            if filled[-1] + size > limit:
                filled.append(0)
            filled[-1] += size
        most = self.storage["segments_max"]
        may_be_made = max(most - len(self.storage["segments"]), 0) if most else len(filled)
        return len(filled) - 1 <= len(self.free_segments()) + may_be_made

    def _is_active(self, segment: Row) -> bool:
        return bool(segment["number"] == self.storage["active"])

    def store(self, added: list[Row]) -> None:
        """Gives messages for which there is room their segments."""
        for message in added:
            (active,) = filter(self._is_active, self.storage["segments"])
            if active["bytes"] + message["size"] > self.storage["segment_bytes"]:
                active = next(iter(self.free_segments()), None) or self.new_segment()
                self.storage["active"] = active["number"]
            active["bytes"] += message["size"]
            message["segment"] = active["number"]
            self.messages.append(message)

    def check_storage_settings(self, entry: Any) -> str | None:
        """Why the settings of the storage cannot be changed."""
        told = {name: getattr(entry, name) for name in RANGES}
        for name, most in RANGES.items():
            if told[name] is None:
                told[name] = self.storage[name]
            if not (name != "segments_max") <= told[name] <= most:
                return "setting-invalid"
        if 0 < told["segments_max"] < told["segments_min"]:
            return "setting-invalid"
        return None

    def set_storage(self, entry: Any) -> None:
        """Settings change: segments are made, or given up."""
        given = {name: getattr(entry, name) for name in RANGES}
        given = {name: value for name, value in given.items() if value is not None}
        if not given:
            return
        self.clean_segments()
        self.storage |= given
        while len(self.storage["segments"]) < self.storage["segments_min"]:
            self.new_segment()
        for one in reversed(self.free_segments()):
            if len(self.storage["segments"]) > self.storage["segments_min"]:
                self.storage["segments"].remove(one)

    def storage_status(self) -> Row:
        """The document of §9."""
        live = self.live()
        segments = [
            self._segment_status(one, live[one["number"]]) for one in self.storage["segments"]
        ]
        sums = ("bytes", "live_bytes", "live_messages")
        return {
            **{name: self.storage[name] for name in RANGES},
            "allocated": len(segments),
            "free": [one["state"] for one in segments].count("free"),
            **{name: sum(one[name] for one in segments) for name in sums},
            "more": False,
            "segments": segments,
            "cache": None,
            "log": None,
        }

    def _segment_status(self, segment: Row, live: list[Row]) -> Row:
        state = "active" if self._is_active(segment) else "pinned" if live else "free"
        return {
            "number": hex(segment["number"])[2:],
            "state": state,
            "bytes": segment["bytes"],
            "live_bytes": sum(one["size"] for one in live),
            "live_messages": len(live),
            "oldest": self._told(next(iter(live), None)),
        }

    def _told(self, message: Row | None) -> Row | None:
        if message is None:
            return None
        same = ("put_position", "put_index", "enqueued_at")
        number = -1 if message["sequence"] is None else message["sequence"]
        told = {"destination": self.destination_of(message["queue"]), "sequence": number}
        return told | {name: message[name] for name in same}
