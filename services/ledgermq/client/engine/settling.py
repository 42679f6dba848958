"""What a session has handed over: settled by the application or the library, or given back.

Where the library acknowledges (AUTO, DUPS_OK), what was handed over is first `unwritten`, and
`ripe` once a round of the heartbeats has seen it so: `receive` may not have returned before.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from typing import Final

from ledgermq.client.arguments import Rejection, check_rejection
from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.steps import Steps, aside
from ledgermq.client.sansio.protocol import Pending
from ledgermq.client.sansio.ranges import DeliveryRanges
from ledgermq.errors import (
    AlreadySettledError,
    DeliveryUnknownError,
    IllegalStateError,
    LedgerMQError,
    UnexpectedReplyError,
)
from ledgermq.protocol.limits import DESCRIPTION_CHARACTERS_MAX
from ledgermq.protocol.operations import (
    Acknowledge,
    Alive,
    Close,
    DeliveryRange,
    Recover,
    Reject,
    Rollback,
)
from ledgermq.protocol.outcomes import Refused
from ledgermq.protocol.reasons import Reason

# How long an acknowledgement of AUTO may wait for its neighbours while `receive` waits.
GATHER_SECONDS: Final = 0.01
# After windows that gathered one message alone, how many waits at most go without one.
UNGATHERED_WAITS_MAX: Final = 63


class Settling:
    """Deliveries of one session from the moment the application has them.

    Attributes:
        automatic: Whether the library acknowledges (AUTO, DUPS_OK).
        by_application: Whether the application does (CLIENT, INDIVIDUAL).
        handed: Handed over and neither settled nor given back: where the application does that, or
            while a listener has it.
        unwritten: Where the library acknowledges, what it has not written yet.
        ripe: What it writes next.
        refused: What was refused together with something that administration took away.
    """

    def __init__(
        self,
        engine: Engine,
        in_flight: Callable[[int], set[int]],
        soon: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._in_flight = in_flight
        self._soon = soon
        self._lazy = engine.mode == "DUPS_OK"
        self.automatic = engine.mode in ("AUTO", "DUPS_OK")
        self.by_application = engine.mode in ("CLIENT", "INDIVIDUAL")
        self._withdraw: type[Rollback | Recover] = (
            Rollback if engine.mode == "TRANSACTED" else Recover
        )
        self.handed = DeliveryRanges()
        self.unwritten = DeliveryRanges()
        self.ripe = DeliveryRanges()
        self.refused = DeliveryRanges()
        # What the application acknowledged together with something taken away; held again.
        self._doubted = DeliveryRanges()
        # Written before anybody waits for it.
        self._written_close: Pending | None = None
        # Until when what is unwritten may wait for more, and how many waits are not to try that:
        # where the next message comes only for an acknowledgement, waiting never gathers one.
        self._gathers_until = 0.0
        self._ungathered_waits = 0
        self._ungathered_waits_left = 0
        self._going_back = 0

    def hand_over_run_locked(self, first: int, last: int) -> None:
        """The application gets messages numbered one after the other."""
        if self.automatic:
            if not self.unwritten:
                self._gathers_until = time.monotonic() + GATHER_SECONDS
            self.unwritten.add_range(first, last)
            if not self._lazy:
                self._soon()
        else:
            self.handed.add_range(first, last)

    def take_back_locked(self, first: int, last: int) -> None:
        """The call that was about to return them was interrupted."""
        for delivery in range(first, last + 1):
            for some in (self.handed, self.unwritten, self.ripe):
                some.discard(delivery)

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

    def report_handed_over(self, now: float) -> None:
        """Reports what the application has held for some time and no operation has reported.

        So its backout counts if the session is lost (decision 24). `now` is a clock in seconds.
        """
        engine, protocol = self._engine, self._engine.protocol
        with engine.lock:
            going_back = protocol.withdrawals or protocol.is_pending(Close)
            if engine.ended or protocol.crowded or going_back or not protocol.has_application:
                return
            held = (self.handed, self.unwritten, self.ripe)
            for delivery in protocol.handed_over.due(now, held, protocol.handed_through):
                engine.write_locked(Alive, handing=delivery)

    def write_locked(self) -> None:
        """Writes what is to be acknowledged before a wait; DUPS_OK leaves it to the heartbeats."""
        if self.automatic and not self._lazy:
            self.write_acknowledgements_locked()

    def gather_locked(self, deadline: float | None) -> float | None:
        """Before `receive` waits: writes what is to be acknowledged, unless more may soon join it.

        Returns until when to wait for that, a moment before the deadline, and then to ask again; or
        None if nothing is left to write, so that the wait may be as long as it likes.
        """
        if not self.automatic or self._lazy or not (self.unwritten or self.ripe):
            return None
        until = self._gathers_until
        if self._ungathered_waits_left:
            self._ungathered_waits_left -= 1
        elif time.monotonic() < until and (deadline is None or until < deadline):
            return until
        elif len(self.unwritten) > 1:
            self._ungathered_waits = 0
        else:
            self._ungathered_waits = min(2 * self._ungathered_waits + 1, UNGATHERED_WAITS_MAX)
            self._ungathered_waits_left = self._ungathered_waits
        self.write_acknowledgements_locked()
        return None

    def write_acknowledgements_locked(self) -> None:
        """Writes everything acknowledged and not written yet (AUTO); by the session's user."""
        self.ripe.add_all(self.unwritten.take_all())
        self._write_ripe_locked()

    def _write_ripe_locked(self) -> None:
        if not self.ripe or self._engine.ended:
            return
        parts = self.ripe.take_all().parts()
        try:
            while parts:
                pending = self._engine.write_locked(
                    Acknowledge,
                    on_settled=partial(self._take_back_refused, parts[0]),
                    deliveries=parts[0].as_list(),
                )
                pending.promised = True
                pending.undo = partial(self._take_back_early_locked, parts[0], pending)
                del parts[0]
        except LedgerMQError:
            for part in parts:
                self.ripe.add_all(part)
            raise

    def write_ripe_acknowledgements(self) -> bool:
        """Writes what waits since the last round of the heartbeats; whether more has come since.

        What was handed over this very moment is for the next round: `receive` may not have
        returned yet, and a message is acknowledged once it has.
        """
        with self._engine.lock:
            if not self._engine.protocol.crowded:
                self._write_ripe_locked()
            self.ripe.add_all(self.unwritten.take_all())
            return bool(self.ripe)

    def _seen(self) -> list[DeliveryRange]:
        return self.handed.as_seen() if self._engine.protocol.has_application else []

    def _take_back_early_locked(self, ranges: DeliveryRanges, pending: Pending) -> None:
        """Others are to be settled before: it is written again with what follows."""
        if _is_out_of_turn(pending):
            self.unwritten.add_all(ranges)

    def _take_back_refused(self, ranges: DeliveryRanges, pending: Pending) -> None:
        """An acknowledgement was refused: administration took one of its messages away."""
        if isinstance(pending.reply, Refused) and not _is_out_of_turn(pending):
            with self._engine.lock:
                self.refused.add_all(ranges)
        elif isinstance(pending.error, UnexpectedReplyError):
            self._engine.defer(pending.error)

    def repair(self, timeout: float | None = None) -> Steps[None]:
        """AUTO: acknowledges again what was refused together with a message taken away."""
        known = yield from self.in_flight()
        ranges = self.refused.take_all()
        ranges.keep_only(known)
        for part in ranges.parts() if ranges else ():
            pending = self._engine.write_locked(Acknowledge, deliveries=part.as_list())
            yield from self._engine.reply(pending, timeout)

    def in_flight(self) -> Steps[set[int]]:
        return aside(partial(self._in_flight, self._engine.handle))

    def acknowledge(
        self, deliveries: range | None, timeout: float | None = None, wait: bool = True
    ) -> Steps[None]:
        """Settles those of one message, or all handed over; none handed over is none to settle.

        Raises:
            AlreadySettledError: the message is settled or given back.
            DeliveryUnknownError: administration took some of them away; the others can still be
                acknowledged.
            OutOfTurnError: others are to be settled first; all can still be acknowledged.
        """
        self._engine.check_usable_locked()
        if not self.by_application:
            return
        yield from self._forget_taken_away()
        if deliveries is None:
            ranges = self.handed.take_all()
        elif all(self.handed.discard(delivery) for delivery in deliveries):
            ranges = DeliveryRanges([(deliveries[0], deliveries[-1])])
        else:
            raise _already_settled(deliveries)
        parts = ranges.parts() if ranges else []
        try:
            while parts:
                yield from self._engine.room(timeout)
                waits = wait and len(parts) == 1
                pending = self._engine.write_locked(
                    Acknowledge,
                    on_settled=None if waits else self._engine.defer_refusal,
                    deliveries=parts[0].as_list(),
                )
                pending.undo = partial(self._hold_again_locked, parts[0], pending)
                ranges = parts.pop(0)
        except BaseException:
            for part in parts:
                self.handed.add_all(part)
            raise
        if not ranges or not wait:
            return
        try:
            yield from self._engine.reply(pending, timeout)
        except DeliveryUnknownError:
            yield from self._forget_taken_away()
            raise

    def _hold_again_locked(self, ranges: DeliveryRanges, pending: Pending) -> None:
        """A refused acknowledgement can be made again, also by whoever did not wait so long."""
        is_unknown = _is_refused(pending, Reason.DELIVERY_UNKNOWN)
        if is_unknown or _is_out_of_turn(pending):
            self.handed.add_all(ranges)
            if is_unknown:
                self._doubted.add_all(ranges)

    def _forget_taken_away(self) -> Steps[None]:
        """Of what was refused holds on to what is in flight: only that can be acknowledged."""
        if self._doubted:
            known = yield from self.in_flight()
            for delivery in self._doubted.take_all().numbers():
                if delivery not in known:
                    self.handed.discard(delivery)

    def reject(
        self, consumer: int, deliveries: range, how: Rejection, timeout: float | None
    ) -> Steps[None]:
        """Sends one message away for good, or puts it back; nothing undoes it."""
        check_rejection(how.requeue, how.delay)
        engine = self._engine
        engine.check_usable_locked()
        if self.automatic:
            raise IllegalStateError(
                f"an {engine.mode} session acknowledges its messages by itself: reject them in one "
                "that is transacted, CLIENT or INDIVIDUAL. A listener puts its message back by "
                "raising an error"
            )
        if len(how.reason) > DESCRIPTION_CHARACTERS_MAX:
            raise IllegalStateError(
                f"the reason has {len(how.reason):,} characters, at most "
                f"{DESCRIPTION_CHARACTERS_MAX:,} are taken"
            )
        yield from engine.room(timeout)
        if not all(delivery in self.handed for delivery in deliveries):
            raise _already_settled(deliveries)
        pending = engine.write_locked(
            Reject,
            consumer=consumer,
            deliveries=[{"first": deliveries[0], "last": deliveries[-1]}],
            requeue=how.requeue,
            reason=how.reason,
            redelivery_delay_ms=-1 if how.delay is None else ceil(how.delay * 1_000),
        )
        for delivery in deliveries:
            self.handed.discard(delivery)
        yield from engine.reply(pending, timeout)

    @contextlib.contextmanager
    def about_to_go_back(self) -> Iterator[None]:
        """Around what a rollback or recover waits for before it is written."""
        self._going_back += 1
        try:
            yield
        finally:
            self._going_back -= 1
            self._engine.notify_locked()

    def gone_back(self, deadline: float | None = None) -> Steps[bool]:
        """Waits while a rollback or recover is about to be written; False after the deadline.

        Nobody may wait for that one any more, and what was sent or got now would go back with it.
        """
        while self._going_back:
            if not (yield deadline):
                return False
        return True

    def return_failed(self, first: int) -> Steps[None]:
        """AUTO: gives back what a listener failed on, as seen, and everything behind it.

        Unless the listener itself has given it back.
        """
        if not self._engine.ended and first in self.handed:
            yield from self.give_back()

    def give_back(
        self, timeout: float | None = None, begin_anew: Callable[[], None] = lambda: None
    ) -> Steps[None]:
        """Rollback or recover: everything in flight returns, what was seen counts as backed out.

        `begin_anew` is called with the lock held when it did, also if nobody waits any more.
        """
        try:
            yield from self._give_back(timeout, begin_anew)
        except DeliveryUnknownError:
            # Administration took a message away; the others still go back.
            self.handed.keep_only((yield from self.in_flight()))
            yield from self._give_back(timeout, begin_anew)

    def _give_back(self, timeout: float | None, begin_anew: Callable[[], None]) -> Steps[None]:
        engine = self._engine
        with self.about_to_go_back():
            self.write_acknowledgements_locked()
            yield from engine.room(timeout)
            if self.automatic:
                yield from self._take_back_early(timeout)
            pending = engine.write_locked(self._withdraw, seen=self._seen())
            # What is settled behind it, be it by whoever does not wait for it, is none of this.
            going = self.handed.take_all()
        pending.undo = lambda: self.handed.add_all(going)
        pending.applied = partial(self._went_back_locked, begin_anew)
        yield from engine.reply(pending, timeout)

    def _went_back_locked(self, begin_anew: Callable[[], None]) -> None:
        self.handed.take_all()
        begin_anew()

    def _take_back_early(self, timeout: float | None) -> Steps[None]:
        """AUTO: what is acknowledged too early, with others to be settled before, was seen too."""
        pending = self._engine.protocol.pending
        # The heartbeats write again what came back, a round later at the earliest.
        while acknowledges := [one for one in pending.values() if one.operation is Acknowledge]:
            yield from self._engine.settled(acknowledges[0], timeout)
        self.handed.add_all(self.unwritten.take_all())
        self.handed.add_all(self.ripe.take_all())

    def close(self, timeout: float | None) -> Steps[None]:
        """Ends the session: what was handed over and not settled goes back, as seen."""
        self.write_acknowledgements_locked()
        try:
            yield from self._close(timeout)
        except DeliveryUnknownError:
            self.handed.keep_only((yield from self.in_flight()))
            yield from self._close(timeout)

    def _close(self, timeout: float | None) -> Steps[None]:
        pending, self._written_close = self._written_close, None
        if pending is None:
            pending = self._engine.write_locked(Close, seen=self._seen())
        yield from self._engine.reply(pending, timeout)

    def write_close_locked(self) -> None:
        """Writes the Close that `close` then waits for, with all that stands before it."""
        self.write_acknowledgements_locked()
        self._written_close = self._engine.write_locked(Close, seen=self._seen())


def _already_settled(deliveries: range) -> AlreadySettledError:
    return AlreadySettledError(
        f"delivery {deliveries[0]} was acknowledged or rejected before, or went back to its queue"
    )


def _is_out_of_turn(pending: Pending) -> bool:
    return _is_refused(pending, Reason.OUT_OF_TURN)


def _is_refused(pending: Pending, reason: Reason) -> bool:
    return isinstance(pending.reply, Refused) and pending.reply.reason == reason
