"""Feeds the audit's checks of order with what sessions of a log did, place by place, without Spark.

Deliveries are what outcomes claim and settlements what the scans of sessions make of operations;
only which numbers messages were given is taken from the fold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from ledgermq.core.delivery import transfer
from ledgermq.core.puts import putting
from ledgermq.core.sessions import sessions
from ledgermq.protocol.outcomes import Delivered, Refused, SessionEnded
from ledgermq.wire.framing.codec import decode_operation
from ledgermq_spark.derivation.destinations import store_of
from ledgermq_spark.derivation.directory import Subscription
from ledgermq_spark.derivation.fifo_turns import FIFO_STEPS, OUT_OF_TURN, FifoTurns
from ledgermq_spark.derivation.group_steps import GROUP_REASONS, MATCH_REASON
from ledgermq_spark.derivation.step import Finding, Step
from ledgermq_spark.derivation.turns import QueueTurns
from ledgermq_spark.log.headers import header_text
from support.audits.conduct_feed import Scans
from support.brokers.log_writer import Script

CONSUMED = {"Acknowledge": "acknowledged", "Commit": "committed"}


class NumberedScript(Script):
    """A log that notes which numbers messages were given."""

    def __init__(self, random: Any, monkeypatch: Any) -> None:
        super().__init__(random=random)
        self.numbered: list[tuple[str, Step]] = []
        for module in (putting, sessions, transfer):
            monkeypatch.setattr(module, "enqueue", self._noting(module.enqueue))

    def _noting(self, enqueue: Callable[..., int]) -> Callable[..., int]:
        def noting(entry: Any, queue: Any, messages: Any, *rest: Any) -> int:
            first, state = enqueue(entry, queue, messages, *rest), entry.state
            if state is self.state:
                for number, one in enumerate(messages, first):
                    identity = (one.put_position, one.put_index, one.message_id)
                    place = (len(self.entries) - 1, 1, 0, number, "numbered")
                    born_at = 0 if one.times is None else one.times.deliver_at
                    moment = born_at if born_at > state.time else 0
                    step = Step(*place, *identity, one.priority, number, -1, moment=moment)
                    put: Any = decode_operation(self.entries[one.put_position].value)
                    header = header_text(put.messages[one.put_index].get("header"))
                    step = step._replace(header=header)
                    self.numbered.append((store_of(queue.destination), step))
            return first

        return noting


def judged(script: NumberedScript) -> tuple[Scans, list[Finding]]:
    """The scans that agree with the refusals that order calls for, and what else order shows.

    What is refused for the sake of groups is believed, and who got what of them is not looked at.
    """
    believed = dict(_refused_for_groups(script))
    refusals = believed
    while True:
        scans = Scans(script, refusals)
        found = list(_findings(script, scans))
        told = {step.position: why for kind, step, why in found if kind == "refusal"} | believed
        if told == refusals:
            return scans, [one for one in found if one[0] != "refusal"]
        refusals = told


def _refused_for_groups(script: Script) -> Iterator[tuple[int, str]]:
    for found in script.outcomes:
        for one in (known.outcome for known in found):
            if isinstance(one, Refused) and one.reason in (*GROUP_REASONS, MATCH_REASON):
                yield one.position, one.reason


def _findings(script: NumberedScript, scans: Scans) -> Iterator[Finding]:
    by_queue: dict[str, list[Step]] = defaultdict(list)
    for queue, step in script.numbered:
        by_queue[queue].extend(_born(step, scans.times))
    delivered = dict(_deliveries(script, scans))
    for queue, step in delivered.values():
        by_queue[queue].append(step)
    for queue, step in _settled(script, scans, delivered):
        by_queue[queue].append(step)
    scans.directory.subscriptions.extend(_subscriptions(script))
    for queue, _, _, position, mode in scans.directory.fifo_modes():
        place = (position, 1, 0, 0, "mode", -1, -1, None, -1, -1, -1)
        by_queue[queue].append(Step(*place, selector=mode))
    for steps in by_queue.values():
        fifo = FifoTurns()
        turns = QueueTurns(fifo)
        grouped = any('"g":' in (step.header or "") for step in steps)
        for step in sorted(steps, key=lambda one: one[:4]):
            if not grouped:
                yield from turns.finish() if step.what in FIFO_STEPS else turns.take(step)
            yield from fifo.take(step)
        yield from turns.finish()
        yield from fifo.finish()


def _subscriptions(script: Script) -> Iterator[Subscription]:
    """Those that stand at last, one of each topic, from the beginning."""
    for one in script.state.subscriptions.values():
        topic = ("topic:" + one.topic.name, one.topic.created_position)
        yield Subscription(one.created_position, *topic, "durable", "s", "", True, "", False)


def _born(step: Step, times: list[int]) -> Iterator[Step]:
    """Where a message was there to be delivered: at its number, or where its birth was due."""
    position = step.position
    if step.moment:
        position = bisect_left(times, step.moment)
        step = step._replace(position=position, phase=0, index=-1)
    if position < len(times):
        yield step


def _deliveries(script: Script, scans: Scans) -> Iterator[tuple[tuple[int, int], tuple[str, Step]]]:
    phases = {(one["position"], one["index"]): phase for one, phase in scans.claims()}
    for position, found in enumerate(script.outcomes):
        for one in (known.outcome for known in found):
            if not isinstance(one, Delivered):
                continue
            for offset, told in enumerate(one.messages):
                identity = (told["put_position"], told["put_index"], told["message_id"])
                phase = phases[position, one.index]
                place = (position, phase, one.index, offset, "delivered")
                step = Step(
                    *(*place, *identity, told["priority"], told["sequence"], one.session),
                    consumer=one.consumer,
                )
                key = (one.session, one.first_delivery + offset)
                yield key, (store_of(one.destination), step)


def _settled(
    script: Script, scans: Scans, delivered: dict[tuple[int, int], tuple[str, Step]]
) -> Iterator[tuple[str, Step]]:
    ended = {
        (one.outcome.position, one.outcome.session): one.outcome.index
        for found in script.outcomes
        for one in found
        if isinstance(one.outcome, SessionEnded) and not one.outcome.session_sequence
    }
    for act in scans.acts:
        if act.what == "settled":
            how = CONSUMED.get(act.kind or "", "returned")
            what = "returned" if how == "returned" else "gone"
            index = ended.get((act.position, act.session), 0)
            numbers = range(act.first, act.last + 1)
        elif act.what == "act" and act.reason == OUT_OF_TURN:
            operation: Any = decode_operation(script.entries[act.position].value)
            what, how, index = "asked", "", 0
            numbers = [
                number
                for one in operation.deliveries
                for number in range(one["first"], one["last"] + 1)
            ]
        else:
            continue
        for number in numbers:
            queue, step = delivered[act.session, number]
            place = {"position": act.position, "phase": 1, "index": index, "offset": number}
            yield queue, step._replace(**place, what=what, selector=how)
