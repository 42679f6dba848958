"""Checks claimed deliveries of a queue with groups: PROTOCOL.md §13, read without the fold.

Beside what `turns` checks, a consumer in logical order gets the item at its place and nothing else,
groups that are kept for one consumer or bonded to it go to no other, and what asks for whole groups
or whole logical messages gets nothing of others. Which Puts and Gets are refused for the sake of
groups comes out of the same pass, as findings of the kind `refusal`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator

from ledgermq_spark.derivation.fifo_turns import FifoTurns
from ledgermq_spark.derivation.get_options import options_of
from ledgermq_spark.derivation.group_queue import (
    GroupConsumer,
    GroupQueue,
    Key,
    Message,
    bucket_of,
    step_place,
)
from ledgermq_spark.derivation.held_back import HeldBack
from ledgermq_spark.derivation.items import Group, Item, place_of
from ledgermq_spark.derivation.matching import matches
from ledgermq_spark.derivation.placing import agrees, put_refusal
from ledgermq_spark.derivation.step import Finding, Step


class GroupTurns(GroupQueue):
    """Takes a queue's steps in the order of the log and judges its deliveries."""

    def __init__(self, fifo: FifoTurns | None = None, held: HeldBack | None = None) -> None:
        super().__init__(held)
        self._fifo = fifo or FifoTurns()
        self._together: list[Step] = []
        # What an entry found born, the latest in front; the births of one moment are served
        # before the next ones, and no outcome tells which deliveries were between them, nor, of
        # an entry without a reply, that all of them were made before it.
        self._births: list[Step] = []

    def take(self, step: Step) -> Iterator[Finding]:
        """Takes a step; yields findings as (kind, step, detail)."""
        together = self._together
        if together and (
            step.what != "delivered" or step[:2] != (together[0].position, together[0].phase)
        ):
            yield from self.finish()
        if self._births and (
            step.position != self._births[0].position or (step.phase and step.what != "delivered")
        ):
            self._bear(all_moments=True)
        if step.what == "delivered":
            self._together.append(step)
        elif step.what == "numbered" and step.moment:
            self._births.append(step)
            self._births.sort(key=lambda one: -one.moment)
        elif step.what == "put":
            yield from self._put(step)
        elif step.what == "options":
            yield from self._ask(step)
        else:
            self._effects[step.what](step)

    def _put(self, step: Step) -> Iterator[Finding]:
        """Messages with groups are put: numbered by steps of their own, or with their unit."""
        told = json.loads(step.header or "{}")
        transacted = step.selector == "TRANSACTED"
        items = [
            Item(place=(-priority, -1), header=json.loads(header), in_unit=transacted)
            for priority, header in zip(told["priorities"], told["headers"], strict=True)
            if header is not None and '"g":' in header
        ]
        grouped = [one for one in items if "g" in one.header]
        opened = self._open.get(step.session, {}) if transacted else {}
        fresh: dict[str, Group] = {}
        reason = put_refusal(grouped, (self._groups, opened, fresh), fresh)
        if reason is not None:
            yield "refusal", step, reason
        elif transacted:
            into = self._open.setdefault(step.session, {})
            for item in grouped:
                item.member = False
                into.setdefault(item.group_id, Group()).add(item)

    def _ask(self, step: Step) -> Iterator[Finding]:
        """A Get with options: refused where they disagree with what comes next (GRP-44)."""
        consumer = self._consumer(step)
        options = options_of(step.header or "")
        place = consumer.place
        if options.logical_order and place is not None:
            item = self._at(place, options)
            if not agrees(options, place, None if item is None else self._placed(item)):
                yield "refusal", step, "match-options-invalid"
                return
        if options != consumer.options:
            consumer.options = options
            self._keep(consumer)

    def finish(self) -> Iterator[Finding]:
        """Judges the deliveries taken together last, whoever's turn it is first."""
        together, self._together = self._together, []
        claims: dict[Key, deque[Step]] = {}
        for step in sorted(together, key=lambda one: (one.index, one.offset)):
            self._consumer(step).selector = step.selector
            claims.setdefault((step.session, step.consumer), deque()).append(step)
        while claims:
            key = self._next(claims)
            yield from self._deliver(self._consumers[key], claims[key])
            if not claims[key]:
                del claims[key]

    def _bear(self, *, all_moments: bool = False) -> None:
        """Makes available what was born at the next moment, or at all."""
        moment = self._births[-1].moment
        while self._births and (all_moments or self._births[-1].moment == moment):
            self._come(self._births.pop())

    def _next(self, claims: dict[Key, deque[Step]]) -> Key:
        """Who is given a message first: where it may be given, and comes first of these."""
        if len(claims) == 1 and not self._births:
            return next(iter(claims))
        while True:
            found = []
            for key, steps in claims.items():
                message = steps[0].message
                head = self._head(self._consumers[key])
                right = head is not None and self._items.get(message) is head
                found.append((not right, step_place(steps[0]), key))
            wrong, _, key = min(found)
            if not wrong or not self._births:
                return key
            self._bear()

    def _deliver(self, consumer: GroupConsumer, steps: deque[Step]) -> Iterator[Finding]:
        """The next delivery of a consumer: one message, or all segments of one got complete."""
        step = steps.popleft()
        message = step.message
        item = self._items.get(message)
        if message in self._held:
            yield "duplicated", step, f"session {self._held[message]} holds it"
            return
        if item is None or not item.here:
            yield "unavailable", step, "the operations had not made it available"
            return
        head = self._head(consumer)
        if head is not item and not self._fifo.goes_first(message):
            yield self._wrong(consumer, step, message, head)
        holds = self._holds.get(step.session, 0) + 1
        if self._limit and holds > self._limit:
            yield (
                "unexpected",
                step,
                f"its session holds {holds}, at most {self._limit} are allowed",
            )
        unit = [item]
        if consumer.options.complete_message and item.segment and item.member and not item.offset:
            unit = self._groups[item.group_id].whole_message(item) or unit
        bucket = bucket_of(item)
        if self._bonds is not None and bucket is not None:
            self._bonds.setdefault(bucket, consumer)
            self._changed(str(bucket))
        self._give(consumer, message, item, step.session)
        for expected in unit[1:]:
            following = steps[0].message if steps else None
            if following is None or self._items.get(following) is not expected:
                detail = "of its logical message, got complete, only a part was delivered"
                yield "unexpected", step, detail
                return
            steps.popleft()
            self._give(consumer, following, expected, step.session)

    def _give(self, consumer: GroupConsumer, message: Message, item: Item, session: int) -> None:
        self._held[message] = session
        self._holds[session] = self._holds.get(session, 0) + 1
        self._set_here(item, False)
        self._follow(consumer, place_of(item))

    def _wrong(
        self, consumer: GroupConsumer, step: Step, message: Message, head: Item | None
    ) -> Finding:
        """Why a message that is available was not to be given to a consumer."""
        options, place, item = consumer.options, consumer.place, self._items[message]
        if options.logical_order and place is not None:
            detail = (
                f"logical order brings message {place[1]} at offset {place[2]} of group "
                f"{place[0]} next, and nothing else before it"
            )
            return "reordered", step, detail
        keeper = self._kept.get(item.group_id)
        if keeper is not None:
            of = f"consumer {keeper.key[1]} of session {keeper.key[0]}"
            return "unexpected", step, f"group {item.group_id} is kept for {of}"
        bonded = self._bonded(item)
        if bonded not in (None, consumer):
            of = f"consumer {bonded.key[1]} of session {bonded.key[0]}"
            return "unexpected", step, f"by group affinity its group is bonded to {of}"
        if consumer.selector and not matches(consumer.selector, self._selected[message]):
            detail = f"the consumer's selector does not match it: {consumer.selector}"
            return "unexpected", step, detail
        if options.logical_order and (item.number != 1 or item.offset):
            detail = "logical order enters a group with its first item, and this is not the first"
            return "reordered", step, detail
        if not self._wants("", options, message, item):
            return "unexpected", step, "the consumer's options do not ask for it"
        if self._waits(options, None, item) is not None:
            whole = "group" if options.all_messages_available else "logical message"
            return "unexpected", step, f"not all of its {whole} is available, as its consumer asks"
        if head is None:
            return "reordered", step, "nothing was to be given to its consumer"
        passed = next(one for one, known in self._items.items() if known is head)
        # Told once for the message that was passed over.
        self._told.add(passed)
        detail = (
            f"message {head.place[1]} of priority {-head.place[0]}, put at {passed[0]}:{passed[1]},"
            f" was available and comes before message {step.sequence}"
        )
        return "reordered", step, detail
