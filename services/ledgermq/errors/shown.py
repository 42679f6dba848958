"""Values as the texts of errors show them."""

from __future__ import annotations

from typing import Final

SHOWN_CHARACTERS_MAX: Final = 160


def shown(value: object) -> str:
    """A value in a message: no more of it than a line or two."""
    try:
        text = repr(value)
    except Exception:
        # What cannot show itself, such as a dict of a thousand dicts in each other.
        text = f"<{type(value).__name__}>"
    return cut(text)


def cut(text: str) -> str:
    """No more of a text than a line or two."""
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "..."
