"""Numbers that people write, in the digits 0 to 9 and nothing between them.

Python also reads the digits of all other scripts, and 1_0 as ten: pasted from elsewhere, such a
text often means something else than it was read as.
"""

from __future__ import annotations

from ledgermq.errors.shown import shown


def is_whole(text: str) -> bool:
    """Whether a text is a whole number of such digits, without a sign."""
    return text.isascii() and text.isdecimal()


def plain_digits(text: str) -> str:
    """A text, if it is not for its digits that it is no number; ValueError otherwise."""
    if "_" in text or any(one.isnumeric() and not one.isascii() for one in text):
        raise ValueError(
            f"{shown(text)} is not a valid number here: write the digits 0 to 9 with nothing "
            "between them, as in 1000"
        )
    return text
