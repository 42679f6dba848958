"""Whether random histories come to what can happen: drawn until they did, or too many did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from hypothesis.strategies import SearchStrategy

from support.generators.generators import Entry
from support.planted.planted_faults import drawn


def expect_to_happen(
    histories: SearchStrategy[list[Entry]],
    note: Callable[[list[Entry], Counter[str]], None],
    wanted: Iterable[str],
    *,
    times: int,
    rounds: int,
) -> None:
    """Each of what is wanted must be noted so many times in so many rounds of 25 histories."""
    seen: Counter[str] = Counter()
    draw = drawn(histories)
    for number in range(rounds):
        for history in draw(number):
            note(history, seen)
        missing = [name for name in wanted if seen[name] < times]
        if not missing:
            return
    pytest.fail(f"{missing} hardly happened: {seen}")
