"""Answers that are too large for one record, kept to be asked for page by page (§9).

All pages of an answer are of one position, whatever becomes of the state meanwhile: what was in
flight then is in it as it was. Contents are read for one page at a time. What nobody asks for is
forgotten, and so is all of it when the worker ends: whoever asks for the rest then is refused, and
begins again.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import Any

from ledgermq.core.state.manager import QueueManager
from ledgermq.digits import is_whole
from ledgermq.processor.lanes.bodies import BodyStore
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.outcomes import Delivered
from ledgermq.wire.framing.answers import encode_answer
from ledgermq.wire.topics.reading import BodyLostError

PAGE_BYTES = 1024 * 1024
# Who has missed nothing asks for no further page, which a slow link would carry for long.
FIRST_PAGE_BYTES = 64 * 1024
# Nothing else is done while a page is made.
PAGE_PARTS = 1_000
KEPT_SECONDS = 30.0
KEPT_ANSWERS = 64
KEPT_OF_CONNECTION = 2


class PagedAnswer:
    """An answer as it was at one position, in parts that each fit a record.

    Parts are entries of the document's list `sessions`, outcomes and messages, in this order.
    """

    def __init__(self, connection: bytes, state: QueueManager, answer: Answer) -> None:
        self.connection = connection
        self.position = state.position
        self.time = state.time
        self.used_at = time.monotonic()
        self.token = os.urandom(8).hex()
        self._document = answer.document
        sessions: list[dict[str, Any]] = answer.document.get("sessions", [])
        self._parts: list[Any] = [
            *(("session", one) for one in sessions),
            *(("outcome", one) for one in answer.outcomes),
            *(("message", one) for one in answer.messages),
        ]

    def has(self, number: str) -> bool:
        return is_whole(number) and len(number) < 10 and int(number) <= len(self._parts)

    async def page(self, place: str, bodies: BodyStore) -> Answer | None:
        """The parts from a place on that fit; None if a content is not on the log any more."""
        self.used_at = time.monotonic()
        first = int(place.partition(":")[2])
        found: dict[str, list[Any]] = {"session": [], "outcome": [], "message": []}
        size, number = 0, first
        bytes_max = PAGE_BYTES if first else FIRST_PAGE_BYTES
        while number < len(self._parts):
            kind, part = self._parts[number]
            try:
                size += await _size_of(kind, part, bodies, is_old=bool(first))
            except BodyLostError:
                # It went meanwhile: the log was trimmed, and nobody needs it as it was.
                return None
            if number > first and (size > bytes_max or number - first == PAGE_PARTS):
                break
            found[kind].append(part)
            number += 1
        document = self._document
        if "sessions" in document:
            document = {**document, "sessions": found["session"]}
        return Answer(
            document=document,
            messages=found["message"],
            outcomes=found["outcome"],
            next="" if number == len(self._parts) else f"{self.token}:{number}",
        )


async def _size_of(kind: str, part: Any, bodies: BodyStore, *, is_old: bool) -> int:
    """What a part takes in an answer, contents included; those are filled in.

    BodyLostError if the log was cut behind one since the answer, which `is_old`, was given.
    """
    if kind == "session":
        return len(encode_answer(0, 0, 0, Answer(document=part)))
    messages, where = [part] if kind == "message" else [], ""
    if isinstance(part, Delivered):
        messages, where = part.messages, part.destination
    if messages and bodies.fill(messages) < 0:
        await bodies.fill_cold(messages, where, refuse_cut=is_old)
    if kind == "message":
        return len(encode_answer(0, 0, 0, Answer(messages=messages)))
    return len(encode_answer(0, 0, 0, Answer(outcomes=[part])))


class PagedAnswers:
    """The answers of one worker that are kept; the oldest go first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, PagedAnswer] = OrderedDict()

    def start(self, connection: bytes, state: QueueManager, answer: Answer) -> str:
        """Keeps an answer to be asked for in pages; the place where the first one begins."""
        self._forget(time.monotonic())
        kept = PagedAnswer(connection, state, answer)
        mine = [one.token for one in self._kept.values() if one.connection == connection]
        for token in mine[: max(0, len(mine) + 1 - KEPT_OF_CONNECTION)]:
            del self._kept[token]
        while len(self._kept) >= KEPT_ANSWERS:
            self._kept.popitem(last=False)
        self._kept[kept.token] = kept
        return f"{kept.token}:0"

    def find(self, connection: bytes, place: str) -> PagedAnswer | None:
        """The answer that a place is in, if it is kept and this connection's."""
        self._forget(time.monotonic())
        token, _, number = place.partition(":")
        kept = self._kept.get(token)
        if kept is None or kept.connection != connection or not kept.has(number):
            return None
        return kept

    def drop(self, kept: PagedAnswer) -> None:
        self._kept.pop(kept.token, None)

    def _forget(self, now: float) -> None:
        for token in [one.token for one in self._kept.values() if one.used_at < now - KEPT_SECONDS]:
            del self._kept[token]
