"""Administration: queues, topics, subscriptions, groups; statuses of everything; a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ledgermq.client.argument_types import typed
from ledgermq.client.destinations import queue_name, topic_name
from ledgermq.client.group_state import GroupState
from ledgermq.client.questions import Answer, Questions
from ledgermq.client.relocating import Relocating
from ledgermq.client.session_core import SessionCore
from ledgermq.client.status import (
    CheckpointStatus,
    QueueManagerStatus,
    QueueStatus,
    SessionStatus,
    SubscriptionStatus,
    TopicStatus,
)
from ledgermq.client.storage_status import StorageStatus
from ledgermq.client.work_status import SessionState, TransactionStatus
from ledgermq.protocol.limits import GROUP_MEMBERS_MAX

__all__ = ["Admin"]

# Groups asked for at a time: what one answer has room for even if much of each is missing.
GROUPS_PER_PAGE: Final = 200
SEGMENTS_PER_PAGE: Final = 10_000


@typed
class Admin(Relocating):
    """`connection.admin`; a queue is named `orders` or `queue:orders`, a topic likewise.

    Changes are operations on the log and return the log position of their outcome. Statuses are
    answers of the worker, true at the position they name; `not_before` asks for one that is true
    at that position or later.
    """

    def __init__(
        self, control: Callable[[], SessionCore], questions: Questions, timeout_seconds: float
    ) -> None:
        super().__init__(control)
        self._questions = questions
        self._timeout_seconds = timeout_seconds

    def _ask(self, kind: str, not_before: int, **more: Any) -> Answer:
        return self._questions.ask(
            kind, timeout_seconds=self._timeout_seconds, not_before=not_before, **more
        )

    def _pages(self, kind: str, not_before: int) -> Iterator[Answer]:
        return self._questions.pages(
            kind, timeout_seconds=self._timeout_seconds, not_before=not_before
        )

    def queue_status(self, name: str, *, not_before: int = -1) -> QueueStatus:
        """One queue's status.

        Raises:
            QueueNotFoundError: there is no such queue.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        answer = self._ask("QUEUE", not_before, queue=queue_name(name))
        return QueueStatus.from_document(answer.position, answer.document)

    def list_queues(self, *, not_before: int = -1) -> list[QueueStatus]:
        """All queues' statuses, by name; asked for page by page, so each names its position."""
        return [
            QueueStatus.from_document(answer.position, one)
            for answer in self._pages("QUEUES", not_before)
            for one in answer.document
        ]

    def groups(self, queue: str, *, not_before: int = -1) -> list[GroupState]:
        """The groups of which a queue holds something, by group id, without their items.

        They are asked for page by page, so that each names the position it is true at.

        Raises:
            QueueNotFoundError: there is no such queue.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        found: list[GroupState] = []
        named, after = queue_name(queue), b""
        while True:
            answer = self._ask(
                "GROUPS", not_before, queue=named, group_id=after, limit=GROUPS_PER_PAGE
            )
            document = answer.document
            found += [GroupState.from_document(answer.position, one) for one in document["groups"]]
            if not document["more"]:
                return found
            after = found[-1].group_id

    def group(self, queue: str, group_id: bytes, *, not_before: int = -1) -> GroupState:
        """One group of a queue with every item that is there.

        Long groups are asked for page by page; what is told of the group as a whole is true at
        the position of the last page.

        Raises:
            QueueNotFoundError: there is no such queue.
            GroupNotFoundError: the queue holds nothing of this group.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        members: list[dict[str, Any]] = []
        after = (0, 0)
        while True:
            answer = self._ask(
                "GROUP",
                not_before,
                queue=queue_name(queue),
                group_id=group_id,
                group_sequence=after[0],
                offset=after[1],
                limit=GROUP_MEMBERS_MAX,
            )
            document = answer.document
            members += document["members"]
            if not document["more"]:
                return GroupState.from_document(answer.position, {**document, "members": members})
            after = (members[-1]["group_sequence"], members[-1]["offset"])

    def topic(self, name: str, *, not_before: int = -1) -> TopicStatus:
        """One topic's status.

        Raises:
            TopicNotFoundError: there is no such topic.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        answer = self._ask("TOPIC", not_before, queue=topic_name(name))
        return TopicStatus.from_document(answer.position, answer.document)

    def topics(self, *, not_before: int = -1) -> list[TopicStatus]:
        """All topics' statuses, by name."""
        return [
            TopicStatus.from_document(answer.position, one)
            for answer in self._pages("TOPICS", not_before)
            for one in answer.document
        ]

    def subscriptions(
        self, topic: str | None = None, *, not_before: int = -1
    ) -> list[SubscriptionStatus]:
        """The subscriptions of all topics, or of one, by topic and creation.

        A topic that is not there has none.

        Raises:
            InvalidDestinationError: `topic` names none.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        wanted = None if topic is None else topic_name(topic)
        return [
            SubscriptionStatus.from_document(answer.position, one)
            for answer in self._pages("SUBSCRIPTIONS", not_before)
            for one in answer.document
            if wanted in (None, one["topic"])
        ]

    def queue_manager_status(self, *, not_before: int = -1) -> QueueManagerStatus:
        """The queue manager as a whole."""
        return QueueManagerStatus.from_document(self._ask("QUEUE_MANAGER", not_before).document)

    def sessions(self, *, not_before: int = -1) -> list[SessionStatus]:
        """The open sessions of all connections, by handle."""
        return [
            SessionStatus.from_document(one)
            for answer in self._pages("SESSIONS", not_before)
            for one in answer.document
        ]

    def storage(self, *, not_before: int = -1) -> StorageStatus:
        """The segments that messages are accounted for in, the cache of bodies, the log's size.

        The worker looks at every message that there is, for the oldest of each segment.

        Raises:
            WorkerUnavailableError: nobody answered within the time-out.
        """
        answers: list[Answer] = []
        after = -1
        while not answers or answers[-1].document["more"]:
            answers.append(
                self._ask("STORAGE", not_before, after_sequence=after, limit=SEGMENTS_PER_PAGE)
            )
            after = int(answers[-1].document["segments"][-1]["number"], 16)
        return StorageStatus.from_answers(answers)

    def session(self, session: int, *, not_before: int = -1) -> SessionState:
        """One session with its consumers, what it holds, and why it gets nothing.

        Raises:
            SessionNotFoundError: there is no such session.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        answer = self._ask("SESSION", not_before, session=session)
        return SessionState.from_document(answer.position, answer.document)

    def transactions(self, *, not_before: int = -1) -> list[TransactionStatus]:
        """The units of work that hold anything, by session."""
        found: dict[int, dict[str, Any]] = {}
        for answer in self._pages("TRANSACTIONS", not_before):
            for one in answer.document:
                # A unit of work over many destinations has several entries.
                whole = found.setdefault(one["session"], one)
                if whole is not one:
                    whole["puts"] += one["puts"]
                    whole["gets"] += one["gets"]
        return [TransactionStatus.from_document(one) for one in found.values()]

    def transaction(self, session: int, *, not_before: int = -1) -> TransactionStatus:
        """The unit of work of one session.

        Raises:
            SessionNotFoundError: there is no such session, or its unit of work holds nothing.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        answer = self._ask("TRANSACTION", not_before, session=session)
        return TransactionStatus.from_document(answer.document)

    def checkpoint(self, *, not_before: int = -1) -> CheckpointStatus:
        """Orders a checkpoint and waits until it is durable."""
        return CheckpointStatus.from_answer(self._ask("CHECKPOINT", not_before))
