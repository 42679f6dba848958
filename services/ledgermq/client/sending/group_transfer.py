"""Groups across several units of work: put or got in parts, resumed where they were cut off.

A long group need not fit into one unit of work. Each unit of work leaves on a *status queue* how
far it came, in the same commit, so that whoever runs again after a crash goes on behind the last
message that was committed (GRP-24..35). The group is done when the status queue is empty. A status
queue belongs to one application: it holds the status of one group at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from ledgermq.client.argument_types import typed
from ledgermq.client.messages.message import Message
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.receiving.consumer import Consumer
from ledgermq.client.receiving.getting import GetMatch, GroupStatus, Order
from ledgermq.client.sending.grouping import GroupPlace
from ledgermq.client.sending.producer import Producer
from ledgermq.client.session import Session
from ledgermq.errors import IllegalStateError, MessageFormatError
from ledgermq.errors.shown import shown
from ledgermq.protocol.limits import GROUP_ID_BYTES

STATUS_TYPE: Final = "ledgermq.group-status"
MESSAGES_PER_UNIT_OF_WORK: Final = 100


class _Status(NamedTuple):
    """What stands on the status queue: the group, and the number of its last message done."""

    group_id: bytes
    group_sequence: int


@typed
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
    passed over (GRP-24..30). What ends it between commits leaves the unit of work open: roll back.

    Args:
        session: A transacted one.
        destination: The queue that the group is put to.
        bodies: The messages of the group, in their order.
        status: The status queue of this putter, which nobody else uses.
        messages_per_unit_of_work: At most how many of them one commit puts.

    Returns:
        The group id, 24 bytes.

    Raises:
        IllegalStateError: the session is not transacted or has a unit of work open, there are no
            bodies, or fewer than the status queue says were put.
        MessageFormatError: the status queue holds something else than a status.
        TransactionTooLargeError: one unit of work is larger than a segment (DB-09); it was rolled
            back. Call it again with fewer messages in each.
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
                session._commit_or_undo()
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


@typed
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

    Messages of the group are got as they come (GRP-31..35); a message in no group counts as a group
    of one. What `process` raises ends the call, and leaves the unit of work open: roll back, and
    call it again.

    Args:
        session: A transacted one.
        source: The queue that the group is got from.
        process: Called with each message, before the unit of work that it came in is committed:
            what it sends in this session belongs to that.
        status: The status queue of this getter, which nobody else uses.
        messages_per_unit_of_work: At most how many messages one commit consumes.
        timeout: Seconds to wait for each message; None: as long as it takes. If a later one does
            not come in time, what was got is committed, and the next call goes on behind it.

    Returns:
        How many messages this call got; 0 if no group began within the time-out.

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
        taken, got = found is not None, 0
        while message is not None:
            unit = _get_unit(consumer, message, process, messages_per_unit_of_work, timeout)
            got += len(unit)
            last = unit[-1]
            more = last.group_status is GroupStatus.MESSAGE_IN_GROUP
            if not taken and last.group_sequence > len(unit):
                _take_status(reader)
            if more:
                assert last.group_id is not None, "a message in a group has a group id"
                _put_status(statuses, _Status(last.group_id, last.group_sequence))
            session._commit_or_undo()
            taken, message = False, None
            if more and len(unit) == messages_per_unit_of_work:
                message = consumer.receive(timeout, order=Order.LOGICAL)
        # Closing it in the middle of a group is as it should be: the status tells where to go on.
        consumer._shared.buffer.unfinished = None
        return got


def _get_unit(
    consumer: Consumer,
    first: Message,
    process: Callable[[Message], object],
    messages_max: int,
    timeout: float | None,
) -> list[Message]:
    """The messages of one unit of work, processed: as many as there may be, or as come in time."""
    process(first)
    unit = [first]
    while len(unit) < messages_max and unit[-1].group_status is GroupStatus.MESSAGE_IN_GROUP:
        message = consumer.receive(timeout, order=Order.LOGICAL)
        if message is None:
            break
        process(message)
        unit.append(message)
    return unit


def _check(session: Session, messages_per_unit_of_work: int) -> None:
    if not session.transacted:
        raise IllegalStateError(
            "a group across several units of work needs a transacted session: "
            "connection.session(transacted=True)"
        )
    with session._engine.lock:
        session._work.commits.check_no_unit_locked()
    if messages_per_unit_of_work < 1:
        raise IllegalStateError(
            f"messages_per_unit_of_work is {shown(messages_per_unit_of_work)}, must be at least 1"
        )


def _take_status(reader: Consumer) -> _Status | None:
    """Gets the status, if there is one, in the unit of work that is open."""
    message = reader.receive(0)
    if message is None:
        return None
    body = message.body
    if message.type != STATUS_TYPE or not isinstance(body, dict):
        raise MessageFormatError(
            f"message {message.message_id} of {reader.destination} is no status of a group: give "
            "each application a status queue that nobody else uses",
            destination=reader.destination,
        )
    return _Status(body["group_id"], body["group_sequence"])


def _put_status(producer: Producer, status: _Status) -> None:
    producer.send(status._asdict(), type=STATUS_TYPE)
