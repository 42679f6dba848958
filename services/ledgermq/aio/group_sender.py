"""Group senders for asyncio."""

from __future__ import annotations

from ledgermq.aio.waiting import Taking, awaited
from ledgermq.client.argument_types import typed
from ledgermq.client.sending.group_sender import GroupNumbers


@typed
class GroupSender:
    """Made by `producer.group()`, for an `async with` block; see `ledgermq.GroupSender`.

    Messages of one group are sent one after the other: await each before the next.
    """

    def __init__(self, numbers: GroupNumbers, taking: Taking) -> None:
        self._shared = numbers
        self._taking = taking

    @property
    def group_id(self) -> bytes:
        """24 bytes."""
        return self._shared.group_id

    @property
    def group_sequence(self) -> int:
        """Number of the message sent last; before the first one, what the group was begun after."""
        return self._shared.last_number()

    send = awaited(GroupNumbers.send)
    send_segmented = awaited(GroupNumbers.send_segmented)

    async def __aenter__(self) -> GroupSender:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._shared.leave(kind is not None)
