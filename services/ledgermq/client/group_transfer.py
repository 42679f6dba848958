"""Groups across several units of work: put or got in parts, resumed where they were cut off.

A long group need not fit into one unit of work. Each unit of work leaves on a *status queue* how
far it came, in the same commit, so that whoever runs again after a crash goes on behind the last
message that was committed (GRP-24..35). The group is done when the status queue is empty. A status
queue belongs to one application: it holds the status of one group at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ledgermq.client.getting import GetMatch, GroupStatus, Order
from ledgermq.client.grouping import GroupPlace
from ledgermq.core.limits import GROUP_ID_BYTES
from ledgermq.errors import IllegalStateError, MessageFormatError

if TYPE_CHECKING:
    from ledgermq.client.consumer import Consumer
    from ledgermq.client.message import Message
    from ledgermq.client.message_kinds import Sendable
    from ledgermq.client.session import Session

__all__ = ["get_group", "put_group"]

STATUS_TYPE: Final = "ledgermq.group-status"
MESSAGES_PER_UNIT_OF_WORK: Final = 100


class _Status(NamedTuple):
    """What stands on the status queue: the group, and the number of its last message that is done."""

    group_id: bytes
    group_sequence: int


def put_group(
    session: Session,
    destination: str,
    bodies: Iterable[Sendable],
    *,
    status: str,
    messages_per_unit_of_work: int = MESSAGES_PER_UNIT_OF_WORK,
) -> bytes:
    """Puts bodies as one group, some in each unit of work; goes on where an earlier call ended.

    Call it again with the same bodies after whatever ended the call before: what was committed is
    passed over. `status` is the status queue. Returns the group id, 24 bytes.

    Raises:
        IllegalStateError: the session is not transacted or has a unit of work open, there are no
            bodies, or fewer than the status queue says were put.
        MessageFormatError: the status queue holds something else than a status.
        TransactionRolledBackError, TransactionInDoubtError, SessionLostError: as commit; call it
            again, in a new session if that was lost.
    """
    _check(session, messages_per_unit_of_work)
    producer, statuses = session.producer(destination), session.producer(status)
    with session.consumer(status, prefetch=0) as reader:
        found = _take_status(reader)
        group_id, done = found or _Status(os.urandom(GROUP_ID_BYTES), 0)
        taken = found is not None
        in_unit = 0
        # The first message of a call cannot be put in logical order: nothing came before it here.
        logical_order = False
        for number, body, last in _numbered(bodies, done):
            place = GroupPlace(group_id=group_id, group_sequence=number, last_in_group=last)
            producer.send(body, group=place, logical_order=logical_order)
            logical_order = True
            in_unit += 1
            if last or in_unit == messages_per_unit_of_work:
                if not taken and number > in_unit:
                    _take_status(reader)
                if not last:
                    _put_status(statuses, _Status(group_id, number))
                session.commit()
                taken, in_unit = False, 0
        return group_id


def _numbered(bodies: Iterable[Sendable], done: int) -> Iterator[tuple[int, Sendable, bool]]:
    """The bodies behind those that are done, with their numbers, and whether each is the last."""
    rest = iter(bodies)
    held: list[Sendable] = []
    number = 0
    for body in rest:
        number += 1
        if held:
            yield number - 1, held.pop(), False
        if number > done:
            held.append(body)
    if not held:
        raise IllegalStateError(
            f"the group has {number} messages, but {done} of them were put before and the last one "
            "was not among them: call put_group again with the same bodies"
            if done
            else "a group has at least one message"
        )
    yield number, held.pop(), True


def get_group(
    session: Session,
    source: str,
    process: Callable[[Message], object],
    *,
    status: str,
    messages_per_unit_of_work: int = MESSAGES_PER_UNIT_OF_WORK,
    timeout: float | None = None,
) -> int:
    """Gets one group in order, some messages in each unit of work; goes on where a call ended.

    `process` is called with each message, before the unit of work that it came in is committed:
    what it sends in this session belongs to that. Messages of the group are got as they come; a
    message in no group counts as a group of one. `timeout`: seconds to wait for each message.
    Returns how many messages this call got; 0 if no group began within the time-out. If a later
    one does not come in time, what was got is committed, and the next call goes on behind it.

    Raises:
        IllegalStateError: the session is not transacted or has a unit of work open.
        MessageFormatError: the status queue holds something else than a status.
        TransactionRolledBackError, TransactionInDoubtError, SessionLostError: as commit; call it
            again, in a new session if that was lost.
    """
    _check(session, messages_per_unit_of_work)
    statuses = session.producer(status)
    with (
        session.consumer(status, prefetch=0) as reader,
        session.consumer(source, prefetch=0, complete_message=True) as consumer,
    ):
        found = _take_status(reader)
        if found is None:
            message = consumer.receive(timeout, order=Order.LOGICAL)
        else:
            wanted = GetMatch(group_id=found.group_id, group_sequence=found.group_sequence + 1)
            message = consumer.receive(timeout, match=wanted)
        if message is None:
            session.rollback()
            return 0
        taken, in_unit, got = found is not None, 0, 0
        while message is not None:
            process(message)
            got, in_unit, last_got = got + 1, in_unit + 1, message
            more = message.group_status is GroupStatus.MESSAGE_IN_GROUP
            message = None
            if more and in_unit < messages_per_unit_of_work:
                message = consumer.receive(timeout, order=Order.LOGICAL)
                if message is not None:
                    continue
            if not taken and last_got.group_sequence > in_unit:
                _take_status(reader)
            if more:
                _put_status(statuses, _Status(_group_id(last_got), last_got.group_sequence))
            session.commit()
            if more and in_unit == messages_per_unit_of_work:
                message = consumer.receive(timeout, order=Order.LOGICAL)
            taken, in_unit = False, 0
        return got
