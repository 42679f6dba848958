"""Arithmetic, comparison and three-valued logic on the values of a selector.

A value is a boolean, an exact number (64 bits), an approximate number (an IEEE double), a string,
or None, which is SQL's NULL and logic's *unknown*. Nothing here raises or depends on the version of
Python: whatever has no value, such as a sum outside 64 bits or a division of exact numbers by zero,
is None (H26).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

Value = bool | int | float | str | None
Truth = bool | None
Arithmetic = Callable[[Value, Value], Value]
Relation = Callable[[Any, Any], bool]

LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1
_NUMBERS: Final = (int, float)

RELATIONS: Final[dict[str, Relation]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def plain(value: object) -> Value:
    """The value of a header or property; what a selector has no type for counts as absent."""
    if isinstance(value, bool):
        return value
    # A subclass may compare as it likes; its plain value does not.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value) if LONG_MIN <= int.__int__(value) <= LONG_MAX else None
    if isinstance(value, float):
        return float.__float__(value)
    return None


def relate(sign: str, left: Any, right: Any) -> Truth:
    """Compares two values; unlike types, and the order of strings or booleans, are false."""
    if left is None or right is None:
        return None
    kind = type(left)
    if kind is type(right):
        if (kind is str or kind is bool) and sign not in ("=", "<>"):
            return False
        return RELATIONS[sign](left, right)
    if kind in _NUMBERS and type(right) in _NUMBERS:
        # As Java does; Python by itself would compare exactly.
        return RELATIONS[sign](float(left), float(right))
    return False


def both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Truth, right: Truth) -> Truth:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def negated(truth: Value) -> Truth:
    return None if truth is None else not truth


def signed(sign: str, value: Value) -> Value:
    if type(value) is int:
        return _bounded(-value) if sign == "-" else value
    if type(value) is float:
        return -value if sign == "-" else value
    return None


def _bounded(number: int) -> int | None:
    return number if LONG_MIN <= number <= LONG_MAX else None


def _quotient(left: int, right: int) -> int | None:
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return _bounded(quotient if (left < 0) == (right < 0) else -quotient)


def _ratio(left: float, right: float) -> float:
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _arithmetic(
    exact: Callable[[int, int], int | None], approximate: Callable[[float, float], float]
) -> Arithmetic:
    def apply(left: Any, right: Any) -> Value:
        left_kind, right_kind = type(left), type(right)
        if left_kind is int and right_kind is int:
            return exact(left, right)
        if left_kind in _NUMBERS and right_kind in _NUMBERS:
            return approximate(float(left), float(right))
        return None

    return apply


ARITHMETIC: Final[dict[str, Arithmetic]] = {
    "+": _arithmetic(lambda left, right: _bounded(left + right), operator.add),
    "-": _arithmetic(lambda left, right: _bounded(left - right), operator.sub),
    "*": _arithmetic(lambda left, right: _bounded(left * right), operator.mul),
    "/": _arithmetic(_quotient, _ratio),
}
