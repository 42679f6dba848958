"""What a listener gets of messages that moved together, as one move of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ledgermq.core.entry import Listener, Moves


class Move(NamedTuple):
    """One move of one message; the fields are those of `Moves`."""

    position: int
    step: int
    store: int
    is_topic: bool
    before: str
    after: str
    cause: str
    session: int
    consumer: int
    sequence: int
    put_position: int
    put_index: int
    delivery: int
    until: int
    backouts: int
    uncounted: int
    segment: int
    body_position: int
    body_index: int


def for_each(take: Callable[[Move], object]) -> Listener:
    """A listener that gives them on one by one, in order."""

    def hear(moves: Moves) -> None:
        position, first_step, *of_all = moves[:9]
        for step, of_one in enumerate(zip(*moves[9:], strict=True), first_step):
            take(Move(position, step, *of_all, *of_one))

    return hear
