"""What the parser does on each rule of the grammar, whose name the method has.

A method gets the parts of its rule in their order, signs and keywords among them; None stands for
an optional part that is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ledgermq.selector import nodes
from ledgermq.selector.errors import unexpected
from ledgermq.selector.nodes import Node
from ledgermq.selector.numbers import approximate_number, exact_number
from ledgermq.selector.patterns import like
from ledgermq.selector.values import Value

if TYPE_CHECKING:
    from lark import Token


HEADERS: Final = (
    "JMSDeliveryMode",
    "JMSPriority",
    "JMSMessageID",
    "JMSTimestamp",
    "JMSCorrelationID",
    "JMSType",
)


def _start(token: Token) -> int:
    assert token.start_pos is not None, "the lexer sets it"
    return token.start_pos


def _text(token: Token) -> str:
    return str(token)[1:-1].replace("''", "'")


def _of_string(test: Callable[[str], bool]) -> Callable[[Value], bool | None]:
    """A test that is unknown of no value, and false of what is no string."""

    def tested(value: Value) -> bool | None:
        if value is None:
            return None
        return isinstance(value, str) and test(value)

    return tested


class Actions:
    def start(self, parts: list[Any]) -> Node:
        return nodes.condition(parts[0])

    def disjunction(self, parts: list[Any]) -> Node:
        return nodes.disjunction(parts[::2])

    def conjunction(self, parts: list[Any]) -> Node:
        return nodes.conjunction(parts[::2])

    def negation(self, parts: list[Any]) -> Node:
        return nodes.negation(parts[1], _start(parts[0]))

    def comparison(self, parts: list[Any]) -> Node:
        return nodes.comparison(parts[0], parts[1].value, parts[2])

    def between(self, parts: list[Any]) -> Node:
        value, inverted, _, low, _, high = parts
        return nodes.between(value, low, high, inverted=inverted is not None)

    def like(self, parts: list[Any]) -> Node:
        node, inverted, _, pattern, _, escape = parts
        if escape is not None and len(_text(escape)) != 1:
            raise unexpected(
                f"a string of {len(_text(escape))} characters",
                _start(escape),
                "a string of one character after ESCAPE",
            )
        matches = like(_text(pattern), None if escape is None else _text(escape))
        return nodes.tested(node, "LIKE", _of_string(matches), inverted=inverted is not None)

    def membership(self, parts: list[Any]) -> Node:
        node, inverted = parts[:2]
        # Behind IN and the parenthesis: strings, commas between them, a parenthesis.
        members = frozenset(_text(token) for token in parts[4:-1:2])
        is_member = _of_string(members.__contains__)
        return nodes.tested(node, "IN", is_member, inverted=inverted is not None)

    def null_test(self, parts: list[Any]) -> Node:
        node, _, inverted, _ = parts
        return nodes.tested(node, "IS", lambda value: value is None, inverted=inverted is not None)

    def sum(self, parts: list[Any]) -> Node:
        return nodes.arithmetic_chain(parts[::2], [sign.value for sign in parts[1::2]])

    def product(self, parts: list[Any]) -> Node:
        return nodes.arithmetic_chain(parts[::2], [sign.value for sign in parts[1::2]])

    def signed(self, parts: list[Any]) -> Node:
        sign, node = parts
        return nodes.signed_number(sign.value, node, _start(sign))

    def group(self, parts: list[Any]) -> Node:
        return nodes.enclosed(parts[1], _start(parts[0]))

    def identifier(self, parts: list[Any]) -> Node:
        """A header or property; of the headers, only those that a selector may name."""
        name, start = parts[0].value, _start(parts[0])
        ours = name.startswith("JMS") and not name.startswith(("JMSX", "JMS_"))
        if ours and name not in HEADERS:
            raise unexpected(
                f"the header {name}",
                start,
                f"a property or one of the headers {', '.join(HEADERS)}",
            )
        return nodes.identifier(name, start)

    def string(self, parts: list[Any]) -> Node:
        return nodes.constant("string", _text(parts[0]), _start(parts[0]))

    def exact(self, parts: list[Any]) -> Node:
        start = _start(parts[0])
        return nodes.constant("number", exact_number(parts[0].value, start), start)

    def approximate(self, parts: list[Any]) -> Node:
        start = _start(parts[0])
        return nodes.constant("number", approximate_number(parts[0].value, start), start)

    def boolean(self, parts: list[Any]) -> Node:
        return nodes.constant("boolean", parts[0].type == "TRUE", _start(parts[0]))
