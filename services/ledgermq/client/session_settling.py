"""What a session that is not transacted acknowledges, and gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.client.acknowledge_mode import AckMode
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.protocol import Pending
from ledgermq.client.ranges import DeliveryRanges
from ledgermq.client.session_making import SessionMaking
from ledgermq.client.settling import Settling
from ledgermq.client.taking_turns import ask_in_turn
from ledgermq.errors import IllegalStateError

if TYPE_CHECKING:
    from ledgermq.client.message import Message

__all__ = ["SessionSettling"]


@typed
class SessionSettling(SessionMaking):
    """The part of a session that settles without units of work."""

    _mode: AckMode
    _settling: Settling

    @property
    def transacted(self) -> bool:
        """Whether it works in units of work."""
        self._core.check_open()
        return self._transacted

    @property
    def _transacted(self) -> bool:
        return self._mode is AckMode.TRANSACTED

    def acknowledge(
        self, *, timeout: float | None = None, wait: bool = True, turn_timeout: float = 0.0
    ) -> None:
        """Acknowledges everything that the session has handed over (CLIENT, INDIVIDUAL).

        While the FIFO mode PROTECTED of a queue refuses it, it is asked again for `turn_timeout`
        seconds, if it is waited for at all. In a transacted session it does nothing: what was
        handed over there is settled by commit.

        Raises:
            OutOfTurnError: a message received before is not settled; nothing changed.
            IllegalStateError: the session is closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        check_seconds("timeout", timeout)
        with self._core.lock:
            self._core.check_usable_locked()
        if self._transacted:
            return
        ask_in_turn(lambda: self._settling.acknowledge(None, timeout, wait), turn_timeout)

    def recover(self, *, timeout: float | None = None) -> None:
        """Returns everything unacknowledged; delivery begins again with the oldest.

        Raises:
            IllegalStateError: the session is transacted or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        check_seconds("timeout", timeout)
        with self._core.lock:
            self._core.check_usable_locked()
        if self._transacted:
            raise IllegalStateError("recover is not for a transacted session: roll back instead")
        self._settling.give_back(timeout)

    def _acknowledge_message(self, message: Message, timeout: float | None, wait: bool) -> None:
        check_seconds("timeout", timeout)
        with self._core.lock:
            self._core.check_usable_locked()
        if not self._settling.automatic and not self._transacted:
            self._settling.acknowledge(self._settled_by(message), timeout, wait)

    def _begin_acknowledge_message(self, message: Message) -> tuple[Pending, DeliveryRanges] | None:
        """Writes the acknowledgement of a message; None if there is nothing to acknowledge."""
        with self._core.lock:
            self._core.check_usable_locked()
            if self._settling.automatic or self._transacted:
                return None
            return self._settling.begin_acknowledge_locked(self._settled_by(message))

    def _settled_by(self, message: Message) -> range | None:
        """The deliveries that acknowledging a message settles; None for all handed over."""
        return message.deliveries if self._mode is AckMode.INDIVIDUAL else None
