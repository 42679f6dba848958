"""Group senders for asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from ledgermq.client.argument_types import typed
from ledgermq.client.group_sender import GroupSender as ThreadedGroupSender
from ledgermq.client.message_kinds import Sendable
from ledgermq.client.receipts import SendReceipt
from ledgermq.wire.content import PropertyValue

if TYPE_CHECKING:
    from ledgermq.aio.producer import Producer

__all__ = ["GroupSender"]


@typed
class GroupSender:
    """Made by `producer.group()`, for an `async with` block; see `ledgermq.GroupSender`.

    Messages of one group are sent one after the other: await each before the next.
    """

    def __init__(self, producer: Producer, sender: ThreadedGroupSender) -> None:
        self._producer = producer
        self._sender = sender

    @property
    def group_id(self) -> bytes:
        """24 bytes."""
        return self._sender.group_id

    @property
    def group_sequence(self) -> int:
        """Number of the message sent last; before the first one, what the group was begun after."""
        return self._sender.group_sequence

    async def send(
        self,
        body: Sendable,
        *,
        last: bool = False,
        properties: Mapping[str, PropertyValue] | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        type: str | None = None,  # noqa: A002 - the name that the message's field has
        priority: int | None = None,
        persistent: bool | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
        segmentation_allowed: bool = False,
        timeout: float | None = None,
    ) -> SendReceipt:
        """Sends the group's next message, with `last` its last one.

        Raises:
            IllegalStateError: the group has had its last message.
            LedgerMQError: what `ledgermq.GroupSender.send` raises.
        """
        sending = self._producer._producer._sending(
            properties,
            correlation_id,
            reply_to,
            type,
            priority,
            persistent,
            time_to_live,
            delivery_delay,
        )
        sender = self._sender
        grouping = sender._next(last)._replace(segmentation_allowed=segmentation_allowed)
        receipts = await self._producer._put(body, sender._destination, sending, grouping, timeout)
        return receipts[0]

    async def send_segmented(
        self,
        body: Sendable,
        *,
        max_segment: int,
        last: bool = False,
        properties: Mapping[str, PropertyValue] | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        type: str | None = None,  # noqa: A002 - the name that the message's field has
        priority: int | None = None,
        persistent: bool | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
        timeout: float | None = None,
    ) -> list[SendReceipt]:
        """Sends the group's next message in segments.

        Raises:
            IllegalStateError: the group has had its last message.
            LedgerMQError: what `ledgermq.GroupSender.send_segmented` raises.
        """
        sending = self._producer._producer._sending(
            properties,
            correlation_id,
            reply_to,
            type,
            priority,
            persistent,
            time_to_live,
            delivery_delay,
        )
        sender = self._sender
        grouping = sender._next(last)._replace(max_segment=max_segment)
        return await self._producer._put(body, sender._destination, sending, grouping, timeout)

    async def __aenter__(self) -> GroupSender:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sender._leave(kind is not None)
