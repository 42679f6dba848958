"""Administration: one object of its parts, each of which does one kind of work."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from ledgermq.client.admin.changes import Changes
from ledgermq.client.admin.link import AdminLink
from ledgermq.client.admin.manual import ManualOperations
from ledgermq.client.admin.relocation import Relocation
from ledgermq.client.admin.statuses import Statuses
from ledgermq.client.engine.engine import Engine
from ledgermq.client.link.questions import Questions

P = ParamSpec("P")
Part = TypeVar("Part", Changes, ManualOperations, Relocation, Statuses)
R = TypeVar("R")


def _of(
    kind: type[Part], method: Callable[Concatenate[Part, P], R]
) -> Callable[Concatenate[Admin, P], R]:
    """A method of a part as one of the whole."""

    @functools.wraps(method)
    def call(admin: Admin, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(kind(admin._link), *args, **kwargs)

    return call


class Admin:
    """`connection.admin`; a queue is named `orders` or `queue:orders`, a topic likewise.

    Changes are operations on the log and return the log position of their outcome. Statuses are
    answers of the worker, true at the position they name; `not_before` asks for one that is true
    at that position or later.
    """

    def __init__(
        self, control: Callable[[], Engine], questions: Questions, timeout_seconds: float
    ) -> None:
        self._link = AdminLink(control, questions, timeout_seconds)

    create_queue = _of(Changes, Changes.create_queue)
    alter_queue = _of(Changes, Changes.alter_queue)
    suspend_queue = _of(Changes, Changes.suspend_queue)
    resume_queue = _of(Changes, Changes.resume_queue)
    delete_queue = _of(Changes, Changes.delete_queue)
    create_topic = _of(Changes, Changes.create_topic)
    alter_topic = _of(Changes, Changes.alter_topic)
    delete_topic = _of(Changes, Changes.delete_topic)
    unsubscribe = _of(Changes, Changes.unsubscribe)
    alter_queue_manager = _of(Changes, Changes.alter_queue_manager)
    back_up_journal = _of(Changes, Changes.back_up_journal)
    upgrade = _of(Changes, Changes.upgrade)
    correct = _of(Changes, Changes.correct)
    rollback_transaction = _of(Changes, Changes.rollback_transaction)
    end_session = _of(Changes, Changes.end_session)
    purge_queue = _of(ManualOperations, ManualOperations.purge_queue)
    delete_messages = _of(ManualOperations, ManualOperations.delete_messages)
    move_messages = _of(ManualOperations, ManualOperations.move_messages)
    copy_messages = _of(ManualOperations, ManualOperations.copy_messages)
    retry_messages = _of(ManualOperations, ManualOperations.retry_messages)
    select_messages = _of(ManualOperations, ManualOperations.select_messages)
    log_pins = _of(Relocation, Relocation.log_pins)
    relocate_messages = _of(Relocation, Relocation.relocate_messages)
    queue_status = _of(Statuses, Statuses.queue_status)
    list_queues = _of(Statuses, Statuses.list_queues)
    groups = _of(Statuses, Statuses.groups)
    group = _of(Statuses, Statuses.group)
    topic = _of(Statuses, Statuses.topic)
    topics = _of(Statuses, Statuses.topics)
    subscriptions = _of(Statuses, Statuses.subscriptions)
    queue_manager_status = _of(Statuses, Statuses.queue_manager_status)
    sessions = _of(Statuses, Statuses.sessions)
    storage = _of(Statuses, Statuses.storage)
    session = _of(Statuses, Statuses.session)
    transactions = _of(Statuses, Statuses.transactions)
    transaction = _of(Statuses, Statuses.transaction)
    checkpoint = _of(Statuses, Statuses.checkpoint)
