"""Producers and group senders for asyncio."""

from __future__ import annotations

from collections.abc import Iterable

from ledgermq.aio.waiting import Taking, awaited
from ledgermq.client.argument_types import typed
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.sending.group_sender import GroupNumbers, OfGroup
from ledgermq.client.sending.making import check_bodies
from ledgermq.client.sending.putter import OfProducer, Putter
from ledgermq.client.sending.receipts import ReceiptFuture, SendReceipt
from ledgermq.client.tracing import sending_batch


@typed
class GroupSender(OfGroup):
    """Made by `producer.group()`, for an `async with` block; see `ledgermq.GroupSender`.

    Messages of one group are sent one after the other: await each before the next.
    """

    def __init__(self, numbers: GroupNumbers, taking: Taking) -> None:
        self._shared = numbers
        self._taking = taking

    send = awaited(GroupNumbers.send)
    send_segmented = awaited(GroupNumbers.send_segmented)

    async def __aenter__(self) -> GroupSender:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._shared.leave(kind is not None)


@typed
class Producer(OfProducer):
    """Made by `session.producer(...)`; its calls take, do and raise what those of `ledgermq` do.

    So do its attributes. `send` has no `confirm`, and there is no `send_async`.

    Messages in logical order are sent one after the other: await each before the next. When a
    coroutine is cancelled, what it was sending may be sent all the same, or some of its segments.
    """

    __slots__ = ("_taking",)

    def __init__(self, putter: Putter, taking: Taking) -> None:
        self._shared = putter
        self._taking = taking

    send = awaited(Putter.send)
    send_segmented = awaited(Putter.send_segmented)
    flush = awaited(Putter.flush)

    def group(
        self, group_id: bytes | None = None, after: int = 0, *, destination: str | None = None
    ) -> GroupSender:
        """See `ledgermq.Producer.group`; for an `async with` block."""
        numbers = GroupNumbers(self._shared, group_id, after, destination)
        return GroupSender(numbers, self._taking)

    async def send_many(
        self,
        bodies: Iterable[Sendable],
        *,
        destination: str | None = None,
        timeout: float | None = None,
    ) -> list[SendReceipt]:
        """See `ledgermq.Producer.send_many`."""
        check_bodies(bodies)
        futures: list[ReceiptFuture[SendReceipt]] = []
        with sending_batch(destination or self._shared.destination, futures):
            with self._shared.counting(futures):
                for body in bodies:
                    steps = self._shared.send_async(body, {"destination": destination})
                    futures.append(await self._taking.run(steps))
            if not self._shared.work.transacted:
                await self.flush(timeout=timeout)
            return [future.result(0) for future in futures]

    def close(self) -> None:
        """See `ledgermq.Producer.close`."""
        self._shared.close()
