"""Quoting: what a refusal or an answer shows of a text that somebody else wrote (PROTOCOL.md §7).

Whatever an operation brings, its outcome must fit into a record: so each text is shown in ASCII and
cut to a length.
"""

from __future__ import annotations

from ledgermq.protocol.limits import DETAIL_CHARACTERS_MAX, QUOTED_CHARACTERS_MAX, is_name


def quoted(text: str) -> str:
    """A text in quotes and in ASCII; a long one is cut, and it is said how long it was."""
    # repr() would leave as they are the characters that this version's Unicode tables can print.
    shown = ascii(text[:QUOTED_CHARACTERS_MAX])
    if len(text) <= QUOTED_CHARACTERS_MAX and len(shown) <= QUOTED_CHARACTERS_MAX + 2:
        return shown
    return f"{shown[:QUOTED_CHARACTERS_MAX]}... ({len(text)} characters)"


def shown_name(name: str) -> str:
    return name if is_name(name) else quoted(name)


def cut(detail: str) -> str:
    if len(detail) <= DETAIL_CHARACTERS_MAX:
        return detail
    return f"{detail[:DETAIL_CHARACTERS_MAX]}... ({len(detail)} characters)"
