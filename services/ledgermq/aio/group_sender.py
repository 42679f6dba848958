"""Group senders for asyncio."""

from __future__ import annotations

from types import TracebackType
from typing import Unpack

from ledgermq.aio.waiting import Taking
from ledgermq.client.argument_types import typed
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.options import MessageOptions
from ledgermq.client.sending.group_sender import GroupNumbers
from ledgermq.client.sending.receipts import SendReceipt


@typed
class GroupSender:
    """Made by `producer.group()`, for an `async with` block; see `ledgermq.GroupSender`.

    Messages of one group are sent one after the other: await each before the next.
    """

    def __init__(self, numbers: GroupNumbers, taking: Taking) -> None:
        self._numbers = numbers
        self._taking = taking

    @property
    def group_id(self) -> bytes:
        """24 bytes."""
        return self._numbers.group_id

    @property
    def group_sequence(self) -> int:
        """Number of the message sent last; before the first one, what the group was begun after."""
        return self._numbers.last_number()

    async def send(
        self,
        body: Sendable,
        *,
        last: bool = False,
        segmentation_allowed: bool = False,
        timeout: float | None = None,
        **options: Unpack[MessageOptions],
    ) -> SendReceipt:
        """Sends the group's next message, with `last` its last one.

        Raises:
            IllegalStateError: the group has had its last message.
            LedgerMQError: what `ledgermq.GroupSender.send` raises.
        """
        steps = self._numbers.put(
            body, timeout, options, last=last, segmentation_allowed=segmentation_allowed
        )
        return (await self._taking.run(steps))[0]

    async def send_segmented(
        self,
        body: Sendable,
        *,
        max_segment: int,
        last: bool = False,
        timeout: float | None = None,
        **options: Unpack[MessageOptions],
    ) -> list[SendReceipt]:
        """Sends the group's next message in segments.

        Raises:
            IllegalStateError: the group has had its last message.
            LedgerMQError: what `ledgermq.GroupSender.send_segmented` raises.
        """
        steps = self._numbers.put(body, timeout, options, last=last, max_segment=max_segment)
        return await self._taking.run(steps)

    async def __aenter__(self) -> GroupSender:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._numbers.leave(kind is not None)
