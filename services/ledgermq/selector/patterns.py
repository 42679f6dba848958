"""The patterns of LIKE.

`%` stands for any characters or none, `_` for any one character (a Unicode code point). The escape
character takes the meaning from a `%`, a `_` or an escape character that follows it; anywhere else,
and so at the end, it is a character like any other.

A pattern is cut at each `%` into pieces. The first piece must open the text and the last one close
it; the pieces between are found one after the other, each as early as possible. No piece is looked
for twice, so a hostile pattern costs at most its length times the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_Piece = list[str | None]
"""Characters that stand for themselves, and None for any one."""


def like(pattern: str, escape: str | None) -> Callable[[str], bool]:
    pieces = _pieces(pattern, escape)
    first, *others = (_compiled(piece) for piece in pieces)
    if not others:
        return lambda text: first.fullmatch(text) is not None
    between = tuple(piece for piece in others[:-1] if piece.pattern)
    last, last_characters = others[-1], len(pieces[-1])

    def matches(text: str) -> bool:
        opening = first.match(text)
        if opening is None:
            return False
        position = opening.end()
        for piece in between:
            found = piece.search(text, position)
            if found is None:
                return False
            position = found.end()
        tail = len(text) - last_characters
        return tail >= position and last.match(text, tail) is not None

    return matches


def _pieces(pattern: str, escape: str | None) -> list[_Piece]:
    pieces: list[_Piece] = [[]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        follower = pattern[position + 1 : position + 2]
        if character == escape and follower and follower in ("%", "_", escape):
            pieces[-1].append(follower)
            position += 1
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if character == "_" else character)
        position += 1
    return pieces


def _compiled(piece: _Piece) -> re.Pattern[str]:
    source = "".join("." if one is None else re.escape(one) for one in piece)
    return re.compile(source, re.DOTALL)
