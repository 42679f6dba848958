"""Consumers for asyncio, and the messages they get."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ledgermq.aio.browser import Browser
from ledgermq.aio.waiting import Closing, News
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.consumer import Consumer as ThreadedConsumer
from ledgermq.client.getting import GetMatch, Order
from ledgermq.client.message import Message as ThreadedMessage
from ledgermq.errors import DeliveryUnknownError
from ledgermq.protocol.get_options import Options
from ledgermq.protocol.outcomes import DeliveredMessage

__all__ = ["Consumer", "Message"]


@typed
class Message(ThreadedMessage):
    """A message as `ledgermq.Message` has it; acknowledging is awaited."""

    __slots__ = ("_news",)

    def __init__(self, raw: DeliveredMessage, delivery: int, consumer: Consumer) -> None:
        found = consumer._consumer
        super().__init__(raw, found._destination, delivery, found._session)
        self._news = consumer._news

    async def acknowledge(  # type: ignore[override]
        self, *, timeout: float | None = None
    ) -> None:
        """Acknowledges: everything the session has handed over (CLIENT), or this one (INDIVIDUAL).

        In AUTO mode there is nothing to do and nothing is done. Raises what
        `ledgermq.Message.acknowledge` raises.
        """
        check_seconds("timeout", timeout)
        session = self._session
        assert session is not None, "it was got"
        await self._news.room(timeout)
        begun = session._begin_acknowledge_message(self)
        if begun is None:
            return
        pending, ranges = begun
        try:
            await self._news.reply(pending, timeout)
        except DeliveryUnknownError:
            await asyncio.to_thread(session._settling.keep_those_known, ranges)
            raise


@typed
class Consumer(Closing):
    """Made by `session.consumer(...)`; iterate over it with `async for`."""

    def __init__(self, consumer: ThreadedConsumer, news: News) -> None:
        self._consumer = consumer
        self._core = consumer._core
        self._news = news

    @property
    def destination(self) -> str:
        """Where it receives from."""
        return self._consumer.destination

    async def receive(
        self,
        timeout: float | None = None,
        *,
        order: Order | str | None = None,
        all_messages_available: bool | None = None,
        all_segments_available: bool | None = None,
        complete_message: bool | None = None,
        match: GetMatch | None = None,
        under_cursor: Browser | None = None,
    ) -> Message | None:
        """The next message; None after `timeout` seconds without one, or when closed meanwhile.

        Without a time-out it waits for as long as it takes; with 0 it asks for what is there, and
        does not wait for what is yet to be put. When the coroutine is cancelled, no message is
        lost. The options of a call, what they raise and what it warns of are those of
        `ledgermq.Consumer.receive`.

        Raises:
            IllegalStateError: consumer or session are closed already.
            SessionLostError: the queue manager ended the session.
        """
        check_seconds("timeout", timeout)
        if under_cursor is not None and timeout is None:
            timeout = 0.0
        consumer = self._consumer
        wanted = consumer._options.of_call(
            order,
            all_messages_available,
            all_segments_available,
            complete_message,
            match,
            None if under_cursor is None else under_cursor._browser,
            consumer._buffer,
        )
        found = await self._next(timeout, wanted, group=False)
        return found[0] if found else None

    async def receive_group(self, timeout: float | None = None) -> list[Message]:
        """A whole group, or one message in none; see `ledgermq.Consumer.receive_group`.

        When the coroutine is cancelled, no message is lost.
        """
        check_seconds("timeout", timeout)
        return await self._next(timeout, self._consumer._options.of_groups(), group=True)

    async def _next(self, timeout: float | None, wanted: Options, *, group: bool) -> list[Message]:
        """Waits for a message or a whole group; empty after a time-out or the end."""
        consumer, core = self._consumer, self._core
        buffer = consumer._buffer
        deadline = self._news.deadline(timeout)
        with core.lock:
            consumer._check_locked()
            consumer._wanted = wanted
            if not group:
                buffer.put_back_gathered()
        heard = -1
        while True:
            told = hearing = None
            with core.lock:
                if consumer._closed or core.closing:
                    return []
                # Not "usable": another coroutine may be rolling back, in a thread of the pool.
                core.check_alive_locked()
                consumer.ask_locked()
                doubt = buffer.doubt if buffer.in_doubt and not core.protocol.full else 0
                if doubt:
                    told = core.write_handing_locked(buffer)
                elif not buffer.in_doubt and consumer.is_there_locked(group):
                    return self._take_locked(group)
                elif group and consumer.goes_on_locked() and not core.protocol.full:
                    continue
                else:
                    consumer._settling.write_locked()
                    asks = timeout == 0 and buffer.gathered > heard and consumer.unheard_locked()
                    if asks and not core.protocol.full:
                        heard = buffer.gathered
                        hearing = consumer.write_hearing_locked()
                    else:
                        future = self._news.future_locked()
            if told is not None:
                await self._news.reply(told, None)
                with core.lock:
                    buffer.resolve(doubt)
                continue
            if hearing is not None:
                await self._news.reply(hearing, None)
                with core.lock:
                    consumer.heard_locked(hearing)
                continue
            if await self._news.wait(future, deadline):
                continue
            gathered = buffer.gathered
            crossed = not consumer._prefetch and await asyncio.to_thread(consumer._crossed, group)
            # The group was there as a whole, so its rest is not waited for.
            if not crossed and buffer.gathered == gathered:
                return []

    def _take_locked(self, group: bool) -> list[Message]:
        """Hands over what is there: a message, or the group that was gathered."""
        consumer = self._consumer
        taken = consumer.take_group_locked() if group else [consumer.take_locked()]
        for first, last, _ in taken:
            consumer._settling.hand_over_run_locked(first, last)
        return [Message(raw, first, self) for first, _, raw in taken]

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Messages for as long as consumer and session are open."""
        while not self._consumer._closed:
            message = await self.receive()
            if message is None:
                return
            yield message

    async def close(self, *, timeout: float | None = None) -> None:
        """Ends it: what was never handed over goes back, what was stays with the session.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.
        """
        await asyncio.to_thread(self._consumer.close, timeout=timeout)
