"""What a session has handed over, and how it is settled or given back."""

from __future__ import annotations

from collections.abc import Callable

from ledgermq.client.protocol import Pending
from ledgermq.client.ranges import DeliveryRanges
from ledgermq.client.session_core import SessionCore
from ledgermq.errors import (
    AlreadySettledError,
    DeliveryUnknownError,
    LedgerMQError,
    OutOfTurnError,
)
from ledgermq.protocol.operations import Acknowledge, Recover, Rollback

__all__ = ["Settling"]


class Settling:
    """Deliveries of one session from the moment the application has them.

    Attributes:
        automatic: Whether the library acknowledges (AUTO, DUPS_OK).
        handed: Handed over and neither settled nor given back: where the application does that, or
            while a listener has it.
    """

    def __init__(
        self,
        core: SessionCore,
        in_flight: Callable[[int], set[int]],
        soon: Callable[[], None],
    ) -> None:
        self._core = core
        self._in_flight = in_flight
        self._soon = soon
        self._lazy = core.mode == "DUPS_OK"
        self.automatic = core.mode in ("AUTO", "DUPS_OK")
        self._withdraw: type[Rollback | Recover] = (
            Rollback if core.mode == "TRANSACTED" else Recover
        )
        self.handed = core.handed

    def hand_over_run_locked(self, first: int, last: int) -> None:
        """The application gets messages numbered one after the other."""
        if self.automatic:
            self._core.unwritten.add_range(first, last)
            if not self._lazy:
                self._soon()
        else:
            self.handed.add_range(first, last)

    def call_locked(self, first: int, last: int) -> None:
        """A listener gets a message now: in every mode it counts as handed over (decision 24)."""
        self.handed.add_range(first, last)

    def returned_locked(self, first: int, last: int) -> None:
        """AUTO and DUPS_OK: a listener has returned, so that its message is acknowledged (SES-05).

        Unless the listener itself has given it back.
        """
        if self.automatic and first in self.handed:
            for delivery in range(first, last + 1):
                self.handed.discard(delivery)
            self.hand_over_run_locked(first, last)

    def write_locked(self) -> None:
        """Writes what is to be acknowledged before a wait; DUPS_OK leaves it to the keeper."""
        if not self._lazy:
            self._core.write_acknowledgements_locked()

    def in_flight(self) -> set[int]:
        """Asks the queue manager which deliveries of this session are in flight."""
        return self._in_flight(self._core.handle)

    def acknowledge(self, deliveries: range | None, timeout: float | None, wait: bool) -> None:
        """Settles those of one message, or all handed over; none handed over is none to settle.

        Raises:
            AlreadySettledError: the message is settled or given back.
            DeliveryUnknownError: administration took some of them away; the others can still be
                acknowledged.
            OutOfTurnError: others are to be settled first; all can still be acknowledged.
        """
        core = self._core
        with core.lock:
            begun = self.begin_acknowledge_locked(deliveries, timeout, wait=wait)
            if begun is None or not wait:
                return
            pending, ranges = begun
            try:
                core.await_locked(pending, timeout)
                return
            except DeliveryUnknownError as error:
                refused = error
            except OutOfTurnError:
                self.handed.add_all(ranges)
                raise
        self.keep_those_known(ranges)
        raise refused

    def begin_acknowledge_locked(
        self, deliveries: range | None, timeout: float | None = None, *, wait: bool = True
    ) -> tuple[Pending, DeliveryRanges] | None:
        """Writes the acknowledgement of one message or of all; None if there is none to settle.

        Raises:
            AlreadySettledError: the message is settled or given back.
        """
        core = self._core
        if self.automatic:
            return None
        if deliveries is None:
            ranges = self.handed.take_all()
        elif all(self.handed.discard(delivery) for delivery in deliveries):
            ranges = DeliveryRanges([(deliveries[0], deliveries[-1])])
        else:
            raise AlreadySettledError(
                f"delivery {deliveries[0]} was acknowledged before, or went back to its queue"
            )
        if not ranges:
            return None
        parts = ranges.parts()
        try:
            while True:
                core.wait_for_room_locked(timeout)
                last = parts[0]
                pending = core.write_locked(
                    Acknowledge,
                    on_settled=None if wait and len(parts) == 1 else self._settled_later,
                    settles=last,
                    deliveries=last.as_list(),
                )
                del parts[0]
                if not parts:
                    return pending, last
        except LedgerMQError:
            for part in parts:
                self.handed.add_all(part)
            raise

    def _settled_later(self, pending: Pending) -> None:
        """The outcome of an acknowledgement that nobody waits for."""
        refused = self._core.is_out_of_turn(pending)
        if refused and pending.deliveries is not None:
            with self._core.lock:
                self.handed.add_all(pending.deliveries)
        self._core.defer_refusal(pending)

    def keep_those_known(self, ranges: DeliveryRanges) -> None:
        """Takes back as handed over what of a refused acknowledgement is in flight still."""
        ranges.keep_only(self.in_flight())
        with self._core.lock:
            self.handed.add_all(ranges)

    def repair(self, timeout: float | None) -> None:
        """AUTO: acknowledges again what was refused together with a message taken away."""
        core = self._core
        known = self.in_flight()
        with core.lock:
            ranges = core.refused.take_all()
            ranges.keep_only(known)
            for part in ranges.parts() if ranges else ():
                pending = core.write_locked(Acknowledge, deliveries=part.as_list())
                core.await_locked(pending, timeout)

    def return_failed(self, first: int) -> None:
        """AUTO: gives back what a listener failed on, as seen, and everything behind it.

        Unless the listener itself has given it back.
        """
        core = self._core
        with core.lock:
            if core.ended or first not in self.handed:
                return
        self.give_back(None)

    def give_back(self, timeout: float | None) -> None:
        """Rollback or recover: everything in flight returns, what was seen counts as backed out."""
        try:
            self._give_back(timeout)
        except DeliveryUnknownError:
            # Administration took a message away; the others still go back.
            known = self.in_flight()
            with self._core.lock:
                self.handed.keep_only(known)
            self._give_back(timeout)

    def _give_back(self, timeout: float | None) -> None:
        core = self._core
        with core.lock:
            core.write_acknowledgements_locked()
            core.wait_for_room_locked(timeout)
            if self.automatic:
                self._take_back_early_locked(timeout)
            pending = core.write_locked(self._withdraw, seen=self.handed.as_seen())
            core.await_locked(pending, timeout)
            self.handed.clear()

    def _take_back_early_locked(self, timeout: float | None) -> None:
        """AUTO: what is acknowledged too early, with others to be settled before, was seen too."""
        core = self._core
        pending = core.protocol.pending
        # The keeper writes again what came back, a round later at the earliest.
        while acknowledges := [one for one in pending.values() if one.operation is Acknowledge]:
            core.await_settled_locked(acknowledges[0], timeout)
        self.handed.add_all(core.unwritten.take_all())
        self.handed.add_all(core.ripe.take_all())
