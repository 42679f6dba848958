"""Numeric literals, in Java's syntax.

Exact: 57, 57L, 0x1F, 0b101, 017 (octal, as in Java), 1_000. Approximate: 7E3, 57.9, 7., .5, 7f, 7d,
0x1.8p3. The suffix of a number changes nothing: exact numbers have 64 bits, approximate ones are
doubles.
"""

from __future__ import annotations

import math
from typing import Final

from ledgermq.selector.errors import quoted, unexpected
from ledgermq.selector.values import LONG_MAX

_DIGITS: Final = r"[0-9](?:[0-9_]*[0-9])?"
_HEX: Final = r"[0-9A-Fa-f](?:[0-9A-Fa-f_]*[0-9A-Fa-f])?"
_POWER: Final = rf"[eE][+-]?{_DIGITS}"

EXACT_PATTERN: Final = (
    rf"(?:0[xX]{_HEX}|0[bB][01](?:[01_]*[01])?|0[0-7_]*[0-7]|0|[1-9](?:[0-9_]*[0-9])?)[lL]?"
)
APPROXIMATE_PATTERN: Final = (
    rf"(?:0[xX](?:{_HEX}\.?|(?:{_HEX})?\.{_HEX})[pP][+-]?{_DIGITS}"
    rf"|{_DIGITS}\.(?:{_DIGITS})?(?:{_POWER})?"
    rf"|\.{_DIGITS}(?:{_POWER})?|{_DIGITS}{_POWER}|{_DIGITS}(?=[fFdD]))[fFdD]?"
)


def exact_number(literal: str, start: int) -> int:
    """The value of an exact literal; 2**63 passes, because a minus sign may precede it."""
    digits = literal.rstrip("lL").replace("_", "")
    prefix = digits[:2].lower()
    if prefix == "0x":
        value, decimal = int(digits[2:], 16), False
    elif prefix == "0b":
        value, decimal = int(digits[2:], 2), False
    elif digits.startswith("0"):
        value, decimal = int(digits, 8), False
    else:
        # Python limits, as the environment says, how long a text int() takes.
        value, decimal = int(digits) if len(digits) < 20 else LONG_MAX + 2, True
    if value > (LONG_MAX + 1 if decimal else LONG_MAX):
        raise unexpected(f"the number {quoted(literal)}", start, "a number of at most 64 bits")
    return value


def approximate_number(literal: str, start: int) -> float:
    """The value of an approximate literal; as in Java, what a double cannot hold is refused."""
    plain = literal.replace("_", "").lower()
    if plain.startswith("0x"):
        digits = plain.rstrip("fd")
        try:
            value = float.fromhex(digits)
        except OverflowError:
            value = math.inf
        significand = digits[2:].partition("p")[0]
    else:
        digits = plain.rstrip("fd")
        value = float(digits)
        significand = digits.partition("e")[0]
    vanished = value == 0.0 and significand.strip("0.") != ""
    if math.isinf(value) or vanished:
        raise unexpected(
            f"the number {quoted(literal)}", start, "a number in the range of a double"
        )
    return value
