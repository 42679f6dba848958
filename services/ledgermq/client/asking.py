"""How a consumer asks for messages: credit, options, and when it asks no longer (PROTOCOL.md §13).

Credit is for the options asked for last. Options that change go with the credit of a call, which a
consumer without prefetch asks for alone; what refuses them is raised by the call.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from ledgermq.client.segments import further_of, left_open
from ledgermq.errors import DeliveryUnknownError, LedgerMQError
from ledgermq.protocol.operations import Alive, Get

if TYPE_CHECKING:
    from ledgermq.client.buffer import ConsumerBuffer
    from ledgermq.client.protocol import Pending
    from ledgermq.client.session_core import SessionCore
    from ledgermq.client.settling import Settling
    from ledgermq.protocol.get_options import Options
    from ledgermq.protocol.outcomes import DeliveredMessage

__all__ = ["Asking"]


class Asking:
    """The part of `Consumer` that asks for messages and takes them from the buffer."""

    _destination: str
    _prefetch: int
    _core: SessionCore
    _settling: Settling
    _buffer: ConsumerBuffer
    _closed: bool
    # What the call under way wants, and the Get that asked for it by options that changed.
    _wanted: Options
    _asked: Pending | None
    # Up to which operation of the session all outcomes have come, as far as somebody asked.
    _heard_through: int

    def take_locked(self) -> tuple[int, int, DeliveredMessage]:
        """Takes the next message with the first and the last of its deliveries."""
        first, raw = self._buffer.take()
        self._note_order(raw)
        return first, first + len(further_of(raw)), raw

    def take_group_locked(self) -> list[tuple[int, int, DeliveredMessage]]:
        """The same of each message of the group that was gathered."""
        self._buffer.unfinished = None
        gathered = self._buffer.take_gathered()
        return [(first, first + len(further_of(raw)), raw) for first, raw in gathered]

    def _note_order(self, raw: DeliveredMessage) -> None:
        """Remembers what a get without logical order would now leave incomplete (GRP-41)."""
        if self._wanted.logical_order:
            self._buffer.unfinished = left_open(raw)
        elif self._buffer.unfinished is not None:
            self._buffer.unfinished = None

    def _fill_locked(self, timeout: float | None, *, group: bool = False) -> bool:
        """Writes what is due, then waits for a message or group; False if there is none to come."""
        core, buffer = self._core, self._buffer
        deadline = None if timeout is None else time.monotonic() + timeout
        heard = -1
        while True:
            self.ask_locked()
            if buffer.in_doubt:
                core.tell_doubt_locked(buffer)
                if self._is_over():
                    return False
            if self.is_there_locked(group):
                return True
            if group and self.goes_on_locked():
                continue
            self._settling.write_locked()
            if timeout == 0 and buffer.gathered > heard and self.unheard_locked():
                heard = buffer.gathered
                self._hear_locked()
                if self._is_over():
                    return False
                continue
            if not core.wait_locked(deadline) or self._is_over():
                gathered = buffer.gathered
                if self._ask_no_longer_locked(group):
                    return True
                if buffer.gathered == gathered or self._is_over():
                    return False
                # The group was there as a whole, so its rest is not waited for.
            core.check_usable_locked()

    def unheard_locked(self) -> bool:
        """Whether the session has written what may have brought messages that are on their way."""
        return self._prefetch > 0 and self._core.protocol.next_number - 1 > self._heard_through

    def _hear_locked(self) -> None:
        """Waits until everything that the queue manager has for the credit granted is here."""
        self._core.wait_for_room_locked()
        pending = self.write_hearing_locked()
        self._core.await_locked(pending)
        self.heard_locked(pending)

    def write_hearing_locked(self) -> Pending:
        """An operation whose reply comes behind all that those before it brought."""
        return self._core.write_locked(Alive)

    def heard_locked(self, pending: Pending) -> None:
        """Its reply has come."""
        self._heard_through = max(self._heard_through, pending.number)

    def is_there_locked(self, group: bool) -> bool:
        """Whether a message can be taken, or a whole group has been gathered."""
        return self._buffer.gather() if group else self._buffer.count > 0

    def goes_on_locked(self) -> bool:
        """Whether gathering a group can go on at once: by asking, or by telling of a doubt."""
        buffer = self._buffer
        asks = buffer.due >= buffer.threshold and not self._core.protocol.full
        return asks or buffer.in_doubt

    def _crossed(self, group: bool = False) -> bool:
        """As `_ask_no_longer_locked`, for a coroutine that ran out of time."""
        with self._core.lock:
            return self._ask_no_longer_locked(group)

    def _ask_no_longer_locked(self, group: bool = False) -> bool:
        """With prefetch 0, withdraws what was asked for; True if a message crossed that."""
        core, buffer = self._core, self._buffer
        if self._prefetch or buffer.due or self._closed or core.closing or core.ended:
            return False
        pending = core.write_locked(Get, target=self._destination, consumer=buffer.number, credit=0)
        core.await_locked(pending)
        self._check_asked_locked()
        buffer.withdrawn()
        if buffer.in_doubt:
            core.tell_doubt_locked(buffer)
        return not self._is_over() and self.is_there_locked(group)

    def _is_over(self) -> bool:
        """Whether it was closed, perhaps by another thread while this one waited."""
        return self._closed or self._core.closing

    def ask_locked(self) -> None:
        """Asks for as many messages as were taken since the last time, once that pays.

        Raises:
            MatchOptionsError: the options asked for before were refused.
        """
        core, buffer = self._core, self._buffer
        core.give_back_expired_locked(buffer)
        if core.refused:
            self._repair_locked()
        if self._asked is not None:
            self._check_asked_locked()
        if core.protocol.full:
            return
        changes = self._wanted != buffer.options
        if changes and not buffer.due and not buffer.count:
            # A call that was interrupted has left its request standing.
            self._ask_for_locked(0)
            buffer.withdrawn()
        if buffer.due >= buffer.threshold:
            core.write_acknowledgements_locked()
            if changes:
                self._ask_with_options_locked()
            else:
                self._ask_for_locked(buffer.grant())

    def _ask_for_locked(self, credit: int) -> None:
        try:
            self._core.write_locked(
                Get,
                on_settled=self._core.defer_refusal,
                target=self._destination,
                consumer=self._buffer.number,
                credit=credit,
            )
        except LedgerMQError:
            self._buffer.due += credit
            raise

    def _ask_with_options_locked(self) -> None:
        """Asks by other options than before; whoever waits for the message hears of a refusal."""
        buffer, before = self._buffer, self._buffer.options
        credit = buffer.grant()
        buffer.options = self._wanted
        try:
            pending = self._core.write_locked(
                Get,
                target=self._destination,
                consumer=buffer.number,
                credit=credit,
                options=buffer.options.record(),
            )
        except LedgerMQError:
            buffer.refused(before, credit)
            raise
        pending.undo = partial(buffer.refused, before, credit)
        self._asked = pending

    def _check_asked_locked(self) -> None:
        asked = self._asked
        if asked is not None and asked.settled:
            self._asked = None
            self._core.reply_of(asked)

    def _repair_locked(self) -> None:
        core = self._core
        core.lock.release()
        try:
            self._settling.repair(None)
        except DeliveryUnknownError as error:
            core.defer(error)
        finally:
            core.lock.acquire()
