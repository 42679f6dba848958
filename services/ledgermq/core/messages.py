"""Messages: puts, consumers, credit and acknowledgement (PROTOCOL.md §5)."""

from __future__ import annotations

from ledgermq.core.blocked import WAITS, Waits, block, must_block
from ledgermq.core.destinations import check_owner, keep, use_destination
from ledgermq.core.fifo import check_turn
from ledgermq.core.group import Group
from ledgermq.core.grouping import check_groups, join_open_groups, set_group, without_group
from ledgermq.core.message import GroupedMessage, Message, SegmentMessage
from ledgermq.core.places import disagrees, follow, keep_group, leave_queue, place_after
from ledgermq.core.quotas import bytes_of
from ledgermq.core.sessions import unit_of_work_ended
from ledgermq.core.settling import check_deliveries, consume, give_back
from ledgermq.core.state import Consumer, Queue, Session
from ledgermq.core.storing import check_transaction_size, store
from ledgermq.core.subscribing import keep_subscription, subscription_for
from ledgermq.core.timing import check_times, set_times
from ledgermq.core.topics import Subscription, Topic
from ledgermq.core.turn import Turn
from ledgermq.protocol import get_options
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.limits import (
    CONSUMER_NUMBER_MAX,
    CONTENT_BYTES_MAX,
    CREDIT_MAX,
    HEADER_BYTES_MAX,
    PRIORITY_MAX,
    PUT_MESSAGES_MAX,
    TIMING_MS_MAX,
)
from ledgermq.protocol.operations import (
    Acknowledge,
    CloseConsumer,
    Get,
    GiveBack,
    Header,
    OpenConsumer,
    Put,
)
from ledgermq.protocol.outcomes import Accepted, Enqueued, Reply
from ledgermq.protocol.reasons import (
    CONSUMER_EXISTS,
    CONSUMER_UNKNOWN,
    CREDIT_INVALID,
    MATCH_OPTIONS_INVALID,
    MESSAGE_INVALID,
    MESSAGE_TOO_LARGE,
    OPTIONS_INVALID,
    PUTS_DISABLED,
    SELECTOR_INVALID,
    SETTING_INVALID,
    SUBSCRIPTION_INVALID,
    TRANSACTED,
    Refusal,
)
from ledgermq.protocol.settings import DEFAULTS
from ledgermq.selector import Selector, SelectorError, parse_selector

# By whether it is a segment.
_KINDS = (GroupedMessage, SegmentMessage)

__all__ = [
    "acknowledge",
    "close_consumer",
    "get",
    "give_back_unseen",
    "open_consumer",
    "put",
    "take_in",
]


def put(turn: Turn, session: Session, operation: Put) -> Reply | Refusal | Waits:
    """Takes messages in: numbered now, or held in the unit of work (SEQ-04, SEQ-05, INF-02).

    Where a quota leaves no room for them, the put may wait (INF-03).
    """
    if session.unit_of_work_ended_by:
        return unit_of_work_ended(session)
    queue = use_destination(turn, operation.destination)
    if isinstance(queue, Refusal):
        return queue
    if queue.settings.puts_disabled:
        return Refusal(PUTS_DISABLED, f"puts to {queue.destination} are disabled")
    messages = _messages(turn, session, queue, operation)
    if isinstance(messages, Refusal):
        return messages
    warning = ""
    grouped = [one for one in messages if one.group is not None]
    if grouped:
        records = [operation.messages[one.put_index]["header"]["group"] for one in grouped]
        checked = check_groups(session, queue, records, grouped)
        if isinstance(checked, Refusal):
            return checked
        warning = checked
    size_bytes = bytes_of(messages)
    refusal = check_transaction_size(turn.state, session, messages, size_bytes)
    if refusal is not None:
        return refusal
    blocked = must_block(turn, session, queue, operation, messages, size_bytes)
    if isinstance(blocked, Refusal):
        return blocked
    if blocked:
        block(turn, session, queue, operation, messages)
        return WAITS
    return take_in(turn, session, queue, messages, operation.session_sequence, warning)


def take_in(
    turn: Turn,
    session: Session,
    queue: Queue,
    messages: list[Message],
    sequence: int,
    warning: str,
) -> Reply:
    """Puts messages that were checked, for the operation of that number in the session."""
    size_bytes = bytes_of(messages)
    store(turn.state, session, messages, size_bytes)
    keep(turn.state, queue)
    if session.transacted:
        session.begin_unit_of_work(turn.state.time)
        session.open_puts.setdefault(queue.destination, []).extend(messages)
        join_open_groups(session, queue.destination, messages)
        queue.uncommitted_puts += len(messages)
        queue.uncommitted_puts_bytes += size_bytes
        queue.note_high()
        return Accepted(
            position=turn.position,
            index=turn.take_index(),
            session=session.handle,
            session_sequence=sequence,
            warning=warning,
        )
    first = queue.enqueue(turn.state, messages, session.connection)
    for served in queue.served():
        turn.touch(served)
    return Enqueued(
        position=turn.position,
        index=turn.take_index(),
        session=session.handle,
        session_sequence=sequence,
        first_sequence=first,
        count=len(messages),
        warning=warning,
    )


def _messages(
    turn: Turn, session: Session, queue: Queue, operation: Put
) -> list[Message] | Refusal:
    """Makes the messages of a Put, or says which of them is not acceptable: invalid first."""
    if not 0 < len(operation.messages) <= PUT_MESSAGES_MAX:
        return Refusal(
            MESSAGE_INVALID,
            f"a put brings 1 to {PUT_MESSAGES_MAX} messages, not {len(operation.messages)}",
        )
    size_bytes_max = queue.message_bytes_max or CONTENT_BYTES_MAX
    position, time, settings = turn.position, turn.state.time, queue.settings
    too_large: Refusal | None = None
    messages: list[Message] = []
    for index, entry in enumerate(operation.messages):
        priority = entry["priority"]
        size_bytes, header = len(entry["content"]), entry.get("header")
        if not 0 <= priority <= PRIORITY_MAX:
            return Refusal(
                MESSAGE_INVALID, f"message {index} has priority {priority}, must be 0 to 9"
            )
        if not size_bytes:
            return Refusal(MESSAGE_INVALID, f"message {index} has no content record")
        if size_bytes > size_bytes_max:
            too_large = too_large or Refusal(
                MESSAGE_TOO_LARGE,
                f"message {index} has {size_bytes} bytes, {queue.destination} takes "
                f"{size_bytes_max}; send it in segments",
            )
        group = None if header is None else header.get("group")
        message = (Message if group is None else _KINDS[group["segment"]])(
            queue,
            position,
            index,
            entry["message_id"],
            priority,
            entry["persistent"],
            size_bytes,
            header,
        )
        if group is not None and header is not None:
            assert isinstance(message, GroupedMessage), "made as one"
            set_group(message, group, Group(group["group_id"]), open_put=session.transacted)
            message.header = without_group(header)
        if header is not None:
            refusal = check_times(message, header)
            if refusal is not None:
                return refusal
            too_large = too_large or _add_header(message, header)
        if header is not None or settings is not DEFAULTS:
            set_times(message, header, settings, time)
        messages.append(message)
    return too_large or messages


def _add_header(message: Message, header: Header) -> Refusal | None:
    """Counts a message's header in its size, unless it is too large."""
    in_header = header_bytes(header)
    if in_header > HEADER_BYTES_MAX:
        return Refusal(
            MESSAGE_TOO_LARGE,
            f"message {message.put_index} has {in_header} bytes of properties and other header "
            f"fields, at most {HEADER_BYTES_MAX} are kept; put them in the body",
        )
    message.size_bytes += in_header
    return None


def open_consumer(turn: Turn, session: Session, operation: OpenConsumer) -> Refusal | None:
    """Opens a consumer without credit; it counts as a receiver of its queue at once."""
    number = operation.consumer
    if not session.consumer_highest < number <= CONSUMER_NUMBER_MAX:
        return Refusal(
            CONSUMER_EXISTS,
            f"consumer number {number} must be above {session.consumer_highest}, "
            "the highest used in this session",
        )
    delay_ms = operation.redelivery_delay_ms
    if not -1 <= delay_ms <= TIMING_MS_MAX:
        return Refusal(
            SETTING_INVALID,
            f"redelivery_delay_ms is {delay_ms}, must be -1 to {TIMING_MS_MAX}",
        )
    found = use_destination(turn, operation.destination)
    if isinstance(found, Refusal):
        return found
    refusal = check_owner(found, session)
    if refusal is not None:
        return refusal
    try:
        selector = parse_selector(operation.selector)
    except SelectorError as error:
        return Refusal(SELECTOR_INVALID, f"the selector is not valid: {error}")
    source = _source(turn, session, found, operation, selector)
    if isinstance(source, Refusal):
        return source
    keep(turn.state, found)
    if isinstance(source, Subscription):
        # It holds only what the selector matches (SES-71).
        keep_subscription(turn.state, source)
        selector = None
    session.consumer_highest = number
    consumer = Consumer(session, number, source, selector, delay_ms)
    session.consumers[number] = consumer
    source.add_consumer(consumer)
    return None


def _source(
    turn: Turn,
    session: Session,
    found: Queue,
    operation: OpenConsumer,
    selector: Selector | None,
) -> Queue | Refusal:
    """What a consumer takes from: the queue itself, or a subscription of the topic."""
    if isinstance(found, Topic):
        return subscription_for(turn, session, found, operation, selector)
    if operation.subscription or operation.durable or operation.shared:
        return Refusal(SUBSCRIPTION_INVALID, f"{found.destination} has no subscriptions")
    return found


def _open_consumer_of(session: Session, number: int) -> Consumer | Refusal:
    consumer = session.consumers.get(number)
    if consumer is None or not consumer.open:
        return Refusal(CONSUMER_UNKNOWN, f"session has no open consumer {number}")
    return consumer


def close_consumer(turn: Turn, session: Session, operation: CloseConsumer) -> Refusal | None:
    """Closes a consumer: unseen deliveries return without a backout, the others stay.

    Deliveries may cross the close on their way; closing again returns those it names.
    """
    consumer = session.consumers.get(operation.consumer)
    if consumer is None:
        return Refusal(CONSUMER_UNKNOWN, f"session has no open consumer {operation.consumer}")
    refusal = check_deliveries(session, operation.unseen, consumer)
    if refusal is not None:
        return refusal
    if consumer.open:
        leave_queue(turn, consumer)
        consumer.place = consumer.settled_place = None
        consumer.credit = 0
    for one in operation.unseen:
        for delivery in range(one["first"], one["last"] + 1):
            give_back(turn, session, delivery, backed_out=False)
    consumer.open = False
    if not consumer.in_flight:
        session.consumers.pop(consumer.number, None)
    return None


def give_back_unseen(turn: Turn, session: Session, operation: GiveBack) -> Refusal | None:
    """Returns unseen deliveries of an open consumer without a backout; its credit stays.

    It goes on in its group behind what it still has in flight, or has settled last.
    """
    consumer = _open_consumer_of(session, operation.consumer)
    if isinstance(consumer, Refusal):
        return consumer
    refusal = check_deliveries(session, operation.unseen, consumer)
    if refusal is not None:
        return refusal
    for one in operation.unseen:
        for delivery in range(one["first"], one["last"] + 1):
            give_back(turn, session, delivery, backed_out=False)
    if operation.unseen:
        held = (one for one in reversed(session.deliveries.values()) if one.consumer is consumer)
        last = next(held, None)
        follow(turn, consumer, consumer.settled_place if last is None else place_after(last))
    return None


def get(turn: Turn, session: Session, operation: Get) -> Refusal | None:
    """Adds standing credit; a consumer without any joins those who wait (H8). 0 withdraws it."""
    consumer = _open_consumer_of(session, operation.consumer)
    if isinstance(consumer, Refusal):
        return consumer
    credit = operation.credit
    if not 0 <= credit <= CREDIT_MAX - consumer.credit:
        return Refusal(
            CREDIT_INVALID,
            f"credit {credit} on top of {consumer.credit} is not within 0 to {CREDIT_MAX}",
        )
    if operation.options is not None:
        refusal = _set_options(turn, consumer, Options(**operation.options))
        if refusal is not None:
            return refusal
    if credit == 0:
        consumer.credit = 0
        consumer.queue.ready.pop(consumer.key, None)
        return None
    if not consumer.credit:
        turn.state.wait_order += 1
        consumer.waiting_since = turn.state.wait_order
        consumer.queue.ready[consumer.key] = consumer
        if consumer.queue.turns is not None:
            consumer.queue.turns.join(consumer)
    consumer.credit += credit
    turn.touch(consumer.queue)
    return None


def _set_options(turn: Turn, consumer: Consumer, options: Options) -> Refusal | None:
    """Gives a consumer other options, if they are in range and agree with its place (GRP-44)."""
    wrong = get_options.check(options)
    if options != PLAIN and isinstance(consumer.queue, Subscription):
        wrong = "messages of a topic are in no groups, and come by its consumers' selectors"
    if options.logical_order and consumer.session.acknowledge_mode == "INDIVIDUAL":
        wrong = "logical order cannot be kept where messages are acknowledged in any order"
    if wrong is not None:
        return Refusal(OPTIONS_INVALID, wrong)
    wrong = disagrees(consumer, options)
    if wrong is not None:
        return Refusal(MATCH_OPTIONS_INVALID, wrong)
    if options != consumer.options:
        consumer.queue.leave_order(consumer)
        consumer.options = options
        consumer.queue.use_order(consumer)
        keep_group(turn, consumer)
    return None


def acknowledge(turn: Turn, session: Session, operation: Acknowledge) -> Refusal | None:
    """Settles deliveries for good (INF-06)."""
    if session.transacted:
        return Refusal(TRANSACTED, "a transacted session settles by commit, not by acknowledge")
    refusal = check_deliveries(session, operation.deliveries)
    refusal = refusal or check_turn(session, operation.deliveries)
    if refusal is not None:
        return refusal
    consume(turn, session, operation.deliveries)
    return None
