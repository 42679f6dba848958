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
