"""How much Python a function runs: what grows with the wrong thing is seen without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable


def calls_of(function: Callable[[], object]) -> int:
    """How many functions, and steps of generators, are called until a function returns."""
    calls = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def lines_within(most: int, function: Callable[[], object]) -> int:
    """How many lines of Python a function runs; it is ended, by AssertionError, at too many."""
    lines = 0

    def counted(_frame: object, event: str, _argument: object) -> object:
        nonlocal lines
        lines += event == "line"
        assert lines <= most, f"more than {most:,} lines"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        function()
    finally:
        sys.settrace(before)
    return lines
