"""The parts of a selector, each compiled to a function while the parser finds it.

There is no tree to walk: a node holds the function that evaluates it, made from the functions of
its operands. Chains of AND, OR, + and * are one function each, however long, so that the depth of
the calls follows from the nesting of the text, which is limited, and not from its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from ledgermq.selector.errors import NESTING_MAX, SelectorError, unexpected
from ledgermq.selector.values import (
    ARITHMETIC,
    LONG_MAX,
    LONG_MIN,
    RELATIONS,
    Value,
    both,
    either,
    negated,
    plain,
    relate,
    signed,
)

ValueOf = Callable[[str], bool | int | float | str | None]
Evaluate = Callable[[ValueOf], Value]

EQUALITY_MAX: Final = 2**53
_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    kind: Literal["identifier", "number", "string", "boolean", "condition"]
    start: int
    evaluate: Evaluate
    identifiers: tuple[str, ...] = ()
    literal: bool | int | float | str | None = None
    nesting: int = 0
    equalities: tuple[tuple[str, bool | int | str], ...] = ()
    conjuncts: tuple[Evaluate, ...] = ()


def not_a(expected: str, node: Node) -> SelectorError:
    """The error for a node of the wrong kind; an identifier is right everywhere."""
    return unexpected(f"a {node.kind}", node.start, expected)


def identifier(name: str, start: int) -> Node:
    return Node(
        kind="identifier",
        start=start,
        evaluate=lambda value_of: plain(value_of(name)),
        identifiers=(name,),
    )


def constant(
    kind: Literal["number", "string", "boolean"], literal: bool | int | float | str, start: int
) -> Node:
    return Node(kind=kind, start=start, evaluate=lambda _: literal, literal=literal)


def condition(node: Node) -> Node:
    """A node that must be true, false or unknown; an identifier that is no boolean is false."""
    if node.kind in ("condition", "boolean"):
        return node
    if node.kind != "identifier":
        raise not_a("a condition", node)
    name = node.identifiers[0]

    def evaluate(value_of: ValueOf) -> Value:
        value = value_of(name)
        if value is True or value is False:
            return value
        return None if plain(value) is None else False

    return replace(node, evaluate=evaluate)


def number(node: Node) -> Node:
    if node.kind not in ("identifier", "number"):
        raise not_a("a number", node)
    return _in_range(node)


def _in_range(node: Node) -> Node:
    # Only a minus sign makes 2**63 a number of 64 bits, so the literal alone is not yet refused.
    if type(node.literal) is int and not LONG_MIN <= node.literal <= LONG_MAX:
        raise unexpected(f"the number {node.literal}", node.start, "a number of at most 64 bits")
    return node


def enclosed(node: Node, start: int) -> Node:
    return replace(_in_range(node), start=start, nesting=_deeper(node, start))


def _deeper(node: Node, start: int) -> int:
    if node.nesting >= NESTING_MAX:
        raise unexpected(
            "one level too many",
            start,
            f"parentheses, NOT and signs to nest at most {NESTING_MAX} deep",
        )
    return node.nesting + 1


def _names(nodes: Iterable[Node]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for node in nodes for name in node.identifiers))


def _joined(evaluate: Evaluate, kind: Literal["number", "condition"], *nodes: Node) -> Node:
    return Node(
        kind=kind,
        start=nodes[0].start,
        evaluate=evaluate,
        identifiers=_names(nodes),
        nesting=max(node.nesting for node in nodes),
    )


def _decided(by: bool, parts: tuple[Evaluate, ...]) -> Evaluate:
    """The value by which any part decides all of them; else unknown if a part is."""

    def evaluate(value_of: ValueOf) -> Value:
        outcome: Value = not by
        for part in parts:
            truth = part(value_of)
            if truth is by:
                return by
            if truth is None:
                outcome = None
        return outcome

    return evaluate


def conjunction(nodes: list[Node]) -> Node:
    """Conditions joined by AND; those of a conjunction among them become its own."""
    nodes = [condition(node) for node in nodes]
    parts = tuple(part for node in nodes for part in node.conjuncts or (node.evaluate,))
    return replace(
        _joined(_decided(False, parts), "condition", *nodes),
        equalities=tuple(pair for node in nodes for pair in node.equalities),
        conjuncts=parts,
    )


def disjunction(nodes: list[Node]) -> Node:
    nodes = [condition(node) for node in nodes]
    parts = tuple(node.evaluate for node in nodes)
    return _joined(_decided(True, parts), "condition", *nodes)


def negation(node: Node, start: int) -> Node:
    inner = condition(node).evaluate
    found = _joined(lambda value_of: negated(inner(value_of)), "condition", node)
    return replace(found, start=start, nesting=_deeper(node, start))


def signed_number(sign: str, node: Node, start: int) -> Node:
    """A sign and a number; before a literal it belongs to the literal."""
    nesting = _deeper(node, start)
    if isinstance(node.literal, int | float) and node.kind == "number":
        literal = -node.literal if sign == "-" else node.literal
        return replace(constant("number", literal, start), nesting=nesting)
    inner = number(node).evaluate
    found = _joined(lambda value_of: signed(sign, inner(value_of)), "number", node)
    return replace(found, start=start, nesting=nesting)


def arithmetic_chain(nodes: list[Node], signs: list[str]) -> Node:
    """Numbers joined by + and -, or by * and /, from left to right."""
    first, *others = (number(node).evaluate for node in nodes)
    steps = tuple((ARITHMETIC[sign], other) for sign, other in zip(signs, others, strict=True))

    def evaluate(value_of: ValueOf) -> Value:
        total = first(value_of)
        for apply, operand in steps:
            total = apply(total, operand(value_of))
        return total

    return _joined(evaluate, "number", *nodes)


def comparison(left: Node, sign: str, right: Node) -> Node:
    for node in (left, right):
        _in_range(node)
    if left.literal is not None and right.kind == "identifier":
        return replace(comparison(right, _MIRRORED[sign], left), start=left.start)
    if left.kind != "identifier" or right.literal is None:
        one, other = left.evaluate, right.evaluate
        return _joined(
            lambda value_of: relate(sign, one(value_of), other(value_of)), "condition", left, right
        )
    name, literal = left.identifiers[0], right.literal
    found = _joined(_compared_with(name, sign, literal), "condition", left, right)
    if sign != "=" or isinstance(literal, float):
        return found
    if type(literal) is int and abs(literal) > EQUALITY_MAX:
        return found
    return replace(found, equalities=((name, literal),))


def _compared_with(name: str, sign: str, literal: bool | int | float | str) -> Evaluate:
    """The comparison of an identifier with a literal, short where the types are the same."""
    relation = RELATIONS[sign]

    def texts(value_of: ValueOf) -> Value:
        value = value_of(name)
        return (
            relation(value, literal) if type(value) is str else relate(sign, plain(value), literal)
        )

    def integers(value_of: ValueOf) -> Value:
        value = value_of(name)
        if type(value) is int and LONG_MIN <= value <= LONG_MAX:
            return relation(value, literal)
        return relate(sign, plain(value), literal)

    if type(literal) is str and sign in ("=", "<>"):
        return texts
    if type(literal) is int:
        return integers
    return lambda value_of: relate(sign, plain(value_of(name)), literal)


def between(node: Node, low: Node, high: Node, *, inverted: bool) -> Node:
    """BETWEEN, or NOT BETWEEN, as the two comparisons it stands for."""
    value, bottom, top = (number(part).evaluate for part in (node, low, high))

    def inside(value_of: ValueOf) -> Value:
        found = value(value_of)
        return both(relate(">=", found, bottom(value_of)), relate("<=", found, top(value_of)))

    def outside(value_of: ValueOf) -> Value:
        found = value(value_of)
        return either(relate("<", found, bottom(value_of)), relate(">", found, top(value_of)))

    return _joined(outside if inverted else inside, "condition", node, low, high)


def tested(node: Node, word: str, test: Callable[[Value], bool | None], *, inverted: bool) -> Node:
    if node.kind != "identifier":
        raise not_a(f"an identifier before {word}", node)
    name = node.identifiers[0]

    def evaluate(value_of: ValueOf) -> Value:
        return test(plain(value_of(name)))

    def opposite(value_of: ValueOf) -> Value:
        return negated(test(plain(value_of(name))))

    return _joined(opposite if inverted else evaluate, "condition", node)
