"""Relocating: old live messages are written again, so that the log below can be trimmed (H24).

Only where the body stands changes (PROTOCOL.md §22): the message is the one that was put, with its
identity, number, times and counts, whoever holds it. What was consumed before the entry came is
passed over.
"""

from __future__ import annotations

from ledgermq.core.entry import Entry
from ledgermq.core.manual.choice import Chosen, administered
from ledgermq.core.ranges import check_actor
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Message, Session
from ledgermq.protocol.administration import MessagePlace, Relocate, RelocatedMessage
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.limits import BLOCK_MESSAGES, RELOCATED_MESSAGES_MAX, RELOCATED_PLACES_MAX
from ledgermq.protocol.outcomes import Administered
from ledgermq.protocol.reasons import Reason, Refusal


def relocate(entry: Entry, session: Session, operation: Relocate) -> Administered | Refusal:
    """Notes where the bodies of live messages stand now; refuses copies of other messages."""
    refusal = check_actor(operation.actor, operation.reason) or _wrong(operation.messages)
    if refusal is not None:
        return refusal
    found: list[tuple[Message, int]] = []
    skipped = 0
    for index, copy in enumerate(operation.messages):
        for place in copy["places"]:
            message = _message_at(entry.state, place, copy)
            if message is None:
                skipped += 1
            elif (field := _difference(message, copy)) is not None:
                return Refusal(
                    Reason.MESSAGE_DIFFERS,
                    f"message {index} is said to be number {place['sequence']} of "
                    f"{message.queue.destination}, but has another {field}; write what stands on "
                    "the log",
                )
            else:
                found.append((message, index))
    for message, index in found:
        message.body = (entry.position, index)
        message.queue.touched_blocks[message.sequence // BLOCK_MESSAGES] = None
    relocated = [message for message, _ in found]
    return administered(entry, operation, Chosen(relocated, skipped, False, -1, -1))


def _wrong(messages: list[RelocatedMessage]) -> Refusal | None:
    if not 0 < len(messages) <= RELOCATED_MESSAGES_MAX:
        return Refusal(
            Reason.MESSAGE_INVALID,
            f"1 to {RELOCATED_MESSAGES_MAX} messages are written again at a time, not "
            f"{len(messages)}",
        )
    places = sum(len(one["places"]) for one in messages)
    if places > RELOCATED_PLACES_MAX:
        return Refusal(
            Reason.MESSAGE_INVALID,
            f"the messages have {places} places, at most {RELOCATED_PLACES_MAX} at a time",
        )
    for index, one in enumerate(messages):
        if len(one["header"]) > 1:
            return Refusal(
                Reason.MESSAGE_INVALID, f"message {index} has {len(one['header'])} headers"
            )
    return None


def _message_at(state: QueueManager, place: MessagePlace, copy: RelocatedMessage) -> Message | None:
    queue = state.stores.get(place["created_position"])
    message = None if queue is None else queue.messages.get(place["sequence"])
    if message is None:
        return None
    put = (copy["put_position"], copy["put_index"])
    return message if (message.put_position, message.put_index) == put else None


def _difference(message: Message, copy: RelocatedMessage) -> str | None:
    """The field in which a copy differs from what was put, as far as the state knows that."""
    told = copy["message"]
    header = next(iter(copy["header"]), None)
    if told["message_id"] != message.message_id:
        return "message id"
    if told["priority"] != message.priority:
        return "priority"
    if told["persistent"] != message.persistent:
        return "delivery mode"
    if len(told["content"]) + header_bytes(header) != message.size_bytes:
        return "size"
    return None
