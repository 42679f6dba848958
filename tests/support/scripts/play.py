"""Plays scripts against the fold and, beside it, the slow model; every entry crosses the codec.

After each entry: outcomes as the line says, outcomes and statuses equal to the model's, invariants,
a state that was a snapshot some entries ago answers alike, and a refusal changed nothing. After
every third one, or each if the state restarts from it, the snapshot through bytes and back is it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ledgermq.core.apply import apply, new_state, next_deadline
from ledgermq.core.queries import questions as query
from ledgermq.core.queries.browsing import Cursor, browse
from ledgermq.core.queries.destination_status import (
    binding_entries,
    blocked_status,
    destination_status,
    queue_statuses,
    source_entries,
    subscription_statuses,
    topic_statuses,
)
from ledgermq.core.queries.group_status import group_document
from ledgermq.core.queries.manager_status import journal_status, manager_status
from ledgermq.core.queries.storage_status import storage_status
from ledgermq.core.queries.work_status import session_statuses
from ledgermq.core.snapshot.destination_records import store_name
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Session
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.protocol.operations import Open, Operation, SessionOperation, Unreadable
from ledgermq.protocol.outcomes import Addressed, Opened, Refused
from ledgermq.selector import parse_selector
from ledgermq.wire.framing.codec import decode_operation, encode_operation
from support.checks import checks
from support.checks.group_comparison import compare_groups
from support.checks.moves_book import MovesBook
from support.checks.single_moves import for_each
from support.invariants import whole_state as invariants
from support.model.fold import Model
from support.scripts.describe import describe, matches, segment_word, spoken
from support.scripts.handling_verbs import selection_of
from support.scripts.protocol_pages import refusals_of
from support.scripts.script import Line, Script, ScriptError, read_scripts, time_us
from support.scripts.verbs import VERBS, get_options, group_id, selector_text

START_US = 1_790_000_000_000_000
# Snapshots took a third of the time. Random histories are many; scripts are played with restarts.
ENTRIES_A_SNAPSHOT = 3
QUESTIONS = (
    *("status", "topic", "subscription", "session", "manager", "blocked", "browse", "select"),
    *("group", "segments", "storage", "deadline", "uncounted", "journal"),
)
STATUS_NAMES = {
    "count": "message_count",
    "sent": "sent_and_committed",
    "removed": "removed_by_administration",
    "min": "min_sequence",
    "max": "max_sequence",
    "next": "next_sequence",
    "first": "first_enqueued_at",
    "last": "last_enqueued_at",
    "puts": "uncommitted_puts",
    "unacked": "unacknowledged",
    "gets": "uncommitted_gets",
}


def last_snapshot(position: int) -> int:
    """The position at or before this one at which a player takes a snapshot."""
    return position - position % ENTRIES_A_SNAPSHOT


class Player:
    """A state and a model, fed with the same entries."""

    def __init__(self, *, with_model: bool = True, restarts: bool = False) -> None:
        self.state = new_state()
        self.model = Model() if with_model else None
        self.restarts = restarts
        self.thawed = new_state()
        self.book = MovesBook()
        self.queue_statuses = queue_statuses(self.state)
        self.topic_statuses = topic_statuses(self.state)
        self.clock_us = START_US
        self.names: dict[int, str] = {}
        self.handles: dict[str, int] = {}
        self.sent: dict[str, list[Operation]] = {}
        self.refused: dict[tuple[int, int], str] = {}
        self.log: list[tuple[bytes | None, int]] = []

    def session(self, name: str) -> Session | None:
        """The fold's record of a session, for the numbers that a script leaves out."""
        return self.state.sessions.get(self.handles.get(name, -1))

    def enter(self, entry: Operation | bytes | None) -> list[Addressed]:
        """Appends one entry and folds it, with every check."""
        if isinstance(entry, Unreadable):
            operation: Operation = entry
        else:
            value = encode_operation(entry) if isinstance(entry, Operation) else entry
            self.log.append((value, self.clock_us))
            operation = decode_operation(value, self.state.active_version)
            assert not isinstance(entry, Operation) or operation == entry
        position = self.state.position + 1
        due = next_deadline(self.state)
        # While it is ahead, state time goes on from where it is.
        reach_us = 0 if self.state.time_reference < 0 else self.state.time + 60_000_000
        quiet = due is None or due > max(self.clock_us, reach_us)
        # The state of a checkpoint tells what was there before; without one it must be told now.
        before = checks.substance(self.state) if quiet and self.restarts else None
        try:
            found = apply(self.state, operation, position, self.clock_us, for_each(self.book.take))
            if quiet and not self.restarts and _must_change_nothing(operation, found):
                before = checks.substance(self.thawed)
            self._check(operation, position, before, found)
        except (LookupError, TypeError, AttributeError, ValueError, StopIteration) as error:
            # The fold is total, and what it leaves can always be read.
            raise AssertionError(f"entry {position} stopped the fold or its checks") from error
        return found

    def follow(self, value: bytes | None, *, snapshot_at: int) -> list[Addressed]:
        """Folds an entry that was checked when it came after the same ones, which were followed.

        The last snapshot before the next check is the one at a position.
        """
        self.log.append((value, self.clock_us))
        operation = decode_operation(value, self.state.active_version)
        position = self.state.position + 1
        found = apply(self.state, operation, position, self.clock_us, for_each(self.book.take))
        if position == snapshot_at:
            self.thawed = checks.thaw(checks.freeze(self.state))
        elif position > snapshot_at:
            apply(self.thawed, operation, position, self.clock_us)
        self.thawed.time_stood_still = self.state.time_stood_still
        self.refused |= dict(_refusals(operation, found))
        self.queue_statuses = queue_statuses(self.state)
        self.topic_statuses = topic_statuses(self.state)
        if self.model is not None:
            self.model.apply(operation, position, self.clock_us)
        return found

    def _check(
        self, operation: Operation, position: int, before: object, found: list[Addressed]
    ) -> None:
        state = self.state
        assert state.position == position
        assert self.restarts or apply(self.thawed, operation, position, self.clock_us) == found
        invariants.check(state)
        self.book.compare(state)
        checks.through_the_wire(found)
        if before is not None and _must_change_nothing(operation, found):
            assert checks.substance(state) == before, "what must change nothing did"
        for number, reason in _refusals(operation, found):
            # What was answered to a number is answered again to whatever has that number.
            if self.refused.get(number) != reason:
                listed = refusals_of(type(operation).__name__)
                assert reason in listed, "the protocol lists no such refusal"
            self.refused[number] = reason
        if self.restarts or position == last_snapshot(position):
            kept = checks.contents(state)
            if not self.restarts:
                beside = checks.contents(self.thawed)
                assert beside == kept, "a state from a snapshot became another one"
            self.thawed = checks.thaw(checks.freeze(state))
            restored = checks.contents(self.thawed)
            assert restored == kept, "the snapshot does not tell the whole state"
        assert next_deadline(self.thawed) == next_deadline(state)
        self.queue_statuses = queue_statuses(state)
        self.topic_statuses = topic_statuses(state)
        if self.model is not None:
            expected = self.model.apply(operation, position, self.clock_us)
            assert checks.outcome_records(found) == expected, "the model answers otherwise"
            assert self.queue_statuses == self.model.queue_statuses()
            for place in state.destinations:
                told = blocked_status(state, place.destination)
                assert told == self.model.blocked_status(place.destination)
            assert self.topic_statuses == self.model.topic_statuses()
            assert subscription_statuses(state) == self.model.subscription_statuses()
            told = [document for _, document in binding_entries(state, "")]
            assert told == self.model.bindings
            assert session_statuses(state) == list(self.model.session_statuses())
            assert _stored(state) == self.model.stored()
            assert [_numbers(one) for one in state.sessions.values()] == self.model.numbers()
            compare_groups(state, self.model)
            told = [document for _, document in source_entries(state, "")]
            assert told == self.model.source_statuses()
            assert storage_status(state, -1, 1000) == self.model.storage_status()
            assert journal_status(state) == self.model.journal_status()
            assert next_deadline(state) == self.model.deadline()
            clock = (state.time, state.time_reference, state.time_stood_still)
            assert clock == (self.model.time, self.model.reference, self.model.stood_still)
            versions = (state.active_version, state.offered_version)
            assert versions == (self.model.version, self.model.offered)
        # A hint to the worker, which no checkpoint keeps.
        self.thawed.time_stood_still = state.time_stood_still
        if self.restarts:
            self.state = self.thawed

    def go_on(self, *lines: str) -> None:
        """Plays further lines."""
        (script,) = read_scripts("\n".join(lines))
        for line in script.lines:
            self.line(line)

    def line(self, line: Line) -> None:
        """Plays one line."""
        self.clock_us += line.elapse_us
        if line.verb in QUESTIONS:
            getattr(self, "ask_" + line.verb)(line)
            return
        if line.verb not in VERBS:
            raise ScriptError(f"no verb {line.verb!r}")
        entry = VERBS[line.verb](self, line)
        found = self.enter(entry)
        if isinstance(entry, Operation):
            self.sent.setdefault(line.session, []).append(entry)
        for one in found:
            if isinstance(entry, Open) and isinstance(one.outcome, Opened):
                self.names[one.outcome.session] = line.session
                self.handles[line.session] = one.outcome.session
        self._compare(line, found)

    def _compare(self, line: Line, found: list[Addressed]) -> None:
        expected = line.expected
        if expected is None:
            quiet = {"open": [["opened"]], "tick": [], "agree": [], "offer": [], "skip": []}
            expected = quiet.get(line.verb, [["accepted"]])
        elif expected == [["nothing"]]:
            expected = []
        said = [describe(one.outcome, self.names, line.session, START_US) for one in found]
        if len(said) != len(expected) or not all(map(matches, expected, said)):
            answer = "; ".join(map(spoken, said)) or "nothing"
            details = [one.outcome.detail for one in found if isinstance(one.outcome, Refused)]
            raise ScriptError(f"answered: {answer} {details or ''}")

    def ask_status(self, line: Line) -> None:
        """`status QUEUE name=value`, or `status QUEUE none`."""
        status = destination_status(self.state, "queue:" + line.words[0])
        if line.words[1:] == ["none"]:
            self._equal("status", status, None)
            return
        assert status is not None, f"no queue {line.words[0]}"
        self._compare_options(line, status["settings"] | status["inherited"] | status, STATUS_NAMES)

    def ask_blocked(self, line: Line) -> None:
        """`blocked QUEUE name=value`: what waits for a quota."""
        word = line.words[0]
        told = blocked_status(self.state, word if ":" in word else "queue:" + word)
        self._compare_options(line, told, {})

    def ask_topic(self, line: Line) -> None:
        """`topic TOPIC name=value`, or `topic TOPIC none`."""
        found = topic_statuses(self.state)
        named = [one for one in found if one["name"] == line.words[0]]
        if line.words[1:] == ["none"]:
            self._equal("topic", named, [])
            return
        assert named, f"no topic {line.words[0]}"
        self._compare_options(
            line, named[0]["settings"] | named[0]["inherited"] | named[0], STATUS_NAMES
        )

    def ask_subscription(self, line: Line) -> None:
        """`subscription TOPIC NAME name=value`, `subscription TOPIC NAME none`; NAME `-`: all."""
        topic, name = line.words[:2]
        found = subscription_statuses(self.state)
        named = [one for one in found if one["topic"] == topic and name in ("-", one["name"])]
        if line.words[2:] == ["none"]:
            self._equal("subscription", named, [])
            return
        assert named, f"no subscription {name}"
        self._compare_options(line, named[0], STATUS_NAMES)

    def ask_session(self, line: Line) -> None:
        """`session [SESSION] name=value`; `credit=` is consumer 1's, `session X none`: gone."""
        name = line.words[0] if line.words else line.session
        session = self.session(name)
        if line.words[1:] == ["none"]:
            self._equal("session", session, None)
            return
        assert session is not None, f"no session {name}"
        found = session_statuses(self.state)
        status = next(one for one in found if one["session"] == session.handle)
        first = session.consumers.get(1)
        status["credit"] = first.credit if first is not None else None
        status["replies"] = len(session.replies)
        self._compare_options(line, status, {})

    def ask_uncounted(self, line: Line) -> None:
        """`uncounted QUEUE NUMBER=COUNT ...`: all messages in doubt, and their backouts that do
        not count.
        """
        doubts = self.state.queues[line.words[0]].doubts
        told = dict(one.split("=") for one in line.words[1:])
        self._equal("uncounted", doubts, {int(one): int(count) for one, count in told.items()})

    def ask_manager(self, line: Line) -> None:
        """`manager name=value`."""
        status = manager_status(self.state, "QM1", "worker")
        status["stood_still"] = self.state.time_stood_still
        self._compare_options(line, status, {})

    def ask_journal(self, line: Line) -> None:
        """`journal name=value`: what the manager's status tells of it, and of the last backup."""
        told = journal_status(self.state)
        backup = told.pop("journal_backup") or {}
        self._compare_options(line, told | backup, {"from": "journal_from"})

    def ask_browse(self, line: Line) -> None:
        """`browse QUEUE MESSAGES`; `browse QUEUE:logical,all MESSAGES` with options."""
        selector = parse_selector(selector_text(line.options.get("selector")))
        name, _, words = line.words[0].partition(":")
        asked = replace(line, words=[name, *words.split(",")] if words else [name])
        record = get_options(asked)
        options = PLAIN if record is None else Options(**record)
        found = browse(self.state.queues[name], Cursor(), 1000, selector, options)
        if self.model is not None:
            places = [(one["put_position"], one["put_index"]) for one in found[0]]
            text = selector_text(line.options.get("selector"))
            self._equal("browse", places, self.model.browse(name, text, options._asdict()))
        names = [one["message_id"].rstrip(b"\0").decode() for one in found[0]]
        self._equal("browse", names, [one for one in line.words[1:] if one != "none"])

    def ask_select(self, line: Line) -> None:
        """`select SOURCE [NUMBERS] name=value`: what an operation by hand would touch."""
        to_origin = line.options.get("to_origin") == "yes"
        selection = selection_of(line, line.words[1:])
        ask = {"kind": "SELECT_MESSAGES", "selection": selection, "to_origin": to_origin}
        told = query.answer(self.state, {**ask, "limit": 1_000}, "QM1", "worker")
        if self.model is not None and not told.reason:
            reply = self.model.chosen(dict(selection), to_origin=to_origin)[1]
            expected = {name: told.document[name] for name in reply if name != "kind"}
            self._equal("selection", {"kind": "Administered", **expected}, reply)
        names = [one["message_id"].rstrip(b"\0").decode() for one in told.messages]
        found = {"messages": ",".join(names), "refused": told.reason, **(told.document or {})}
        origins = [
            f"{one['destination']}/{one['reason']}:{one['count']}" for one in found["origins"]
        ]
        asked = {"messages", "refused", "affected", "skipped", "more", "last", "next", "origins"}
        options = {name: text for name, text in line.options.items() if name in asked}
        longer = {"last": "last_sequence", "next": "next_sequence"}
        for name, text in options.items():
            value = ",".join(origins) if name == "origins" else found[longer.get(name, name)]
            self._equal(name, _plain("", value), text)

    def ask_group(self, line: Line) -> None:
        """`group QUEUE GROUP name=value`, or `group QUEUE GROUP none`; lists without blanks."""
        queue = self.state.queues[line.words[0]]
        group = queue.groups.get(group_id(line.words[1]))
        if line.words[2:] == ["none"]:
            self._equal("group", group, None)
            return
        assert group is not None, f"no group {line.words[1]}"
        told = group_document(queue, group)
        listed = {name: str(told[name]).replace(" ", "") for name in ("missing", "clashing")}
        listed["states"] = ",".join(one["state"] for one in told["members"])
        listed["kept"] = "no" if told["holder"] is None else "yes"
        self._compare_options(line, {**told, **listed}, {})

    def ask_storage(self, line: Line) -> None:
        """`storage name=value`."""
        self._compare_options(line, storage_status(self.state, -1, 1), {})

    def ask_segments(self, line: Line) -> None:
        """`segments NUMBER:BYTES/LIVE_BYTES[*MESSAGES][=DESTINATION@SEQUENCE] ...`: all of them,
        `+` before the active one, `-` before a free one; the message is the oldest live one.
        """
        told = storage_status(self.state, -1, 1000)["segments"]
        self._equal("segments", list(map(segment_word, told)), line.words)

    def ask_deadline(self, line: Line) -> None:
        """`deadline TIME` after the start, or `deadline none`."""
        word = line.words[0]
        expected = None if word == "none" else START_US + time_us(word)
        self._equal("deadline", next_deadline(self.state), expected)

    def _compare_options(self, line: Line, found: dict[str, Any], longer: dict[str, str]) -> None:
        for name, text in line.options.items():
            value = found[longer.get(name, name)]
            self._equal(name, _plain(name, value), text)

    def _equal(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            raise ScriptError(f"{what} is {found!r}, expected {expected!r}")


def _plain(name: str, value: Any) -> str:
    if name in ("first", "last", "time", "time_reference", "since", "unit_of_work_began_at"):
        if value is None or value < 0:
            return "none"
        return f"{(value - START_US) / 1_000_000:g}s"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _stored(state: QueueManager) -> list[dict[str, Any]]:
    """The numbered messages of all queues as a checkpoint's blocks tell them."""
    return [
        {"queue": name, **message}
        for name, block in sorted(
            (
                (_store(one["queue"], one["created_position"]), one)
                for one in checks.told_blocks(state)
            ),
            key=lambda one: (one[0], one[1]["block"]),
        )
        for message in block["messages"]
    ]


def _store(name: str, created_position: int) -> str:
    """A queue by its name, a subscription by its topic and creation."""
    return f"{name}#{created_position}" if name.startswith("topic:") else name


def _numbers(session: Session) -> dict[str, Any]:
    """What decides about a session's next operations and deliveries."""
    return {
        "session": session.handle,
        "confirmed": session.confirmed,
        "deadline": session.deadline if session.deadline >= 0 else None,
        "last": session.last_sequence,
        "answered": session.answered_through,
        "replies": list(session.replies),
        "blocked": list(session.blocked),
        "waiting_commit": session.waiting_commit and session.waiting_commit.session_sequence,
        "next_delivery": session.next_delivery,
        "handed_through": session.handed_through,
        "handed_doubts": sorted(session.handed_doubts),
        "deliveries": [(number, one.sequence) for number, one in session.deliveries.items()],
        "consumers": [
            (
                one.number,
                _store(store_name(one.queue), one.queue.created_position),
                one.credit,
                one.waiting_since,
                one.open,
                one.options._asdict(),
                one.in_flight,
                one.doubt,
            )
            for one in session.consumers.values()
        ],
        "places": [
            (one.number, one.group_position, one.settled_position, one.reserved_group)
            for one in session.consumers.values()
            if one.open
        ],
    }


def _must_change_nothing(operation: Operation, found: list[Addressed]) -> bool:
    """Whether it was refused, or is an operation of a session that waits (INF-05)."""
    if not found:
        return isinstance(operation, SessionOperation)
    return all(isinstance(one.outcome, Refused) for one in found)


def _answers(refused: Refused, operation: Operation) -> bool:
    """Whether it is the reply to the operation, not to another that has waited."""
    if not isinstance(operation, SessionOperation):
        return refused.session == -1
    return _number(refused) == _number(operation)


def _refusals(
    operation: Operation, found: list[Addressed]
) -> Iterator[tuple[tuple[int, int], str]]:
    """The numbers of what was refused in reply to the operation, with the reasons."""
    for one in found:
        if isinstance(one.outcome, Refused) and _answers(one.outcome, operation):
            yield _number(one.outcome), one.outcome.reason


def _number(one: Refused | SessionOperation) -> tuple[int, int]:
    return (one.session, one.session_sequence)


class UncheckedPlayer(Player):
    """Plays a script for the log that it makes and the moves that it comes to."""

    def __init__(self) -> None:
        super().__init__(with_model=False)

    def _check(self, *_: object) -> None:
        """Tests of the scripts do that."""


def play(
    script: Script, *, with_model: bool = True, restarts: bool = False, checked: bool = True
) -> Player:
    """Plays a script to its end; ScriptError or AssertionError name the line.

    Where it is not `checked`, a line still has the outcomes that it says.
    """
    player = Player(with_model=with_model, restarts=restarts) if checked else UncheckedPlayer()
    for line in script.lines:
        try:
            player.line(line)
        except ScriptError as error:
            where = f"{script.source} «{script.title}» line {line.number}"
            raise ScriptError(f"{where}\n  {line.text}\n  {error}") from None
        except AssertionError as error:
            error.add_note(f"{script.source} line {line.number}: {line.text}")
            raise
    return player


def play_lines(*lines: str, **how: bool) -> Player:
    """Plays lines of one script, as `play` does."""
    (script,) = read_scripts("\n".join(lines))
    return play(script, **how)
