"""Grouping: what a Put says of groups, checked against what is there (PROTOCOL.md §13)."""

from __future__ import annotations

from collections.abc import Sequence

from ledgermq.core.state.group import (
    IN_GROUP,
    IN_UNIT_OF_WORK,
    LAST_IN_GROUP,
    LAST_SEGMENT,
    SEGMENT,
    Group,
)
from ledgermq.core.state.held_header import NOTHING_SAID, HeldHeader, held_header
from ledgermq.core.state.records import (
    GroupedMessage,
    Message,
    Queue,
    SegmentMessage,
    Session,
    Topic,
)
from ledgermq.protocol.limits import GROUP_ID_BYTES, GROUP_SEQUENCE_MAX, OFFSET_MAX
from ledgermq.protocol.operations import Group as GroupRecord
from ledgermq.protocol.operations import Header
from ledgermq.protocol.reasons import Reason, Refusal

NO_GROUP_ID = bytes(GROUP_ID_BYTES)


def set_group(
    message: GroupedMessage, record: GroupRecord, group: Group[GroupedMessage], *, open_put: bool
) -> None:
    """Gives a message its position; `open_put`: it was put in a unit of work."""
    flags = IN_GROUP if record["in_group"] else 0
    flags |= LAST_IN_GROUP if record["last_in_group"] else 0
    flags |= SEGMENT if record["segment"] else 0
    flags |= LAST_SEGMENT if record["last_segment"] else 0
    message.flags = flags | (IN_UNIT_OF_WORK if open_put else 0)
    message.group = group
    message.group_sequence = record["group_sequence"]
    if isinstance(message, SegmentMessage):
        message.offset = record["offset"]
        message.length = record["length"]


def group_record(message: GroupedMessage) -> GroupRecord:
    """A message's position as the log writes it; whether its writer kept the order is forgotten."""
    flags = message.flags
    return {
        "group_id": message.group.group_id,
        "group_sequence": message.group_sequence,
        "offset": message.offset,
        "length": message.length,
        "in_group": bool(flags & IN_GROUP),
        "last_in_group": bool(flags & LAST_IN_GROUP),
        "segment": bool(flags & SEGMENT),
        "last_segment": bool(flags & LAST_SEGMENT),
        "logical_order": False,
    }


def without_group(header: Header | None) -> HeldHeader | None:
    """What a header says beside the group, which the state keeps by itself.

    One that is there for its group alone is none.
    """
    if header is None:
        return None
    held = held_header(header)
    return None if header.get("group") is not None and held == NOTHING_SAID else held


def check_groups(
    session: Session,
    queue: Queue,
    records: Sequence[GroupRecord],
    messages: Sequence[GroupedMessage],
) -> str | Refusal:
    """Checks the positions of messages; the reason code of a warning, or empty (GRP-43).

    `records` are what their Put says of the groups, one for each.
    """
    fresh: dict[bytes, Group[GroupedMessage]] = {}
    warning = ""
    for record, message in zip(records, messages, strict=True):
        where = f"message {message.put_index}"
        if isinstance(queue, Topic):
            return Refusal(
                Reason.GROUP_NOT_ALLOWED, f"{where}: {queue.destination} takes no groups"
            )
        invalid = _invalid(record)
        if invalid is not None:
            return Refusal(Reason.GROUP_INVALID, f"{where}: {invalid}")
        group_id = record["group_id"]
        where = f"{where}, group {group_id.hex()} of {queue.destination}"
        known = [
            queue.groups.get(group_id),
            session.open_groups.get((queue.destination, group_id)),
            fresh.get(group_id),
        ]
        for group in known:
            if group is None:
                continue
            clash = group.clash(message)
            if clash is not None:
                return Refusal(Reason.GROUP_CLASH, f"{where}: {clash}")
            priority = group.other_priority(message)
            if record["logical_order"] and priority is not None:
                detail = f"priority {message.priority}, the group has {priority}"
                return Refusal(Reason.GROUP_CLASH, f"{where}: {detail}")
        numbered = known[0]
        if numbered is not None and numbered.differs_in_unit_of_work(message):
            if record["logical_order"]:
                outside = "outside a unit" if session.transacted else "in a unit"
                detail = f"the group was put {outside} of work so far"
                return Refusal(Reason.UNIT_OF_WORK_INCONSISTENT, f"{where}: {detail}")
            warning = Reason.UNIT_OF_WORK_INCONSISTENT
        fresh.setdefault(group_id, Group(group_id)).add(message)
    return warning


def join_open_groups(session: Session, destination: str, messages: list[Message]) -> None:
    """Notes the groups of open puts, for those that follow in the unit of work."""
    for message in messages:
        if isinstance(message, GroupedMessage):
            group_id = message.group.group_id
            key = (destination, group_id)
            group = session.open_groups.get(key)
            if group is None:
                group = session.open_groups[key] = Group(group_id)
            message.group = group
            group.add(message)


def _invalid(record: GroupRecord) -> str | None:
    group_id = record["group_id"]
    if len(group_id) != GROUP_ID_BYTES or group_id == NO_GROUP_ID:
        return f"a group id has {GROUP_ID_BYTES} bytes that are not all zero"
    number, in_group, segment = record["group_sequence"], record["in_group"], record["segment"]
    if not 1 <= number <= GROUP_SEQUENCE_MAX:
        return f"group sequence {number} is not within 1 to {GROUP_SEQUENCE_MAX}"
    if not in_group and not segment:
        return "a group id is given, but neither a group nor a segment"
    if not in_group and (record["last_in_group"] or number != 1):
        return "it is in no group, so it cannot be the last or have another number than 1"
    if not segment:
        if record["last_segment"] or record["offset"] or record["length"]:
            return "it is no segment, so it cannot be the last one or have an offset or length"
        return None
    if not 0 <= record["offset"] <= OFFSET_MAX or not 1 <= record["length"] <= OFFSET_MAX:
        return (
            f"a segment at offset {record['offset']} of length {record['length']}: the offset must "
            f"be 0 to {OFFSET_MAX}, the length 1 to {OFFSET_MAX}"
        )
    return None
