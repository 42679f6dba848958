"""What happens to a store, as the pass over it takes it, and what that tells of (law F)."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from ledgermq.protocol.get_options import Options
from ledgermq.selector import Selector
from ledgermq_spark.laws.order.store_records import Consumer, Message, message_of
from ledgermq_spark.log.headers import options_of

# Of an event what tells of a message, as `message_of` has it.
OF_MESSAGE: Final = (
    *("sequence", "priority", "message_id", "is_persistent", "time_us", "text", "flag"),
)


class Event(NamedTuple):
    """Something that happens to a store: a move if it has a step, else to a consumer or settings.

    `what` is the state after a move. `behind_index` is that of the outcome behind which it comes in
    its entry (-1: before all): of its Delivered, else of the operation's reply. `number` is a
    delivery of a move, a credit, or a delivery up to which something was handed over; `text` is the
    header of a message, a selector, options or settings.
    """

    position: int
    step: int | None
    behind_index: int
    what: str
    before: str | None
    cause: str | None
    sequence: int
    session: int
    consumer: int
    number: int
    text: str | None
    time_us: int
    priority: int
    message_id: bytes | None
    is_persistent: bool | None
    flag: bool | None

    @property
    def is_in_group(self) -> bool:
        """Whether the message that a move brings is in a group."""
        return bool(self.flag) and '"g":' in (self.text or "")

    @property
    def as_message(self) -> Message:
        """The message that a move brings."""
        is_in_unit = "uncommitted put" in (self.before, self.what)
        told = (getattr(self, name) for name in OF_MESSAGE)
        return message_of(*told, is_in_unit=is_in_unit)

    def as_consumer(self, selector: Selector | None) -> Consumer:
        """The consumer to whom it happens, as one that is new."""
        return Consumer(
            session=self.session,
            number=self.consumer,
            selector=selector,
            priority=self.priority,
        )

    @property
    def as_options(self) -> Options | None:
        """The options that a Get asks with, if it has any."""
        return None if self.text is None else options_of(json.loads(self.text))
