"""Values as the texts of errors show them."""

from __future__ import annotations

import builtins
from typing import Final

SHOWN_CHARACTERS_MAX: Final = 160


def shown(value: object) -> str:
    """The value's `repr` for an error text, cut to a line or two."""
    try:
        text = repr(value)
    except Exception:
        # What cannot show itself, such as a dict of a thousand dicts in each other.
        text = f"<{type(value).__name__}>"
    return cut(text)


def cut(text: str) -> str:
    """The text, cut to a line or two."""
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "..."


def type_name(kind: type) -> str:
    """A type's name, with that of its module if a type of Python has the same, as numpy.bool."""
    name = kind.__name__
    return f"{kind.__module__}.{name}" if getattr(builtins, name, kind) is not kind else name
