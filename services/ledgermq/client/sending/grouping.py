"""Where a producer is in its group: what its next put carries (PROTOCOL.md §13, GRP-30, GRP-39).

IBM MQ keeps for each queue handle where its puts are; here the producer does, for each queue that
it sends to. Every put of a group moves that place, with logical order or without, so that a group
can be taken up again in the middle: one put names its place, the next ones follow it. A rollback
brings back the place that the last commit left.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias

from ledgermq.client.arguments import check_flag
from ledgermq.errors import IncompleteGroupError, IncompleteMessageError, InvalidGroupError
from ledgermq.errors.shown import shown
from ledgermq.errors.warnings import (
    IncompleteGroupWarning,
    IncompleteMessageWarning,
    LedgerMQWarning,
)
from ledgermq.protocol.limits import GROUP_ID_BYTES, GROUP_SEQUENCE_MAX, OFFSET_MAX
from ledgermq.protocol.operations import Group

FLAGS: Final = ("in_group", "last_in_group", "segment", "last_segment")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlace:
    """Where a message stands in a group, and a segment in its message.

    With `logical_order` the producer counts, and id, number and offset may be left out.

    Attributes:
        group_id: 24 bytes, not all zero; None: a new random one, or with logical order that of the
            group that is open (GRP-39).
        group_sequence: Number of the logical message in its group, 1 to 999,999,999; 1 where it is
            in none (GRP-40).
        offset: Where a segment's data begin in its message, in bytes.
        in_group: Whether it is in a group; without, only a message in segments has a group id.
        last_in_group: Whether it is the group's last message; then it is in a group.
        segment: Whether it is a segment of its message.
        last_segment: Whether it is the message's last segment; then it is a segment.
    """

    group_id: bytes | None = None
    group_sequence: int = 1
    offset: int = 0
    in_group: bool = True
    last_in_group: bool = False
    segment: bool = False
    last_segment: bool = False

    @property
    def is_segment(self) -> bool:
        """Whether it is a segment, the last one too."""
        return self.segment or self.last_segment

    @property
    def is_in_group(self) -> bool:
        """Whether it is in a group, as the last one too."""
        return self.in_group or self.last_in_group


class PutState:
    """The place of the last put to one queue, and of the last one that was committed."""

    def __init__(self) -> None:
        self.current: Group | None = None
        self.committed: Group | None = None
        self._unsure: deque[tuple[Future[None], Group, Group | None]] = deque()

    def expect(self, outcome: Future[None], put: Group, before: Group | None) -> None:
        """A put was sent whose outcome is still to come."""
        self._unsure.append((outcome, put, before))

    def settle(self) -> None:
        """Takes back those of them that were refused; by the session's user, so that none else
        moves the place while it counts on it.
        """
        while self._unsure and self._unsure[0][0].done():
            outcome, put, before = self._unsure.popleft()
            if outcome.exception() is not None:
                self.take_back(put, before)

    def take_back(self, put: Group, before: Group | None) -> None:
        """Goes back to before a put that was refused, unless the producer left its group since."""
        current = self.current
        if current is not None and current["group_id"] == put["group_id"]:
            reached = (current["group_sequence"], current["offset"])
            if reached >= (put["group_sequence"], put["offset"]):
                self.current = before

    def forget(self) -> None:
        """Is in no group any longer; a rollback does not bring it back either."""
        self._unsure.clear()
        self.current = self.committed = None


# Places at a commit.
Marks: TypeAlias = dict[PutState, Group | None]


class PutStates:
    """The put states that a session's units of work have moved."""

    def __init__(self) -> None:
        self._moved: dict[PutState, None] = {}

    def note(self, state: PutState) -> None:
        """A put in the present unit of work moved it."""
        self._moved[state] = None

    def marks(self) -> Marks:
        """Where they are now, at a commit."""
        return {state: state.current for state in self._moved}

    def commit(self, marks: Marks) -> None:
        """Keeps the places of a commit that worked."""
        for state, place in marks.items():
            state.committed = place
            if state.current is place:
                self._moved.pop(state, None)

    def roll_back(self) -> None:
        """Goes back to the places of the last commit, as MQBACK does."""
        for state in self._moved:
            state.current = state.committed
        self._moved.clear()


def new_group_id() -> bytes:
    """A random id, which nobody else has."""
    return os.urandom(GROUP_ID_BYTES)


def checked_group_id(group_id: bytes, destination: str) -> bytes:
    """The id, if a group can have it; else InvalidGroupError."""
    if type(group_id) is not bytes or len(group_id) != GROUP_ID_BYTES or not any(group_id):
        raise InvalidGroupError(
            f"{shown(group_id)} is no group id: {GROUP_ID_BYTES} bytes, not all of them zero; "
            "leave it out for a new one",
            destination=destination,
        )
    return group_id


def is_message_open(put: Group) -> bool:
    return put["segment"] and not put["last_segment"]


def is_open(put: Group | None) -> bool:
    if put is None:
        return False
    return is_message_open(put) or (put["in_group"] and not put["last_in_group"])


def left_open(put: Group | None, what: str) -> LedgerMQWarning | None:
    """The warning for what is done though a put left something open; a message before a group."""
    if put is None or not is_open(put):
        return None
    group_id, number = put["group_id"].hex(), put["group_sequence"]
    if is_message_open(put):
        return IncompleteMessageWarning(
            f"{what}, but message {number} of group {group_id} has its segments only up to byte "
            f"{put['offset'] + put['length']}; its getters wait for the last segment (GRP-42)"
        )
    return IncompleteGroupWarning(
        f"{what}, but group {group_id} has its messages only up to {number}; its getters wait for "
        "the last message (GRP-41)"
    )


def place_of(put: Group) -> GroupPlace:
    said: dict[str, Any] = {**put}
    return GroupPlace(**{one.name: said[one.name] for one in fields(GroupPlace)})


def places(
    current: Group | None,
    place: GroupPlace | None,
    lengths: list[int],
    *,
    logical_order: bool,
    destination: str,
) -> list[Group | None]:
    """What the pieces of one message carry; several are its segments, `lengths` in bytes.

    Raises:
        IncompleteMessageError: logical order wants the next segment of a message (GRP-42).
        IncompleteGroupError: logical order wants the next message of a group (GRP-41).
        InvalidGroupError: id, number, offset or length can be no message's.
        ArgumentTypeError: a flag is neither True nor False.
    """
    split = len(lengths) > 1
    if place is None and not split:
        if logical_order and current is not None:
            _check_outside(current, destination)
        return [None]
    one = place or GroupPlace(in_group=False)
    for name in FLAGS:
        check_flag(f"group.{name}", getattr(one, name))
    ends = one.last_segment or not one.is_segment
    found: list[Group | None] = []
    for index, length in enumerate(lengths):
        if split:
            one = replace(one, segment=True, last_segment=ends and index == len(lengths) - 1)
        current = _record(current, one, length, logical_order, destination)
        found.append(current)
        one = replace(
            one,
            group_id=current["group_id"],
            group_sequence=current["group_sequence"],
            offset=current["offset"] + current["length"],
        )
    return found


def _record(
    current: Group | None, place: GroupPlace, length: int, logical_order: bool, destination: str
) -> Group:
    """One message's place as a Put carries it."""
    group_id = place.group_id
    if group_id is not None:
        checked_group_id(group_id, destination)
    number, offset = place.group_sequence, place.offset
    if logical_order:
        group_id, number, offset = _following(current, place, destination)
    _check_range("group_sequence", number, 1, GROUP_SEQUENCE_MAX, destination)
    _check_range("offset", offset, 0, OFFSET_MAX, destination)
    if place.is_segment and not length:
        raise InvalidGroupError(
            f"message to {destination} was not sent: a segment has one byte at least",
            destination=destination,
        )
    return {
        "group_id": group_id or new_group_id(),
        "group_sequence": number,
        "offset": offset,
        "length": length if place.is_segment else 0,
        "in_group": place.is_in_group,
        "last_in_group": place.last_in_group,
        "segment": place.is_segment,
        "last_segment": place.last_segment,
        "logical_order": logical_order,
    }


def _check_range(name: str, value: int, low: int, high: int, destination: str) -> None:
    if type(value) is not int or not low <= value <= high:
        raise InvalidGroupError(
            f"message to {destination} was not sent: {name} is {shown(value)}, must be {low} to "
            f"{high}",
            destination=destination,
        )


def _following(
    current: Group | None, place: GroupPlace, destination: str
) -> tuple[bytes | None, int, int]:
    """Id, number and offset that come next in logical order."""
    following: tuple[bytes | None, int, int] = (place.group_id, 1, 0)
    if current is not None and is_message_open(current):
        flags = (place.is_segment, place.is_in_group, place.last_in_group)
        if flags != (True, current["in_group"], current["last_in_group"]):
            _refuse_open_message(current, destination)
        end = current["offset"] + current["length"]
        following = (current["group_id"], current["group_sequence"], end)
    elif current is not None and is_open(current):
        if not place.is_in_group:
            _check_outside(current, destination)
        following = (current["group_id"], current["group_sequence"] + 1, 0)
    group_id, number, offset = following
    if place.group_id not in (None, group_id):
        assert current is not None, "only what is open has an id already"
        _check_outside(current, destination)
    if place.group_sequence not in (1, number) or place.offset not in (0, offset):
        raise InvalidGroupError(
            f"message to {destination} was not sent: it names message "
            f"{shown(place.group_sequence)} at offset {shown(place.offset)}, but logical order "
            f"brings message {number} at offset {offset}; leave both out, or send without "
            "logical_order",
            destination=destination,
        )
    return following


def _check_outside(current: Group, destination: str) -> None:
    """Refuses, in logical order, a message outside of what is open; a message before a group."""
    if is_message_open(current):
        _refuse_open_message(current, destination)
    if is_open(current):
        raise IncompleteGroupError(
            f"message to {destination} was not sent: group {current['group_id'].hex()} is open "
            f"after message {current['group_sequence']}, and logical order wants the next one; "
            "send the last with last_in_group=True, or this one without logical_order (GRP-41)",
            destination=destination,
        )


def _refuse_open_message(current: Group, destination: str) -> None:
    raise IncompleteMessageError(
        f"message to {destination} was not sent: message {current['group_sequence']} of group "
        f"{current['group_id'].hex()} is open after byte {current['offset'] + current['length']}, "
        "and logical order wants its next segment, in_group and last_in_group as before; send the "
        "last with last_segment=True, or this one without logical_order (GRP-42)",
        destination=destination,
    )
