"""Puts of groups and segments: one call's messages, written batch by batch.

What goes into one operation is put all or nothing. Outside units of work, a message in so many
segments that they need several operations is written one operation after the other, each once the
one before was applied; so a refusal leaves no later segment behind it.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Any, Final, NamedTuple

from ledgermq.client.destinations import is_topic
from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.outgoing import Batch
from ledgermq.client.engine.steps import Steps
from ledgermq.client.engine.work import Work
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.messages.property_access import PropertyAccess
from ledgermq.client.sansio.protocol import Pending
from ledgermq.client.sansio.sizes import MESSAGE_BYTES_MAX, encoded_bytes
from ledgermq.client.sending.grouping import GroupPlace, PutState, left_open, places
from ledgermq.client.sending.making import Sending, make_message, unwrapped
from ledgermq.client.sending.receipts import ReceiptFuture, SendReceipt, settle
from ledgermq.client.sending.segmenting import body_bytes, fits, pieces_of, segment_bytes_max
from ledgermq.errors import OutcomeUnknownError
from ledgermq.errors.warnings import InconsistentUnitOfWorkWarning, LedgerMQWarning, give_warning
from ledgermq.protocol.limits import CONTENT_BYTES_MAX
from ledgermq.protocol.operations import Group
from ledgermq.protocol.outcomes import Refused, Reply

# So that the worker has a bounded part of a large message at a time.
PUT_TOGETHER_BYTES_MAX: Final = 4 * 1024 * 1024


class Grouping(NamedTuple):
    """What a put says of groups and segments.

    `bytes_max`: what the queue takes, if that was asked already; `followed`: a group sender's own
    put state.
    """

    group: GroupPlace | None = None
    logical_order: bool = False
    segmentation_allowed: bool = False
    max_segment: int | None = None
    bytes_max: int | None = None
    followed: PutState | None = None


class Putting:
    """One message on its way, whole or in segments; begun and ended under the session's lock."""

    def __init__(
        self,
        work: Work,
        states: dict[str, PutState],
        target: str,
        body: Sendable,
        sending: Sending,
        grouping: Grouping,
    ) -> None:
        if isinstance(body, PropertyAccess):
            body, sending = unwrapped(body, sending)
        self._work = work
        self._producers = states
        self._target = target
        state = states.get(target) or PutState()
        self._states = [state] if grouping.followed is None else [state, grouping.followed]
        for one in self._states:
            one.settle()
        self._written: tuple[list[tuple[PutState, Group | None]], Group | None] = ([], None)
        self._warning = self._odd(grouping)
        pieces = _pieces(target, body, sending, grouping)
        # Whatever else is a segment has its length counted; the length of others is not asked for.
        place = grouping.group
        counted = len(pieces) > 1 or (place is not None and place.is_segment)
        self._puts = places(
            self._states[0].current,
            place,
            [len(body_bytes(piece, target)) if counted else 0 for piece in pieces],
            logical_order=grouping.logical_order,
            destination=target,
        )
        self._messages = [
            make_message(target, piece, sending, put)
            for piece, put in zip(pieces, self._puts, strict=True)
        ]
        self.receipts: list[SendReceipt] = []

    def _odd(self, grouping: Grouping) -> LedgerMQWarning | None:
        """The warning for a put without logical order behind one with it (GRP-41, GRP-42)."""
        current = self._states[0].current
        if current is None or grouping.logical_order or not current["logical_order"]:
            return None
        return left_open(current, f"a message was put to {self._target} without logical_order")

    # -- the lock is held --------------------------------------------------------------------------

    def begin(self, timeout: float | None = None) -> Steps[Pending | None]:
        """Writes what comes next; None if nothing is left to write, or a unit of work has it."""
        work = self._work
        if not self._messages:
            return None
        if work.transacted:
            for message in self._messages:
                self._sent_locked([(yield from work.commits.join(self._target, message))])
            self._messages = []
            return None
        work.sends.write_locked()
        work.settling.write_locked()
        batch = self._next_batch()
        pending = work.engine.put_locked(self._target, batch.messages, timeout_seconds=timeout)
        self._written = [(state, state.current) for state in self._states], self._puts[0]
        self._sent_locked(batch.receipts)
        pending.result = partial(self._ended, batch)
        return pending

    def write_async(self) -> Steps[list[Future[None]]]:
        """Hands everything to the session's asynchronous sends; what to wait for."""
        work = self._work
        if work.transacted:
            yield from self.begin()
            return []
        found: dict[Future[None], None] = {}
        for message in self._messages:
            before = [(state, state.current) for state in self._states]
            put = self._puts[0]
            while (sent := work.sends.add_locked(self._target, message)) is None:
                yield from work.engine.room()
            outcome, receipt = sent
            self._sent_locked([receipt])
            if put is not None:
                for state, place in before:
                    state.expect(outcome, put, place)
            found[outcome] = None
        self._messages = []
        return list(found)

    def _next_batch(self) -> Batch:
        batch = Batch(self._target)
        count_max = self._work.engine.settings.put_messages_max
        for message in self._messages:
            if batch.add(message, count_max, PUT_TOGETHER_BYTES_MAX) is None:
                break
        del self._messages[: len(batch.messages)]
        return batch

    def _sent_locked(self, receipts: list[SendReceipt]) -> None:
        """The next messages are on their way: their places are those of the last puts."""
        for receipt in receipts:
            put = self._puts.pop(0)
            if put is not None:
                receipt._put = put
                self._move(put)
        self.receipts += receipts

    def _move(self, put: Group) -> None:
        self._producers[self._target] = self._states[0]
        for state in self._states:
            state.current = put
            if self._work.transacted:
                self._work.commits.put_states.note(state)

    def failed(self, pending: Pending) -> None:
        """Nobody waits for what was written last: if it was refused, or is, its place is free."""
        before, put = self._written
        if put is None:
            return
        outcome: Future[None] = Future()
        for state, place in before:
            state.expect(outcome, put, place)
        answered = partial(_settle, outcome, self._work.engine, pending)
        if pending.settled:
            answered()
        else:
            # Both before whoever resolves goes on.
            pending.undo = pending.applied = answered

    # -- the lock is not held ----------------------------------------------------------------------

    def _ended(self, batch: Batch, reply: Reply) -> SendReceipt:
        """The receipt of the message, once a Put was answered; also for `resolve`."""
        batch.answered(reply)
        return self.receipts[0]

    def finished(self) -> list[SendReceipt]:
        """All receipts, once everything is written and answered; gives the warnings."""
        warning, self._warning = self._warning, None
        for receipt in self.receipts:
            if getattr(receipt, "_warning", ""):
                receipt._warning = ""
                give_warning(
                    InconsistentUnitOfWorkWarning(
                        f"a message was put to {self._target} outside a unit of work, others of "
                        "its group in one (GRP-43)"
                    )
                )
        if warning is not None:
            give_warning(warning)
        return self.receipts

    def future(self, outcomes: list[Future[None]]) -> ReceiptFuture[SendReceipt]:
        if len(outcomes) == 1:
            return ReceiptFuture(outcomes[0], self._receipt, self._work.engine.callbacks)
        together: Future[None] = Future()
        missing = set(outcomes)
        errors: list[Any] = []

        def known(one: Future[None]) -> None:
            missing.discard(one)
            if (error := one.exception()) is not None:
                errors.append(error)
            if not missing:
                settle(together, errors[0] if errors else None)

        for one in outcomes:
            one.add_done_callback(known)
        if not outcomes:
            settle(together)
        return ReceiptFuture(together, self._receipt, self._work.engine.callbacks)

    def _receipt(self) -> SendReceipt:
        return self.finished()[0]


def _settle(outcome: Future[None], engine: Engine, pending: Pending) -> None:
    """Says what came of a put; one that is in doubt may have its place in the queue."""
    error = pending.error
    if isinstance(pending.reply, Refused):
        error = engine.error_of(pending.reply)
    settle(outcome, None if isinstance(error, OutcomeUnknownError) else error)


def _pieces(target: str, body: Any, sending: Sending, grouping: Grouping) -> list[Any]:
    if grouping.max_segment is not None:
        return list(pieces_of(body, grouping.max_segment, target))
    if not grouping.segmentation_allowed or is_topic(target):
        return [body]
    known = grouping.bytes_max or CONTENT_BYTES_MAX
    # What goes along with each segment takes of the same operation.
    empty = make_message(target, b"", sending)
    along = encoded_bytes(empty) - len(empty["content"])
    bytes_max = segment_bytes_max(min(known, MESSAGE_BYTES_MAX - along), sending.reply_to, target)
    return [body] if fits(body, bytes_max) else list(pieces_of(body, bytes_max, target))
