"""Pages of an answer: as much of a list as one record has room for (PROTOCOL.md §9)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from ledgermq.protocol.documents.fields import Document

PAGE_BYTES: Final = 2 * 1024 * 1024
# Nothing else is done while a page is made.
PAGE_ENTRIES: Final = 500
_NUMBER: Final = re.compile("[0-9]{1,19}")


def page_of(entries: Iterable[tuple[str, Document]]) -> tuple[list[Document], str]:
    """The first of some documents, one at least, and from where to go on; empty at the end.

    With each document stands the place behind it.
    """
    shown: list[Document] = []
    size, behind = 0, ""
    for place, document in entries:
        # No text takes more bytes than this in an answer.
        size += len(json.dumps(document))
        if len(shown) == PAGE_ENTRIES or (shown and size > PAGE_BYTES):
            return shown, behind
        shown.append(document)
        behind = place
    return shown, ""


def place_in(after: str) -> int:
    """The number in a place that a question names; -1 where there is none."""
    digits = after.partition(" ")[0]
    return int(digits) if _NUMBER.fullmatch(digits) else -1
