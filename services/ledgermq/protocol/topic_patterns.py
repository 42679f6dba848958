"""Patterns of topic names, as bindings have them (PROTOCOL.md §5, Bind).

Words between dots or slashes: `*` is any one word, and one `#` any number of them.
"""

from __future__ import annotations

import re
from typing import Final

from ledgermq.protocol.limits import TEMPORARY

ONE_WORD: Final = "*"
ANY_WORDS: Final = "#"
_PATTERN: Final = re.compile(r"[A-Za-z0-9._/%*#-]{1,128}", re.ASCII)
_SEPARATORS: Final = re.compile(r"([./])")


def is_pattern(text: str) -> bool:
    """Whether a text may stand for topics."""
    words = _SEPARATORS.split(text)[::2]
    wild = [one for one in words if ONE_WORD in one or ANY_WORDS in one]
    return (
        _PATTERN.fullmatch(text) is not None
        and not text.startswith(TEMPORARY)
        and all(one in (ONE_WORD, ANY_WORDS) for one in wild)
        and wild.count(ANY_WORDS) <= 1
    )


def stem_of(pattern: str) -> str:
    """What is before the first wild word of a pattern; all of it, if there is none."""
    parts = _SEPARATORS.split(pattern)
    wild = [at for at, one in enumerate(parts) if one in (ONE_WORD, ANY_WORDS)]
    return "".join(parts[: max(wild[0] - 1, 0)]) if wild else pattern


def stems_of(topic: str) -> list[str]:
    """The stems of all patterns that may take in the name of a topic; the last is the name."""
    parts = _SEPARATORS.split(topic)
    return ["", *("".join(parts[:end]) for end in range(1, len(parts) + 1, 2))]


def names_of(pattern: str) -> re.Pattern[str]:
    """Names that a pattern stands for."""
    return re.compile(regular_expression(pattern), re.ASCII)


def takes_in(names: re.Pattern[str], topic: str) -> bool:
    """Whether a topic's name is one of a pattern's; temporary topics are in none."""
    return not topic.startswith(TEMPORARY) and names.fullmatch(topic) is not None


def regular_expression(pattern: str) -> str:
    """What whole names are like that a pattern takes in; the same to Python, Java and RE2."""
    parts = _SEPARATORS.split(pattern)
    told = [r"[^./]+" if one == ONE_WORD else re.escape(one) for one in parts]
    if ANY_WORDS in parts:
        at = parts.index(ANY_WORDS)
        if at > 0:
            # What separates it goes with it: `a.#` takes in `a`.
            told[at - 1 : at + 1] = [f"(?:{told[at - 1]}.*)?"]
        else:
            told[:2] = [f"(?:.*{told[1]})?"] if len(told) > 1 else [".*"]
    return "".join(told)
