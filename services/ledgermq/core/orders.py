"""Orders of what consumers select: by a selector, by match options, by groups.

A queue has one order for each selector and options in use, of the available messages that these
want, so that a get looks at no message that it does not take. Some options ask for other items of
a group too: such an entry is passed over when it comes up too early, and offered again when the
group, or the logical message, has become available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.core.available import Available
from ledgermq.core.selecting import matches
from ledgermq.core.wanting import is_permitted, is_wanted
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.selector import Selector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgermq.core.message import Message
    from ledgermq.core.queue import Queue

__all__ = ["Order", "OrderKey"]

# The text of a selector, empty for none, and the options.
OrderKey = tuple[str, Options]


class Order(Available):
    """The messages that a selector and options want; `users` counts the consumers that use it."""

    __slots__ = ("options", "selector", "users")

    def __init__(self, queue: Queue, selector: Selector | None, options: Options) -> None:
        super().__init__()
        self.selector = selector
        self.options = options
        self.users = 0
        self.extend(
            message
            for message in _candidates(queue, options)
            if message.is_here and self.wants(message)
        )

    @property
    def is_of_whole_queue(self) -> bool:
        """Whether it leaves nothing out for what a message says; there are 16 such orders."""
        return self.selector is None and self.options[4:] == PLAIN[4:]

    def wants(self, message: Message) -> bool:
        """Whether it wants a message, by what never changes of that."""
        if not is_wanted(self.options, message):
            return False
        return self.selector is None or matches(self.selector, message)

    def offer_wanted(self, messages: Iterable[Message]) -> None:
        """Offers those of the messages that it wants and that may be given now."""
        for message in messages:
            if self.wants(message) and self.stands(message):
                self.offer(message)

    def stands(self, message: Message) -> bool:
        """Whether an entry's message may be given now."""
        return Available.stands(self, message) and is_permitted(self.options, message)


def _candidates(queue: Queue, options: Options) -> list[Message]:
    """Where to look for what options want, by rising sequence number."""
    if options.sequence >= 0:
        message = queue.messages.get(options.sequence)
        return [] if message is None else [message]
    if options.group_id:
        group = queue.groups.get(options.group_id)
        found: list[Message] = [] if group is None else list(group.items())
        return sorted(found, key=lambda one: one.sequence)
    return list(queue.messages.values())
