"""Consumers: opened, given credit and options, closed (PROTOCOL.md §5)."""

from __future__ import annotations

from ledgermq.core.delivery.settling import check_deliveries, give_back
from ledgermq.core.destinations.by_name import add_destination, use_destination
from ledgermq.core.destinations.subscriptions import subscription_for, use_subscription
from ledgermq.core.destinations.temporaries import check_owner
from ledgermq.core.entry import Entry
from ledgermq.core.order.affinity import drop_bonds
from ledgermq.core.order.group_positions import (
    disagreement,
    end_reservation,
    follow,
    position_after,
    reserve_group,
    settle_position,
)
from ledgermq.core.order.orders import leave_order, use_order
from ledgermq.core.order.selecting import selector_of
from ledgermq.core.order.waiting_consumers import join_ready
from ledgermq.core.ranges import check_range, check_reason
from ledgermq.core.state.records import Consumer, Queue, Session, Subscription, Topic
from ledgermq.protocol import get_options
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.protocol.limits import CONSUMER_NUMBER_MAX, CREDIT_MAX, TIMING_MS_MAX
from ledgermq.protocol.operations import (
    CloseConsumer,
    Get,
    GiveBack,
    OpenConsumer,
    Reject,
    deliveries_in,
)
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.selector import Selector


def open_consumer(entry: Entry, session: Session, operation: OpenConsumer) -> Refusal | None:
    """Opens a consumer without credit; it counts as a receiver of its queue at once."""
    number = operation.consumer
    if not session.consumer_highest < number <= CONSUMER_NUMBER_MAX:
        return Refusal(
            Reason.CONSUMER_EXISTS,
            f"consumer number {number} must be above {session.consumer_highest}, "
            "the highest used in this session",
        )
    delay_ms = operation.redelivery_delay_ms
    refusal = check_range("redelivery_delay_ms", delay_ms, -1, TIMING_MS_MAX)
    if refusal is not None:
        return refusal
    found = use_destination(entry.state, operation.destination, entry.position)
    if isinstance(found, Refusal):
        return found
    refusal = check_owner(found, session)
    if refusal is not None:
        return refusal
    selector = selector_of(operation.selector)
    if isinstance(selector, Refusal):
        return selector
    source = _source(entry, session, found, operation, selector)
    if isinstance(source, Refusal):
        return source
    add_destination(entry.state, found)
    if isinstance(source, Subscription):
        # It holds only what the selector matches (SES-71).
        use_subscription(entry, source)
        selector = None
    session.consumer_highest = number
    consumer = Consumer(session, number, source, selector, delay_ms, operation.consumer_priority)
    session.consumers[number] = consumer
    join_queue(consumer)
    return None


def join_queue(consumer: Consumer, *, fills: bool = True) -> None:
    """Makes a consumer a receiver of its queue; `fills`: what it selects is found at once."""
    consumer.queue.consumers[consumer.key] = consumer
    use_order(consumer, fills=fills)


def leave_queue(entry: Entry, consumer: Consumer) -> None:
    """Ends what `join_queue` began; what was for this consumer alone is for all."""
    queue = consumer.queue
    consumer.credit = 0
    queue.ready.pop(consumer.key, None)
    del queue.consumers[consumer.key]
    leave_order(consumer)
    drop_bonds(consumer)
    end_reservation(entry, consumer)
    if queue.affinity is not None or queue.single_active_consumer:
        entry.touch(queue)
    entry.leave(queue)


def _source(
    entry: Entry,
    session: Session,
    found: Queue,
    operation: OpenConsumer,
    selector: Selector | None,
) -> Queue | Refusal:
    if isinstance(found, Topic):
        return subscription_for(entry, session, found, operation, selector)
    if operation.subscription or operation.durable or operation.shared:
        return Refusal(Reason.SUBSCRIPTION_INVALID, f"{found.destination} has no subscriptions")
    return found


def _consumer_of(session: Session, number: int, *, closed_too: bool = False) -> Consumer | Refusal:
    """A consumer of a session; one that is closed is there as long as it holds deliveries."""
    consumer = session.consumers.get(number)
    if consumer is None or not (consumer.open or closed_too):
        return Refusal(Reason.CONSUMER_UNKNOWN, f"session has no open consumer {number}")
    return consumer


def close_consumer(entry: Entry, session: Session, operation: CloseConsumer) -> Refusal | None:
    """Closes a consumer: unseen deliveries return without a backout, the others stay.

    Deliveries may cross the close on their way; closing again returns those it names.
    """
    consumer = _consumer_of(session, operation.consumer, closed_too=True)
    if isinstance(consumer, Refusal):
        return consumer
    refusal = check_deliveries(session, operation.unseen, consumer)
    if refusal is not None:
        return refusal
    if consumer.open:
        leave_queue(entry, consumer)
        consumer.group_position = consumer.settled_position = None
    for delivery in deliveries_in(operation.unseen):
        give_back(entry, session, delivery, backed_out=False)
    consumer.open = False
    if not consumer.in_flight:
        session.consumers.pop(consumer.number, None)
    return None


def give_back_unseen(entry: Entry, session: Session, operation: GiveBack) -> Refusal | None:
    """Returns unseen deliveries of an open consumer without a backout; its credit stays.

    It goes on in its group behind what it still has in flight, or has settled last.
    """
    consumer = _consumer_of(session, operation.consumer)
    if isinstance(consumer, Refusal):
        return consumer
    refusal = check_deliveries(session, operation.unseen, consumer)
    if refusal is not None:
        return refusal
    for delivery in deliveries_in(operation.unseen):
        give_back(entry, session, delivery, backed_out=False)
    if operation.unseen:
        _follow_what_is_left(entry, consumer)
    return None


def _follow_what_is_left(entry: Entry, consumer: Consumer) -> None:
    held = reversed(consumer.session.deliveries.values())
    last = next((one for one in held if one.consumer is consumer), None)
    follow(entry, consumer, consumer.settled_position if last is None else position_after(last))


def reject(entry: Entry, session: Session, operation: Reject) -> Refusal | None:
    """Returns deliveries that the application will not settle, at once and for good (INF-09).

    Unless they may be delivered again they go where what came back too often goes (INF-12).
    """
    consumer = _consumer_of(session, operation.consumer, closed_too=True)
    if isinstance(consumer, Refusal):
        return consumer
    refusal = check_deliveries(session, operation.deliveries, consumer)
    refusal = refusal or check_reason(operation.reason, 0)
    delay_ms = operation.redelivery_delay_ms
    refusal = refusal or check_range("redelivery_delay_ms", delay_ms, -1, TIMING_MS_MAX)
    if refusal is not None:
        return refusal
    if delay_ms >= 0 and not operation.requeue:
        return Refusal(Reason.SETTING_INVALID, "what goes to the error destination is not delayed")
    for delivery in deliveries_in(operation.deliveries):
        rejected = not operation.requeue
        give_back(entry, session, delivery, backed_out=True, rejected=rejected, delay_ms=delay_ms)
    if operation.deliveries and consumer.open:
        if consumer.options.logical_order and not operation.requeue:
            settle_position(consumer)
        else:
            _follow_what_is_left(entry, consumer)
    return None


def get(entry: Entry, session: Session, operation: Get) -> Refusal | None:
    """Adds standing credit; a consumer without any joins those who wait (H8). 0 withdraws it."""
    consumer = _consumer_of(session, operation.consumer)
    if isinstance(consumer, Refusal):
        return consumer
    credit = operation.credit
    if not 0 <= credit <= CREDIT_MAX - consumer.credit:
        return Refusal(
            Reason.CREDIT_INVALID,
            f"credit {credit} on top of {consumer.credit} is not within 0 to {CREDIT_MAX}",
        )
    if operation.options is not None:
        refusal = _set_options(entry, consumer, Options(**operation.options))
        if refusal is not None:
            return refusal
    if credit == 0:
        consumer.credit = 0
        consumer.queue.ready.pop(consumer.key, None)
        return None
    if not consumer.credit:
        entry.state.wait_order += 1
        consumer.waiting_since = entry.state.wait_order
        consumer.credit = credit
        join_ready(consumer)
    else:
        consumer.credit += credit
    entry.touch(consumer.queue)
    return None


def _set_options(entry: Entry, consumer: Consumer, options: Options) -> Refusal | None:
    """Gives a consumer other options, if they are in range and agree with its position (GRP-44)."""
    wrong = get_options.check(options)
    if options != PLAIN and isinstance(consumer.queue, Subscription):
        wrong = "messages of a topic are in no groups, and come by its consumers' selectors"
    if options.logical_order and consumer.session.acknowledge_mode == "INDIVIDUAL":
        wrong = "logical order cannot be kept where messages are acknowledged in any order"
    if wrong is not None:
        return Refusal(Reason.OPTIONS_INVALID, wrong)
    wrong = disagreement(consumer.queue, consumer.group_position, options)
    if wrong is not None:
        return Refusal(Reason.MATCH_OPTIONS_INVALID, wrong)
    if options != consumer.options:
        leave_order(consumer)
        consumer.options = options
        use_order(consumer)
        reserve_group(entry, consumer)
    return None
