"""Which options a call of a consumer has: its own, or those that the call gives (GRP-34)."""

from __future__ import annotations

from typing import Protocol

from ledgermq.client.destinations import is_topic
from ledgermq.client.options import GetOptionsOfCall
from ledgermq.client.receiving.getting import GetMatch, Getting, Order
from ledgermq.client.sansio.buffer import ConsumerBuffer
from ledgermq.errors import GetOptionsError, IllegalStateError
from ledgermq.errors.warnings import give_warning
from ledgermq.protocol.get_options import PLAIN, Options


class Cursor(Protocol):
    """A browser, of threads or of coroutines."""

    def cursor_on(self, destination: str) -> int:
        """Sequence number of the message that it has shown last."""


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
        self, given: GetOptionsOfCall, under_cursor: Cursor | None, buffer: ConsumerBuffer
    ) -> Options:
        """What one call asks for: the consumer's own options unless it says otherwise.

        Warns of a change that leaves a group or message incomplete (GRP-41, GRP-42).
        """
        wanted = self.own
        if under_cursor is not None or any(one is not None for one in given.values()):
            one_match = under_cursor is None or given.get("match") is None
            self._check_call("options of its own", one_match)
            getting = self._getting.changed(given)
            if under_cursor is not None:
                getting = getting._replace(
                    match=GetMatch(sequence=under_cursor.cursor_on(self._destination)),
                    order=given.get("order") or Order.PHYSICAL,
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
