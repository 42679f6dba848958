"""The one error of message selectors, a text that is no selector, and the limits of the text."""

from __future__ import annotations

from typing import Final

SELECTOR_CHARACTERS_MAX: Final = 4096
# Each level costs at most three calls when a selector is evaluated; Python allows about a thousand.
NESTING_MAX: Final = 100

_QUOTED_CHARACTERS_MAX: Final = 40


class SelectorError(ValueError):
    """A text is no selector (SES-35); says what was found, what was expected, and where."""

    position: int
    """Offset in the text, from 0; the length of the text if it ends too soon."""

    def __init__(self, message: str, position: int) -> None:
        # Both are arguments of the exception, so that it can be pickled.
        super().__init__(message, position)
        self.position = position

    def __str__(self) -> str:
        return str(self.args[0])


def unexpected(found: str, position: int, expected: str) -> SelectorError:
    return SelectorError(
        f"found {found} at position {position} of the selector, expected {expected}", position
    )


def quoted(text: str) -> str:
    """A part of the selector for a message: short, and the same on every Python version."""
    # repr() would leave as they are the characters that this version's Unicode tables can print.
    if len(text) > _QUOTED_CHARACTERS_MAX:
        return ascii(text[:_QUOTED_CHARACTERS_MAX]) + " and more"
    return ascii(text)
