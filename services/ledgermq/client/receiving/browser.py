"""Browsers: look at a queue without getting anything (PROTOCOL.md §9, §13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, Unpack

from ledgermq.client.argument_types import typed
from ledgermq.client.closing import Closing, WhileOpen
from ledgermq.client.destinations import checked_destination, is_topic
from ledgermq.client.engine.engine import Engine
from ledgermq.client.link.questions import Answer, Questions
from ledgermq.client.messages.message import Message
from ledgermq.client.options import BrowserOptions, GetOptionsOfCall
from ledgermq.client.receiving.getting import options_of
from ledgermq.client.sansio.segments import join_all
from ledgermq.errors import (
    IllegalStateError,
    InconsistentBrowseError,
    InvalidDestinationError,
    QueueNotFoundError,
    TemporaryDestinationDeletedError,
)
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.protocol.limits import PRIORITY_MAX
from ledgermq.protocol.outcomes import DeliveredMessage

PAGE_MESSAGES: Final = 500


class Cursor(NamedTuple):
    """From where a page goes on; with a group id, inside of that group."""

    after_priority: int = PRIORITY_MAX
    after_sequence: int = -1
    group_id: bytes = b""
    group_sequence: int = 0
    offset: int = 0


@typed
class Browser(Closing):
    """The available messages of a queue in delivery or logical order.

    Iterating asks for them page by page, and starts again from the front each time; `first` and
    `next` ask for one each, and keep a cursor, which is the browser's own (GRP-09). Meanwhile the
    queue may change: a message got is not shown any more, one put is shown if its place is still
    ahead. With `all_messages_available` a group that becomes complete behind the cursor is not
    shown (GRP-47).

    Beware of `next` without logical order that matches group sequence 1, to find the next group:
    if the last message of a group stands before its first, that one is shown again (GRP-11). Use
    two browsers: one that only looks for first messages, one for what is in a group (GRP-12).

    Attributes:
        destination: The queue.
        selector: Which messages are shown; empty: all.
        position: Log position that the last page read was true at; -1 before.
    """

    destination = WhileOpen[str]("_destination")
    selector = WhileOpen[str]("_selector")
    position = WhileOpen[int]("_position")

    def __init__(
        self,
        questions: Questions,
        destination: str,
        engine: Engine | None = None,
        *,
        owner: object = None,
        shared: bool = False,
        **options: Unpack[BrowserOptions],
    ) -> None:
        self._owner = owner
        self._destination = checked_destination(destination)
        if is_topic(self._destination):
            raise InvalidDestinationError(
                f"{destination} cannot be browsed: a topic keeps no messages, its subscriptions do",
                destination=destination,
            )
        self._selector = options.get("selector") or ""
        self._position = -1
        self._queue = self._destination.partition(":")[2]
        self._questions = questions
        self._given = options
        self._options = options_of(options)
        self._closed = False
        self._cursor = Cursor()
        # Whether the browse by `first` and `next` is in logical order; None before it begins.
        self._logical_order: bool | None = None
        # Sequence number of the message shown last.
        self._shown = -1
        # The session that it belongs to; `shared` by coroutines, else for one thread at a time.
        self._engine = engine
        self._shared = shared
        self._check_open()
        self._check()

    def __repr__(self) -> str:
        return f"Browser({self._destination}, {'closed' if self._closed else 'open'})"

    def _check(self) -> None:
        """Looks at the queue for a first time, so that what cannot be browsed is no browser."""
        try:
            self._page(Cursor(), self._options, 1)
        except QueueNotFoundError as error:
            if not self._queue.startswith("temporary/"):
                raise
            raise TemporaryDestinationDeletedError(
                f"{self._destination} is not there: it was deleted, or its connection has ended",
                destination=self._destination,
            ) from error
        self._position = -1

    def _check_open(self) -> None:
        if self._engine is not None:
            self._engine.check_open()
        if self._closed:
            raise IllegalStateError("the browser is closed; make another one")

    def _ask(self, ask: Callable[[], Answer]) -> Answer:
        """The answer to a question of its session, if it has one; that refuses what may not be."""
        if self._engine is None:
            return ask()
        if not self._shared:
            return self._engine.run(self._engine.ask(ask))
        with self._engine.lock:
            self._engine.check_alive_locked()
        return ask()

    def __iter__(self) -> Iterator[Message]:
        """The messages; none of them can be acknowledged.

        Raises:
            QueueNotFoundError: the queue is gone.
            IllegalStateError: the browser or its session is closed, also while this goes on.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        self._check_open()
        return self._messages()

    def _messages(self) -> Iterator[Message]:
        for page in self._pages():
            for raw in page:
                self._check_open()
                yield self._message(raw)

    def _pages(self) -> Iterator[list[DeliveredMessage]]:
        cursor, more = Cursor(), True
        while more:
            messages, more, cursor = self._page(cursor, self._options, PAGE_MESSAGES)
            yield messages

    def first(self, **options: Unpack[GetOptionsOfCall]) -> Message | None:
        """The first message from the front that the options allow, or None; wherever it was before.

        It settles the order of the calls of `next` that follow (GRP-10, GRP-13).

        Raises:
            QueueNotFoundError: there is no such queue.
            GetOptionsError: options out of range.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        wanted = options_of(self._given, options)
        self._cursor = Cursor()
        self._logical_order = wanted.logical_order
        return self._one(wanted)

    def next(self, **options: Unpack[GetOptionsOfCall]) -> Message | None:
        """The next message behind the cursor, or None; a later call may find one that came.

        In logical order it goes on in the group it is in, also if that group's first message was
        got meanwhile, and shows nothing else until what comes next in it is there (GRP-15).

        Raises:
            InconsistentBrowseError: in another order than `first` (GRP-07, GRP-08).
            MatchOptionsError: in logical order, another message comes next in the group (GRP-44).
            QueueNotFoundError: there is no such queue.
            GetOptionsError: options out of range.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        wanted = options_of(self._given, options)
        if self._logical_order is None:
            self._logical_order = wanted.logical_order
        elif self._logical_order is not wanted.logical_order:
            names = {True: "logical", False: "physical"}
            raise InconsistentBrowseError(
                f"this browse of {self._destination} began in {names[self._logical_order]} order "
                f"and cannot go on in {names[wanted.logical_order]} order: begin again with "
                "first()",
                destination=self._destination,
            )
        return self._one(wanted)

    def cursor_on(self, destination: str) -> int:
        """Sequence number of the message shown last; for `Consumer.receive(under_cursor=...)`.

        Raises:
            IllegalStateError: nothing was shown, or it is on another queue.
        """
        if destination != self._destination:
            raise IllegalStateError(
                f"the cursor is on {self._destination}, the consumer gets from {destination}: "
                "browse that one"
            )
        if self._shown < 0:
            raise IllegalStateError(
                "the cursor is on no message, as nothing was shown yet: browse to one first"
            )
        return self._shown

    def _one(self, options: Options) -> Message | None:
        """One message behind the cursor, which moves on to it."""
        more = True
        while more:
            messages, more, self._cursor = self._page(self._cursor, options, 1)
            if messages:
                return self._message(messages[0])
        return None

    def _message(self, raw: DeliveredMessage) -> Message:
        self._shown = raw["sequence"]
        return Message(raw, self._destination, allow_pickle=self._questions.settings.allow_pickle)

    def _page(
        self, cursor: Cursor, options: Options, limit: int
    ) -> tuple[list[DeliveredMessage], bool, Cursor]:
        """Messages behind a cursor, whether there may be more, and the cursor behind them."""
        self._check_open()
        ask = partial(
            self._questions.ask,
            "BROWSE",
            queue=self._queue,
            selector=self._selector,
            limit=limit,
            options=None if options == PLAIN else options.record(),
            **cursor._asdict(),
        )
        answer = self._ask(ask)
        self._position = answer.position
        document = answer.document
        behind = Cursor(*(document[name] for name in Cursor._fields))
        behind = behind._replace(group_id=bytes.fromhex(document["group_id"]))
        messages = join_all(answer.messages) if options.complete_message else answer.messages
        return messages, document["more"], behind

    def close(self) -> None:
        """Ends it. Closing twice does nothing."""
        self._closed = True
