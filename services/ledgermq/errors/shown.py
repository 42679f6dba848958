"""Values as the texts of errors show them."""

from __future__ import annotations

from typing import Final

SHOWN_CHARACTERS_MAX: Final = 160


def shown(value: object) -> str:
    """A value in a message: no more of it than a line or two."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "..."
