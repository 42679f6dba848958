"""What a session that is not transacted acknowledges, and gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.client.acknowledge_mode import AckMode
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


class SessionSettling(SessionMaking):
    """The part of a session that settles without units of work."""

    _mode: AckMode
    _settling: Settling

    @property
    def transacted(self) -> bool:
        """Whether it works in units of work."""
        return self._mode is AckMode.TRANSACTED

    def acknowledge(
        self, *, timeout: float | None = None, wait: bool = True, turn_timeout: float = 0.0
    ) -> None:
        """Acknowledges everything that the session has handed over (CLIENT, INDIVIDUAL).

        While the FIFO mode PROTECTED of a queue refuses it, it is asked again for `turn_timeout`
        seconds, if it is waited for at all.

        Raises:
            OutOfTurnError: a message received before is not settled; nothing changed.
            IllegalStateError: the session is transacted or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        check_seconds("timeout", timeout)
        with self._core.lock:
            self._check_not_transacted_locked("acknowledge")
        ask_in_turn(lambda: self._settling.acknowledge(None, timeout, wait), turn_timeout)

    def recover(self, *, timeout: float | None = None) -> None:
        """Returns everything unacknowledged; delivery begins again with the oldest.

        Raises:
            IllegalStateError: the session is transacted or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        check_seconds("timeout", timeout)
        with self._core.lock:
            self._check_not_transacted_locked("recover")
        self._settling.give_back(timeout)

    def _check_not_transacted_locked(self, what: str) -> None:
        self._core.check_usable_locked()
        if self.transacted:
            raise IllegalStateError(
                f"{what} is not for a transacted session: commit or roll back instead"
            )

    def _acknowledge_message(self, message: Message, timeout: float | None, wait: bool) -> None:
        check_seconds("timeout", timeout)
        with self._core.lock:
            self._check_not_transacted_locked("acknowledge")
        if not self._settling.automatic:
            self._settling.acknowledge(self._settled_by(message), timeout, wait)

    def _begin_acknowledge_message(self, message: Message) -> tuple[Pending, DeliveryRanges] | None:
        """Writes the acknowledgement of a message; None if there is nothing to acknowledge."""
        with self._core.lock:
            self._check_not_transacted_locked("acknowledge")
            if self._settling.automatic:
                return None
            return self._settling.begin_acknowledge_locked(self._settled_by(message))

    def _settled_by(self, message: Message) -> range | None:
        """The deliveries that acknowledging a message settles; None for all handed over."""
        return message.deliveries if self._mode is AckMode.INDIVIDUAL else None
