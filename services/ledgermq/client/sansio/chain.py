"""The chain of a connection's outcomes: drops what was seen, notices holes (PROTOCOL.md §7, H2).

The reader holds the identity of the last outcome that it accepted. A chunk that does not follow it
is set aside and the shell asks `RESYNC`; the answer says what is in flight, which replies are kept,
and where the chain goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledgermq.protocol.outcomes import Outcome

HeldChunk = tuple[int, int, list[Outcome]]
NOT_CHAINED = -2
NOTHING: tuple[int, int] = (-1, -1)


class Chain:
    """How far a connection has come in the chain of its outcomes.

    Attributes:
        last: (position, index) of the last outcome accepted, (-1, -1) before the first.
        hole: Whether a chunk is missing and the answer to RESYNC is awaited.
        wanted: Highest position set aside since the hole opened; the answer must reach it.
        restarts: How often the chain began anew; all sessions of the older chain have ended then.
    """

    def __init__(self) -> None:
        self.last = NOTHING
        self.hole = False
        self.wanted = -1
        self.restarts = 0
        self._aside: list[HeldChunk] = []

    def accept(
        self, previous_position: int, previous_index: int, outcomes: list[Outcome]
    ) -> Sequence[Outcome]:
        """The outcomes of a chunk that are new and follow; opens a hole if others are missing."""
        if previous_index == NOT_CHAINED:
            return outcomes
        if not outcomes:
            return ()
        previous = (previous_position, previous_index)
        if previous == self.last and not self.hole:
            self.last = (outcomes[-1].position, outcomes[-1].index)
            return outcomes
        end = (outcomes[-1].position, outcomes[-1].index)
        if end <= self.last:
            return ()
        if previous == NOTHING and (outcomes[0].position, outcomes[0].index) > self.last:
            self._begin_anew(end)
            return outcomes
        if not self.hole:
            for place, outcome in enumerate(outcomes):
                if previous == self.last:
                    self.last = end
                    return outcomes[place:]
                previous = (outcome.position, outcome.index)
        self.hole = True
        self.wanted = max(self.wanted, end[0])
        self._aside.append((previous_position, previous_index, outcomes))
        return ()

    def _begin_anew(self, end: tuple[int, int]) -> None:
        """The queue manager forgot the connection with its last session, and met it again."""
        self.last = end
        self.hole = False
        self.wanted = -1
        self.restarts += 1
        self._aside.clear()

    def resume(self, last_position: int, last_index: int) -> list[HeldChunk]:
        """Goes on after the answer to RESYNC; returns the chunks set aside, to be read again."""
        self.last = max(self.last, (last_position, last_index))
        self.hole = False
        self.wanted = -1
        aside, self._aside = self._aside, []
        return aside
