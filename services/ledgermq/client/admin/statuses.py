"""Statuses of everything, and a checkpoint, as the worker answers."""

from __future__ import annotations

from typing import Any, Final

from ledgermq.client.admin.part import AdminPart, status_told
from ledgermq.client.argument_types import typed
from ledgermq.client.destinations import queue_name, topic_name
from ledgermq.client.link.questions import Answer
from ledgermq.protocol.documents.destinations import (
    BindingStatus,
    QueueStatus,
    SourceStatus,
    SubscriptionStatus,
    TopicStatus,
)
from ledgermq.protocol.documents.groups import GroupState
from ledgermq.protocol.documents.manager import CheckpointStatus, QueueManagerStatus
from ledgermq.protocol.documents.obstacles import QueueObstacles
from ledgermq.protocol.documents.sessions import SessionState, SessionStatus, TransactionStatus
from ledgermq.protocol.documents.storage import StorageStatus
from ledgermq.protocol.limits import GROUP_MEMBERS_MAX

# Groups asked for at a time: what one answer has room for even if much of each is missing.
GROUPS_PER_PAGE: Final = 200
SEGMENTS_PER_PAGE: Final = 10_000


@typed
class Statuses(AdminPart):
    """What the worker answers, true at the log position that it names; it changes nothing.

    Each raises WorkerUnavailableError if nobody answered within the time-out.
    """

    def queue_status(self, name: str, *, not_before: int = -1) -> QueueStatus:
        """One queue's status.

        Raises:
            QueueNotFoundError: there is no such queue.
        """
        return self._one(QueueStatus, "QUEUE", not_before, queue=queue_name(name))

    def queue_obstacles(self, name: str, *, not_before: int = -1) -> QueueObstacles:
        """Why messages of a queue are not delivered, and why its consumers get none.

        Raises:
            QueueNotFoundError: there is no such queue.
        """
        return self._one(QueueObstacles, "OBSTACLES", not_before, queue=queue_name(name))

    def list_queues(self, *, prefix: str = "", not_before: int = -1) -> list[QueueStatus]:
        """The statuses of the queues whose names begin with `prefix`, of all if it is empty.

        By name; asked for page by page, so each names its position.
        """
        return self._named("QUEUES", QueueStatus, prefix, not_before)

    def list_sources(self, *, not_before: int = -1) -> list[SourceStatus]:
        """How far destinations have taken other logs, by destination, partition and name."""
        return self._listed("SOURCES", SourceStatus, not_before)

    def groups(self, queue: str, *, not_before: int = -1) -> list[GroupState]:
        """The groups of which a queue holds something, by group id, without their items.

        They are asked for page by page, so that each names the position it is true at.

        Raises:
            QueueNotFoundError: there is no such queue.
        """
        found: list[GroupState] = []
        named, after = queue_name(queue), b""
        while True:
            answer = self._ask(
                "GROUPS", not_before, queue=named, group_id=after, limit=GROUPS_PER_PAGE
            )
            document = answer.document
            found += [
                status_told(GroupState, one, position=answer.position) for one in document["groups"]
            ]
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
                return status_told(
                    GroupState, {**document, "members": members}, position=answer.position
                )
            after = (members[-1]["group_sequence"], members[-1]["offset"])

    def topic(self, name: str, *, not_before: int = -1) -> TopicStatus:
        """One topic's status.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        return self._one(TopicStatus, "TOPIC", not_before, queue=topic_name(name))

    def topics(self, *, prefix: str = "", not_before: int = -1) -> list[TopicStatus]:
        """The statuses of the topics whose names begin with `prefix`, as `list_queues` has them."""
        return self._named("TOPICS", TopicStatus, prefix, not_before)

    def subscriptions(
        self, topic: str | None = None, *, not_before: int = -1
    ) -> list[SubscriptionStatus]:
        """The subscriptions of all topics, or of one, by topic and creation.

        A topic that is not there has none.

        Raises:
            InvalidDestinationError: `topic` names none.
        """
        wanted = None if topic is None else topic_name(topic)
        every = self._listed("SUBSCRIPTIONS", SubscriptionStatus, not_before)
        return [one for one in every if wanted in (None, one.topic)]

    def bindings(self, topic: str | None = None, *, not_before: int = -1) -> list[BindingStatus]:
        """All bindings in the order in which they were made, or those that take in one topic.

        Raises:
            InvalidDestinationError: `topic` names none.
        """
        wanted = None if topic is None else topic_name(topic)
        every = self._listed("BINDINGS", BindingStatus, not_before)
        return [one for one in every if wanted is None or one.takes_in(wanted)]

    def queue_manager_status(self, *, not_before: int = -1) -> QueueManagerStatus:
        """The queue manager as a whole."""
        return status_told(QueueManagerStatus, self._ask("QUEUE_MANAGER", not_before).document)

    def sessions(self, *, not_before: int = -1) -> list[SessionStatus]:
        """The open sessions of all connections, by handle."""
        return [
            status_told(SessionStatus, one)
            for answer in self._pages("SESSIONS", not_before)
            for one in answer.document
        ]

    def storage(self, *, not_before: int = -1) -> StorageStatus:
        """The segments that messages are accounted for in, the cache of bodies, the log's size.

        The worker looks at every message that there is, for the oldest of each segment.
        """
        answers: list[Answer] = []
        after = -1
        while not answers or answers[-1].document["more"]:
            answers.append(
                self._ask("STORAGE", not_before, after_sequence=after, limit=SEGMENTS_PER_PAGE)
            )
            after = int(answers[-1].document["segments"][-1]["number"], 16)
        segments = [one for answer in answers for one in answer.document["segments"]]
        # The sums are those of the last page.
        whole = answers[-1].document | {"segments": segments}
        return status_told(StorageStatus, whole, position=answers[-1].position)

    def session(self, session: int, *, not_before: int = -1) -> SessionState:
        """One session with its consumers, what it holds, and why it gets nothing.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        return self._one(SessionState, "SESSION", not_before, session=session)

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
        return [status_told(TransactionStatus, one) for one in found.values()]

    def transaction(self, session: int, *, not_before: int = -1) -> TransactionStatus:
        """The unit of work of one session.

        Raises:
            SessionNotFoundError: there is no such session, or its unit of work holds nothing.
        """
        answer = self._ask("TRANSACTION", not_before, session=session)
        return status_told(TransactionStatus, answer.document)

    def checkpoint(self, *, not_before: int = -1) -> CheckpointStatus:
        """Orders a checkpoint and waits until it is durable."""
        return status_told(CheckpointStatus, self._ask("CHECKPOINT", not_before).document)
