"""Orders of what consumers select: by a selector, by match options, by groups.

A queue has one order for each selector and options in use, of the available messages that these
want, so that a get looks at no message that it does not take; a message looks only at those orders
whose selectors ask for no value or for one that it has. Some options ask for other items of
a group too: such an entry is passed over when it comes up too early, and offered again when the
group, or the logical message, has become available.
"""

from __future__ import annotations

from collections.abc import Iterable

from ledgermq.core.moves import offer_again
from ledgermq.core.order.affinity import forget_aside
from ledgermq.core.order.selecting import asked_value, is_permitted, is_wanted, matches, value_in
from ledgermq.core.state.group_order import GroupOrder
from ledgermq.core.state.records import Consumer, Message, Order, Queue, may_be_given
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.selector import Selector


def _new_order(queue: Queue, selector: Selector | None, options: Options) -> Order:
    """An order without messages."""
    plain = options == PLAIN

    def wants(message: Message) -> bool:
        if not plain and not is_wanted(options, message):
            return False
        return selector is None or matches(selector, message)

    def may_be_taken(message: Message) -> bool:
        return may_be_given(message) and is_permitted(options, message)

    return Order(selector, options, wants, may_be_taken, queue.filled_orders)


def _fill(order: Order, found: Iterable[Message]) -> None:
    asked = asked_value(order.selector)
    if asked is not None:
        # Most of a deep queue is left out by this alone, at a third of the cost.
        name, value = asked
        found = [one for one in found if value_in(one, name) == value]
    order.extend([one for one in found if one.is_available and order.wants(one)])


def fill_orders(queue: Queue) -> None:
    """Finds what is wanted by orders that are new, all of them, by one look at each message."""
    wanted: dict[Order, list[Message]] = {}
    for order in queue.orders.values():
        if _looks_at_few(order.options):
            _fill(order, _candidates(queue, order.options))
        else:
            wanted[order] = []
    available = (one for one in queue.messages.values() if one.is_available)
    for message in available if wanted else ():
        for order in queue.orders_by_value.candidates(message):
            if order in wanted and order.wants(message):
                wanted[order].append(message)
    for order, found in wanted.items():
        order.extend(found)


def _looks_at_few(options: Options) -> bool:
    return options.sequence >= 0 or bool(options.group_id)


def _candidates(queue: Queue, options: Options) -> list[Message]:
    """Where to look for what options want, by rising sequence number."""
    if options.sequence >= 0:
        message = queue.messages.get(options.sequence)
        return [] if message is None else [message]
    if options.group_id:
        group = queue.groups.get(options.group_id)
        found: list[Message] = [] if group is None else list(group.items())
        return sorted(found, key=lambda one: one.sequence)
    return list(queue.messages.values())


def use_order(consumer: Consumer, *, fills: bool = True) -> None:
    """Begins to keep what a consumer selects in order; filled now, or by `fill_orders`."""
    queue, key = consumer.queue, consumer.order_key
    if key is None:
        queue.unselecting[consumer.key] = consumer
        return
    order = queue.orders.get(key)
    if order is None:
        order = queue.orders[key] = _new_order(queue, consumer.selector, consumer.options)
        if fills:
            _fill(order, _candidates(queue, consumer.options))
        queue.orders_by_value.add(key, order, asked_value(consumer.selector), value_in)
    order.users[consumer.key] = consumer
    consumer.order = order


def leave_order(consumer: Consumer) -> None:
    """Ends what `use_order` began; an order of few goes with its last user.

    That of a whole queue costs a look at all of it, so it stays for the next consumer.
    """
    queue, order, key = consumer.queue, consumer.order, consumer.order_key
    if order is None or key is None:
        queue.unselecting.pop(consumer.key, None)
        return
    consumer.order = None
    order.users.pop(consumer.key, None)
    if not order.users and not order.is_of_whole_queue:
        del queue.orders[key]
        queue.orders_by_value.remove(key, asked_value(order.selector))
        queue.filled_orders.pop(order, None)
        forget_aside(queue, order)


def use_group_order(queue: Queue) -> None:
    """Begins or ends to keep the order of groups, as the settings of a queue now ask."""
    if not queue.settings.keeps_group_order:
        order, queue.group_order = queue.group_order, None
        if order is not None:
            held_back = [one for one in queue.messages.values() if order.holds_back(one)]
            offer_again(queue, held_back)
    elif queue.group_order is None:
        _begin_group_order(queue)
    if queue.group_order is not None and not queue.settings.error_destination:
        queue.group_order.parked.clear()


def _begin_group_order(queue: Queue) -> GroupOrder[Message]:
    """Finds what is held back among the messages of a queue; nothing is parked yet."""
    order: GroupOrder[Message] = GroupOrder()
    queue.group_order = order
    order.add(queue.messages.values())
    for message in queue.messages.values():
        if message.is_delayed:
            order.hold(message)
    return order


def restore_group_order(queue: Queue) -> None:
    """Finds what is held back among messages that came after the settings."""
    order = queue.group_order
    if order is not None:
        _begin_group_order(queue).parked = order.parked
