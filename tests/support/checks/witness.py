"""A witness of a history: follows every message through operations and outcomes alone.

It knows neither the fold nor the model. It complains when a message is numbered twice or out of
line, delivered while somebody holds it, consumed twice, or when messages do not add up. A message
of a topic is `published`: many may have it, but no consumer twice at a time.

What goes elsewhere it sees when it comes there: by numbers that no Put got, and by the origin that
a delivery tells. Then it is known there by destination and number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol import outcomes as out
from ledgermq.protocol.administration import CopyMessages, MoveMessages
from ledgermq.protocol.operations import Operation, SessionOperation
from ledgermq.protocol.outcomes import Addressed, Outcome

# (put position, put index), or of what came from elsewhere (destination, number).
Key = tuple[int, int] | tuple[str, int]
HELD = ("available", "flight")


class Witness:
    """Where each message is."""

    def __init__(self) -> None:
        self.place: dict[Key, str] = {}
        self.queue: dict[Key, str] = {}
        self.number: dict[Key, int] = {}
        # The deduplication ids of puts by their first messages, and what was numbered under them.
        self.ids: dict[Key, str | None] = {}
        self.numbered_ids: set[tuple[str, str | None, int]] = set()
        self.open_puts: dict[int, list[Key]] = {}
        self.flights: dict[tuple[int, int], Key] = {}
        # Of topic messages in flight: who holds which.
        self.holders: dict[tuple[int, int], tuple[int, int, Key]] = {}
        self.next_number: dict[str, int] = {}
        self.next_delivery: dict[int, int] = {}
        self.replies: dict[tuple[int, int], Outcome] = {}
        # What waits for its reply, and the position at which it came.
        self.waiting: dict[tuple[int, int], tuple[SessionOperation, int]] = {}
        # Removed by hand, by queue; which messages, a selector says.
        self.removed: Counter[str] = Counter()
        # Whether a setting, a binding or an administrator ever said that messages go elsewhere.
        self.moves = False

    def observe(self, operation: Operation, position: int, found: list[Addressed]) -> None:
        """Follows one entry."""
        self.moves |= isinstance(operation, MoveMessages | CopyMessages | op.Bind)
        for index, one in enumerate(found):
            outcome = one.outcome
            assert (outcome.position, outcome.index) == (position, index), "identity"
            if isinstance(outcome, out.Delivered):
                self._delivered(outcome)
            elif isinstance(outcome, out.SessionEnded):
                self._ended(outcome)
            elif isinstance(outcome, out.Returned) and not outcome.session_sequence:
                self._all_back(outcome.session, outcome)
            elif isinstance(outcome, out.Reply):
                identity = (outcome.session, outcome.session_sequence)
                if identity in self.waiting:
                    self._replied(*self.waiting.pop(identity), outcome)
                elif isinstance(operation, SessionOperation):
                    self._replied(operation, position, outcome)
        if isinstance(operation, SessionOperation):
            identity = (operation.session, operation.session_sequence)
            told = [one.outcome for one in found if isinstance(one.outcome, out.Reply)]
            if all((one.session, one.session_sequence) != identity for one in told):
                assert isinstance(operation, op.Put | op.Commit), "only puts and commits wait"
                self.waiting.setdefault(identity, (operation, position))

    def _replied(self, operation: SessionOperation, position: int, outcome: out.Reply) -> None:
        identity = (outcome.session, outcome.session_sequence)
        passing = isinstance(outcome, out.Refused)
        if identity in self.replies:
            kept = self.replies[identity]
            assert passing or _same(kept, outcome), f"a retry was answered otherwise: {outcome}"
            return
        if not passing:
            self.replies[identity] = outcome
            name = re.sub(r"(?<!^)([A-Z])", r"_\1", type(operation).__name__).lower()
            handler = getattr(self, "_on_" + name, None)
            if handler is not None:
                handler(operation, position, outcome)

    def _on_put(self, operation: op.Put, position: int, outcome: out.Reply) -> None:
        queue = operation.destination.removeprefix("queue:")
        if isinstance(outcome, out.Enqueued) and not outcome.count:
            known = (queue, operation.deduplication_id, outcome.first_sequence)
            assert known in self.numbered_ids, f"what was never put comes twice: {known}"
            return
        keys: list[Key] = [(position, index) for index in range(len(operation.messages))]
        self.ids[keys[0]] = operation.deduplication_id
        for key in keys:
            self.place[key], self.queue[key] = "open", queue
        if isinstance(outcome, out.Enqueued):
            assert outcome.count == len(keys)
            self._numbered(queue, outcome.first_sequence, keys)
        else:
            self.open_puts.setdefault(operation.session, []).extend(keys)

    def _numbered(self, queue: str, first: int, keys: Iterable[Key]) -> None:
        self._arrived(queue, first)
        assert first == self.next_number.get(queue, 0), f"{queue} numbers from {first}"
        for number, key in enumerate(keys, start=first):
            assert self.place[key] == "open", f"{key} is numbered twice"
            self.place[key] = "published" if queue.startswith("topic:") else "available"
            self.number[key] = number
            self.numbered_ids.add((queue, self.ids.get(key), number))
            self.next_number[queue] = number + 1

    def _arrived(self, queue: str, following: int) -> None:
        """Below a number, what no Put brought to a queue or topic came from elsewhere."""
        for number in range(self.next_number.get(queue, 0), following):
            assert self.moves, f"{queue} leaves out {number}"
            key = (queue, number)
            self.place[key] = "published" if queue.startswith("topic:") else "available"
            self.queue[key], self.number[key] = queue, number
            self.next_number[queue] = number + 1

    def _left(self, key: Key, origin: Any) -> None:
        """What came elsewhere from where it was put is there no longer."""
        queue = origin["destination"].removeprefix("queue:")
        same = self.queue[key] == queue and self.number[key] == origin["sequence"]
        if same and self.place[key] not in ("published", "left") and origin["reason"] != "copied":
            assert self.place[key] == "available", f"{key} left and is {self.place[key]}"
            self.place[key] = "left"

    def _on_commit(self, operation: op.Commit, position: int, outcome: out.Reply) -> None:
        assert isinstance(outcome, out.Committed)
        held = self.open_puts.pop(operation.session, [])
        for run in outcome.enqueued:
            queue = run["destination"].removeprefix("queue:")
            keys = [key for key in held if self.queue[key] == queue]
            assert len(keys) == run["count"]
            self._numbered(queue, run["first_sequence"], keys)
            held = [key for key in held if self.queue[key] != queue]
        assert not held, "a commit left puts out"
        assert self._consumed(operation.session, operation.deliveries) == outcome.consumed

    def _on_acknowledge(self, operation: Any, position: int, outcome: out.Reply) -> None:
        self._consumed(operation.session, operation.deliveries)

    def _consumed(self, session: int, ranges: list[Any]) -> int:
        deliveries = _numbers(ranges)
        for delivery in deliveries:
            key = self._landed(session, delivery)
            if self.place[key] != "published":
                assert self.place[key] == "flight", f"{key} is consumed twice"
                self.place[key] = "consumed"
        return len(deliveries)

    def _landed(self, session: int, delivery: int) -> Key:
        key = self.flights.pop((session, delivery))
        self.holders.pop((session, delivery), None)
        return key

    def _back(self, session: int, delivery: int) -> None:
        key = self._landed(session, delivery)
        if self.place[key] != "published":
            self.place[key] = "available"

    def _on_close_consumer(self, operation: Any, position: int, outcome: out.Reply) -> None:
        for delivery in _numbers(operation.unseen):
            self._back(operation.session, delivery)

    _on_give_back = _on_close_consumer

    def _on_reject(self, operation: Any, position: int, outcome: out.Reply) -> None:
        for delivery in _numbers(operation.deliveries):
            self._back(operation.session, delivery)

    def _on_rollback(self, operation: Any, position: int, outcome: Any) -> None:
        self._all_back(operation.session, outcome)

    def _on_rollback_transaction(self, operation: Any, position: int, outcome: Any) -> None:
        for flight in [flight for flight in self.flights if flight[0] == operation.target_session]:
            self._back(*flight)
        for key in self.open_puts.pop(operation.target_session, []):
            self.place[key] = "discarded"

    def _on_recover(self, operation: Any, position: int, outcome: Any) -> None:
        self._all_back(operation.session, outcome)

    def _ended(self, outcome: out.SessionEnded) -> None:
        self._all_back(outcome.session, outcome)

    def _all_back(self, session: int, outcome: out.Returned | out.SessionEnded) -> None:
        held = [flight for flight in self.flights if flight[0] == session]
        for flight in held:
            self._back(*flight)
        discarded = self.open_puts.pop(session, [])
        for key in discarded:
            self.place[key] = "discarded"
        assert (outcome.returned, outcome.discarded) == (len(held), len(discarded)), outcome

    def _on_correct(self, operation: op.Correct, position: int, outcome: out.Reply) -> None:
        self._arrived(operation.queue, operation.sequence + 1)
        (key,) = [
            key
            for key, number in self.number.items()
            if number == operation.sequence
            and self.queue[key] == operation.queue
            and self.place[key] in HELD
        ]
        self.flights = {flight: one for flight, one in self.flights.items() if one != key}
        self.place[key] = "removed" if operation.action == "REMOVE" else "available"

    def _on_purge_queue(self, operation: Any, position: int, outcome: Any) -> None:
        queue = operation.selection["source"].removeprefix("queue:")
        self.removed[queue] += outcome.affected

    _on_delete_messages = _on_purge_queue

    def _on_delete_queue(self, operation: Any, position: int, outcome: out.Reply) -> None:
        for key, queue in self.queue.items():
            if queue == operation.queue and self.place[key] not in ("consumed", "discarded"):
                assert self.place[key] in ("available", "left", "removed"), f"{key} vanished in use"
                self.place[key] = "deleted"
                self.queue[key] = ""
        del self.removed[operation.queue]
        self.queue = {
            key: "" if queue == operation.queue else queue for key, queue in self.queue.items()
        }
        self.next_number.pop(operation.queue, None)

    def _on_delete_topic(self, operation: Any, position: int, outcome: out.Reply) -> None:
        name = "topic:" + operation.topic
        self.queue = {key: "" if one == name else one for key, one in self.queue.items()}
        self.next_number.pop(name, None)

    def _delivered(self, outcome: out.Delivered) -> None:
        queue = outcome.destination.removeprefix("queue:")
        following = self.next_delivery.get(outcome.session, 1)
        assert outcome.first_delivery == following, f"delivery {outcome.first_delivery}"
        for delivery, message in enumerate(outcome.messages, start=following):
            key = self._key_of(queue, message)
            assert self.queue[key] == queue
            if queue.startswith("topic:"):
                assert self.place[key] == "published", f"{key} is delivered and not published"
                holder = (outcome.session, outcome.consumer, key)
                assert holder not in self.holders.values(), f"{key} is delivered twice"
                self.holders[outcome.session, delivery] = holder
                self.flights[outcome.session, delivery] = key
                continue
            assert self.place[key] == "available", f"{key} is delivered and is {self.place[key]}"
            assert self.number[key] == message["sequence"], f"{key} changed its number"
            self.place[key] = "flight"
            self.flights[(outcome.session, delivery)] = key
        self.next_delivery[outcome.session] = following + len(outcome.messages)

    def _key_of(self, queue: str, message: Any) -> Key:
        origin = message["header"].get("origin") if "header" in message else None
        key = (message["put_position"], message["put_index"])
        if origin is None:
            return key
        self._arrived(queue, message["sequence"] + 1)
        self._left(key, origin)
        return (queue, message["sequence"])

    def _forget_ended(self, names: set[str]) -> None:
        """Temporary destinations end with their connection; what they held went with them."""
        ended = [one for one in set(self.queue.values()) if "temporary/" in one]
        for name in set(ended) - names:
            gone = {key for key, queue in self.queue.items() if queue == name}
            self.queue |= dict.fromkeys(gone, "")
            self.next_number.pop(name, None)
            self.removed.pop(name, None)
            for session, keys in self.open_puts.items():
                self.open_puts[session] = [key for key in keys if key not in gone]

    def compare(self, statuses: list[dict[str, Any]], topics: list[dict[str, Any]]) -> None:
        """Asserts that statuses count what is there: nothing lost, nothing made up."""
        places = [one["settings"] | one["inherited"] for one in (*statuses, *topics)]
        self.moves |= any(one["expiry_destination"] or one["error_destination"] for one in places)
        known_topics = {"topic:" + one["name"] for one in topics}
        self._forget_ended({one["name"] for one in statuses} | known_topics)
        for status in topics:
            name = "topic:" + status["name"]
            self._arrived(name, status["next_sequence"])
            assert status["next_sequence"] == self.next_number.get(name, 0), f"{name}: next"
        for status in statuses:
            name = status["name"]
            self._arrived(name, status["next_sequence"])
            mine = Counter(self.place[key] for key, queue in self.queue.items() if queue == name)
            # It sees no births, delays, expiries, displacements or drops, and what goes
            # elsewhere when it is got there: such messages stay where they came to be.
            waiting = status["unborn"] + status["delayed"]
            left = sum(status[one] for one in ("expired", "displaced", "moved", "dropped"))
            by_hand = self.removed[name]
            there = status["current"] + waiting + left + by_hand
            assert there == mine["available"] + mine["left"], f"{name}: {status} {mine}"
            pending = status["pending"] - waiting
            assert pending == mine["flight"] + mine["open"], f"{name}: {status} {mine}"
            assert status["sent_and_committed"] == mine["consumed"], f"{name}: {status} {mine}"
            removed = mine["removed"] + by_hand
            assert status["removed_by_administration"] == removed, f"{name}: {mine}"
            assert status["next_sequence"] == self.next_number.get(name, 0), f"{name}: next"
        known = {status["name"] for status in statuses} | known_topics
        lost = [key for key, queue in self.queue.items() if queue and queue not in known]
        assert not lost, f"messages of unknown queues: {lost}"


def _same(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes say the same, at whatever position."""
    first, second = ({**_fields(outcome)} for outcome in (one, other))
    return type(one) is type(other) and first == second


def _fields(outcome: Outcome) -> dict[str, Any]:
    names = [name for kind in type(outcome).__mro__ for name in getattr(kind, "__slots__", ())]
    return {name: getattr(outcome, name) for name in names if name not in ("position", "index")}


def _numbers(ranges: list[Any]) -> list[int]:
    return [number for one in ranges for number in range(one["first"], one["last"] + 1)]
