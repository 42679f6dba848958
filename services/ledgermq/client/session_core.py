"""The engine of a session: takes its outcomes, repeats what stays unanswered, ends with it.

Called by the connection's reader and keeper, which never wait here.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from ledgermq.client.buffer import ConsumerBuffer
from ledgermq.client.fitting import misfit
from ledgermq.client.protocol import Pending
from ledgermq.client.ranges import DeliveryRanges
from ledgermq.client.session_writing import SessionWriting
from ledgermq.errors import (
    LedgerMQError,
    OutcomeUnknownError,
    SessionLostError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    UnexpectedReplyError,
)
from ledgermq.protocol.operations import Acknowledge, Alive, Close, CloseConsumer, Commit, GiveBack
from ledgermq.protocol.outcomes import Delivered, Outcome, Refused, Reply, SessionEnded, Suspected

__all__ = ["SessionCore"]

LOGGER = logging.getLogger("ledgermq.client")
GAP: Final = "session-sequence-gap"
WINDOW_FULL: Final = "session-window-full"
SESSION_UNKNOWN: Final = "session-unknown"
REPLY_FORGOTTEN: Final = "reply-forgotten"
OUT_OF_TURN: Final = "out-of-turn"


class SessionCore(SessionWriting):
    """What the public session, its producers and its consumers stand on."""

    def take(self, outcome: Outcome) -> None:
        """Takes one outcome of this session; called by the reader."""
        settled: list[Pending] = []
        with self.lock:
            if isinstance(outcome, Delivered):
                self.protocol.take_delivered(outcome)
            elif isinstance(outcome, Refused):
                self._take_refused_locked(outcome, settled)
            elif isinstance(outcome, SessionEnded) and not outcome.session_sequence:
                self._end_locked(outcome, settled)
            elif isinstance(outcome, Reply):
                self._take_reply_locked(outcome, settled)
            elif isinstance(outcome, Suspected):
                self._show_life_locked()
            self.condition.notify_all()
        for pending in settled:
            if pending.on_settled is not None:
                pending.on_settled(pending)

    def _take_reply_locked(self, reply: Reply, settled: list[Pending]) -> None:
        if reply.session_sequence >= self.protocol.next_number:
            self._refuse_unasked_locked(reply)
            return
        pending = self.protocol.take_reply(reply)
        if pending is not None:
            pending.error = misfit(pending, reply, transacted=self.mode == "TRANSACTED")
            if pending.error is not None:
                pending.reply = None
                LOGGER.error("%s", pending.error)
            settled.append(pending)
        if isinstance(reply, SessionEnded):
            self.ended = True

    def _refuse_unasked_locked(self, reply: Reply) -> None:
        """A reply to an operation that was never written; the session's next call raises it."""
        error = UnexpectedReplyError(
            f"{type(reply).__name__} came for operation {reply.session_sequence} of session "
            f"{self.queue_manager}@{self.handle}, which has written {self.protocol.next_number - 1}"
            ": another client writes in its name, or the queue manager has a fault; report it with "
            "the log position",
            position=reply.position,
        )
        LOGGER.error("%s", error)
        self._deferred = self._deferred or error

    def _take_refused_locked(self, refused: Refused, settled: list[Pending]) -> None:
        reason = refused.reason
        if reason == GAP:
            self._repeat_locked(self.protocol.take_gap(refused))
        elif reason == WINDOW_FULL:
            pass  # the keeper repeats it; answers that make room are on their way
        elif reason == SESSION_UNKNOWN:
            self._lose_locked(refused, settled)
        elif reason == REPLY_FORGOTTEN and refused.session_sequence not in self.protocol.pending:
            pass  # a late repeat of what was answered long ago
        else:
            self._take_reply_locked(refused, settled)

    def _end_locked(self, ended: SessionEnded, settled: list[Pending]) -> None:
        """The queue manager ended the session; everything later in the log finds it gone."""
        self.over_locked(
            f"session {self.queue_manager}@{self.handle} was ended at {self.queue_manager}@"
            f"{ended.position} ({ended.reason.lower()}): {ended.returned} deliveries went back, "
            f"{ended.discarded} uncommitted puts vanished. {_why_ended(ended.reason)}",
            settled,
            uncertain=False,
        )

    def _lose_locked(self, refused: Refused, settled: list[Pending]) -> None:
        """Refused for a session that is gone; a repeated operation may have acted before that."""
        pending = self.protocol.pending.get(refused.session_sequence)
        if pending is None and not refused.session_sequence:
            return
        uncertain = any(one.sends > 1 for one in self.protocol.pending.values())
        self.over_locked(
            f"session {self.queue_manager}@{self.handle} is gone: {refused.detail}",
            settled,
            uncertain=uncertain,
        )

    def over_locked(self, text: str, settled: list[Pending], *, uncertain: bool) -> None:
        """Ends the session without its own doing; what is pending fails, or stays unknown."""
        if self.ended:
            return
        self.ended = True
        self.lost = SessionLostError(text + "; open another session and go on from there")
        if not self.closing:
            # Nobody may be waiting here: the session's next call raises it.
            LOGGER.error("%s", self.lost)

        def error(pending: Pending) -> LedgerMQError:
            name = f"{pending.operation.__name__} {pending.number}"
            if pending.operation is Commit:
                if uncertain:
                    return TransactionInDoubtError(f"{text}; whether {name} was applied is unknown")
                return TransactionRolledBackError(f"{text}; {name} was not applied: do it again")
            if uncertain:
                return OutcomeUnknownError(f"{text}; whether {name} was applied is unknown")
            return SessionLostError(f"{text}; {name} was not applied")

        over = self.protocol.end(error)
        settled.extend(over)
        # AUTO promises that nothing acknowledged comes back; here it may, so close must say so.
        broken = [one.error for one in over if one.on_settled == self._take_back_refused]
        self._deferred = self._deferred or next(iter(broken), None)

    def forget(self, text: str) -> None:
        """The session turned out to be gone, from an answer that does not say since when."""
        settled: list[Pending] = []
        with self.lock:
            self.over_locked(text, settled, uncertain=True)
            self.condition.notify_all()
        for pending in settled:
            if pending.on_settled is not None:
                pending.on_settled(pending)

    def _show_life_locked(self) -> None:
        """Any operation clears a suspicion (H5); in a crowd, those pending are repeated anyway."""
        if not self.ended and not self.protocol.crowded:
            self.write_locked(Alive)

    def write_handing_locked(self, buffer: ConsumerBuffer) -> Pending:
        """Says that the message in doubt that comes next is about to be handed over (H20)."""
        self.protocol.handed_over.tell(buffer.number, buffer.doubt)
        return self.write_locked(Alive, target=buffer.destination, handing=buffer.doubt)

    def tell_doubt_locked(self, buffer: ConsumerBuffer) -> None:
        """Waits until the queue manager knows which message in doubt the application gets next."""
        self.wait_for_room_locked()
        doubt = buffer.doubt
        self.await_locked(self.write_handing_locked(buffer))
        buffer.resolve(doubt)

    def show_life(self) -> None:
        """Confirms the session, and clears a suspicion that may stand."""
        with self.lock:
            self._show_life_locked()

    def tell_handed_over(self, now: float) -> None:
        """Tells what the application has held for some time and no operation has told of.

        So its backout counts if the session is lost (decision 24). `now` is a clock in seconds.
        """
        with self.lock:
            protocol = self.protocol
            going_back = protocol.withdrawals or any(
                one.operation is Close for one in protocol.pending.values()
            )
            if self.ended or protocol.crowded or going_back:
                return
            held = (self.handed, self.unwritten, self.ripe)
            for delivery in protocol.handed_over.due(now, held, protocol.handed_through):
                self.write_locked(Alive, handing=delivery)

    def repeat_overdue(self, now: float, patience_seconds: float) -> bool:
        """Writes everything pending again if the oldest waits too long; tells whether it did."""
        with self.lock:
            if self.ended or not self.protocol.pending:
                return False
            oldest = next(iter(self.protocol.pending.values()))
            # Each further repeat waits longer: a worker that starts needs no flood of repeats.
            if now - oldest.sent_at < patience_seconds * oldest.sends:
                return False
            self._repeat_locked(list(self.protocol.pending.values()))
            return True

    def oldest_wait_seconds(self, now: float) -> float:
        """For how long the oldest pending operation has been waiting since it was last written."""
        with self.lock:
            oldest = next(iter(self.protocol.pending.values()), None)
            return 0.0 if oldest is None or self.ended else now - oldest.sent_at

    def write_acknowledgements_locked(self) -> None:
        """Writes everything acknowledged and not written yet (AUTO); by the session's user."""
        self.ripe.add_all(self.unwritten.take_all())
        self._write_ripe_locked()

    def _write_ripe_locked(self) -> None:
        if self.ripe and not self.ended:
            parts = self.ripe.take_all().parts()
            try:
                while parts:
                    pending = self.write_locked(
                        Acknowledge,
                        on_settled=self._take_back_refused,
                        settles=parts[0],
                        deliveries=parts[0].as_list(),
                    )
                    pending.undo = partial(self._take_back_early_locked, pending)
                    del parts[0]
            except LedgerMQError:
                for part in parts:
                    self.ripe.add_all(part)
                raise

    def write_ripe_acknowledgements(self) -> bool:
        """Writes what waits since the keeper's last round; tells whether more has come since.

        What was handed over this very moment stays for the next round: `receive` may not have
        returned yet, and a message is acknowledged once it has.
        """
        with self.lock:
            if not self.protocol.crowded:
                self._write_ripe_locked()
            self.ripe.add_all(self.unwritten.take_all())
            return bool(self.ripe)

    def _take_back_early_locked(self, pending: Pending) -> None:
        """Others are to be settled before: it is written again with what follows."""
        if self.is_out_of_turn(pending) and pending.deliveries is not None:
            self.unwritten.add_all(pending.deliveries)

    def _take_back_refused(self, pending: Pending) -> None:
        """An acknowledgement was refused: administration took one of its messages away."""
        refused = isinstance(pending.reply, Refused) and not self.is_out_of_turn(pending)
        if refused and pending.deliveries is not None:
            with self.lock:
                self.refused.add_all(pending.deliveries)
        elif isinstance(pending.error, UnexpectedReplyError):
            self.defer(pending.error)

    def is_out_of_turn(self, pending: Pending) -> bool:
        """Whether an operation was refused because others are to be settled first."""
        return isinstance(pending.reply, Refused) and pending.reply.reason == OUT_OF_TURN

    def give_back_expired_locked(self, buffer: ConsumerBuffer) -> None:
        """Gives back what has expired where it waited for the application (SES-66)."""
        now = self.log_time()
        if now < buffer.expires_at or self.ended or self.protocol.crowded:
            return
        expired = buffer.expired(now)
        if expired:
            self._give_back_locked(buffer.number, expired)
            buffer.drop(expired)

    def give_back_expired(self) -> None:
        """The same of all consumers, also of those that nobody receives from."""
        with self.lock:
            if not self.closing:
                for buffer in self.protocol.consumers.values():
                    self.give_back_expired_locked(buffer)

    def _give_back_locked(self, number: int, unseen: DeliveryRanges) -> None:
        self.write_locked(
            GiveBack,
            on_settled=partial(self._gave_back, number),
            settles=unseen,
            consumer=number,
            unseen=unseen.as_list(),
        )

    def _gave_back(self, number: int, pending: Pending) -> None:
        """If administration took one of them away, the others still go back."""
        unseen = pending.deliveries
        if not isinstance(pending.reply, Refused) or unseen is None or len(unseen) < 2:
            return
        with self.lock:
            if number in self.protocol.consumers and not self.ended:
                for half in unseen.halves():
                    self._give_back_locked(number, half)

    def close_consumer_locked(self, number: int) -> Pending:
        """Closes a consumer; deliveries that cross the close are given back after it."""
        unseen, *further = self.protocol.close_consumer(number).parts()
        for part in further:
            self.protocol.late[number].add_all(part)
        return self.write_locked(
            CloseConsumer,
            on_settled=lambda pending: self._give_back_late(number, pending),
            consumer=number,
            unseen=unseen.as_list(),
        )

    def _give_back_late(self, number: int, pending: Pending) -> None:
        """Messages delivered while the close was on its way were seen by nobody."""
        if isinstance(pending.reply, Refused):
            return
        with self.lock:
            late = self.protocol.take_late(number)
            for part in late.parts() if late and not self.ended else ():
                self.write_locked(CloseConsumer, consumer=number, unseen=part.as_list())


def _why_ended(reason: str) -> str:
    if reason == "ENDED":
        return "Administration ended it; who and why stands on the log"
    return "Its client was not heard of in time"
