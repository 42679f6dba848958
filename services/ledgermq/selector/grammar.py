"""The grammar of message selectors, and what people are told about a text that does not follow it.

Lark makes an LALR parser of it, which does not call itself however deep a text nests. Only ASCII
characters make words and white space, so that every Python version reads a text alike (H26).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ledgermq.selector.actions import Actions
from ledgermq.selector.errors import quoted, unexpected
from ledgermq.selector.nodes import Node
from ledgermq.selector.numbers import APPROXIMATE_PATTERN, EXACT_PATTERN

if TYPE_CHECKING:
    from lark import Lark, Token


WHITESPACE: Final = " \t\f\r\n"
KEYWORDS: Final = (
    "NULL",
    "TRUE",
    "FALSE",
    "NOT",
    "AND",
    "OR",
    "BETWEEN",
    "LIKE",
    "IN",
    "IS",
    "ESCAPE",
)

# A rule with `?` that finds one part only is that part.
GRAMMAR: Final = rf"""
    start: disjunction
    ?disjunction: conjunction (OR conjunction)*
    ?conjunction: negation (AND negation)*
    ?negation: NOT negation -> negation
        | predicate
    ?predicate: sum
        | sum COMPARISON sum -> comparison
        | sum [NOT] BETWEEN sum AND sum -> between
        | sum [NOT] LIKE STRING [ESCAPE STRING] -> like
        | sum [NOT] IN OPENING STRING (COMMA STRING)* CLOSING -> membership
        | sum IS [NOT] NULL -> null_test
    ?sum: product ((PLUS | MINUS) product)*
    ?product: factor ((TIMES | DIVIDED) factor)*
    ?factor: (PLUS | MINUS) factor -> signed
        | primary
    ?primary: IDENTIFIER -> identifier
        | STRING -> string
        | EXACT -> exact
        | APPROXIMATE -> approximate
        | (TRUE | FALSE) -> boolean
        | OPENING disjunction CLOSING -> group

    COMPARISON: "<>" | "<=" | ">=" | "=" | "<" | ">"
    OPENING: "("
    CLOSING: ")"
    COMMA: ","
    PLUS: "+"
    MINUS: "-"
    TIMES: "*"
    DIVIDED: "/"
    IDENTIFIER: /[A-Za-z_$][A-Za-z0-9_$]*/
    STRING: /'(?:[^']|'')*'(?!')/
    APPROXIMATE.2: /{APPROXIMATE_PATTERN}/
    EXACT.1: /{EXACT_PATTERN}/
    SPACE: /[ \t\f\r\n]+/
    %ignore SPACE
    %declare {" ".join(KEYWORDS)}
"""

_EXPECTATIONS: Final = (
    ("IDENTIFIER", "an identifier, a literal or an opening parenthesis"),
    ("COMPARISON", "a comparison"),
    ("PLUS", "an arithmetic operator"),
    ("NOT", "NOT"),
    ("BETWEEN", "BETWEEN"),
    ("LIKE", "LIKE"),
    ("IN", "IN"),
    ("IS", "IS"),
    ("NULL", "NULL"),
    ("ESCAPE", "ESCAPE"),
    ("AND", "AND"),
    ("OR", "OR"),
    ("OPENING", "an opening parenthesis"),
    ("COMMA", "a comma"),
    ("CLOSING", "a closing parenthesis"),
    ("STRING", "a string"),
    ("$END", "the end"),
)
# These belong to what an operand may be, and are not told one by one.
_OPERAND: Final = frozenset({"NOT", "PLUS", "OPENING", "STRING"})


def _keyword(token: Token) -> Token:
    word = token.value.upper()
    if word in KEYWORDS:
        token.type = word
    return token


@cache
def _parser() -> Lark:
    from lark import Lark  # takes a tenth of a second, which only those who select should pay

    return Lark(
        GRAMMAR,
        parser="lalr",
        lexer="basic",
        transformer=Actions(),
        lexer_callbacks={"IDENTIFIER": _keyword},
        maybe_placeholders=True,
    )


def _expected(opening: str) -> str:
    # The parser that met the error cannot tell: the wrong token has made it close phrases already.
    parser: Any = _parser().parse_interactive(opening)
    parser.exhaust_lexer()
    accepted = parser.accepts()
    operand = "IDENTIFIER" in accepted
    names = [
        words
        for terminal, words in _EXPECTATIONS
        if terminal in accepted and not (operand and terminal in _OPERAND)
    ]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def parse(text: str) -> Node:
    """The node of a whole selector; SelectorError with the first place that is wrong."""
    from lark import UnexpectedCharacters, UnexpectedToken

    try:
        root = _parser().parse(text)
    except UnexpectedToken as error:
        ends = error.token.type == "$END"
        position = len(text) if ends else error.token.start_pos or 0
        found = "the end" if ends else quoted(error.token.value)
    except UnexpectedCharacters as error:
        position = error.pos_in_stream or 0
        if text[position] == "'":
            raise unexpected("a string that is not closed", position, "its closing quote") from None
        found = quoted(text[position])
    else:
        assert isinstance(root, Node), "the rule `start` makes one"
        return root
    raise unexpected(found, position, _expected(text[:position]))
