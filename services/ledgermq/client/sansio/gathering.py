"""The answer to RESYNC as it comes page by page, and what the lane brings meanwhile.

All pages are of the position that the first one names. What comes behind the first page came after
that position, so it waits until the last page was read.
"""

from __future__ import annotations

import time
from typing import Any, Final

from ledgermq.client.sansio.chain import HeldChunk

PATIENCE_SECONDS: Final = 3.0


class Gathering:
    """One answer that is asked for page by page.

    Attributes:
        pages: The pages that have come.
        waiting: Chunks that came meanwhile, in order.
    """

    def __init__(self) -> None:
        self.pages: list[dict[str, Any]] = []
        self.waiting: list[HeldChunk] = []
        self._asked: set[int] = set()
        self._asked_at = 0.0
        self._patience_seconds = PATIENCE_SECONDS

    @property
    def place(self) -> str:
        """From where to ask on; empty: all has come."""
        place: str = self.pages[-1]["next"]
        return place

    @property
    def overdue(self) -> bool:
        return time.monotonic() - self._asked_at > self._patience_seconds

    def asked(self, question: int) -> None:
        """Notes that the next page is asked for; if it was before, it takes longer than thought."""
        if self._asked:
            self._patience_seconds *= 2
        self._asked.add(question)
        self._asked_at = time.monotonic()

    def is_for(self, question: int) -> bool:
        return question in self._asked

    def take(self, page: dict[str, Any]) -> None:
        """Takes the next page; further answers to the same question are repeats."""
        self.pages.append(page)
        self._asked.clear()
