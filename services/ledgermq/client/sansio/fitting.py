"""Whether a reply fits what was asked: its kind, and how many it says it is about (PROTOCOL.md §5).

The log and the fold hold to this; a client that trusted it would fail somewhere else, and later.
"""

from __future__ import annotations

from typing import Final

from ledgermq.client.sansio.protocol import Pending
from ledgermq.errors import UnexpectedReplyError
from ledgermq.protocol.administration import (
    CopyMessages,
    DeleteMessages,
    MoveMessages,
    PurgeQueue,
    Relocate,
)
from ledgermq.protocol.operations import Close, Commit, Put, Recover, Rollback, SessionOperation
from ledgermq.protocol.outcomes import (
    Accepted,
    Administered,
    Committed,
    Enqueued,
    Refused,
    Reply,
    Returned,
    SessionEnded,
)

ANSWERS: Final[dict[type[SessionOperation], type[Reply]]] = {
    Close: SessionEnded,
    Commit: Committed,
    CopyMessages: Administered,
    DeleteMessages: Administered,
    MoveMessages: Administered,
    PurgeQueue: Administered,
    Put: Enqueued,
    Recover: Returned,
    Relocate: Administered,
    Rollback: Returned,
}


def misfit(pending: Pending, reply: Reply, *, transacted: bool) -> UnexpectedReplyError | None:
    """The error of an operation whose reply is none that it can have; None: the reply fits."""
    if isinstance(reply, Refused):
        return None
    expected = ANSWERS.get(pending.operation, Accepted)
    if pending.operation is Put and transacted:
        expected = Accepted
    name = type(reply).__name__
    if type(reply) is not expected:
        return _error(pending, reply, f"{name} came, {expected.__name__} was expected")
    vanished = pending.may_vanish and isinstance(reply, Enqueued) and not reply.count
    if isinstance(reply, Enqueued) and reply.count != pending.puts and not vanished:
        return _error(pending, reply, f"it brought {pending.puts} messages, {reply.count} came in")
    if isinstance(reply, Committed):
        return _commit_misfit(pending, reply)
    return None


def _commit_misfit(pending: Pending, reply: Committed) -> UnexpectedReplyError | None:
    enqueued = sum(run["count"] for run in reply.enqueued)
    if (enqueued, reply.consumed) == (pending.puts, pending.settles):
        return None
    return _error(
        pending,
        reply,
        f"it named {pending.puts} puts and {pending.settles} deliveries, {enqueued} and "
        f"{reply.consumed} were done",
    )


def _error(pending: Pending, reply: Reply, what: str) -> UnexpectedReplyError:
    return UnexpectedReplyError(
        f"the reply to {pending.operation.__name__} {pending.number} of session {reply.session} "
        f"does not fit it: {what}. It may have been applied; this is a fault of the queue "
        "manager or of this library: report it with the log position",
        destination=pending.destination,
        position=reply.position,
    )
