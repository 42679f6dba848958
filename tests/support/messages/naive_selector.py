"""A second evaluator of message selectors, simple and slow, and a writer of their text.

It shares no code with the first. Expressions are tuples; truths are the numbers 0, 1/2 and 1, so
that AND is the least, OR the greatest and NOT the difference from 1; exact numbers are fractions
while they are computed; LIKE is the textbook's table.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

UNKNOWN = Fraction(1, 2)
# How tight an expression holds together; the text needs parentheses around a looser operand.
LEVELS = {"or": 1, "and": 2, "not": 3, "+": 5, "-": 5, "*": 6, "/": 6, "negative": 7, "positive": 7}
CONDITIONS = ("compare", "between", "in", "like", "null")


def truth(expression: tuple, values: dict[str, Any]) -> Fraction:
    """How true a condition is."""
    kind, *parts = expression
    if kind == "and":
        return min(truth(part, values) for part in parts)
    if kind == "or":
        return max(truth(part, values) for part in parts)
    if kind == "not":
        return 1 - truth(parts[0], values)
    if kind == "compare":
        sign, left, right = parts
        return compare(sign, value(left, values), value(right, values))
    if kind == "between":
        inverted, one, low, high = (
            part if isinstance(part, bool) else value(part, values) for part in parts
        )
        if inverted:
            return max(compare("<", one, low), compare(">", one, high))
        return min(compare(">=", one, low), compare("<=", one, high))
    if kind == "name" or kind == "boolean":
        found = value(expression, values)
        return UNKNOWN if found is None else Fraction(found is True)
    inverted, name, *rest = parts
    found = values.get(name)
    if kind == "null":
        answer = Fraction(found is None)
    elif found is None:
        answer = UNKNOWN
    elif not isinstance(found, str):
        answer = Fraction(0)
    else:
        answer = Fraction(found in rest[0] if kind == "in" else is_like(found, rest[0]))
    return 1 - answer if inverted else answer


def compare(sign: str, left: Any, right: Any) -> Fraction:
    """How true a comparison is."""
    if left is None or right is None:
        return UNKNOWN
    numbers = [isinstance(one, int | float) and not isinstance(one, bool) for one in (left, right)]
    if all(numbers):
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)
        if left != left or right != right:
            return Fraction(sign == "<>")
        order = (left > right) - (left < right)
        return Fraction(
            order in {"<": [-1], "=": [0], ">": [1]}.get(sign, [])
            or (order in {"<=": [-1, 0], ">=": [0, 1], "<>": [-1, 1]}.get(sign, []))
        )
    if any(numbers) or isinstance(left, bool) != isinstance(right, bool):
        return Fraction(0)
    return Fraction((sign == "=" and left == right) or (sign == "<>" and left != right))


def value(expression: tuple, values: dict[str, Any]) -> Any:
    """The value of an operand, None for NULL."""
    kind, *parts = expression
    if kind == "name":
        return values.get(parts[0])
    if kind in ("number", "text", "boolean"):
        return parts[0]
    if kind in CONDITIONS or kind in ("and", "or", "not"):
        return {0: False, 1: True}.get(truth(expression, values))
    numbers = [value(part, values) for part in parts]
    if any(one is None or isinstance(one, bool | str) for one in numbers):
        return None
    if kind in ("negative", "positive"):
        (one,) = numbers
        if isinstance(one, float):
            return -one if kind == "negative" else one
        return exact(Fraction(-one if kind == "negative" else one))
    left, right = numbers
    if isinstance(left, float) or isinstance(right, float):
        return approximate(kind, float(left), float(right))
    if kind == "/":
        return exact(Fraction(left, right)) if right else None
    whole = {"+": left + right, "-": left - right, "*": left * right}
    return exact(Fraction(whole[kind]))


def exact(number: Fraction) -> int | None:
    """A whole number of 64 bits, cut towards zero."""
    whole = math.trunc(number)
    return whole if abs(2 * whole + 1) < 2**64 else None


def approximate(kind: str, left: float, right: float) -> float:
    """A sum, difference, product or quotient of doubles."""
    if kind != "/":
        return {"+": left + right, "-": left - right, "*": left * right}[kind]
    try:
        return left / right
    except ZeroDivisionError:
        if left != left or left == 0:
            return math.nan
        negative = (math.copysign(1, left) < 0) != (math.copysign(1, right) < 0)
        return -math.inf if negative else math.inf


def is_like(text: str, pattern: list[str | int]) -> bool:
    """Whether a text is like a pattern: characters, 1 for any one, 0 for any number of them."""
    reached = {0}
    for part in pattern:
        if part == 0:
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(text) and part in (1, text[at])}
    return len(text) in reached


def names(expression: Any) -> list[str]:
    """The identifiers of an expression, in order, as often as they stand there."""
    if not isinstance(expression, tuple):
        return []
    if expression[0] == "name":
        return [expression[1]]
    if expression[0] in ("in", "like", "null"):
        return [expression[2]]
    return [name for part in expression for name in names(part)]


def written(expression: tuple, level: int = 0) -> str:
    """The text of an expression, in parentheses only where its level needs them."""
    kind, *parts = expression
    own = 4 if kind in CONDITIONS else LEVELS.get(kind, 8)
    text = _written(kind, parts, own)
    return f"({text})" if own < level else text


def _written(kind: str, parts: list[Any], own: int) -> str:
    if kind == "name":
        return parts[0]
    if kind == "boolean":
        return "TRUE" if parts[0] else "false"
    if kind == "number":
        return repr(parts[0])
    if kind == "text":
        return quoted(parts[0])
    if kind in ("and", "or"):
        return f" {kind.upper()} ".join(written(part, own + 1) for part in parts)
    if kind == "not":
        return f"NOT {written(parts[0], own)}"
    if kind in ("negative", "positive"):
        return f"{'-' if kind == 'negative' else '+'}{written(parts[0], own)}"
    if kind in ("+", "-", "*", "/"):
        return f"{written(parts[0], own)}{kind}{written(parts[1], own + 1)}"
    if kind == "compare":
        return f"{written(parts[1], 5)} {parts[0]} {written(parts[2], 5)}"
    word = "NOT " if parts[0] else ""
    if kind == "between":
        one, low, high = (written(part, 5) for part in parts[1:])
        return f"{one} {word}BETWEEN {low} AND {high}"
    if kind == "null":
        return f"{parts[1]} IS {word}NULL"
    if kind == "in":
        return f"{parts[1]} {word}IN ({', '.join(quoted(one) for one in parts[2])})"
    pattern = "".join("%_"[one] if isinstance(one, int) else escaped(one) for one in parts[2])
    return f"{parts[1]} {word}LIKE {quoted(pattern)} ESCAPE '!'"


def quoted(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def escaped(character: str) -> str:
    """A character of a pattern that stands for itself."""
    return f"!{character}" if character in "%_!" else character
