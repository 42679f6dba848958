"""Deliveries that nobody has seen: in doubt, expired where they waited, or crossing a close."""

from __future__ import annotations

from functools import partial

from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.steps import Steps
from ledgermq.client.sansio.buffer import ConsumerBuffer
from ledgermq.client.sansio.protocol import Pending
from ledgermq.client.sansio.ranges import DeliveryRanges
from ledgermq.protocol.operations import Alive, CloseConsumer, GiveBack
from ledgermq.protocol.outcomes import Refused


class Unseen:
    """What the consumers of one session were delivered and have not handed over."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def report_doubt(self, buffer: ConsumerBuffer) -> Steps[None]:
        """Says which message in doubt the application gets next, and waits until that is known."""
        if not self._engine.protocol.has_application:
            buffer.resolve(buffer.doubt)
            return
        yield from self._engine.room()
        doubt = buffer.doubt
        self._engine.protocol.handed_over.report(buffer.number, doubt)
        pending = self._engine.write_locked(Alive, target=buffer.destination, handing=doubt)
        yield from self._engine.reply(pending)
        buffer.resolve(doubt)

    def give_back_expired_locked(self, buffer: ConsumerBuffer) -> None:
        """Gives back what has expired where it waited for the application (SES-66)."""
        now = self._engine.log_time()
        if now < buffer.expires_at or self._engine.ended or self._engine.protocol.crowded:
            return
        expired = buffer.expired(now)
        if expired:
            self._give_back_locked(buffer.number, expired)
            buffer.drop(expired)

    def give_back_expired(self) -> None:
        """The same of all consumers, also of those that nobody receives from."""
        with self._engine.lock:
            if not self._engine.closing:
                for buffer in self._engine.protocol.consumers.values():
                    self.give_back_expired_locked(buffer)

    def _give_back_locked(self, number: int, unseen: DeliveryRanges) -> None:
        self._engine.write_locked(
            GiveBack,
            on_settled=partial(self._gave_back, number, unseen),
            consumer=number,
            unseen=unseen.as_list(),
        )

    def _gave_back(self, number: int, unseen: DeliveryRanges, pending: Pending) -> None:
        """If administration took one of them away, the others still go back."""
        if not isinstance(pending.reply, Refused) or len(unseen) < 2:
            return
        with self._engine.lock:
            if number in self._engine.protocol.consumers and not self._engine.ended:
                for half in unseen.halves():
                    self._give_back_locked(number, half)

    def close_consumer_locked(self, number: int) -> Pending:
        """Closes a consumer; deliveries that cross the close are given back after it."""
        protocol = self._engine.protocol
        buffer, before = protocol.consumers[number], protocol.next_number
        try:
            unseen, *further = protocol.close_consumer(number).parts()
            for part in further:
                protocol.late[number].add_all(part)
            return self._engine.write_locked(
                CloseConsumer,
                on_settled=lambda pending: self._give_back_late(number, pending),
                consumer=number,
                unseen=unseen.as_list(),
            )
        except BaseException:
            # Interrupted later it may be on its way.
            if protocol.next_number == before:
                protocol.keep_consumer(buffer)
            raise

    def _give_back_late(self, number: int, pending: Pending) -> None:
        """Messages delivered while the close was on its way were seen by nobody."""
        if isinstance(pending.reply, Refused):
            return
        with self._engine.lock:
            late = self._engine.protocol.take_late(number)
            for part in late.parts() if late and not self._engine.ended else ():
                self._engine.write_locked(CloseConsumer, consumer=number, unseen=part.as_list())
