"""Sends the messages of one group, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import shown
from ledgermq.client.grouping import (
    GroupPlace,
    PutState,
    checked_group_id,
    is_open,
    left_open,
    new_group_id,
)
from ledgermq.client.putting import Grouping
from ledgermq.client.receipts import SendReceipt
from ledgermq.errors import IllegalStateError, InvalidGroupError
from ledgermq.protocol.limits import GROUP_SEQUENCE_MAX
from ledgermq.warning_kinds import give_warning
from ledgermq.wire.content import PropertyValue

if TYPE_CHECKING:
    from ledgermq.client.message_kinds import Sendable
    from ledgermq.client.producer import Producer

__all__ = ["GroupSender"]


@typed
class GroupSender:
    """Made by `producer.group()`; numbers the messages and ends the group with `last=True`.

    The `with` block may span several units of work (GRP-24): after each commit, `group_id` and
    `group_sequence` are what a putter saves to go on after a failure (GRP-26); a rollback takes
    `group_sequence` back to what the last commit left. Left before the last message was sent, the
    block gives an IncompleteGroupWarning, unless an exception ends it; the group can be gone on
    with by `producer.group(group_id, after=group_sequence)`.

    Attributes:
        group_id: 24 bytes.
    """

    def __init__(
        self,
        producer: Producer,
        group_id: bytes | None,
        after: int,
        destination: str | None,
    ) -> None:
        self._producer = producer
        self._destination = producer._target(destination)
        self._after = after
        self._state = PutState()
        if type(after) is not int or not 0 <= after <= GROUP_SEQUENCE_MAX:
            raise InvalidGroupError(
                f"after is {shown(after)}, must be 0 to {GROUP_SEQUENCE_MAX}",
                destination=self._destination,
            )
        if after and group_id is None:
            raise InvalidGroupError(
                f"a group is gone on with after message {after} by its id: give group_id too",
                destination=self._destination,
            )
        self.group_id = (
            new_group_id() if group_id is None else checked_group_id(group_id, self._destination)
        )

    @property
    def group_sequence(self) -> int:
        """Number of the message sent last; before the first one, what the group was begun after."""
        self._state.settle()
        current = self._state.current
        return self._after if current is None else current["group_sequence"]

    def send(
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
        """Sends the group's next message, with `last` its last one; else as `Producer.send`.

        Raises:
            IllegalStateError: the group has had its last message.
            GroupClashError: what is in the queue forbids the message.
            LedgerMQError: what `Producer.send` raises.
        """
        sending = self._producer._sending(
            properties,
            correlation_id,
            reply_to,
            type,
            priority,
            persistent,
            time_to_live,
            delivery_delay,
        )
        grouping = self._next(last)._replace(segmentation_allowed=segmentation_allowed)
        return self._producer._put(body, self._destination, sending, grouping, timeout)[0]

    def send_segmented(
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
        """Sends the group's next message in segments; as `Producer.send_segmented`.

        Raises:
            IllegalStateError: the group has had its last message.
            LedgerMQError: what `Producer.send_segmented` raises.
        """
        sending = self._producer._sending(
            properties,
            correlation_id,
            reply_to,
            type,
            priority,
            persistent,
            time_to_live,
            delivery_delay,
        )
        grouping = self._next(last)._replace(max_segment=max_segment)
        return self._producer._put(body, self._destination, sending, grouping, timeout)

    def _next(self, last: bool) -> Grouping:
        """The next message: in logical order, or by its number where the producer was elsewhere."""
        number = self.group_sequence + 1
        here = self._state.current
        if here is not None and not is_open(here):
            raise IllegalStateError(
                f"group {self.group_id.hex()} has had its last message, {here['group_sequence']}; "
                "begin another one with producer.group()",
                destination=self._destination,
            )
        state = self._producer._states.get(self._destination)
        there = None if state is None else state.current
        if here is None:
            # Behind messages that another putter put, the first one names its place (GRP-30).
            follows = not self._after and not is_open(there)
        else:
            follows = there is here
        place = GroupPlace(group_id=self.group_id, group_sequence=number, last_in_group=last)
        return Grouping(place, follows, followed=self._state)

    def _leave(self, failed: bool) -> None:
        """Ends it; warns of a group that is not complete, unless an exception tells enough."""
        self._state.settle()
        current = self._state.current
        state = self._producer._states.get(self._destination)
        if state is not None and state.current is current:
            state.forget()
            del self._producer._states[self._destination]
        if not failed:
            warning = left_open(current, f"a group of {self._destination} was left")
            if warning is not None:
                give_warning(warning)

    def __enter__(self) -> GroupSender:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave(kind is not None)
