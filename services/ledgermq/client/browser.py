"""Browsers: look at a queue without getting anything (PROTOCOL.md §9)."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Final

from ledgermq.client.destinations import checked_destination, is_topic
from ledgermq.client.message import Message
from ledgermq.client.questions import Questions
from ledgermq.core.limits import PRIORITY_MAX
from ledgermq.errors import IllegalStateError, InvalidDestinationError

__all__ = ["Browser"]

PAGE_MESSAGES: Final = 500


class Browser:
    """The available messages of a queue in delivery order, asked for page by page.

    Iterating starts again from the front each time. Between pages the queue may change: a message
    got meanwhile is not shown, one put meanwhile is shown if its place is still ahead.

    Attributes:
        destination: The queue.
        selector: Which messages are shown; empty: all.
        position: Log position that the last page read was true at; -1 before.
    """

    def __init__(
        self,
        questions: Questions,
        destination: str,
        timeout_seconds: float,
        *,
        selector: str = "",
        allow_pickle: bool = False,
    ) -> None:
        self.destination = checked_destination(destination)
        if is_topic(self.destination):
            raise InvalidDestinationError(
                f"{destination} cannot be browsed: a topic keeps no messages, its subscriptions do",
                destination=destination,
            )
        self.selector = selector
        self.position = -1
        self._queue = self.destination.partition(":")[2]
        self._questions = questions
        self._timeout_seconds = timeout_seconds
        self._allow_pickle = allow_pickle
        self._closed = False

    def __iter__(self) -> Iterator[Message]:
        """The messages; none of them can be acknowledged.

        Raises:
            QueueNotFoundError: there is no such queue.
            InvalidSelectorError: the selector cannot be read (SES-40).
            WorkerUnavailableError: nobody answered within the time-out.
        """
        priority, sequence, more = PRIORITY_MAX, -1, True
        while more:
            if self._closed:
                raise IllegalStateError("the browser is closed; make another one")
            answer = self._questions.ask(
                "BROWSE",
                timeout_seconds=self._timeout_seconds,
                queue=self._queue,
                selector=self.selector,
                after_priority=priority,
                after_sequence=sequence,
                limit=PAGE_MESSAGES,
            )
            self.position = answer.position
            for raw in answer.messages:
                yield Message(raw, self.destination, allow_pickle=self._allow_pickle)
            more = answer.document["more"]
            priority = answer.document["after_priority"]
            sequence = answer.document["after_sequence"]

    def close(self) -> None:
        """Ends it. Closing twice does nothing."""
        self._closed = True

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
