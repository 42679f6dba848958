"""Answers: questions put to the state, answered on the asker's lane (PROTOCOL.md §9, D15)."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from typing import Any

from ledgermq.core import query
from ledgermq.core.outcomes import Delivered, DeliveredMessage, Outcome
from ledgermq.core.reasons import POSITION_NOT_REACHED, QUEUE_UNKNOWN
from ledgermq.core.state import QueueManager
from ledgermq.processor.bodies import BodyStore
from ledgermq.processor.lanes import LaneWriter

__all__ = ["Answerer", "Question"]

log = logging.getLogger(__name__)

ANSWER_TOO_LARGE = "answer-too-large"
KIND_UNKNOWN = "kind-unknown"
PATIENCE_SECONDS_MAX = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An Ask and when it came."""

    ask: dict[str, Any]
    arrived: float

    @property
    def not_before(self) -> int:
        """The position that the answer must have reached."""
        not_before: int = self.ask["not_before"]
        return not_before

    @property
    def patience_ends(self) -> float:
        """When waiting for the position ends, on the monotonic clock."""
        wait_ms: int = self.ask["wait_ms"]
        return self.arrived + min(max(wait_ms, 0) / 1000, PATIENCE_SECONDS_MAX)


class Answerer:
    """Answers questions about one queue manager, between operations."""

    def __init__(self, name: str, worker: str, lanes: LaneWriter, bodies: BodyStore) -> None:
        self._name = name
        self._worker = worker
        self._lanes = lanes
        self._bodies = bodies
        self._waiting: list[Question] = []
        self.answered = 0

    def take(self, ask: dict[str, Any]) -> None:
        """Takes a question; it is answered when its position is reached or its patience ends."""
        self._waiting.append(Question(ask=ask, arrived=time.monotonic()))

    @property
    def waiting(self) -> bool:
        """Whether any question is not answered."""
        return bool(self._waiting)

    async def answer_due(self, state: QueueManager) -> list[Question]:
        """Answers what can be answered now; gives back the questions for a checkpoint."""
        waiting, self._waiting = self._waiting, []
        now = time.monotonic()
        checkpoints: list[Question] = []
        for question in waiting:
            if question.not_before > state.position:
                if now < question.patience_ends:
                    self._waiting.append(question)
                    continue
                detail = (
                    f"position {question.not_before} was not reached in time: "
                    f"{self._name} is at {state.position}"
                )
                self.refuse(state, question, POSITION_NOT_REACHED, detail)
            elif question.ask["kind"] == "CHECKPOINT":
                checkpoints.append(question)
            else:
                await self._answer(state, question)
        return checkpoints

    async def _answer(self, state: QueueManager, question: Question) -> None:
        ask, kind = question.ask, question.ask["kind"]
        document: Any = None
        if kind == "QUEUE_MANAGER":
            document = query.manager_status(state, self._name, self._worker)
        elif kind == "QUEUES":
            document = query.queue_statuses(state)
        elif kind == "SESSIONS":
            document = query.session_statuses(state)
        elif kind == "QUEUE":
            document = query.queue_status(state, ask["queue"])
        elif kind == "BROWSE":
            await self._browse(state, question)
            return
        elif kind == "RESYNC":
            await self._resync(state, question)
            return
        else:
            detail = f"this worker does not know questions of kind {kind}; it may be too old"
            self.refuse(state, question, KIND_UNKNOWN, detail)
            return
        if document is None:
            self._refuse_queue(state, question)
        else:
            self.reply(state, question, document)

    async def _browse(self, state: QueueManager, question: Question) -> None:
        ask = question.ask
        page = query.browse(
            state, ask["queue"], ask["after_priority"], ask["after_sequence"], ask["limit"]
        )
        if page is None:
            self._refuse_queue(state, question)
            return
        messages, more = page
        if messages and self._bodies.fill(messages) < 0:
            await self._bodies.fill_cold(messages)
        self.reply(state, question, {"more": more}, messages=messages)

    async def _resync(self, state: QueueManager, question: Question) -> None:
        document, outcomes = query.resync(state, question.ask["connection"])
        for outcome in outcomes:
            if isinstance(outcome, Delivered) and self._bodies.fill(outcome.messages) < 0:
                await self._bodies.fill_cold(outcome.messages)
        self.reply(state, question, document, outcomes=outcomes)

    def _refuse_queue(self, state: QueueManager, question: Question) -> None:
        detail = f"there is no queue {question.ask['queue']!r} on {self._name}"
        self.refuse(state, question, QUEUE_UNKNOWN, detail)

    def reply(
        self,
        state: QueueManager,
        question: Question,
        document: Any,
        *,
        messages: list[DeliveredMessage] | None = None,
        outcomes: list[Outcome] | None = None,
        position: int | None = None,
    ) -> None:
        """Sends an answer."""
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        self._send(state, question, "", "", text, messages or [], outcomes or [], position)

    def refuse(self, state: QueueManager, question: Question, reason: str, detail: str) -> None:
        """Sends a refusal."""
        self._send(state, question, reason, detail, "null", [], [], None)

    def _send(
        self,
        state: QueueManager,
        question: Question,
        reason: str,
        detail: str,
        document: str,
        messages: list[DeliveredMessage],
        outcomes: list[Outcome],
        position: int | None,
    ) -> None:
        ask = question.ask
        self.answered += 1
        answer = {
            "question": ask["question"],
            "position": state.position if position is None else position,
            "time": max(state.time, 0),
            "reason": reason,
            "detail": detail,
            "document": document,
            "messages": messages,
            "outcomes": outcomes,
        }
        if not self._lanes.send_answer(ask["connection"], ask["lane"], answer):
            log.warning(
                "%s: the answer to a %s question of connection %s is too large to send",
                self._name,
                ask["kind"],
                ask["connection"].hex(),
            )
            detail = "the answer does not fit into one record; ask for less"
            self.refuse(state, question, ANSWER_TOO_LARGE, detail)
