"""Administration for asyncio: the calls of `ledgermq.Connection.admin`, awaited."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, TypeVar

from ledgermq.client.admin.admin import Admin as ThreadedAdmin
from ledgermq.client.closing import Uncopied

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    call: Callable[Concatenate[ThreadedAdmin, P], R],
) -> Callable[Concatenate[Admin, P], Awaitable[R]]:
    """A call that begins at once, in the event loop's pool of threads.

    In a thread without an event loop, as of `asyncio.to_thread(admin.list_queues)`, it waits and
    returns what it found.
    """

    @functools.wraps(call)
    def begin(admin: Admin, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        ready = functools.partial(call, admin._threaded, *args, **kwargs)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return ready()  # type: ignore[return-value]
        return loop.run_in_executor(None, contextvars.copy_context().run, ready)

    return begin


class Admin(Uncopied):
    """`connection.admin`: takes, returns and raises what `ledgermq.Connection.admin` does.

    A call that is given up goes on in its thread, and may still work.
    """

    def __init__(self, threaded: ThreadedAdmin) -> None:
        self._threaded = threaded

    create_queue = _awaited(ThreadedAdmin.create_queue)
    alter_queue = _awaited(ThreadedAdmin.alter_queue)
    suspend_queue = _awaited(ThreadedAdmin.suspend_queue)
    resume_queue = _awaited(ThreadedAdmin.resume_queue)
    delete_queue = _awaited(ThreadedAdmin.delete_queue)
    create_topic = _awaited(ThreadedAdmin.create_topic)
    alter_topic = _awaited(ThreadedAdmin.alter_topic)
    delete_topic = _awaited(ThreadedAdmin.delete_topic)
    unsubscribe = _awaited(ThreadedAdmin.unsubscribe)
    bind = _awaited(ThreadedAdmin.bind)
    unbind = _awaited(ThreadedAdmin.unbind)
    alter_queue_manager = _awaited(ThreadedAdmin.alter_queue_manager)
    back_up_journal = _awaited(ThreadedAdmin.back_up_journal)
    upgrade = _awaited(ThreadedAdmin.upgrade)
    correct = _awaited(ThreadedAdmin.correct)
    rollback_transaction = _awaited(ThreadedAdmin.rollback_transaction)
    end_session = _awaited(ThreadedAdmin.end_session)
    purge_queue = _awaited(ThreadedAdmin.purge_queue)
    delete_messages = _awaited(ThreadedAdmin.delete_messages)
    move_messages = _awaited(ThreadedAdmin.move_messages)
    copy_messages = _awaited(ThreadedAdmin.copy_messages)
    retry_messages = _awaited(ThreadedAdmin.retry_messages)
    select_messages = _awaited(ThreadedAdmin.select_messages)
    log_pins = _awaited(ThreadedAdmin.log_pins)
    relocate_messages = _awaited(ThreadedAdmin.relocate_messages)
    queue_status = _awaited(ThreadedAdmin.queue_status)
    queue_obstacles = _awaited(ThreadedAdmin.queue_obstacles)
    list_queues = _awaited(ThreadedAdmin.list_queues)
    list_sources = _awaited(ThreadedAdmin.list_sources)
    groups = _awaited(ThreadedAdmin.groups)
    group = _awaited(ThreadedAdmin.group)
    topic = _awaited(ThreadedAdmin.topic)
    topics = _awaited(ThreadedAdmin.topics)
    subscriptions = _awaited(ThreadedAdmin.subscriptions)
    bindings = _awaited(ThreadedAdmin.bindings)
    queue_manager_status = _awaited(ThreadedAdmin.queue_manager_status)
    sessions = _awaited(ThreadedAdmin.sessions)
    storage = _awaited(ThreadedAdmin.storage)
    session = _awaited(ThreadedAdmin.session)
    transactions = _awaited(ThreadedAdmin.transactions)
    transaction = _awaited(ThreadedAdmin.transaction)
    checkpoint = _awaited(ThreadedAdmin.checkpoint)
