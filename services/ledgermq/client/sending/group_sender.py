"""Sends the messages of one group, one after the other."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from ledgermq.client.argument_types import typed
from ledgermq.client.closing import Uncopied
from ledgermq.client.engine.steps import Steps, taken
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.options import MessageOptions
from ledgermq.client.sending.grouping import (
    GroupPlace,
    PutState,
    checked_group_id,
    is_open,
    left_open,
    new_group_id,
)
from ledgermq.client.sending.putter import Putter
from ledgermq.client.sending.putting import Grouping
from ledgermq.client.sending.receipts import SendReceipt
from ledgermq.client.tracing import sent
from ledgermq.errors import IllegalStateError, InvalidGroupError
from ledgermq.errors.shown import shown
from ledgermq.errors.warnings import give_warning
from ledgermq.protocol.limits import GROUP_SEQUENCE_MAX


class GroupNumbers:
    """Counts the messages of one group, and puts them, for threads and coroutines."""

    def __init__(
        self, putter: Putter, group_id: bytes | None, after: int, destination: str | None
    ) -> None:
        self._putter = putter
        self.destination = putter.target(destination)
        self._after = after
        self._state = PutState()
        if type(after) is not int or not 0 <= after <= GROUP_SEQUENCE_MAX:
            raise InvalidGroupError(
                f"after is {shown(after)}, must be 0 to {GROUP_SEQUENCE_MAX}",
                destination=self.destination,
            )
        if after and group_id is None:
            raise InvalidGroupError(
                f"a group is gone on with after message {after} by its id: give group_id too",
                destination=self.destination,
            )
        self.group_id = (
            new_group_id() if group_id is None else checked_group_id(group_id, self.destination)
        )

    def last_number(self) -> int:
        """Number of the message put last; before the first one, what the group was begun after."""
        self._state.settle()
        current = self._state.current
        return self._after if current is None else current["group_sequence"]

    def send(
        self,
        body: Sendable,
        *,
        last: bool = False,
        segmentation_allowed: bool = False,
        timeout: float | None = None,
        **options: Unpack[MessageOptions],
    ) -> Steps[SendReceipt]:
        """Sends the group's next message, with `last` its last one; else as `Producer.send`.

        Raises:
            IllegalStateError: the group has had its last message.
            GroupClashError: what is in the queue forbids the message.
            LedgerMQError: what `Producer.send` raises.
        """
        grouping = self._following(last)._replace(segmentation_allowed=segmentation_allowed)
        return (yield from self._put(body, grouping, timeout, options))[0]

    def send_segmented(
        self,
        body: Sendable,
        *,
        max_segment: int,
        last: bool = False,
        timeout: float | None = None,
        **options: Unpack[MessageOptions],
    ) -> Steps[list[SendReceipt]]:
        """Sends the group's next message in segments; as `Producer.send_segmented`.

        Raises:
            IllegalStateError: the group has had its last message.
            LedgerMQError: what `Producer.send_segmented` raises.
        """
        grouping = self._following(last)._replace(max_segment=max_segment)
        return self._put(body, grouping, timeout, options)

    def _put(
        self, body: Sendable, grouping: Grouping, timeout: float | None, options: MessageOptions
    ) -> Steps[list[SendReceipt]]:
        target, sending = self.destination, self._putter.sending(options)
        put = partial(self._putter.put, body, target, sending, grouping, timeout)
        return sent(target, put, len)

    def _following(self, last: bool) -> Grouping:
        """The next message: in logical order, or by its number where the producer was elsewhere."""
        number = self.last_number() + 1
        here = self._state.current
        if here is not None and not is_open(here):
            raise IllegalStateError(
                f"group {self.group_id.hex()} has had its last message, {here['group_sequence']}; "
                "begin another one with producer.group()",
                destination=self.destination,
            )
        state = self._putter.states.get(self.destination)
        there = None if state is None else state.current
        if here is None:
            # Behind messages that another putter put, the first one names its place (GRP-30).
            follows = not self._after and not is_open(there)
        else:
            follows = there is here
        place = GroupPlace(group_id=self.group_id, group_sequence=number, last_in_group=last)
        return Grouping(place, follows, followed=self._state)

    def leave(self, failed: bool) -> None:
        """Ends it; warns of a group that is not complete, unless an exception tells enough."""
        self._state.settle()
        current = self._state.current
        state = self._putter.states.get(self.destination)
        if state is not None and state.current is current:
            state.forget()
            del self._putter.states[self.destination]
        if not failed:
            warning = left_open(current, f"a group of {self.destination} was left")
            if warning is not None:
                give_warning(warning)


class OfGroup(Uncopied):
    """What a group sender says of its group, to threads and to coroutines."""

    _shared: GroupNumbers

    @property
    def group_id(self) -> bytes:
        """24 bytes."""
        return self._shared.group_id

    @property
    def group_sequence(self) -> int:
        """Number of the message sent last; before the first one, what the group was begun after."""
        return self._shared.last_number()


@typed
class GroupSender(OfGroup):
    """Made by `producer.group()`; numbers the messages and ends the group with `last=True`.

    The `with` block may span several units of work (GRP-24): after each commit, `group_id` and
    `group_sequence` are what a putter saves to go on after a failure (GRP-26); a rollback takes
    `group_sequence` back to what the last commit left. Left before the last message was sent, the
    block gives an IncompleteGroupWarning, unless an exception ends it; the group can be gone on
    with by `producer.group(group_id, after=group_sequence)`.
    """

    def __init__(
        self, putter: Putter, group_id: bytes | None, after: int, destination: str | None
    ) -> None:
        self._engine = putter.engine
        self._shared = GroupNumbers(putter, group_id, after, destination)

    send = taken(GroupNumbers.send)
    send_segmented = taken(GroupNumbers.send_segmented)

    def __enter__(self) -> GroupSender:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._shared.leave(kind is not None)
