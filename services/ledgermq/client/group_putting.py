"""The part of a producer that puts groups and segments (GRP-19, GRP-30, GRP-39..43)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.grouping import PutState, left_open
from ledgermq.client.making import Sending
from ledgermq.client.putting import Grouping, Putting
from ledgermq.client.receipts import ReceiptFuture, SendReceipt
from ledgermq.errors import LedgerMQError, OutcomeUnknownError, QueueNotFoundError
from ledgermq.protocol.limits import CONTENT_BYTES_MAX
from ledgermq.warning_kinds import give_warning
from ledgermq.wire.content import PropertyValue

if TYPE_CHECKING:
    from ledgermq.client.group_sender import GroupSender
    from ledgermq.client.grouping import GroupPlace
    from ledgermq.client.message_kinds import Sendable
    from ledgermq.client.producer import Producer
    from ledgermq.client.session import Session
    from ledgermq.client.session_core import SessionCore

__all__ = ["GroupPutting"]


@typed
class GroupPutting:
    """What `Producer` is made of beside its plain sends."""

    _session: Session
    _core: SessionCore
    # By destination; empty as long as nothing was put to a group, so that plain sends stay plain.
    _states: dict[str, PutState]
    _bytes_max: dict[str, int]

    def send_segmented(
        self,
        body: Sendable,
        *,
        max_segment: int,
        destination: str | None = None,
        properties: Mapping[str, PropertyValue] | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        type: str | None = None,  # noqa: A002 - the name that the message's field has
        priority: int | None = None,
        persistent: bool | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
        group: GroupPlace | None = None,
        logical_order: bool = False,
        timeout: float | None = None,
    ) -> list[SendReceipt]:
        """Sends text or bytes in segments of at most `max_segment` bytes each (of text: UTF-8).

        Each segment is a message of its own with its piece as body, and carries properties,
        correlation_id, type and reply_to; text is cut between characters. A getter puts them
        together again with `complete_message=True`. A body that is short enough is one message
        without segments. The other options are those of `send`.

        In a transacted session all are put together with the commit. Otherwise so is what goes
        into one operation, of up to 4 MiB; a larger message is put one operation after the other.

        Raises:
            MessageFormatError: another kind of body, or a character larger than a segment.
            MessageTooLargeError: the queue takes no message as large as a segment.
            GroupNotAllowedError: the destination is a topic (GRP-45).
            LedgerMQError: what `send` raises; segments in earlier operations stay put.
        """
        producer = cast("Producer", self)
        sending = producer._sending(
            properties,
            correlation_id,
            reply_to,
            type,
            priority,
            persistent,
            time_to_live,
            delivery_delay,
        )
        grouping = Grouping(group, logical_order, max_segment=max_segment)
        return self._put(body, destination, sending, grouping, timeout)

    def group(
        self, group_id: bytes | None = None, after: int = 0, *, destination: str | None = None
    ) -> GroupSender:
        """A sender of one group's messages in logical order, for a `with` block.

            with producer.group() as group:
                group.send("first")
                group.send("second", last=True)

        Args:
            group_id: 24 bytes; None: a new random one (GRP-39).
            after: To go on with a group that was put up to this number, as a putter does that was
                started again: the next message has the number after it (GRP-30). 0: a new group.
            destination: For a producer that has none of its own.

        Raises:
            InvalidGroupError: the id is none, or the number, or a number came without an id.
        """
        from ledgermq.client.group_sender import GroupSender

        return GroupSender(cast("Producer", self), group_id, after, destination)

    def learn_bytes_max(self, target: str) -> int:
        """Largest content of a message that a queue takes, in bytes; asked once, then remembered.

        Raises:
            WorkerUnavailableError: nobody answered within the time-out.
        """
        known = self._bytes_max.get(target)
        if known is not None:
            return known
        try:
            found = self._session._ask_bytes_max(target.partition(":")[2]) or CONTENT_BYTES_MAX
        except QueueNotFoundError:
            return CONTENT_BYTES_MAX  # the send may create it; it is asked again then
        self._bytes_max[target] = found
        return found

    def _put(
        self,
        body: Sendable,
        destination: str | None,
        sending: Sending,
        grouping: Grouping,
        timeout: float | None,
    ) -> list[SendReceipt]:
        """Puts one message, whole or in segments, and waits for its outcomes."""
        check_seconds("timeout", timeout)
        producer, core = cast("Producer", self), self._core
        putting = Putting(producer, producer._target(destination), body, sending, grouping)
        with core.lock:
            while True:
                producer._check_locked()
                core.wait_for_room_locked(timeout)
                pending = putting.begin_locked(timeout)
                if pending is None:
                    break
                try:
                    reply = core.await_locked(pending, timeout)
                except OutcomeUnknownError:
                    raise
                except LedgerMQError:
                    putting.refused()
                    raise
                assert pending.result is not None, "a put knows what its reply means"
                pending.result(reply)
        return putting.finished()

    def _put_async(
        self,
        body: Sendable,
        destination: str | None,
        sending: Sending,
        grouping: Grouping,
    ) -> ReceiptFuture[SendReceipt]:
        """Puts one message without waiting for outcomes."""
        producer = cast("Producer", self)
        putting = Putting(producer, producer._target(destination), body, sending, grouping)
        with self._core.lock:
            eventuals = putting.write_async_locked()
        return putting.future(eventuals)

    def _warn_of_open_groups(self) -> None:
        """Warns of what logical order left open, at the producer's end (GRP-41, GRP-42)."""
        states, self._states = self._states, {}
        for destination, state in states.items():
            state.settle()
            current = state.current
            if current is not None and current["logical_order"]:
                warning = left_open(current, f"a producer of {destination} was closed")
                if warning is not None:
                    give_warning(warning)
