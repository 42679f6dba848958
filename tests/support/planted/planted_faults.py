"""Plants one fault in the fold and sees to it that a check finds it.

A fault that no longer fits what it replaces (another signature, another kind of thing) proves
nothing: whatever it raises by itself would pass for a find. So only an AssertionError counts as
found, and none does once the fault itself has failed, be it at its call or in its own lines.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any

import pytest

Fault = tuple[Any, str, Callable[[Any], Any]]


def named(faults: list[Fault], long: tuple[str, ...] = ()) -> list[Any]:
    """The faults as parameters of a test, named after what they replace and how."""
    found = []
    for place, name, fault in faults:
        known = f"{name}{fault.__name__}"
        marks = [pytest.mark.long] if known.startswith(long or ("-",)) else []
        found.append(pytest.param((place, name, fault), id=known, marks=marks))
    return found


def expect_found(
    monkeypatch: pytest.MonkeyPatch, planted: Fault, check: Callable[[], object]
) -> None:
    """Runs a check with the fault planted; it must fail by an assertion, the fault must not."""
    place, name, fault = planted
    misfits: list[str] = []
    original = getattr(place, name)
    monkeypatch.setattr(place, name, _watched(original, fault(original), misfits))
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
