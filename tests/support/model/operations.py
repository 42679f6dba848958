"""The slow model's operations: what each row of PROTOCOL.md §5 does to plain lists."""

from __future__ import annotations

from typing import Any

from support.model.base import BODY_MAX, INT_MAX
from support.model.delivery import PLAIN
from support.model.sources import ModelSources

TIMES = ("time_to_live_ms", "delivery_delay_ms", "age_ms")
AGES_MS = 100 * 366 * 86_400_000


Row = dict[str, Any]


class ModelOperations(ModelSources):
    """One method `do_...` per operation; a text as answer is the reason of a refusal."""

    def do_unreadable(self, entry: Any) -> str:
        """§8."""
        return str(entry.reason)

    def do_tick(self, entry: Any) -> None:
        """Only time passes."""

    def do_time_agreed(self, entry: Any) -> str | None:
        """Only time passes, if the clocks agree."""
        return None if self.agrees(entry) else "time-disagrees"

    def do_open(self, entry: Any) -> str | None:
        """A new session."""
        if entry.acknowledge_mode not in ("AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL", "TRANSACTED"):
            return "mode-unknown"
        if not 1_000 <= entry.suspect_timeout_ms <= 45_000 or not 0 <= entry.lane <= INT_MAX:
            return "setting-invalid"
        if not 0 <= entry.redelivery_delay_ms <= AGES_MS:
            return "setting-invalid"
        limits_ms = {
            name: getattr(entry, name)
            for name in ("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms")
        }
        if not all(0 <= one <= AGES_MS for one in limits_ms.values()):
            return "setting-invalid"
        others = [one["lane"] for one in self.sessions if one["connection"] == entry.connection]
        if any(lane != entry.lane for lane in others):
            return "setting-invalid"
        reason = self.check_client_id(entry)
        if reason is not None:
            return reason
        session = {
            "session": self.position,
            "connection": entry.connection,
            "lane": entry.lane,
            "client_id": entry.client_id,
            "takeover": entry.takeover,
            "mode": entry.acknowledge_mode,
            "timeout_us": entry.suspect_timeout_ms * 1000,
            "redelivery_delay_ms": entry.redelivery_delay_ms,
            "confirmed": False,
            "suspected": False,
            "deadline": self.rounded(max(self.time, self.log_time) + 30_000_000),
            "last": 0,
            "answered": 0,
            "replies": [],
            "next_delivery": 1,
            "handed_through": 0,
            "waiting_commit": None,
            "began_at": None,
            "work_ended": "",
            "open_from": None,
            "active_at": None,
            **limits_ms,
        }
        self.sessions.append(session)
        key = entry.session_key
        self.emit(session, kind="Opened", session_key=key, session=session["session"])
        return None

    def do_suspect(self, entry: Any) -> None:
        """Deadlines for silent sessions."""
        for handle in entry.sessions:
            session = self.session(handle)
            if session is not None and not session["suspected"]:
                session["suspected"] = True
                session["deadline"] = self.rounded(
                    max(self.time, self.log_time) + session["timeout_us"]
                )
                due = session["deadline"]
                self.emit(session, kind="Suspected", session=handle, deadline=due)

    def do_open_consumer(self, session: Row, entry: Any) -> str | None:
        """A consumer without credit."""
        used = [one["number"] for one in self.consumers if one["session"] == session["session"]]
        if not max(used, default=0) < entry.consumer <= INT_MAX:
            return "consumer-exists"
        if not -1 <= entry.redelivery_delay_ms <= AGES_MS:
            return "setting-invalid"
        reason = self.check_destination(entry.destination) or self.check_source(session, entry)
        if reason is not None:
            return reason
        store = self.source(session, entry)
        self.consumers.append(
            {
                "session": session["session"],
                "number": entry.consumer,
                "queue": store,
                "selector": "" if store.startswith("topic:") else entry.selector.strip(),
                "redelivery_delay_ms": entry.redelivery_delay_ms,
                "consumer_priority": entry.consumer_priority,
                "credit": 0,
                "since": 0,
                "open": True,
                "options": PLAIN,
                "place": None,
                "settled": None,
                "kept": None,
            }
        )
        return None

    def do_close_consumer(self, session: Row, entry: Any) -> str | None:
        """Unseen deliveries return without a backout, the others stay; so too when repeated."""
        mine = [one for one in self.consumers_of(session) if one["number"] == entry.consumer]
        holds = any(one["consumer"] == entry.consumer for one in self.flight(session))
        if not mine or not (mine[0]["open"] or holds):
            return "consumer-unknown"
        (consumer,) = mine
        named = self.named(session, entry.unseen)
        if named is None or any(one["consumer"] != entry.consumer for one in named):
            return "delivery-unknown"
        if consumer["open"]:
            self.leave(consumer)
            consumer["place"] = consumer["settled"] = None
        consumer["open"], consumer["credit"] = False, 0
        for message in named:
            self.back(message, backout=False)
        return None

    def do_put(self, session: Row, entry: Any) -> Row | str | None:
        """Numbered now, or held in the unit of work."""
        if session["work_ended"]:
            return str(session["work_ended"])
        reason = self.check_destination(entry.destination)
        if reason is not None:
            return reason
        queue = self.place(entry.destination)
        name = entry.deduplication_id
        reason = self.check_part(session, queue, entry) or self.check_id(queue, name)
        if reason is not None:
            return reason
        before = self.duplicate(session, entry.destination, name)
        if before is not None:
            self.note_part(entry)
            return before
        if queue is not None and queue["settings"]["puts_disabled"]:
            return "puts-disabled"
        reason = self.check_messages(queue, entry)
        if reason is not None:
            return reason
        store = entry.destination.removeprefix("queue:")
        transacted = session["mode"] == "TRANSACTED"
        added = [
            {
                "queue": store,
                "put_position": self.position,
                "put_index": index,
                "message_id": one["message_id"],
                "deduplication_id": None if index else name,
                "priority": one["priority"],
                "persistent": one["persistent"],
                "header": one.get("header"),
                "group": one["header"]["group"] if "header" in one else None,
                "in_unit_of_work": transacted,
                "told_in_doubt": False,
                **self.times(one.get("header"), queue["settings"] if queue else {}),
                "redelivery_limit": self.limit_of(one.get("header"), queue),
                "delayed_until": -1,
                "origin": None,
                "body": None,
                "size": len(one["content"]) + self.header_size(one.get("header")),
                "sequence": None,
                "enqueued_at": None,
                "backout_count": 0,
                "uncounted_backout_count": -1,
                "received": None,
                "handing": False,
                "place": "open",
                "session": session["session"],
                "consumer": None,
                "delivery": None,
            }
            for index, one in enumerate(entry.messages)
        ]
        held = self.open_puts(session)
        reason, warning = self.check_groups(held, added)
        reason = reason or self.check_size(session, added, held)
        if reason:
            return reason
        reason = self.check_quota(session, entry, added)
        if reason == "blocked":
            self.block(session, entry, added)
        if reason:
            return reason
        answer = self.take_in(session, entry.destination, added, warning)
        self.note_part(entry)
        return answer

    def check_messages(self, queue: Row | None, entry: Any) -> str | None:
        """What no message can be like, and then what is too large."""
        if not 1 <= len(entry.messages) <= 10_000:
            return "message-invalid"
        most = (queue["message_bytes_max"] if queue else 0) or BODY_MAX
        for one in entry.messages:
            if one["priority"] not in range(10) or len(one["content"]) == 0:
                return "message-invalid"
            times = [one["header"][name] for name in TIMES] if "header" in one else []
            limit = one["header"].get("redelivery_limit", -1) if "header" in one else -1
            if not all(0 <= ms <= AGES_MS for ms in times) or not -1 <= limit <= INT_MAX:
                return "message-invalid"
        for one in entry.messages:
            if len(one["content"]) > most or self.header_size(one.get("header")) > 65536:
                return "message-too-large"
        return None

    def times(self, header: Any, settings: Row) -> Row:
        """When a message expires and may be delivered, from its send."""
        fields = dict(header or dict.fromkeys(TIMES, 0))
        for name in ("time_to_live", "delivery_delay"):
            override = settings.get(name + "_override_ms", -1)
            if override >= 0:
                fields[name + "_ms"] = override
        told = {"expires_at": "time_to_live_ms", "deliver_at": "delivery_delay_ms"}
        sent = max(self.time, self.log_time) - fields["age_ms"] * 1000
        return {
            name: max(self.rounded(sent + fields[field] * 1000), 0) if fields[field] else -1
            for name, field in told.items()
        }

    def do_get(self, session: Row, entry: Any) -> str | None:
        """Credit."""
        consumer = self.consumer(session, entry.consumer)
        if consumer is None:
            return "consumer-unknown"
        if entry.credit < 0 or consumer["credit"] + entry.credit > 1_000_000:
            return "credit-invalid"
        if entry.options is not None:
            reason = self.check_options(session, consumer, entry.options)
            if reason is not None:
                return reason
            self.set_options(consumer, entry.options)
        if entry.credit == 0:
            consumer["credit"] = 0
            return None
        if consumer["credit"] == 0:
            consumer["since"] = self.next_wait()
        consumer["credit"] += entry.credit
        self.touch(consumer["queue"])
        return None

    def do_acknowledge(self, session: Row, entry: Any) -> str | None:
        """The deliveries are consumed."""
        if session["mode"] == "TRANSACTED":
            return "transacted"
        named = self.named(session, entry.deliveries)
        if named is None:
            return "delivery-unknown"
        if self.is_out_of_turn(named):
            return "out-of-turn"
        self._consume(session, named)
        return None

    def _consume(self, session: Row, named: list[Row]) -> None:
        """Deliveries leave; their consumers' places are settled behind them."""
        last = {message["consumer"]: message for message in named}
        for message in named:
            self.gone(message, "consumed")
        for consumer in self.consumers_of(session):
            if consumer["number"] in last:
                if consumer["options"]["logical_order"]:
                    self.settle_place(session, consumer)
                else:
                    consumer["settled"] = self.place_after(last[consumer["number"]])

    def settle_place(self, session: Row, consumer: Row) -> None:
        """Where a consumer in logical order goes on when the rest that it has comes back."""
        left = [one for one in self.flight(session) if one["consumer"] == consumer["number"]]
        left.sort(key=lambda one: one["delivery"])
        consumer["settled"] = self.place_of(left[0]) if left else consumer["place"]

    def do_commit(self, session: Row, entry: Any) -> Row | str:
        """Puts are numbered, gets consumed."""
        if session["mode"] != "TRANSACTED":
            return "not-transacted"
        if session["work_ended"]:
            return str(session["work_ended"])
        if session["waiting_commit"] is not None:
            return "commit-waiting"
        if self.blocked_of(session):
            session["waiting_commit"] = entry
            return "blocked"
        held = self.open_puts(session)
        if entry.puts != len(held):
            return "puts-mismatch"
        if self.comes_twice(held):
            return "duplicate-put"
        named = self.named(session, entry.deliveries)
        if named is None:
            return "delivery-unknown"
        if self.is_out_of_turn(named):
            return "out-of-turn"
        self._consume(session, named)
        enqueued = []
        for name in dict.fromkeys(one["queue"] for one in held):
            mine = [one for one in held if one["queue"] == name]
            first = self.number(name, mine)
            told = self.destination_of(name)
            self.note_ids(told, mine)
            enqueued.append({"destination": told, "first_sequence": first, "count": len(mine)})
        session["began_at"] = self.time
        session["open_from"] = session["active_at"] = max(self.time, self.log_time)
        return {"kind": "Committed", "enqueued": enqueued, "consumed": len(named)}

    def do_rollback(self, session: Row, entry: Any) -> Row | str:
        """Puts vanish, gets return."""
        if session["mode"] != "TRANSACTED":
            return "not-transacted"
        if session["work_ended"]:
            session["work_ended"] = ""
            return self._all_back(session, [])
        return self._all_back(session, entry.seen)

    def do_recover(self, session: Row, entry: Any) -> Row | str:
        """Gets return."""
        if session["mode"] == "TRANSACTED":
            return "transacted"
        return self._all_back(session, entry.seen)

    def _all_back(self, session: Row, seen: list[Any]) -> Row | str:
        named = self.named(session, seen)
        if named is None:
            return "delivery-unknown"
        returned, discarded = self._undo(session, named)
        return {"kind": "Returned", "returned": returned, "discarded": discarded}

    def _undo(self, session: Row, seen: list[Row] | None) -> tuple[int, int]:
        for consumer in self.consumers_of(session):
            consumer["credit"] = 0
        if session["mode"] == "TRANSACTED":
            self.drop_blocked(session)
        discarded = self.discard(session)
        returned = self.all_back(session, seen)
        for consumer in self.consumers_of(session):
            if consumer["open"]:
                self.go_to(consumer, consumer["settled"])
        return returned, discarded

    def do_rollback_transaction(self, session: Row, entry: Any) -> str | None:
        """Administration ends a unit of work; all that it got counts as backed out."""
        if not 1 <= len(entry.actor) <= 128 or not 1 <= len(entry.reason) <= 1024:
            return "reason-invalid"
        target = self.session(entry.target_session)
        if target is None or not self.has_work(target):
            return "target-unknown"
        self._undo(target, None)
        target["work_ended"] = "unit-of-work-ended"
        return None

    def time_out_unit(self, session: Row) -> None:
        """A unit of work broke a limit; all that it got counts as backed out."""
        returned, discarded = self._undo(session, None)
        self.emit(
            session,
            kind="Returned",
            session=session["session"],
            session_sequence=0,
            returned=returned,
            discarded=discarded,
        )
        session["work_ended"] = "unit-of-work-timed-out"

    def do_end_session(self, session: Row, entry: Any) -> str | None:
        """Administration ends a session."""
        if not 1 <= len(entry.actor) <= 128 or not 1 <= len(entry.reason) <= 1024:
            return "reason-invalid"
        target = self.session(entry.target_session)
        if target is None or target is session:
            return "target-unknown"
        self.end(target, "ENDED", None, 0)
        return None

    def do_close(self, session: Row, entry: Any) -> Row | str:
        """As rollback, then the session is gone."""
        named = self.named(session, entry.seen)
        if named is None:
            return "delivery-unknown"
        self.end(session, "CLOSED", named, entry.session_sequence)
        return {"kind": "SessionEnded"}

    def do_alive(self, session: Row, entry: Any) -> None:
        """A delivery in flight is handed over, and what its consumer was given before."""
        doubts = [self.doubt(one) for one in self.consumers_of(session)]
        held = self.flight(session)
        for named in [one for one in held if one["delivery"] == entry.handing]:
            for message in held:
                number = message["delivery"]
                before = message["consumer"] == named["consumer"] and number <= entry.handing
                if before and number > session["handed_through"]:
                    message["handing"] = True
                    if number in doubts:
                        self.touch(message["queue"])

    def do_correct(self, session: Row, entry: Any) -> str | None:
        """One message is removed or released."""
        if self.queue(entry.queue) is None:
            return "queue-unknown"
        found = [
            one
            for one in self.messages
            if one["queue"] == entry.queue
            and one["sequence"] == entry.sequence
            and one["place"] in ("available", "unborn", "delayed", "flight")
        ]
        if not found:
            return "sequence-unknown"
        if entry.action == "REMOVE":
            self.gone(found[0], "removed")
            return None
        if entry.action == "RELEASE" and found[0]["place"] == "flight":
            self.back(found[0], backout=True)
            return None
        return "correction-invalid"
