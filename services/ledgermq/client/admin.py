"""Administration: queues, topics, subscriptions, groups; statuses of everything; a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ledgermq.client.destinations import queue_name, topic_name
from ledgermq.client.group_state import GroupState
from ledgermq.client.pins import LogPins
from ledgermq.client.questions import Answer, Questions
from ledgermq.client.session_core import SessionCore
from ledgermq.client.status import (
    CheckpointStatus,
    QueueManagerStatus,
    QueueStatus,
    SessionStatus,
    SubscriptionStatus,
    TopicStatus,
)
from ledgermq.core.limits import GROUP_MEMBERS_MAX
from ledgermq.core.operations import (
    AlterQueue,
    AlterQueueManager,
    Correct,
    CreateQueue,
    CreateTopic,
    DeleteQueue,
    DeleteTopic,
    SessionOperation,
    Unsubscribe,
    Upgrade,
)

__all__ = ["Admin"]

# Groups asked for at a time: what one answer has room for even if much of each is missing.
GROUPS_PER_PAGE: Final = 200


class Admin:
    """`connection.admin`; a queue is named `orders` or `queue:orders`, a topic likewise.

    Changes are operations on the log and return the log position of their outcome. Statuses are
    answers of the worker, true at the position they name; `not_before` asks for one that is true
    at that position or later.
    """

    def __init__(
        self, control: Callable[[], SessionCore], questions: Questions, timeout_seconds: float
    ) -> None:
        self._control = control
        self._questions = questions
        self._timeout_seconds = timeout_seconds

    def _change(
        self, operation: type[SessionOperation], *, target: str | None = None, **fields: Any
    ) -> int:
        core = self._control()
        with core.lock:
            core.wait_for_room_locked()
            pending = core.write_locked(operation, target=target, **fields)
            pending.result = lambda reply: reply.position
            return core.await_locked(pending).position

    def create_queue(
        self,
        name: str,
        *,
        description: str = "",
        message_bytes_max: int = 0,
        unacknowledged_max: int = 0,
        group_affinity: bool = False,
    ) -> int:
        """Creates a queue.

        Args:
            name: Its name.
            description: Free text for people.
            message_bytes_max: Largest content of a message in bytes; 0: the limit of the log.
            unacknowledged_max: How many of its messages a session may hold unsettled before it is
                given no more (SES-07), up to 1,000,000; 0: no limit.
            group_affinity: Whether all messages of a group go to the consumer that was given one
                of them, while that is open. A message's group is its property `JMSXGroupID` if
                that is text, else its group id.

        Raises:
            DestinationExistsError: there is one of this name.
            InvalidDestinationError: the name is not allowed.
            RefusedError: a setting is out of range.
            OutcomeUnknownError: no outcome within the time-out.
        """
        queue = queue_name(name)
        return self._change(
            CreateQueue,
            target=f"queue:{queue}",
            queue=queue,
            description=description,
            message_bytes_max=message_bytes_max,
            unacknowledged_max=unacknowledged_max,
            group_affinity=group_affinity,
        )

    def alter_queue(
        self,
        name: str,
        *,
        description: str | None = None,
        message_bytes_max: int | None = None,
        suspended: bool | None = None,
        unacknowledged_max: int | None = None,
        group_affinity: bool | None = None,
    ) -> int:
        """Changes settings of a queue; None leaves one as it is, 0 takes a limit away.

        Suspended, a queue takes messages and delivers none. What sessions hold beyond a lower
        `unacknowledged_max` stays theirs; they get more when they hold less than that. Turning
        `group_affinity` off frees the groups of the consumers that they went to.

        Raises:
            QueueNotFoundError: there is no such queue.
            RefusedError: a setting is out of range.
        """
        queue = queue_name(name)
        return self._change(
            AlterQueue,
            target=f"queue:{queue}",
            queue=queue,
            description=description,
            message_bytes_max=message_bytes_max,
            suspended=suspended,
            unacknowledged_max=unacknowledged_max,
            group_affinity=group_affinity,
        )

    def suspend_queue(self, name: str) -> int:
        """Stops delivery from a queue; it goes on taking messages."""
        return self.alter_queue(name, suspended=True)

    def resume_queue(self, name: str) -> int:
        """Lets a suspended queue deliver again."""
        return self.alter_queue(name, suspended=False)

    def delete_queue(self, name: str, *, purge: bool = False) -> int:
        """Deletes a queue that nobody uses; with `purge` also when it holds messages.

        Raises:
            QueueNotFoundError: there is no such queue.
            DestinationInUseError: it has consumers, uncommitted puts, deliveries, or messages.
        """
        queue = queue_name(name)
        return self._change(DeleteQueue, target=f"queue:{queue}", queue=queue, purge=purge)

    def create_topic(self, name: str, *, description: str = "", message_bytes_max: int = 0) -> int:
        """Creates a topic; `message_bytes_max` 0 means the general limit.

        Raises:
            DestinationExistsError: there is one of this name.
            InvalidDestinationError: the name is not allowed.
            RefusedError: a setting is out of range.
            OutcomeUnknownError: no outcome within the time-out.
        """
        topic = topic_name(name)
        return self._change(
            CreateTopic,
            target=f"topic:{topic}",
            topic=topic,
            description=description,
            message_bytes_max=message_bytes_max,
        )

    def delete_topic(self, name: str, *, purge: bool = False) -> int:
        """Deletes a topic that nobody uses; with `purge` also its durable subscriptions.

        What such subscriptions hold goes with them.

        Raises:
            TopicNotFoundError: there is no such topic.
            DestinationInUseError: it has consumers, uncommitted puts, deliveries, or durable
                subscriptions.
            TemporaryDestinationForeignError: it is another connection's temporary topic.
        """
        topic = topic_name(name)
        return self._change(DeleteTopic, target=f"topic:{topic}", topic=topic, purge=purge)

    def unsubscribe(self, name: str) -> int:
        """Deletes a durable subscription of this connection's client id, with what it holds.

        A connection without a client id deletes durable subscriptions that were made without one.

        Raises:
            SubscriptionNotFoundError: this client id has no durable subscription of that name.
            SubscriptionInUseError: it has consumers or deliveries in flight (SES-63).
        """
        return self._change(Unsubscribe, subscription=name)

    def alter_queue_manager(self, *, automatic_creation: bool | None = None) -> int:
        """Changes settings of the queue manager; None leaves one as it is."""
        return self._change(AlterQueueManager, automatic_creation=automatic_creation)

    def upgrade(self, version: int) -> int:
        """Sets the protocol version that later entries are read by; there is no way back.

        Raises:
            RefusedError: the version is not above the active one.
        """
        return self._change(Upgrade, version=version)

    def correct(self, name: str, *, sequence: int, action: str, actor: str, reason: str) -> int:
        """Repairs one message's state by hand: `action` REMOVE or RELEASE.

        Raises:
            QueueNotFoundError: there is no such queue.
            RefusedError: there is no such message, or the action does not fit its state.
        """
        queue = queue_name(name)
        return self._change(
            Correct,
            target=f"queue:{queue}",
            queue=queue,
            sequence=sequence,
            action=action,
            actor=actor,
            reason=reason,
        )

    def _ask(self, kind: str, not_before: int, **more: Any) -> Answer:
        return self._questions.ask(
            kind, timeout_seconds=self._timeout_seconds, not_before=not_before, **more
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
        """All queues' statuses, by name."""
        answer = self._ask("QUEUES", not_before)
        return [QueueStatus.from_document(answer.position, one) for one in answer.document]

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
        answer = self._ask("TOPICS", not_before)
        return [TopicStatus.from_document(answer.position, one) for one in answer.document]

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
        answer = self._ask("SUBSCRIPTIONS", not_before)
        return [
            SubscriptionStatus.from_document(answer.position, one)
            for one in answer.document
            if wanted in (None, one["topic"])
        ]

    def queue_manager_status(self, *, not_before: int = -1) -> QueueManagerStatus:
        """The queue manager as a whole."""
        return QueueManagerStatus.from_document(self._ask("QUEUE_MANAGER", not_before).document)

    def sessions(self, *, not_before: int = -1) -> list[SessionStatus]:
        """The open sessions of all connections, by handle."""
        answer = self._ask("SESSIONS", not_before)
        return [SessionStatus.from_document(one) for one in answer.document]

    def log_pins(self, limit: int = 20, *, not_before: int = -1) -> LogPins:
        """The live messages whose bodies stand lowest on the log, oldest first; at most `limit`.

        The worker looks at every live message for it.

        Raises:
            WorkerUnavailableError: nobody answered within the time-out.
        """
        return LogPins.from_answer(self._ask("PINS", not_before, limit=limit))

    def checkpoint(self, *, not_before: int = -1) -> CheckpointStatus:
        """Orders a checkpoint and waits until it is durable."""
        return CheckpointStatus.from_answer(self._ask("CHECKPOINT", not_before))
