"""Transfers go on from their queue to a target, in the order of their numbers, each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ledgermq.client.connection import Connection
from ledgermq.client.options import AckMode
from ledgermq.errors import LedgerMQError
from ledgermq.protocol.outcomes import DeliveredMessage
from ledgermq.relay.running import SourceMovedError, Tell
from ledgermq.relay.transfers import decode_transfer, moving_session


class TransfersForgottenError(LedgerMQError):
    """The goal has taken transfers of which the queue manager that they came from knows nothing."""

    code = "transfers-forgotten"


class Goal(Protocol):
    """Where transfers go; it remembers the last one that it took, however this process ends."""

    @property
    def taken(self) -> int | None:
        """Number of the last transfer that it took; None: none that it knows of."""

    def check(self, message: DeliveredMessage) -> None:
        """Raises one of `transfers.NEVER_TAKEN` if it can never take this one."""

    def take(self, number: int, messages: Sequence[DeliveredMessage]) -> None:
        """Takes the messages of a transfer as one, unless it has taken that number."""


class Forwarder:
    """Reads the queue of transfers; what it holds goes back if it ends anywhere.

    Raises:
        TransfersForgottenError: The queue was put back to a time before its last transfers; what it
            gives their numbers now would be taken for them, and be lost.
    """

    def __init__(
        self, connection: Connection, transfers: str, goal: Goal, tell: Tell = print
    ) -> None:
        self._connection = connection
        self._transfers = transfers
        self._goal = goal
        self._tell = tell
        self._session = moving_session(connection, AckMode.CLIENT)
        self._check_known()
        self._consumer = self._session.consumer("queue:" + transfers)

    def _check_known(self) -> None:
        taken, now = self._goal.taken, self._session.handle
        made = self._connection.admin.queue_status(self._transfers, not_before=now).next_sequence
        if taken is not None and taken >= made:
            raise TransfersForgottenError(
                f"transfers up to {taken} of queue {self._transfers} were taken where they go, and "
                f"{self._connection.queue_manager} knows of {made} only: it was restored to an "
                "earlier moment. Delete from the queue that they came from what is there already, "
                "as ids tell; then delete this queue with what waits in it, which is there too "
                "(`ledgermq relay delete --purge` and `create`; of a bridge `ledgermq queue delete "
                f"{self._transfers} --purge`)"
            )

    def forward(self, wait_seconds: float) -> int:
        """Sends one transfer on, if there is one in time; returns how many messages it has."""
        message = self._consumer.receive(wait_seconds)
        if message is None:
            return 0
        messages = decode_transfer(message)
        number, taken = message.sequence, self._goal.taken
        if taken is None or number > taken:
            expected = 0 if taken is None else taken + 1
            if number != expected:
                self._check_left_out(number)
                self._tell(
                    f"transfers {expected} to {number - 1} are not in queue {self._transfers} any "
                    "more, and where they go knows nothing of them: they were removed, or what had "
                    "taken them was deleted or restored to an earlier moment. It goes on behind "
                    "them; `ledgermq replay` puts them again"
                )
            self._goal.take(number, messages)
        self._session.acknowledge()
        return len(messages)

    def _check_left_out(self, number: int) -> None:
        """Numbers may be left out whose transfers are gone, and none that somebody else holds."""
        lowest = self._connection.admin.queue_status(self._transfers).min_sequence
        if lowest < number:
            raise SourceMovedError(
                f"transfer {number} in queue {self._transfers} came before transfer {lowest}, "
                "which must go first and is held by another run of this relay or bridge: this one "
                "waits until the other goes on or ends; `ledgermq session list` shows both"
            )
