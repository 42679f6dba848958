"""Plants one fault in the fold and sees to it that a check finds it.

A fault that no longer fits what it replaces (another signature, another kind of thing) proves
nothing: whatever it raises by itself would pass for a find. So only an AssertionError counts as
found, and none does once the fault itself has failed, be it at its call or in its own lines.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, TracebackType
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from ledgermq.core.apply import new_state
from ledgermq.protocol.outcomes import Addressed
from support.checkout import SCRIPTS
from support.checks.checked_histories import FOLD, check_history, fold_entry
from support.checks.checks import digest
from support.generators.generators import Entry
from support.scripts.play import play
from support.scripts.script import Script, scripts_at

# The first tenth of what is drawn for one test is kept small, and shows little: short rounds soon
# come to more.
ROUNDS, ROUND_EXAMPLES = 40, 25


class Fault(NamedTuple):
    """A fault in the fold.

    Attributes:
        title: What is wrong, in words that no other fault has.
        place: What has the thing that is replaced.
        name: The name of that thing.
        make: Makes the faulty thing of the right one.
        seed: Of the round of random histories that is the first to show it.
        others: What else has the thing by its name.
    """

    title: str
    place: Any
    name: str
    make: Callable[[Any], Any]
    seed: int = 0
    others: tuple[Any, ...] = ()


T = TypeVar("T")
# The outcomes of the entries of a history, and the digest of the state that they lead to.
Told = tuple[list[list[Addressed]], str]


class Family(NamedTuple):
    """Faults that the same histories show.

    Attributes:
        name: What the faults are about.
        faults: All of them.
        histories: The histories of a round, by its number; none are left where there are none.
    """

    name: str
    faults: tuple[Fault, ...]
    histories: Callable[[int], Iterable[list[Entry]]]


def named(family: Family) -> list[Any]:
    """The faults as parameters of a test."""
    return [pytest.param(fault, id=fault.title) for fault in family.faults]


def drawn(histories: SearchStrategy[list[Entry]]) -> Callable[[int], list[list[Entry]]]:
    """Rounds of random histories, the same in every run; the fold has no part in them."""

    def draw(number: int) -> list[list[Entry]]:
        found: list[list[Entry]] = []

        @seed(number)
        @settings(FOLD, max_examples=ROUND_EXAMPLES, phases=[Phase.generate])
        @given(histories)
        def run(history: list[Entry]) -> None:
            found.append(history)

        run()
        return found

    return draw


def played(read: Callable[[], Sequence[Script]]) -> Callable[[int], list[list[Entry]]]:
    """The logs of scripts, all in the first round."""

    def draw(number: int) -> list[list[Entry]]:
        players = [play(script, checked=False) for script in read()] if number == 0 else []
        return [[Entry(value, time) for value, time in one.log] for one in players]

    return draw


def played_in(name: str) -> Callable[[int], list[list[Entry]]]:
    """The logs of the scripts of one file of the fold's tests, all in the first round."""
    return played(lambda: scripts_at(SCRIPTS / f"{name}.txt"))


def expect_found_by(family: Family, fault: Fault) -> None:
    """One of the histories must show the fault; it need not be made simpler."""
    for number in range(fault.seed, fault.seed + ROUNDS):
        for history in _suspect_ones_first(fault, round_of(family, number, _told_of)):
            if _is_found(fault, functools.partial(check_history, history)):
                return
    pytest.fail("no history shows the fault")


@functools.cache
def round_of(
    family: Family, number: int, tell: Callable[[Sequence[Entry]], T]
) -> list[tuple[list[Entry], T]]:
    """The histories of a round, each with what is told of it when the fold is right."""
    return [(history, tell(history)) for history in family.histories(number)]


def _suspect_ones_first(
    fault: Fault, histories: Iterable[tuple[list[Entry], Told | None]]
) -> Iterator[list[Entry]]:
    """All histories; first those that the faulty fold ends otherwise, which is soon seen: to fold
    one takes a fiftieth of the time of all checks.
    """
    rest = []
    for history, right in histories:
        with plant(fault):
            told = _told_of(history)
        if told != right:
            yield history
        else:
            rest.append(history)
    yield from rest


def _told_of(history: Sequence[Entry]) -> Told | None:
    """The outcomes of a history and the digest of its end; None if the fold stopped."""
    state = new_state()
    try:
        outcomes = [fold_entry(state, entry) for entry in history]
        return outcomes, digest(state)
    except Exception:  # Whatever a fault leads to: the checks say what it was.
        return None


def expect_found(fault: Fault, check: Callable[[], object]) -> None:
    """Runs a check with the fault planted; it must fail by an assertion, the fault must not."""
    if not _is_found(fault, check):
        pytest.fail("the check does not find the fault")


def _is_found(fault: Fault, check: Callable[[], object]) -> bool:
    with plant(fault) as misfits:
        try:
            check()
        except AssertionError:
            assert not misfits, f"the fault no longer fits {fault.name}: {misfits[0]}"
            return True
    return False


@contextmanager
def plant(fault: Fault) -> Iterator[list[str]]:
    """Plants a fault for a while; yields what shows that it does not fit."""
    misfits: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for place in (fault.place, *fault.others):
            original = getattr(place, fault.name)
            patch.setattr(place, fault.name, _watched(original, fault.make(original), misfits))
        yield misfits


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


def does_nothing(original: Any) -> Any:
    """A fault: nothing is done, and None comes back."""
    return lambda *arguments, **options: None


def always(original: Any) -> Any:
    """A fault: the answer is yes."""
    return lambda *arguments: True


def never(original: Any) -> Any:
    """A fault: the answer is no."""
    return lambda *arguments: False
