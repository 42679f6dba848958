"""Questions about the state: asked on the side topic, answered on the lane (PROTOCOL.md §9)."""

from __future__ import annotations

import functools
import itertools
import json
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from ledgermq.client.link.broker_news import BRING_BACK
from ledgermq.client.link.route import LogOut
from ledgermq.client.reasons import error_of_reason
from ledgermq.client.sansio.sizes import VALUE_BYTES_MAX, not_encodable, too_large
from ledgermq.client.settings import ConnectionSettings
from ledgermq.errors import (
    ConnectionClosedError,
    IllegalStateError,
    LedgerMQError,
    WorkerUnavailableError,
)
from ledgermq.protocol.outcomes import Delivered, DeliveredMessage, Outcome
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.codec import encode_record, join_delivered, outcome_from_union
from ledgermq.wire.framing.schemas import ASK

NO_WORKER: Final = "is one running, of no older release than this? Start it with `ledgermq worker`"
ASK_AGAIN_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the worker answered, and the log position and time (µs) that it is true at."""

    position: int
    time: int
    document: Any
    outcomes: list[Outcome]
    messages: list[DeliveredMessage]
    behind: str = ""


class _ExpiredError(Exception):
    """The rest of an answer is not there any more; the question must be asked from the start."""


def whole_answer(pages: list[Answer]) -> Answer:
    """One answer of all its pages: what is listed in each is joined, the rest is the first's."""
    return replace(
        pages[0],
        document=functools.reduce(_joined, (page.document for page in pages)),
        outcomes=[one for page in pages for one in page.outcomes],
        messages=[one for page in pages for one in page.messages],
        behind=pages[-1].behind,
    )


def _joined(document: Any, more: Any) -> Any:
    if isinstance(document, list) and isinstance(more, list):
        return document + more
    if isinstance(document, dict) and isinstance(more, dict):
        return {key: _joined(value, more.get(key)) for key, value in document.items()}
    return document


class Questions:
    """Numbers questions and matches the answers; may be used from any thread.

    Attributes:
        settings: Those of its connection.
        timeout_seconds: How long the answer to a question, or each page of it, is waited for.
    """

    def __init__(self, settings: ConnectionSettings, lane: int, log: LogOut) -> None:
        self.settings = settings
        self._common = {"connection": settings.identity, "lane": lane}
        self._queue_manager = settings.queue_manager
        self.timeout_seconds = settings.timeout_seconds
        self._log = log
        self._numbers = itertools.count(1)
        self._open: dict[int, Future[dict[str, Any]]] = {}
        self._broken: LedgerMQError | None = None

    def put(self, kind: str, *, not_before: int = -1, wait_ms: int = 0, **more: Any) -> int:
        number = next(self._numbers)
        self._log.ask(self._encoded(number, kind, not_before, wait_ms, more))
        return number

    def _encoded(
        self, number: int, kind: str, not_before: int, wait_ms: int, more: dict[str, Any]
    ) -> bytes:
        datum = {
            **self._common,
            "question": number,
            "kind": kind,
            "not_before": not_before,
            "wait_ms": wait_ms,
            # Of bytes, fastavro takes the default in the schema for text; it knows all others.
            "group_id": b"",
            **more,
        }
        try:
            value = encode_record(ASK, datum)
        except (ValueError, OverflowError) as error:
            raise IllegalStateError(not_encodable(f"a question ({kind})", more)) from error
        if len(value) > VALUE_BYTES_MAX:
            raise too_large(f"a question ({kind})", more, value)
        return value

    def ask(self, kind: str, not_before: int = -1, **more: Any) -> Answer:
        """Asks, again every second, and returns the answer; all of it, if it comes in pages.

        Its position is that of the first page.

        Raises:
            WorkerUnavailableError: nobody answered within the time-out.
            ConnectionClosedError: the connection cannot go on.
            LedgerMQError: the question was refused.
        """
        deadline = time.monotonic() + self.timeout_seconds
        while True:
            try:
                return whole_answer(list(self.pages(kind, not_before, **more)))
            except _ExpiredError as error:
                # The worker that began it is gone, or had to wait too long.
                if time.monotonic() > deadline:
                    raise WorkerUnavailableError(str(error)) from error

    def position(self, timeout_seconds: float) -> int | None:
        """The position that the worker is at; None if none answers in time.

        Raises:
            WorkerUnavailableError: A worker says that none can go on with the queue manager.
        """
        try:
            return self._ask_page("QUEUE_MANAGER", -1, timeout_seconds, after="").position
        except ConnectionClosedError:
            return None
        except WorkerUnavailableError as error:
            if error.code == Reason.QUEUE_MANAGER_STOPPED:
                raise
            return None

    def bytes_max_of(self, queue: str) -> int:
        """Largest content of a queue's messages; 0: the limit of the log."""
        found: int = self.ask("QUEUE", queue=queue).document["message_bytes_max"]
        return found

    def in_flight_of(self, handle: int) -> set[int]:
        answer = self.ask("RESYNC")
        return {
            number
            for outcome in answer.outcomes
            if isinstance(outcome, Delivered) and outcome.session == handle
            for number in range(
                outcome.first_delivery, outcome.first_delivery + len(outcome.messages)
            )
        }

    def pages(
        self, kind: str, not_before: int = -1, *, after: str = "", **more: Any
    ) -> Iterator[Answer]:
        """Asks for an answer page by page, each with the position that it is true at; as `ask`."""
        while True:
            answer = self._ask_page(kind, not_before, after=after, **more)
            yield answer
            after = answer.behind
            if not after:
                return

    def _ask_page(
        self, kind: str, not_before: int, timeout_seconds: float | None = None, **more: Any
    ) -> Answer:
        question: Future[dict[str, Any]] = Future()
        number = next(self._numbers)
        timeout_seconds = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + timeout_seconds
        wait_ms = int(timeout_seconds * 1000) if not_before >= 0 else 0
        value = self._encoded(number, kind, not_before, wait_ms, more)
        self._open[number] = question
        try:
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    away = self._log.away
                    hint = f"{away}: {BRING_BACK}" if away else NO_WORKER
                    raise WorkerUnavailableError(
                        f"no worker of {self._queue_manager} answered a question ({kind}) within "
                        f"{timeout_seconds:.3g} s; {hint}"
                    )
                if self._broken is not None:
                    raise self._broken
                self._log.ask(value)
                with suppress(TimeoutError):
                    found = question.result(min(left, ASK_AGAIN_SECONDS))
                    break
        finally:
            del self._open[number]
        return self._read(found, _destination(kind, more.get("queue")))

    def _read(self, found: dict[str, Any], destination: str | None) -> Answer:
        if found["reason"] == Reason.ANSWER_EXPIRED:
            raise _ExpiredError(found["detail"])
        if found["reason"]:
            raise error_of_reason(
                found["reason"],
                found["detail"],
                queue_manager=self._queue_manager,
                # Who says that has no state, and so no position.
                position=None
                if found["reason"] == Reason.QUEUE_MANAGER_STOPPED
                else found["position"],
                destination=destination,
            )
        join_delivered(found)
        document = found["document"]
        return Answer(
            position=found["position"],
            time=found["time"],
            document=None if document is None else json.loads(document),
            outcomes=[outcome_from_union(one) for one in found["outcomes"]],
            messages=found["messages"],
            behind=found["next"],
        )

    def give_up(self, error: LedgerMQError) -> None:
        """No answer will come any more: whoever waits for one, or asks later, is told so."""
        self._broken = error

    def take(self, answer: dict[str, Any]) -> None:
        """Takes an answer from the lane; one that nobody waits for is a repeat."""
        question = self._open.get(answer["question"])
        if question is not None and not question.done():
            question.set_result(answer)


def _destination(kind: str, name: str | None) -> str | None:
    return f"{'topic' if kind == 'TOPIC' else 'queue'}:{name}" if name else None
