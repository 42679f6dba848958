"""Checks in which order a queue or subscription was got and settled: PROTOCOL.md §18, unfolded.

Where the FIFO mode is not CONCURRENT, a message is received when it is delivered for the first time
until it leaves. PROTECTED: what is settled while others that were received before and come before
are not is refused, `out-of-turn`; that comes out as a finding of the kind `refusal`. SERIALIZED:
one message is out at a time, and what came back is first.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator

from ledgermq_spark.derivation.step import Finding, MessageKey, Step

OUT_OF_TURN = "out-of-turn"
# Steps that nobody else asks for: the mode is another one, a refused operation names a message.
FIFO_STEPS = ("mode", "asked")
# Steps after which a message is in flight no longer: it is there, or will be after its delay.
BACK = ("returned", "delayed")
CONCURRENT, PROTECTED, SERIALIZED = "CONCURRENT", "PROTECTED", "SERIALIZED"
SETTLED = ("acknowledged", "committed")

Place = tuple[int, int]


class FifoTurns:
    """What was received of one queue or subscription, in order, as steps deliver and settle it."""

    def __init__(self) -> None:
        self._mode = CONCURRENT
        self._held: dict[MessageKey, Step] = {}
        self._received: dict[MessageKey, Place] = {}
        # Of messages with a group: which logical message they are a segment of, and the moment of
        # birth of those that the entry found due.
        self._logical: dict[MessageKey, tuple[str, int]] = {}
        self._born: dict[MessageKey, tuple[int, int]] = {}
        self._together: list[Step] = []
        # What one operation names to settle, applied or refused.
        self._named: dict[MessageKey, Step] = {}

    def goes_first(self, message: MessageKey) -> bool:
        """Whether a message came back to where one is delivered at a time: others wait."""
        return self._mode == SERIALIZED and message in self._received

    def take(self, step: Step) -> Iterator[Finding]:
        """Takes a step; yields findings as (kind, step, detail)."""
        yield from self._settled_before(step)
        together = self._together
        if together and (step.what != "delivered" or step[:2] != together[0][:2]):
            yield from self._deliver_together()
        if step.what == "delivered":
            self._together.append(step)
        elif step.what == "mode":
            self._set_mode(step.selector)
        elif step.what == "numbered":
            self._note(step)
        elif step.what in BACK:
            self._held.pop(step.message, None)
        elif step.what == "asked" or (step.what == "gone" and step.selector in SETTLED):
            self._named[step.message] = step
        elif step.what == "gone":
            self._leave(step.message)

    def finish(self) -> Iterator[Finding]:
        """Judges what came last."""
        yield from self._settled_before(None)
        yield from self._deliver_together()

    def _note(self, step: Step) -> None:
        if step.moment:
            self._born[step.message] = (step.position, step.moment)
        place = json.loads(step.header).get("g") if step.header else None
        if place is not None and "s" in place["f"]:
            self._logical[step.message] = (place["i"], place["n"])

    def _leave(self, message: MessageKey) -> None:
        for known in (self._held, self._received, self._logical, self._born):
            known.pop(message, None)

    def _set_mode(self, mode: str) -> None:
        if mode == CONCURRENT:
            self._received = {}
        elif self._mode == CONCURRENT:
            held = sorted((_place(step), message) for message, step in self._held.items())
            self._received = {message: place for place, message in held}
        self._mode = mode

    def _settled_before(self, step: Step | None) -> Iterator[Finding]:
        """Judges what an operation named to settle, when that was all of it."""
        if not self._named:
            return
        named = self._named
        first = next(iter(named.values()))
        if step is not None and step[:2] == first[:2]:
            return
        self._named = {}
        wrong = self._out_of_turn(named) if self._mode == PROTECTED else None
        if wrong is not None:
            yield "refusal", wrong, OUT_OF_TURN
        for message, one in named.items():
            if one.what == "gone":
                self._leave(message)

    def _out_of_turn(self, named: dict[MessageKey, Step]) -> Step | None:
        """One of the messages named that another one, not named, is before."""
        before: Place | None = None
        left = len(named)
        for message, place in self._received.items():
            if message not in named:
                before = place if before is None else min(before, place)
                continue
            if before is not None and before < place:
                return named[message]
            left -= 1
            if not left:
                break
        return None

    def _deliver_together(self) -> Iterator[Finding]:
        """What one entry delivers, in the order in which it was given to the consumers."""
        together, self._together = self._together, []
        claims: dict[tuple[int, int], deque[Step]] = {}
        for step in sorted(together, key=lambda one: (one.index, one.offset)):
            claims.setdefault((step.session, step.consumer), deque()).append(step)
        while claims:
            key = min(claims, key=lambda one: self._turn(claims[one][0]))
            step = claims[key].popleft()
            if not claims[key]:
                del claims[key]
            if self._mode == SERIALIZED:
                yield from self._alone(step)
            if self._mode != CONCURRENT:
                self._received.setdefault(step.message, _place(step))
            self._held[step.message] = step

    def _turn(self, step: Step) -> tuple[int, Place]:
        """What is born at a later moment of one entry is given later."""
        position, moment = self._born.get(step.message, (-1, 0))
        return (moment if position == step.position else 0, _place(step))

    def _alone(self, step: Step) -> Iterator[Finding]:
        """One message is out at a time, or the segments of one; what came back is first."""
        logical = self._logical.get(step.message)
        others = [one for message, one in self._held.items() if message != step.message]
        if logical is not None and any(
            self._logical.get(one.message) == logical and one[:3] == step[:3] for one in others
        ):
            return
        if others:
            detail = f"message {others[0].sequence} is in flight, and one is delivered at a time"
            yield "unexpected", step, detail
        elif self._received:
            first = min(self._received, key=lambda one: self._received[one])
            if first != step.message:
                number = self._received[first][1]
                detail = f"message {number} was received before and came back: it is first"
                yield "reordered", step, detail


def _place(step: Step) -> Place:
    return (-step.priority, step.sequence)
