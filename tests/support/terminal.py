"""A terminal whose user types what a test says."""

from __future__ import annotations

import io
from collections.abc import Callable


class Terminal(io.StringIO):
    """A standard input that somebody sits at, who may take some time."""

    asked: Callable[[], None] = staticmethod(lambda: None)

    def isatty(self) -> bool:
        """It is one."""
        return True

    def readline(self, *size: int) -> str:
        """What is typed."""
        self.asked()
        return super().readline(*size)
