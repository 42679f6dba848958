"""Puts: messages are checked, then numbered or held in the unit of work (PROTOCOL.md §5)."""

from __future__ import annotations

from ledgermq.core.destinations.by_name import add_destination, use_destination
from ledgermq.core.destinations.deduplication import check_id, duplicate, note_open_id, remember
from ledgermq.core.destinations.numbering import enqueue
from ledgermq.core.destinations.times import check_times, set_times
from ledgermq.core.entry import Entry
from ledgermq.core.moves import move
from ledgermq.core.puts.blocked import WAITS, Waits, block, must_block
from ledgermq.core.puts.grouping import check_groups, join_open_groups, set_group, without_group
from ledgermq.core.puts.quotas import check_transaction_size
from ledgermq.core.puts.sources import check_source, note_taken
from ledgermq.core.state.group import Group
from ledgermq.core.state.message_states import NEW, UNCOMMITTED
from ledgermq.core.state.records import (
    GroupedMessage,
    Message,
    Queue,
    SegmentMessage,
    Session,
    bytes_of,
)
from ledgermq.core.unit_limits import take_part
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.limits import (
    CONTENT_BYTES_MAX,
    HEADER_BYTES_MAX,
    PRIORITY_MAX,
    PUT_MESSAGES_MAX,
)
from ledgermq.protocol.operations import Header, Put
from ledgermq.protocol.outcomes import Accepted, Enqueued, Reply
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.settings import DEFAULTS

# By whether it is a segment.
_KINDS = (GroupedMessage, SegmentMessage)


def put(entry: Entry, session: Session, operation: Put) -> Reply | Refusal | Waits:
    """Takes messages in: numbered now, or held in the unit of work (SEQ-04, SEQ-05, INF-02).

    Where a quota leaves no room for them, the put may wait (INF-03).
    """
    if session.unit_of_work_ended_by:
        return unit_of_work_ended(session)
    queue = use_destination(entry.state, operation.destination, entry.position)
    if isinstance(queue, Refusal):
        return queue
    name = operation.deduplication_id
    wrong = check_source(session, queue, operation) or check_id(queue, name)
    if wrong is not None:
        return wrong
    before = duplicate(entry, session, queue, name, operation.session_sequence)
    if before is not None:
        note_taken(queue, operation)
        return before
    if queue.settings.puts_disabled:
        return Refusal(Reason.PUTS_DISABLED, f"puts to {queue.destination} are disabled")
    messages = _messages(entry, session, queue, operation)
    if isinstance(messages, Refusal):
        return messages
    warning = ""
    if grouped := [one for one in messages if isinstance(one, GroupedMessage)]:
        found = (one.get("header", {}).get("group") for one in operation.messages)
        records = [one for one in found if one is not None]
        checked = check_groups(session, queue, records, grouped)
        if isinstance(checked, Refusal):
            return checked
        warning = checked
    size_bytes = bytes_of(messages)
    refusal = check_transaction_size(entry.state, session, messages, size_bytes)
    if refusal is not None:
        return refusal
    blocked = must_block(entry, session, queue, operation, messages, size_bytes)
    if isinstance(blocked, Refusal):
        return blocked
    if blocked:
        block(entry, session, queue, operation, messages)
        return WAITS
    note_taken(queue, operation)
    return take_in(entry, session, queue, messages, operation.session_sequence, warning, name)


def take_in(
    entry: Entry,
    session: Session,
    queue: Queue,
    messages: list[Message],
    sequence: int,
    warning: str,
    deduplication_id: str | None,
) -> Reply:
    size_bytes = bytes_of(messages)
    entry.state.storage.append(messages, size_bytes)
    add_destination(entry.state, queue)
    if session.transacted:
        take_part(entry, session)
        session.open_bytes += size_bytes
        open_puts = session.open_puts.setdefault(queue.destination, [])
        note_open_id(session, queue, deduplication_id, len(open_puts))
        open_puts.extend(messages)
        join_open_groups(session, queue.destination, messages)
        move(entry, queue, messages, NEW, UNCOMMITTED, session=session)
        return Accepted(
            position=entry.position,
            index=entry.take_index(),
            session=session.handle,
            session_sequence=sequence,
            warning=warning,
        )
    first = enqueue(entry, queue, messages, NEW, session)
    remember(entry, queue, deduplication_id, first)
    return Enqueued(
        position=entry.position,
        index=entry.take_index(),
        session=session.handle,
        session_sequence=sequence,
        first_sequence=first,
        count=len(messages),
        warning=warning,
    )


def _messages(
    entry: Entry, session: Session, queue: Queue, operation: Put
) -> list[Message] | Refusal:
    """Makes the messages of a Put, or says which of them is not acceptable: invalid first."""
    if not 0 < len(operation.messages) <= PUT_MESSAGES_MAX:
        return Refusal(
            Reason.MESSAGE_INVALID,
            f"a put brings 1 to {PUT_MESSAGES_MAX} messages, not {len(operation.messages)}",
        )
    size_bytes_max = queue.message_bytes_max or CONTENT_BYTES_MAX
    position, sent_at, settings = entry.position, entry.begins, queue.settings
    too_large: Refusal | None = None
    messages: list[Message] = []
    for index, sent in enumerate(operation.messages):
        priority = sent["priority"]
        size_bytes, header = len(sent["content"]), sent.get("header")
        if not 0 <= priority <= PRIORITY_MAX:
            return Refusal(
                Reason.MESSAGE_INVALID, f"message {index} has priority {priority}, must be 0 to 9"
            )
        if not size_bytes:
            return Refusal(Reason.MESSAGE_INVALID, f"message {index} has no content record")
        if size_bytes > size_bytes_max:
            too_large = too_large or Refusal(
                Reason.MESSAGE_TOO_LARGE,
                f"message {index} has {size_bytes} bytes, {queue.destination} takes "
                f"{size_bytes_max}; send it in segments",
            )
        group = None if header is None else header.get("group")
        message = (Message if group is None else _KINDS[group["segment"]])(
            queue,
            position,
            index,
            sent["message_id"],
            priority,
            sent["persistent"],
            size_bytes,
            without_group(header),
        )
        if group is not None:
            assert isinstance(message, GroupedMessage), "made as one"
            set_group(message, group, Group(group["group_id"]), open_put=session.transacted)
        if header is not None:
            refusal = check_times(message)
            if refusal is not None:
                return refusal
            too_large = too_large or _add_header(message, header)
        if header is not None or settings is not DEFAULTS:
            set_times(message, settings, sent_at)
        messages.append(message)
    return too_large or messages


def _add_header(message: Message, header: Header) -> Refusal | None:
    """Counts a message's header in its size, unless it is too large."""
    in_header = header_bytes(header)
    if in_header > HEADER_BYTES_MAX:
        return Refusal(
            Reason.MESSAGE_TOO_LARGE,
            f"message {message.put_index} has {in_header} bytes of properties and other header "
            f"fields, at most {HEADER_BYTES_MAX} are kept; put them in the body",
        )
    message.size_bytes += in_header
    return None


def unit_of_work_ended(session: Session) -> Refusal:
    timed_out = session.unit_of_work_timed_out
    return Refusal(
        Reason.UNIT_OF_WORK_TIMED_OUT if timed_out else Reason.UNIT_OF_WORK_ENDED,
        f"the unit of work was rolled back by {session.unit_of_work_ended_by}; roll back, then "
        "do it again",
    )
