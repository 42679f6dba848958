"""Which options a call of a consumer has: its own, or those that the call gives (GRP-34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ledgermq.client.destinations import is_topic
from ledgermq.client.getting import GetMatch, Getting, Order
from ledgermq.errors import GetOptionsError, IllegalStateError
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.warning_kinds import give_warning

if TYPE_CHECKING:
    from ledgermq.client.browser import Browser
    from ledgermq.client.buffer import ConsumerBuffer

__all__ = ["NONE_GIVEN", "CallOptions"]

NONE_GIVEN: Final = (None,) * 5  # what a call gives that has the consumer's options


class CallOptions:
    """The options of one consumer, and what they become in its calls."""

    def __init__(
        self, getting: Getting, *, destination: str, acknowledge_mode: str, prefetch: int
    ) -> None:
        self._getting = getting
        self._destination = destination
        self._acknowledge_mode = acknowledge_mode
        self._prefetch = prefetch
        self.own = self._checked(getting.options())

    def of_call(
        self,
        order: Order | str | None,
        all_messages_available: bool | None,
        all_segments_available: bool | None,
        complete_message: bool | None,
        match: GetMatch | None,
        under_cursor: Browser | None,
        buffer: ConsumerBuffer,
    ) -> Options:
        """What one call asks for: the consumer's own options unless it says otherwise.

        Warns of a change that leaves a group or message incomplete (GRP-41, GRP-42).
        """
        given = (order, all_messages_available, all_segments_available, complete_message, match)
        wanted = self.own
        if under_cursor is not None or given != NONE_GIVEN:
            self._check_call("options of its own", match is None or under_cursor is None)
            if under_cursor is not None:
                match = GetMatch(sequence=under_cursor.cursor_on(self._destination))
                order = Order.PHYSICAL if order is None else order
            getting = self._getting.changed(
                order=order,
                all_messages_available=all_messages_available,
                all_segments_available=all_segments_available,
                complete_message=complete_message,
                match=match,
            )
            wanted = self._checked(getting.options())
        unfinished = buffer.unfinished
        if unfinished is not None and not wanted.logical_order:
            give_warning(
                unfinished(
                    f"a get from {self._destination} without logical order, though the group or "
                    "message that it was in with logical order is not complete"
                )
            )
        return wanted

    def _check_call(self, what: str, one_match: bool) -> None:
        if self._prefetch:
            raise IllegalStateError(
                f"a call can have {what} only with prefetch=0: this consumer asks for up to "
                f"{self._prefetch} messages ahead of need, by the options it was made with"
            )
        if not one_match:
            raise IllegalStateError("give match or under_cursor, not both")

    def of_groups(self) -> Options:
        """The consumer's options with those that `receive_group` needs."""
        own = self.own
        if own.logical_order and own.all_messages_available:
            return own
        if self._prefetch:
            raise IllegalStateError(
                "receive_group needs a consumer made with prefetch=0, or with order=Order.LOGICAL "
                "and all_messages_available=True"
            )
        return self._checked(own._replace(logical_order=True, all_messages_available=True))

    def _checked(self, options: Options) -> Options:
        """Options, if the kind of session and destination allow them."""
        if options != PLAIN and is_topic(self._destination):
            raise GetOptionsError(
                "messages of a topic are in no groups, and are chosen by selectors alone",
                destination=self._destination,
            )
        if options.logical_order and self._acknowledge_mode == "INDIVIDUAL":
            raise GetOptionsError(
                "logical order cannot be kept in an INDIVIDUAL session, where messages are "
                "acknowledged in any order; use another acknowledge mode",
                destination=self._destination,
            )
        return options
