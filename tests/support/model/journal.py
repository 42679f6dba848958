"""The slow model's journal: every entry's switch is kept, and all else is worked out anew (§21)."""

from __future__ import annotations

from typing import Any

from support.model.storage import ModelStorage

Row = dict[str, Any]
WEEK_MS = 7 * 86_400_000
AGES_MS = 100 * 366 * 86_400_000


class ModelJournal(ModelStorage):
    """What was told to the journal, entry by entry."""

    def first_journal(self) -> Row:
        """Off, with a lifetime of a week."""
        return {"lifetime_ms": WEEK_MS, "switches": [], "backups": [], "begins": 0}

    def journal_intervals(self) -> list[tuple[int, int]]:
        """Where it was on, as far as backups left it."""
        found: list[tuple[int, int]] = []
        for what, position, told in sorted(
            [("switch", *one) for one in self.journal["switches"]]
            + [("backup", one["position"], one) for one in self.journal["backups"]],
            key=lambda one: one[1],
        ):
            is_on = bool(found) and found[-1][1] == -1
            if what == "backup":
                gone = [one for one in found if -1 < one[1] <= told["needed_from"]]
                found = [one for one in found if one not in gone]
            elif told and not is_on:
                found.append((position, -1))
            elif not told and is_on:
                found[-1] = (found[-1][0], position)
        return found

    def journal_places(self) -> Row:
        """Up to where it was given up."""
        intervals = self.journal_intervals()
        if not intervals:
            return {"kept_from": None, "needed_from": None}
        backups = self.journal["backups"]
        # A journal that was empty when it was turned on begins there.
        begins = self.journal["begins"]
        return {
            name: max([begins, *(one[name] for one in backups)])
            for name in ("kept_from", "needed_from")
        }

    def check_journal(self, entry: Any) -> str | None:
        """Why its settings cannot be given."""
        if not 0 <= (entry.journal_lifetime_ms or 0) <= AGES_MS:
            return "setting-invalid"
        return None

    def set_journal(self, entry: Any) -> None:
        """Gives those settings that are given."""
        if entry.journal_lifetime_ms is not None:
            self.journal["lifetime_ms"] = entry.journal_lifetime_ms
        if entry.journaling is not None:
            if entry.journaling and not self.journal_intervals():
                self.journal["begins"] = self.position
            self.journal["switches"].append((self.position, entry.journaling))

    def do_back_up_journal(self, session: Row, entry: Any) -> str | None:
        """What has expired leaves the journal."""
        if not (1 <= len(entry.actor) <= 128 and 1 <= len(entry.reason) <= 1024):
            return "reason-invalid"
        if not self.journal_intervals():
            return "journal-empty"
        told = [0, entry.needed_from, entry.kept_from, entry.through, self.position]
        if told != sorted(told):
            return "backup-invalid"
        places = self.journal_places()
        before = [one["through"] for one in self.journal["backups"]]
        if any(getattr(entry, name) < places[name] for name in places) or any(
            entry.through < one for one in before
        ):
            return "backup-invalid"
        names = ("through", "kept_from", "needed_from")
        row = {"position": self.position, "time": self.time}
        self.journal["backups"].append(row | {name: getattr(entry, name) for name in names})
        return None

    def journal_status(self) -> Row:
        """As the status of the queue manager tells it."""
        intervals, places = self.journal_intervals(), self.journal_places()
        needed = places["needed_from"]
        return {
            "journaling": bool(intervals) and intervals[-1][1] == -1,
            "journal_lifetime_ms": self.journal["lifetime_ms"],
            "journal_from": places["kept_from"],
            "journal_needed_from": max(needed, intervals[0][0]) if intervals else None,
            "journal_backup": self.journal["backups"][-1] if self.journal["backups"] else None,
        }
