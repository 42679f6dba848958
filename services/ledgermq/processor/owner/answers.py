"""Answers: questions put to the state, answered on the asker's lane (PROTOCOL.md §9, D15)."""

from __future__ import annotations

import logging
import time
from typing import Any, NamedTuple

from ledgermq.core.queries import questions as query
from ledgermq.core.state.manager import QueueManager
from ledgermq.errors import LedgerMQError
from ledgermq.processor.lanes.bodies import BodyStore
from ledgermq.processor.lanes.lanes import LaneWriter
from ledgermq.processor.log.sizes import LogSizes
from ledgermq.processor.owner.paged_answers import PagedAnswers
from ledgermq.processor.worker.logs import ManagerLog, NowAndThen
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.answers import encode_answer

log = logging.getLogger(__name__)

# Kinds of which a page after the first is of an answer that was paged, not of the state as it is.
KINDS_KEPT = ("RESYNC", "BROWSE")
WAITING_MAX = 10_000
# As they stand on the log; in memory they may take many times that.
WAITING_BYTES_MAX = 8 * 1024 * 1024
SAY_AGAIN_SECONDS = 10.0
# It may quote what was asked, which may be as long as a record.
DETAIL_CHARACTERS_MAX = 2_000
ANSWER_BYTES_MAX = 9 * 1024 * 1024
PATIENCE_SECONDS_MAX = 300.0


class Question(NamedTuple):
    """An Ask, and how long the position that its answer must have reached is waited for.

    `patience_ends` is on the monotonic clock, `size_bytes` what it takes on the log.
    """

    ask: dict[str, Any]
    patience_ends: float
    size_bytes: int


class Answerer:
    def __init__(
        self, name: str, worker: str, lanes: LaneWriter, bodies: BodyStore, sizes: LogSizes
    ) -> None:
        self._name = name
        self._log = ManagerLog(log, name)
        self._worker = worker
        self._lanes = lanes
        self._bodies = bodies
        self._sizes = sizes
        self._paged = PagedAnswers()
        self._waiting: list[Question] = []
        self._waiting_bytes = 0
        self._crowds = NowAndThen(SAY_AGAIN_SECONDS)
        self.answered = 0

    def take(self, ask: dict[str, Any], size_bytes: int) -> None:
        """Takes a question; it is answered when its position is reached or its patience ends."""
        patience = min(max(ask["wait_ms"], 0) / 1000, PATIENCE_SECONDS_MAX)
        self._keep(Question(ask, time.monotonic() + patience, size_bytes))
        if len(self._waiting) > WAITING_MAX or self._waiting_bytes > WAITING_BYTES_MAX:
            self._drop_half()

    def _keep(self, question: Question) -> None:
        self._waiting.append(question)
        self._waiting_bytes += question.size_bytes

    def _drop_half(self) -> None:
        """Drops the older half: whoever asks so much does not read the answers, or asks again."""
        if self._crowds.may_say():
            self._log.warning(
                "%d questions of %d bytes wait; half are dropped, as often as they become too many",
                len(self._waiting),
                self._waiting_bytes,
            )
        del self._waiting[: len(self._waiting) // 2]
        self._waiting_bytes = sum(one.size_bytes for one in self._waiting)

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    async def answer_due(self, state: QueueManager) -> list[Question]:
        """Answers what can be answered now; gives back the questions for a checkpoint."""
        waiting, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        now = time.monotonic()
        checkpoints: list[Question] = []
        for question in _each_once(waiting):
            if question.ask["not_before"] > state.position:
                if now < question.patience_ends:
                    self._keep(question)
                    continue
                detail = (
                    f"position {question.ask['not_before']} was not reached in time: "
                    f"{self._name} is at {state.position}"
                )
                self.refuse(state, question, Reason.POSITION_NOT_REACHED, detail)
            elif question.ask["kind"] == "CHECKPOINT":
                checkpoints.append(question)
            else:
                await self._answer_if_it_can(state, question)
        return checkpoints

    async def _answer_if_it_can(self, state: QueueManager, question: Question) -> None:
        """Anybody can ask anything, and a question changes nothing: so none ends the worker.

        Raises:
            LedgerMQError: The log has not what it must have, or a lane takes no more.
        """
        try:
            await self._answer(state, question)
        except LedgerMQError:
            raise
        except Exception:
            self._log.exception(
                "a question has no answer: %.1000r",
                question.ask,
                connection=question.ask["connection"].hex(),
                position=state.position,
            )
            detail = "the question led to a fault of the worker, which is in its log"
            self.refuse(state, question, Reason.QUESTION_FAILED, detail)

    async def _answer(self, state: QueueManager, question: Question) -> None:
        after: str = question.ask["after"]
        if after and question.ask["kind"] in KINDS_KEPT:
            await self._answer_page(state, question, after)
            return
        answer = query.answer(state, question.ask, self._name, self._worker)
        if answer.reason:
            self.refuse(state, question, answer.reason, answer.detail)
            return
        if answer.is_large:
            place = self._paged.start(question.ask["connection"], state, answer)
            await self._answer_page(state, question, place)
            return
        if question.ask["kind"] == "STORAGE":
            # What only the worker knows; the fold's part is true at its position, these are now.
            answer.document["cache"] = self._bodies.figures()
            answer.document["log"] = await self._sizes.measure()
        for messages in answer.unfilled:
            if messages and self._bodies.fill(messages) < 0:
                await self._bodies.fill_cold(messages)
        self.reply(state, question, answer)

    async def _answer_page(self, state: QueueManager, question: Question, place: str) -> None:
        """Answers with a page of an answer that was begun before, true at the position of then."""
        paged = self._paged.find(question.ask["connection"], place)
        page = None if paged is None else await paged.page(place, self._bodies)
        if paged is None or page is None:
            detail = "the rest of this answer is not kept any more; ask again from the beginning"
            self.refuse(state, question, Reason.ANSWER_EXPIRED, detail)
            return
        value = encode_answer(question.ask["question"], paged.position, paged.time, page)
        # They are read again if the page is asked for again.
        for messages in page.unfilled:
            for message in messages:
                message["content"] = b""
        if not question.ask["after"] and not page.next:
            self._paged.drop(paged)
        self._send(question, value, paged.position)

    def reply(
        self,
        state: QueueManager,
        question: Question,
        answer: Answer,
        *,
        position: int | None = None,
    ) -> None:
        """Sends an answer; a refusal in its place if it is larger than a record may be."""
        at = state.position if position is None else position
        value = encode_answer(question.ask["question"], at, state.time, answer)
        if len(value) <= ANSWER_BYTES_MAX:
            self._send(question, value, at)
            return
        connection = question.ask["connection"].hex()
        self._log.warning(
            "the answer to a %s question of connection %s is too large to send",
            question.ask["kind"],
            connection,
            connection=connection,
        )
        detail = "the answer does not fit into one record; ask for less"
        self.refuse(state, question, Reason.ANSWER_TOO_LARGE, detail)

    def refuse(self, state: QueueManager, question: Question, reason: str, detail: str) -> None:
        refusal = Answer(reason=reason, detail=detail[:DETAIL_CHARACTERS_MAX])
        value = encode_answer(question.ask["question"], state.position, state.time, refusal)
        self._send(question, value, state.position)

    def _send(self, question: Question, value: bytes, position: int) -> None:
        self.answered += 1
        ask = question.ask
        self._lanes.send_answer(ask["connection"], ask["lane"], value, position, ask["kind"])


def _each_once(waiting: list[Question]) -> list[Question]:
    """Without repeats: a client asks again every second while it waits for an answer.

    Were each answered, questions that take longer than that would leave time for nothing else.
    """
    asked: dict[tuple[bytes, int, int], Question] = {}
    found: list[Question] = []
    for question in waiting:
        ask = question.ask
        first = asked.setdefault((ask["connection"], ask["lane"], ask["question"]), question)
        if first is question or first.ask != ask:
            found.append(question)
    return found
