"""One pass over what happens to a store: each delivery is held against what is due (law F).

The events of an entry are taken together. Moves stand in their own order; what becomes of consumers
and settings is put between them by the outcomes: what an outcome comes behind has happened before
it. Deliveries that nothing stands between are made at once: they are what is due one after the
other, but the moves have them consumer by consumer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, takewhile
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from ledgermq.protocol.reasons import Reason
from ledgermq.selector import parse_selector
from ledgermq_spark.laws.order.event import Event, Run
from ledgermq_spark.laws.order.store import PROTECTED, Due, Settings, Store
from ledgermq_spark.laws.order.store_groups import GroupPuts, ParkedGroups
from ledgermq_spark.laws.order.store_records import IN_FLIGHT, Consumer, Message
from ledgermq_spark.laws.refusals.text_checks import groups_are_wrong

# A store in which nothing is as it is due is not told of any further.
FINDINGS_MAX = 20
# Session and number of a consumer; sequence numbers and deliveries of what each was given.
Who: TypeAlias = tuple[int, int]
Shares: TypeAlias = dict[Who, tuple[list[int], list[int]]]
DISPLACED = "displaced"
OF_GROUPS = (Reason.GROUP_CLASH, Reason.UNIT_OF_WORK_INCONSISTENT)


class Finding(NamedTuple):
    """Something that is not as it is due."""

    kind: str
    summary: str
    expected: str
    found: str
    sequence: int = -1
    session: int = -1
    position: int = -1


class StorePass:
    """What is known of a store."""

    def __init__(self) -> None:
        self.store = Store()
        self.parked = ParkedGroups()
        self.group_puts = GroupPuts()
        self._count = 0
        # What is stated of it contradicted itself: nothing more is judged.
        self.is_lost = False
        # What was displaced and is to be judged yet; the settings of this entry.
        self._displaced: list[Message] = []
        self._settings: list[Settings] = []

    def judge(self, entry: list[Run]) -> Iterator[Finding]:
        """Judges what happens through one entry."""
        for finding in self._judge(entry):
            self._count += 1
            if self._count <= FINDINGS_MAX:
                yield finding._replace(position=entry[0].position)

    def _judge(self, entry: list[Run]) -> Iterator[Finding]:
        moves = [one for one in entry if one.is_move]
        beside = [one for run in entry if not run.is_move for one in run.events]
        others = [one for one in beside if one.what != "refused put"]
        others.sort(key=lambda one: (one.behind_index, one.consumer))
        set_anew = [_settings(one) for one in others if one.what == "settings"]
        self._settings = [self.store.settings, *set_anew]
        if self.store.settings.fifo_mode == PROTECTED:
            yield from self._settled(moves)
        grouped: dict[int, list[Event]] = {}
        for one in chain.from_iterable(run.puts_in_groups for run in moves):
            grouped.setdefault(one.number, []).append(one)
        # What waited and came later in the entry may be what it did not contradict.
        refused = [one for one in beside if one.what == "refused put" and not grouped]
        given: list[Run] = []
        for move in moves:
            is_delivery = move.what in IN_FLIGHT
            is_next = others and others[0].behind_index < move.behind_index
            if given and (not is_delivery or is_next):
                yield from self._deliver(given)
                given = []
            if is_delivery:
                while others and others[0].behind_index < move.behind_index:
                    yield from self._change(others.pop(0))
                given.append(move)
            elif move.cause == DISPLACED:
                yield from self._displace(move, has_others=bool(others))
            else:
                yield from self._move(move, grouped)
        if given:
            yield from self._deliver(given)
        for other in others:
            yield from self._change(other)
        if refused:
            yield from self._refused_of_groups(refused)
        yield from self._deliver([])
        yield from self._too_many()
        for message in self.parked.take_left():
            yield Finding(
                kind="lost",
                sequence=message.sequence,
                summary="a message of a parked group did not follow to the error destination (§15)",
                expected="moved",
                found=message.state,
            )

    def _displace(self, run: Run, *, has_others: bool) -> Iterator[Finding]:
        """Newer messages take the place of others, once there is nothing to deliver (§23).

        What else happens in the entry may come before that or after it: only the store says which.
        """
        if not self._displaced and not has_others:
            yield from self._deliver([])
        for sequence in run.each("sequence"):
            message = self.store.messages[sequence]
            self.store.remove(message, consumed=False)
            self._displaced.append(message)

    def _judge_displaced(self) -> Iterator[Finding]:
        """Whether those went that have a newer one of their value, and the oldest of the others, as
        many as were too many.
        """
        displaced, self._displaced = self._displaced, []
        keys = {one.last_value_key for one in self._settings} - {""}
        oldest = [
            one for one in displaced if not any(self.store.has_newer(one, key) for key in keys)
        ]
        most = {one.available_max for one in self._settings} - {0}
        through = max((one.sequence for one in oldest), default=-1)
        if oldest and (self.store.available not in most or self.store.oldest < through):
            yield Finding(
                kind="lost",
                sequence=through,
                summary="other messages were displaced than newer ones took the place of (§23)",
                expected=f"the newest kept, {' or '.join(map(str, sorted(most))) or 'all'}",
                found=f"{self.store.available} kept, the oldest with number {self.store.oldest}",
            )

    def _too_many(self) -> Iterator[Finding]:
        """What is available beyond what is kept."""
        most, crowded = self.store.settings.available_max, self.store.crowded
        if crowded or 0 < most < self.store.available:
            yield Finding(
                kind="unexpected",
                sequence=crowded[0].sequence if crowded else self.store.oldest,
                summary="older messages were not displaced by newer ones (§23)",
                expected="the newest of each value" if crowded else f"{most} available",
                found=f"{self.store.available} available",
            )

    def _settled(self, moves: list[Run]) -> Iterator[Finding]:
        """What was settled before its turn (§18)."""
        consumed = [one for run in moves if run.cause == "consumed" for one in run.each("sequence")]
        known = [self.store.messages[one] for one in consumed if one in self.store.messages]
        # What left for good before, as the entry began, gave up its turn.
        before = takewhile(lambda run: run.cause != "consumed", moves)
        left = {one for run in before if run.what == "gone" for one in run.each("sequence")}
        found = self.store.out_of_turn(known, left) if known else None
        if found is not None:
            late, first = found
            yield Finding(
                kind="reordered",
                sequence=late.sequence,
                summary="a message was settled before another one that comes first (§18)",
                expected=f"message {first.sequence}",
                found=f"message {late.sequence}",
            )

    def _put_in_groups(self, events: list[Event]) -> Iterator[Finding]:
        """Holds a Put against the groups that it is for, before any of it is there (§13)."""
        # Those that are not born yet may stand behind others.
        events.sort(key=attrgetter("sequence", "step"))
        messages = [one.as_message for one in events]
        session = events[0].session
        for message, reason in self.group_puts.reasons(session, messages, self.store.group):
            yield Finding(
                kind="unexpected",
                sequence=message.sequence,
                session=session,
                summary="a message was put that its group does not admit (§13)",
                expected=f"refused {reason}",
                found="put",
            )
        self.group_puts.open(session, messages)

    def _refused_of_groups(self, events: list[Event]) -> Iterator[Finding]:
        """Holds a Put that was refused against the groups that it was for."""
        events.sort(key=lambda one: one.number)
        right = list(takewhile(lambda one: not groups_are_wrong([one.text]), events))
        session, messages = events[0].session, [one.as_message for one in right]
        reasons = self.group_puts.reasons(session, messages, self.store.group)
        _, due = next(reasons, (None, Reason.GROUP_INVALID if len(right) < len(events) else None))
        told = events[0].cause
        if due != told and (due is not None or told in OF_GROUPS):
            yield Finding(
                kind="unexpected",
                session=session,
                summary="a Put into groups was refused for another reason than what is there (§13)",
                expected="not refused for its groups" if due is None else f"refused {due}",
                found=f"refused {told}",
            )

    def _move(self, run: Run, grouped: dict[int, list[Event]]) -> Iterator[Finding]:
        """Messages go anywhere but into flight; `grouped` are Puts that were not judged yet."""
        yield from self._judge_displaced()
        if run.before == "uncommitted put":
            self.group_puts.end_unit(run.session)
        store, messages = self.store, self.store.messages
        told = zip(run.each("sequence"), run.each("flag"), strict=True)
        brought: list[Message] = []
        for at, (sequence, flag) in enumerate(told):
            message = messages.get(sequence)
            if message is None:
                if grouped and run.is_put:
                    event = run.events[at]
                    if event.number in grouped and event.is_in_group:
                        yield from self._put_in_groups(grouped.pop(event.number))
                if sequence >= 0 and run.before not in ("new", "uncommitted put"):
                    raise LookupError(f"message {sequence} moves, which is not there")
                if sequence >= 0 and run.what != "gone":
                    brought = brought or run.messages()
                    self._come(run, brought[at])
            elif run.what == "gone":
                store.remove(message, consumed=run.cause == "consumed")
                if run.cause == "moved" and flag and self._does_park():
                    self.parked.park(message, messages.values())
            else:
                # What a lost session held is in doubt until it leaves the store (H20).
                message.is_in_doubt |= bool(flag) and run.before in IN_FLIGHT
                store.move(message, run.what)
                self.parked.look_at(message)

    def _come(self, run: Run, message: Message) -> None:
        """A message is numbered."""
        self.store.add(message)
        self.store.move(message, run.what)
        if run.before == "new" and run.session < 0:
            self.parked.unpark(message)
        self.parked.look_at(message)

    def _does_park(self) -> bool:
        settings = self.store.settings
        return settings.keeps_group_order and settings.error_destination != ""

    def _change(self, event: Event) -> Iterator[Finding]:
        """Something becomes of a consumer or of the settings."""
        store = self.store
        if event.what == "settings":
            store.set(_settings(event))
            if not self._does_park():
                self.parked.unpark_all()
            return
        if event.what == "opened":
            consumer = event.as_consumer(parse_selector(event.text))
            consumer.is_work_ended = event.number > 0
            store.open(consumer)
            return
        known = store.consumers.get((event.session, event.consumer))
        if known is not None:
            if event.what in ("Get", "refused Get"):
                yield from self._match_options(known, event)
            self._change_consumer(known, event)

    def _match_options(self, consumer: Consumer, event: Event) -> Iterator[Finding]:
        """What a Get asks for that contradicts the place of its consumer (§13)."""
        options = event.as_options
        disagrees = options is not None and self.store.disagrees(consumer, options)
        answers = ("accepted", f"refused {Reason.MATCH_OPTIONS_INVALID}")
        was_refused = event.what == "refused Get"
        if disagrees != was_refused:
            yield Finding(
                kind="unexpected",
                session=consumer.session,
                summary="a Get asked for another item than the one that logical order brings next"
                if disagrees
                else "a Get was refused that asked for what logical order brings next",
                expected=answers[disagrees],
                found=answers[was_refused],
            )

    def _change_consumer(self, consumer: Consumer, event: Event) -> None:
        store, number = self.store, event.number
        match event.what:
            case "closed":
                store.close(consumer)
            case "Get":
                store.get(consumer, number, event.as_options)
            case "Rollback" | "Recover" | "forced rollback":
                consumer.credit = 0
                consumer.is_work_ended = event.what == "forced rollback"
                store.go_to(consumer, consumer.settled_position)
            case "Reject" if consumer.options.logical_order and not number:
                consumer.settle_place()
            case "GiveBack" | "Reject":
                last = consumer.held.get(max(consumer.held, default=0))
                settled = consumer.settled_position
                store.go_to(consumer, last.position_after() if last else settled)
            case "suspected":
                consumer.is_suspected = True
            case "trusted":
                consumer.is_suspected = False
            case "handed":
                if consumer.doubt <= number:
                    consumer.doubt = 0
            case "handing":
                if number in consumer.held and consumer.doubt <= number:
                    consumer.doubt = 0

    def _deliver(self, given: list[Run]) -> Iterator[Finding]:
        """Holds deliveries against those that are due, until nothing is."""
        yield from self._judge_displaced()
        store = self.store
        shares: Shares = {}
        for run in given:
            sequences, numbers = shares.setdefault((run.session, run.consumer), ([], []))
            sequences += run.each("sequence")
            numbers += run.each("number")
        left = sum(len(sequences) for sequences, _ in shares.values())
        while (due := store.next(max(left, 1))) is not None:
            consumer = due.consumer
            sequences, numbers = shares.get((consumer.session, consumer.number), ([], []))
            same = _same(due.messages, sequences)
            if same < len(due.messages) and not (due.is_run and same):
                yield self._other_than_due(due, shares)
                store.leave(due.messages)
                break
            store.give(due, numbers[:same])
            del sequences[:same], numbers[:same]
            left -= same
        else:
            if left:
                yield self._not_due(*_first(shares), "nothing")
        for who, share in shares.items():
            for one in zip(*share, strict=True):
                self._give(who, *one)

    def _give(self, who: Who, sequence: int, number: int) -> None:
        """Follows a delivery that was not due."""
        message = self.store.messages.get(sequence)
        consumer = self.store.consumers.get(who)
        if message is None or message.state in IN_FLIGHT:
            return
        if consumer is None:
            session, consumer_number = who
            consumer = Consumer(session=session, number=consumer_number, selector=None)
            consumer.is_open = False
        self.store.give(Due(consumer, [message]), [number])
        consumer.credit = max(consumer.credit, 0)

    def _other_than_due(self, due: Due, shares: Shares) -> Finding:
        """Why what is due was not what was done."""
        consumer, first = due.consumer, due.messages[0]
        expected = f"message {first.sequence} to {consumer}"
        who = (consumer.session, consumer.number)
        mine, _ = shares.get(who, ([], []))
        if mine:
            return self._not_due(who, mine[0], expected)
        for other, (sequences, _) in shares.items():
            if first.sequence in sequences:
                return self._not_due(other, first.sequence, expected)
        if any(sequences for sequences, _ in shares.values()):
            return self._not_due(*_first(shares), expected)
        return Finding(
            kind="lost",
            sequence=first.sequence,
            session=consumer.session,
            summary="a consumer with credit was left beside a message that it may have",
            expected=expected,
            found="nothing",
        )

    def _not_due(self, who: Who, sequence: int, expected: str) -> Finding:
        """A delivery that is not what is due: not permitted, or before another one."""
        message = self.store.messages.get(sequence)
        why = self.store.why_not(self.store.consumers.get(who), message)
        session, consumer = who
        return Finding(
            kind="unexpected" if why else "reordered",
            sequence=sequence,
            session=session,
            summary=f"a message was delivered that was not due: {why or 'another one comes first'}",
            expected=expected,
            found=f"message {sequence} to consumer {consumer} of session {session}",
        )


def _settings(event: Event) -> Settings:
    return Settings(**json.loads(event.text or "{}"))


def _same(due: list[Message], given: list[int]) -> int:
    """How many messages from the first on were given as they are due."""
    same = 0
    for message, sequence in zip(due, given, strict=False):
        if message.sequence != sequence:
            break
        same += 1
    return same


def _first(shares: Shares) -> tuple[Who, int]:
    """The first delivery that there is."""
    return next((who, sequences[0]) for who, (sequences, _) in shares.items() if sequences)
