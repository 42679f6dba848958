"""Backups of the journal, and whether each may be: PROTOCOL.md §21, unfolded."""

from __future__ import annotations

import json

ACTOR_MAX, REASON_MAX = 128, 1024
NAMES = ("needed_from", "kept_from", "through")


class Backups:
    """Goes along the log: where journaling was on, and what backups left of it."""

    def __init__(self) -> None:
        # Where each begins and ends; the end of the one that goes on is None.
        self._intervals: list[tuple[int, int | None]] = []
        self._lowest = dict.fromkeys(NAMES, 0)

    def altered(self, position: int, text: str | None) -> None:
        """An AlterQueueManager that was applied."""
        on = (json.loads(text) if text else {}).get("journaling")
        is_on = bool(self._intervals) and self._intervals[-1][1] is None
        if on is None or on == is_on:
            return
        if on:
            if not self._intervals:
                self._lowest |= {"needed_from": position, "kept_from": position}
            self._intervals.append((position, None))
        else:
            first, _ = self._intervals.pop()
            self._intervals.append((first, position))

    def refusal(self, position: int, text: str | None) -> str | None:
        """Why a BackUpJournal is refused where it stands; None: it is not."""
        asked = json.loads(text or "{}")
        if not (1 <= len(asked["actor"]) <= ACTOR_MAX and 1 <= len(asked["reason"]) <= REASON_MAX):
            return "reason-invalid"
        if not self._intervals:
            return "journal-empty"
        places = [0, *(asked[name] for name in NAMES), position]
        if places != sorted(places) or any(asked[name] < self._lowest[name] for name in NAMES):
            return "backup-invalid"
        return None

    def backed_up(self, text: str | None) -> None:
        """A BackUpJournal that was applied."""
        asked = json.loads(text or "{}")
        self._lowest = {name: asked[name] for name in NAMES}
        self._intervals = [
            one for one in self._intervals if one[1] is None or one[1] > asked["needed_from"]
        ]
