"""A second, slow fold, written from PROTOCOL.md alone, that the real one is compared with.

Everything is a mapping in a list; nothing is counted in advance, every number is worked out from
the lists when it is asked for. It shares no code with the fold but the records of operations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from ledgermq.protocol.operations import Operation, SessionOperation, Unreadable
from support.model.base import OWN_FIELDS
from support.model.operations import ModelOperations

Row = dict[str, Any]
UNANSWERED_MAX = 256
LEAP_US = 60_000_000
RESIDENT = ("available", "unborn", "delayed", "flight")


class Model(ModelOperations):
    """State, and `apply` with the meaning of the protocol."""

    def apply(self, operation: Operation, position: int, time: int) -> list[Row]:
        """Applies one entry; returns its outcomes as plain mappings."""
        assert position == self.position + 1
        self.position, self.outcomes, self.touched = position, [], []
        kind = _snake(type(operation).__name__)
        self._pass_time(operation, time)
        if isinstance(operation, SessionOperation):
            self._in_session(kind, operation)
        else:
            reason = getattr(self, "do_" + kind)(operation)
            if reason is not None:
                self.refuse_unaddressed(reason, -1, 0)
        self.deliver_touched()
        self.clean_segments()
        return self.outcomes

    def _pass_time(self, operation: Operation, time: int) -> None:
        """§6: what is due at or before the new time fires in order of (deadline, session)."""
        self.log_time, self.stood_still = time, False
        if isinstance(operation, Unreadable) and operation.reason == "timestamp-untrusted":
            return
        self._follow_clock(
            time, type(operation).__name__ == "TimeAgreed" and self.agrees(operation)
        )
        self.settle()
        self.release()
        while True:
            due = [one for one in self.sessions if one["deadline"] is not None]
            due = [one for one in due if one["deadline"] <= self.time]
            waits = [self.waits_until(one) for one in self.messages]
            birth = min([one for one in waits if 0 <= one <= self.time], default=None)
            session = min(due, key=lambda one: (one["deadline"], one["session"]), default=None)
            end = None if session is None else session["deadline"]
            overdue = [one["deadline"] for one in self.blocked if one["deadline"] <= self.time]
            time_out = min(overdue, default=None)
            units = [(self.unit_ends(one), one["session"]) for one in self.sessions]
            over = min([(at, who) for at, who in units if at and at <= self.time], default=None)
            ends = [end, time_out, birth, None if over is None else over[0]]
            first = min([one for one in ends if one is not None], default=None)
            if session is not None and end == first:
                self.end(session, "LOST" if session["confirmed"] else "UNCONFIRMED", None, 0)
            elif over is not None and over[0] == first:
                ended = self.session(over[1])
                assert ended is not None
                self.time_out_unit(ended)
            elif time_out is not None and time_out == first:
                self.time_outs(time_out)
            elif birth is not None:
                self.end_waits(birth)
            else:
                return
            self.deliver_touched()

    def _follow_clock(self, time: int, agreed: bool) -> None:
        """§6: what the append time makes of state time and of the reference."""
        ahead = self.reference >= 0
        passed = time - (self.reference if ahead else self.time)
        caught_up = 0 <= time - self.time <= LEAP_US
        if self.time < 0 or (not ahead and caught_up):
            self.time = time
        elif ahead and 0 <= passed <= LEAP_US:
            self.time = max(time, self.time + passed - -(-passed // 8))
            self.reference = time
        elif -LEAP_US <= passed < 0:
            return
        elif caught_up or agreed:
            self.time, self.reference = max(time, self.time), time
        else:
            self.stood_still = True
        if self.reference == self.time:
            self.reference = -1

    def _in_session(self, kind: str, operation: SessionOperation) -> None:
        """§4, in its order."""
        number = operation.session_sequence
        session = self.session(operation.session)
        if session is None:
            self.refuse_unaddressed("session-unknown", operation.session, number)
            return
        session["confirmed"], session["deadline"] = True, None
        if session["suspected"]:
            session["suspected"] = False
            for consumer in self.consumers_of(session):
                self.touch(consumer["queue"])
        session["answered"] = max(session["answered"], operation.answered_through)
        self.handed_through(session, operation.handed_through)
        kept = {
            one["session_sequence"]: one
            for one in session["replies"]
            if one["session_sequence"] > min(session["answered"], session["last"])
        }
        session["replies"] = list(kept.values())
        session["answered"] = min(session["answered"], session["last"])
        expected = session["last"] + 1
        waiting = len(self.blocked_of(session)) + (session["waiting_commit"] is not None)
        if self.is_waiting(session, number):
            return
        if number in kept:
            self.emit(session, **kept[number])
        elif number < expected:
            self.refuse(session, "reply-forgotten", number)
        elif number > expected:
            self.refuse(session, "session-sequence-gap", number, expected_sequence=expected)
        elif len(kept) + waiting >= UNANSWERED_MAX:
            self.refuse(session, "session-window-full", number)
        else:
            self._apply_once(kind, session, operation)

    def _apply_once(self, kind: str, session: Row, operation: SessionOperation) -> None:
        answer = getattr(self, "do_" + kind)(session, operation)
        number = operation.session_sequence
        session["last"] = number
        if answer == "blocked":
            return
        reply: Row = {"session": session["session"], "session_sequence": number}
        if isinstance(answer, str):
            reply |= {"kind": "Refused", "reason": answer, "expected_sequence": 0}
        else:
            reply |= answer or {"kind": "Accepted", "warning": ""}
        session["replies"].append(reply)
        if reply["kind"] == "SessionEnded":
            return  # `end` has said so
        self.emit(session, **reply)

    def queue_status(self, name: str) -> Row:
        """The status of a queue as §9 defines it."""
        queue = self.queue(name)
        assert queue is not None
        mine = [one for one in self.messages if one["queue"] == name]
        place = [one["place"] for one in mine]
        resident = [one for one in mine if one["place"] in RESIDENT]
        numbers = [one["sequence"] for one in resident]
        following = len([one for one in mine if one["sequence"] is not None])
        transacted = [one["session"] for one in self.sessions if one["mode"] == "TRANSACTED"]
        flight = [one["session"] for one in mine if one["place"] == "flight"]
        gets = len([one for one in flight if one in transacted])
        by_number = sorted(resident, key=lambda one: one["sequence"])
        ends = by_number or queue["gone"][-1:]
        return {
            "name": name,
            "created_position": queue["created_position"],
            "description": queue["description"],
            "message_bytes_max": queue["message_bytes_max"],
            "unacknowledged_max": queue["unacknowledged_max"],
            "group_affinity": queue["group_affinity"],
            "groups": len(self.group_ids(name)),
            "temporary": queue["owner"] is not None,
            "gets_disabled": queue["gets_disabled"],
            "settings": queue["settings"] | {name: queue[name] for name in OWN_FIELDS},
            "inherited": self.inherited(queue),
            "receivers": len([1 for one in self.consumers if one["queue"] == name and one["open"]]),
            "message_count": len(resident),
            "sent_and_committed": place.count("consumed"),
            "expired": place.count("expired"),
            "displaced": place.count("displaced"),
            "removed_by_administration": place.count("removed"),
            "moved": place.count("moved"),
            "dropped": place.count("dropped"),
            "min_sequence": min(numbers, default=following),
            "max_sequence": max(numbers, default=following),
            "next_sequence": following,
            "first_enqueued_at": ends[0]["enqueued_at"] if ends else None,
            "last_enqueued_at": ends[-1]["enqueued_at"] if ends else None,
            "current": place.count("available"),
            "pending": sum(map(place.count, ("open", "unborn", "delayed", "flight"))),
            "unborn": place.count("unborn"),
            "delayed": place.count("delayed"),
            "uncommitted_puts": place.count("open"),
            "unacknowledged": len(flight) - gets,
            "uncommitted_gets": gets,
            **self.bytes_by_state(queue),
        }

    def queue_statuses(self) -> list[Row]:
        """All statuses by name."""
        return [self.queue_status(name) for name in sorted(one["name"] for one in self.queues)]

    def session_statuses(self) -> Iterator[Row]:
        """The sessions by handle."""
        for one in sorted(self.sessions, key=lambda one: one["session"]):
            mine = [message for message in self.messages if message["session"] == one["session"]]
            yield {
                "session": one["session"],
                "connection": one["connection"].hex(),
                "client_id": one["client_id"],
                "acknowledge_mode": one["mode"],
                "suspected": one["suspected"],
                "consumers": len([1 for consumer in self.consumers_of(one) if consumer["open"]]),
                "consumers_paused": len(list(filter(self.paused, self.consumers_of(one)))),
                "consumers_in_doubt": len(list(filter(self.doubt, self.consumers_of(one)))),
                "in_flight": len([1 for message in mine if message["place"] == "flight"]),
                "open_puts": len([1 for message in mine if message["place"] == "open"]),
                "last_sequence": one["last"],
                "unit_of_work_began_at": one["began_at"] if self.has_work(one) else None,
                "unit_of_work_ended": one["work_ended"] != "",
            }

    def stored(self) -> list[Row]:
        """The numbered messages of all queues, by queue and number."""
        told = ("queue", "put_position", "put_index", "sequence", "message_id", "priority")
        told = (*told, "persistent", "enqueued_at", "backout_count")
        told = (*told, "expires_at", "deliver_at", "uncounted_backout_count", "origin", "segment")
        told = (*told, "redelivery_limit", "delayed_until")
        held = [one for one in self.messages if one["place"] in RESIDENT]
        held.sort(key=lambda one: (one["queue"], one["sequence"]))
        return [
            {name: one[name] for name in told}
            | {
                "size_bytes": one["size"],
                "header": self.kept_header(one),
                "in_unit_of_work": one["in_unit_of_work"] and one["group"] is not None,
                "body_position": one["body"][0] if one["body"] else -1,
                "body_index": one["body"][1] if one["body"] else -1,
            }
            for one in held
        ]

    def numbers(self) -> list[Row]:
        """What decides about each session's next operations and deliveries."""
        found = []
        for session in self.sessions:
            same = ("session", "confirmed", "deadline", "last", "answered", "next_delivery")
            row = {name: session[name] for name in (*same, "handed_through")}
            handing = [one["delivery"] for one in self.flight(session) if one["handing"]]
            row["handed_doubts"] = handing
            row["blocked"] = [one["number"] for one in self.blocked_of(session)]
            commit = session["waiting_commit"]
            row["waiting_commit"] = commit and commit.session_sequence
            row["replies"] = [one["session_sequence"] for one in session["replies"]]
            held = self.flight(session)
            row["deliveries"] = [(one["delivery"], one["sequence"]) for one in held]
            mine = [(one, self.in_flight(one)) for one in self.consumers_of(session)]
            told = ("number", "queue", "credit", "since", "open", "options")
            row["consumers"] = [
                (*(one[name] for name in told), in_flight, self.doubt(one))
                for one, in_flight in mine
                if one["open"] or in_flight
            ]
            row["places"] = [
                tuple(one[name] for name in ("number", "place", "settled", "kept"))
                for one, _ in mine
                if one["open"]
            ]
            found.append(row)
        return found

    def bonds(self) -> list[Row]:
        """Whom the buckets of queues with group affinity are bonded to."""
        return [
            {"queue": queue["name"], "bonds": dict(sorted(queue["bonds"].items()))}
            for queue in sorted(self.queues, key=lambda one: str(one["name"]))
            if queue["group_affinity"]
        ]

    def active_consumers(self) -> dict[int, tuple[int, int]]:
        """Who is active, by where its queue or subscription was created."""
        stores = [*self.queues, *self.subscriptions]
        found = {one["created_position"]: self.active_of(one["id"]) for one in stores}
        return {created: active for created, active in found.items() if active is not None}

    def deadline(self) -> int | None:
        """The next deadline."""
        due = [one["deadline"] for one in self.sessions if one["deadline"] is not None]
        waiting = [one for one in self.messages if one["place"] in RESIDENT]
        due += [until for until in map(self.waits_until, waiting) if until >= 0]
        due += [one["expires_at"] for one in waiting if one["expires_at"] > self.time]
        due += [end for end in map(self.life_ends, waiting) if end > self.time]
        due += [one["deadline"] for one in self.blocked]
        due += [end for end in map(self.unit_ends, self.sessions) if end is not None]
        return min(due, default=None)


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
