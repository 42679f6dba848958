"""Administration: create, alter and delete queues; read statuses; order a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.client.destinations import queue_name
from ledgermq.client.questions import Answer, Questions
from ledgermq.client.session_core import SessionCore
from ledgermq.client.status import (
    CheckpointStatus,
    QueueManagerStatus,
    QueueStatus,
    SessionStatus,
)
from ledgermq.core.operations import (
    AlterQueue,
    AlterQueueManager,
    Correct,
    CreateQueue,
    DeleteQueue,
    SessionOperation,
    Upgrade,
)

__all__ = ["Admin"]


class Admin:
    """`connection.admin`; a queue is named `orders` or `queue:orders`.

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

    def create_queue(self, name: str, *, description: str = "", message_bytes_max: int = 0) -> int:
        """Creates a queue; `message_bytes_max` 0 means the general limit.

        Raises:
            DestinationExistsError: there is one of this name.
            InvalidDestinationError: the name is not allowed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        queue = queue_name(name)
        return self._change(
            CreateQueue,
            target=f"queue:{queue}",
            queue=queue,
            description=description,
            message_bytes_max=message_bytes_max,
        )

    def alter_queue(
        self,
        name: str,
        *,
        description: str | None = None,
        message_bytes_max: int | None = None,
        suspended: bool | None = None,
    ) -> int:
        """Changes settings of a queue; None leaves one as it is.

        Suspended, a queue takes messages and delivers none.

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

    def queue_manager_status(self, *, not_before: int = -1) -> QueueManagerStatus:
        """The queue manager as a whole."""
        return QueueManagerStatus.from_document(self._ask("QUEUE_MANAGER", not_before).document)

    def sessions(self, *, not_before: int = -1) -> list[SessionStatus]:
        """The open sessions of all connections, by handle."""
        answer = self._ask("SESSIONS", not_before)
        return [SessionStatus.from_document(one) for one in answer.document]

    def checkpoint(self, *, not_before: int = -1) -> CheckpointStatus:
        """Orders a checkpoint and waits until it is durable."""
        return CheckpointStatus.from_answer(self._ask("CHECKPOINT", not_before))
