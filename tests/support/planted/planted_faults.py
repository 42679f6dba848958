"""Plants one fault in the fold and sees to it that a check finds it.

A fault that no longer fits what it replaces (another signature, another kind of thing) proves
nothing: whatever it raises by itself would pass for a find. So only an AssertionError counts as
found, and none does once the fault itself has failed, be it at its call or in its own lines.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from itertools import starmap
from types import CodeType, TracebackType
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from support.checks.checked_histories import FOLD, check_history
from support.generators.generators import Entry

# The first tenth of what is drawn for one test is kept small, and shows little: short rounds soon
# come to more.
ROUNDS, ROUND_EXAMPLES = 40, 25


class Fault(NamedTuple):
    """A fault in the fold.

    Attributes:
        place: What has the thing that is replaced.
        name: The name of that thing.
        make: Makes the faulty thing of the right one.
        seed: Of the round of random histories that is the first to show it.
    """

    place: Any
    name: str
    make: Callable[[Any], Any]
    seed: int = 0


def named(faults: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The faults as parameters of a test, named after what they replace and how."""
    return [
        pytest.param(fault, id=f"{fault.name}{fault.make.__name__}")
        for fault in starmap(Fault, faults)
    ]


def expect_found_by(
    monkeypatch: pytest.MonkeyPatch, planted: Fault, histories: SearchStrategy[list[Entry]]
) -> None:
    """One of 1,000 random histories must show the fault; it need not be made simpler."""

    def run() -> None:
        for number in range(planted.seed, planted.seed + ROUNDS):
            _check_histories(histories, number)

    expect_found(monkeypatch, planted, run)


def _check_histories(histories: SearchStrategy[list[Entry]], number: int) -> None:
    @seed(number)
    @settings(FOLD, max_examples=ROUND_EXAMPLES, phases=[Phase.generate])
    @given(histories)
    def run(history: list[Entry]) -> None:
        check_history(history)

    run()


def expect_found(
    monkeypatch: pytest.MonkeyPatch, planted: tuple[Any, ...], check: Callable[[], object]
) -> None:
    """Runs a check with the fault planted; it must fail by an assertion, the fault must not."""
    place, name, make, _ = Fault(*planted)
    misfits: list[str] = []
    original = getattr(place, name)
    monkeypatch.setattr(place, name, _watched(original, make(original), misfits))
    with pytest.raises(AssertionError):
        check()
    assert not misfits, f"the fault no longer fits {name}: {misfits[0]}"


def _watched(original: Any, faulty: Any, misfits: list[str]) -> Any:
    """The faulty function, which notes when it cannot be called as the original is, or fails."""
    if not callable(original):
        assert not callable(faulty), "a function in place of what is none"
        return faulty
    assert callable(faulty), "no function in place of one"
    signature = inspect.signature(original)

    @functools.wraps(original)
    def planted(*arguments: Any, **named_arguments: Any) -> Any:
        try:
            signature.bind(*arguments, **named_arguments)
        except TypeError as error:
            # The caller is wrong, or an inner fault called what it was given wrongly.
            misfits.append(f"called with what {original!r} does not take: {error}")
            raise
        try:
            return faulty(*arguments, **named_arguments)
        except Exception as error:
            if _innermost(error.__traceback__) in (planted.__code__, faulty.__code__):
                misfits.append(repr(error))
            raise

    return planted


def _innermost(traceback: TracebackType | None) -> CodeType | None:
    """The code in whose own lines an error arose."""
    if traceback is None:
        return None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code
