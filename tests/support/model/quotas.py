"""The slow model's quotas: what fits, what waits, and what becomes of it (PROTOCOL.md §16)."""

from __future__ import annotations

from typing import Any

from support.model.base import LIVE, MARKS
from support.model.deduplication import ModelDeduplication

Row = dict[str, Any]
AGES_MS = 100 * 366 * 86_400_000
BLOCKED_PUTS = 64
BLOCKED_MESSAGES = 10_000


class ModelQuotas(ModelDeduplication):
    """Blocked puts as a list by position; nothing about them is counted in advance."""

    def held(self, store: str) -> list[Row]:
        """What counts against the quota of a queue or topic; one of each topic message."""
        if not store.startswith("topic:"):
            return [one for one in self.messages if one["queue"] == store and one["place"] in LIVE]
        kept = {
            one["sequence"]: one
            for one in self.messages
            if one["queue"].startswith(store + "#") and one["place"] in LIVE
        }
        return [*kept.values(), *(one for one in self.messages if one["queue"] == store)]

    def quotas(self, destination: str) -> list[tuple[int, int, list[Row]]]:
        """Messages, bytes and what counts against them: of the destination, and of all."""
        place = self.place(destination)
        everything = [one for each in (*self.queues, *self.topics) for one in self.held(each["id"])]
        found = [(self.messages_max, self.bytes_max, everything)]
        if place is not None:
            settings = place["settings"]
            limits = (settings["messages_max"], settings["bytes_max"])
            found.append((*limits, self.held(str(place["id"]))))
        return found

    def exceeds(self, destination: str, added: list[Row], *, whole: bool) -> bool:
        """Whether messages are too much for a quota; `whole`: even if nothing else were there."""
        for place, (messages_max, bytes_max, held) in self.marked(destination):
            if place["holds_up"] and not whole:
                return True
            together = added if whole else [*held, *added]
            size = sum(one["size"] for one in together)
            if 0 < messages_max < len(together) or 0 < bytes_max < size:
                return True
        return False

    def check_marks(self, place: Row | None, entry: Any, limits: Row) -> str | None:
        """Why resume marks cannot be as an operation would have them, beside those limits."""
        for name in MARKS:
            value = getattr(entry, name)
            before = place[name] if place else 0
            limit = limits.get(name.replace("_resume", "_max"), 0)
            if not 0 <= (value or 0) <= 2**53 or (before if value is None else value) > limit:
                return "setting-invalid"
        return None

    def set_marks(self, place: Row, entry: Any) -> None:
        """Sets the resume marks that are given; without any nothing is held up."""
        for name in MARKS:
            if getattr(entry, name) is not None:
                place[name] = getattr(entry, name)
        place["holds_up"] = place["holds_up"] and any(place[name] for name in MARKS)

    def marked(self, destination: str) -> list[tuple[Row, tuple[int, int, list[Row]]]]:
        """The quotas that a put to a destination has to fit, with what holds puts up there."""
        places = [self.marks]
        place = self.place(destination)
        if place is not None:
            places.append(place)
        return list(zip(places, self.quotas(destination), strict=True))

    def is_drained(self, place: Row, held: list[Row]) -> bool:
        """Whether what counts against a quota is no more than its resume marks."""
        sizes = {"messages_resume": len(held), "bytes_resume": sum(one["size"] for one in held)}
        return all(not place[name] or size <= place[name] for name, size in sizes.items())

    def hold_up(self, destination: str, added: list[Row]) -> None:
        """A put waits: quotas with marks hold up puts until they have drained."""
        for place, (messages_max, bytes_max, held) in self.marked(destination):
            size = sum(one["size"] for one in (*held, *added))
            exceeded = 0 < messages_max < len(held) + len(added) or 0 < bytes_max < size
            if exceeded and any(place[name] for name in MARKS):
                place["holds_up"] = not self.is_drained(place, held)

    def resume(self) -> None:
        """Quotas that have drained hold up nothing."""
        for place in (*self.queues, *self.topics):
            if place["holds_up"] and self.is_drained(place, self.held(str(place["id"]))):
                place["holds_up"] = False
        everything = [one for each in (*self.queues, *self.topics) for one in self.held(each["id"])]
        if self.is_drained(self.marks, everything):
            self.marks["holds_up"] = False

    def stays_behind(self, session: int, destination: str, earlier: list[Row]) -> bool:
        """Whether a put must not pass one of those that wait."""
        place = self.place(destination)
        policy = place["settings"]["blocking_send_policy"] if place else "FIFO"
        same = [one for one in earlier if one["destination"] == destination]
        return any(policy == "FIFO" or one["session"] == session for one in same)

    def check_quota(self, session: Row, entry: Any, added: list[Row]) -> str | None:
        """`blocked`, or the reason of a refusal; None: it can be put now."""
        self.clean_segments()
        if not 0 <= entry.blocking_ms <= AGES_MS:
            return "setting-invalid"
        if session["waiting_commit"] is not None:
            return "commit-waiting"
        if self.exceeds(entry.destination, added, whole=True):
            return "quota-exceeded"
        behind = self.stays_behind(session["session"], entry.destination, self.blocked)
        fits = not self.exceeds(entry.destination, added, whole=False)
        if not behind and fits and self.has_room(added):
            return None
        mine = self.blocked_of(session)
        waiting = sum(len(one["added"]) for one in mine)
        many = mine and waiting + len(added) > BLOCKED_MESSAGES
        if entry.blocking_ms == 0 and fits and not behind:
            return "storage-full"
        if entry.blocking_ms == 0 or len(mine) >= BLOCKED_PUTS or many:
            return "quota-exceeded"
        return "blocked"

    def blocked_of(self, session: Row) -> list[Row]:
        """The blocked puts of a session by number."""
        return [one for one in self.blocked if one["session"] == session["session"]]

    def block(self, session: Row, entry: Any, added: list[Row]) -> None:
        """A put waits."""
        place = self.place(entry.destination)
        self.hold_up(entry.destination, added)
        due = max(self.time, self.log_time) + entry.blocking_ms * 1000
        self.blocked.append(
            {
                "position": self.position,
                "session": session["session"],
                "number": entry.session_sequence,
                "destination": entry.destination,
                "created": place["created_position"] if place else None,
                "since": self.time,
                "deadline": self.rounded(due),
                "added": added,
            }
        )

    def is_waiting(self, session: Row, number: int) -> bool:
        """Whether an operation has its number and no reply yet."""
        commit = session["waiting_commit"]
        if commit is not None and commit.session_sequence == number:
            return True
        return any(one["number"] == number for one in self.blocked_of(session))

    def take_in(self, session: Row, destination: str, added: list[Row], warning: str) -> Row:
        """Messages that may be put are open, or numbered."""
        self.use(destination, added[0]["put_position"])
        self.begin_work(session)
        store = destination.removeprefix("queue:")
        self.store(added)
        if session["mode"] == "TRANSACTED":
            self.note_high(store)
            return {"kind": "Accepted", "warning": warning}
        told = {"first_sequence": self.number(store, added), "count": len(added)}
        self.note_ids(destination, added)
        return {"kind": "Enqueued", **told, "warning": warning}

    def answer_late(self, session: Row, number: int, answer: Row | str) -> None:
        """A reply to what waited."""
        reply: Row = {"session": session["session"], "session_sequence": number}
        if isinstance(answer, str):
            reply |= {"kind": "Refused", "reason": answer, "expected_sequence": 0}
        else:
            reply |= answer
        if number > session["answered"]:
            session["replies"].append(reply)
            session["replies"].sort(key=lambda one: one["session_sequence"])
        self.emit(session, **reply)

    def end_blocked(self, put: Row, answer: Row | str) -> None:
        """A put waits no longer; its commit follows if it waits for nothing else."""
        self.blocked = [one for one in self.blocked if one is not put]
        self.nobody_waits(put["destination"])
        session = self.session(put["session"])
        assert session is not None
        self.answer_late(session, put["number"], answer)
        commit = session["waiting_commit"]
        if commit is not None and not self.blocked_of(session):
            session["waiting_commit"] = None
            done = self.do_commit(session, commit)
            self.answer_late(session, commit.session_sequence, done)

    def nobody_waits(self, destination: str) -> None:
        """Where no put waits any longer nothing is held up."""
        place = self.place(destination)
        if place and all(one["destination"] != destination for one in self.blocked):
            place["holds_up"] = False
        if not self.blocked:
            self.marks["holds_up"] = False

    def do_commit(self, session: Row, entry: Any) -> Row | str:
        """Puts are numbered, gets consumed."""
        raise NotImplementedError

    def drop_blocked(self, session: Row) -> None:
        """What waits in a session is refused."""
        for put in self.blocked_of(session):
            self.blocked = [one for one in self.blocked if one is not put]
            self.nobody_waits(put["destination"])
            self.answer_late(session, put["number"], "quota-exceeded")
        commit, session["waiting_commit"] = session["waiting_commit"], None
        if commit is not None:
            self.answer_late(session, commit.session_sequence, "puts-mismatch")

    def release(self) -> None:
        """Round by round, what waits is put if it can be."""
        while self.blocked:
            self.retire()
            self.settle()
            self.resume()
            before = [one["position"] for one in self.blocked]
            self._round()
            if before == [one["position"] for one in self.blocked]:
                return

    def _round(self) -> None:
        standing: list[Row] = []
        for put in self.blocked:
            answer = self._answer(put, standing)
            if answer is None:
                standing.append(put)
            else:
                self.end_blocked(put, answer)

    def _answer(self, put: Row, standing: list[Row]) -> Row | str | None:
        self.clean_segments()
        destination, added = put["destination"], put["added"]
        place = self.place(destination)
        now = place["created_position"] if place else None
        if put["created"] not in (None, now):
            return "destination-unknown"
        reason = self.check_destination(destination)
        if reason is not None:
            return reason
        if self.exceeds(destination, added, whole=True):
            return "quota-exceeded"
        if self.stays_behind(put["session"], destination, standing):
            return None
        if self.exceeds(destination, added, whole=False) or not self.has_room(added):
            self.hold_up(destination, added)
            return None
        session = self.session(put["session"])
        assert session is not None
        before = self.duplicate(session, destination, added[0]["deduplication_id"])
        if before is not None:
            return before
        held = self.open_puts(session)
        reason, warning = self.check_groups(held, added)
        reason = reason or self.check_size(session, added, held) or ""
        return reason or self.take_in(session, destination, added, warning)

    def time_outs(self, due: int) -> None:
        """What waits until a moment is refused."""
        for put in self.blocked:
            if put["deadline"] == due:
                self.end_blocked(put, "quota-exceeded")

    def blocked_status(self, destination: str) -> Row:
        """What waits for a destination."""
        mine = [one for one in self.blocked if one["destination"] == destination]
        messages = [message for one in mine for message in one["added"]]
        return {
            "puts": len(mine),
            "messages": len(messages),
            "bytes": sum(one["size"] for one in messages),
            "since": mine[0]["since"] if mine else None,
        }
