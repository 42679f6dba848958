"""Orders of available messages and heaps of deadlines, against plain lists: what they hold, in
which order, and that they do not grow with what is gone.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ledgermq.core.order.selecting import value_in
from ledgermq.core.state.held_header import NOTHING_SAID
from ledgermq.core.state.manager import SPARE_DEADLINES, new_state
from ledgermq.core.state.records import Message, Queue, may_be_given
from ledgermq.core.structures.available import SPARE_ENTRIES, Available
from support.checks.calls import calls_of


def message_of(queue: Queue, priority: int = 4) -> Message:
    """The next message of a queue."""
    message = Message(queue, 0, queue.next_sequence, bytes(16), priority, True, 1)
    message.sequence = queue.next_sequence
    queue.messages[message.sequence] = message
    queue.next_sequence += 1
    return message


def entries_of(order: Available) -> int:
    """How many entries an order has, those left behind too."""
    return sum(len(one) for one in (*order._fresh, *order._returned))


class Pair:
    """The order of all messages, one of those of even priority, and a list beside them."""

    def __init__(self) -> None:
        self.queue = Queue("q", 0)
        self.all, self.even = Available(may_be_given), Available(may_be_given)
        self.waiting: list[Message] = []
        self.held: list[Message] = []

    def put(self, priority: int) -> None:
        """A new message."""
        message = message_of(self.queue, priority)
        self.waiting.append(message)
        self.all.extend([message])
        self.even.extend([message] if priority % 2 == 0 else [])

    def expected(self, *, even: bool) -> list[Message]:
        """What waits, in delivery order."""
        found = [one for one in self.waiting if not even or one.priority % 2 == 0]
        return sorted(found, key=lambda one: (-one.priority, one.sequence))

    def take(self, count: int) -> None:
        """So many in a row, as for consumers without selectors."""
        expected = self.expected(even=False)[:count]
        assert self.all.take(count, len(self.waiting)) == expected
        self._hold(expected)

    def choose(self, *, even: bool) -> None:
        """The first one of an order, as where not everybody may take everything."""
        first = (self.even if even else self.all).first()
        assert [first] == (self.expected(even=even)[:1] or [None])
        if first is not None:
            self._hold([first])
            self.all.tidy(len(self.waiting))

    def _hold(self, messages: list[Message]) -> None:
        for message in messages:
            message.consumer = object()
            self.waiting.remove(message)
            self.held.append(message)
        self.even.tidy(len(self.waiting))

    def give_back(self, place: int) -> None:
        """One of those taken."""
        if self.held:
            message = self.held.pop(place % len(self.held))
            message.consumer = None
            self.waiting.append(message)
            self.all.offer(message)
            if message.priority % 2 == 0:
                self.even.offer(message)

    def check(self) -> None:
        """Both orders hold what the list says, and know how many entries they have."""
        for order, even in ((self.all, False), (self.even, True)):
            expected = self.expected(even=even)
            assert list(order) == expected
            assert order.first() is (expected[0] if expected else None)
            assert order._entries == entries_of(order)
        for priority in range(10):
            mine = [one for one in self.expected(even=False) if one.priority == priority]
            assert self.all.has_priority(priority) or not mine


STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 9)),
    st.tuples(st.just("take"), st.integers(1, 3)),
    st.tuples(st.just("choose"), st.booleans()),
    st.tuples(st.just("give_back"), st.integers(0, 5)),
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(STEPS, max_size=40))
def test_orders_agree_with_a_sorted_list(steps):
    """By priority, then number, whichever order a message is taken through and comes back to."""
    pair = Pair()
    for name, argument in steps:
        if name == "choose":
            pair.choose(even=argument)
        else:
            getattr(pair, name)(argument)
        pair.check()


def test_taking_looks_for_nothing_where_a_priority_has_nothing():
    """A topic hands each message to thousands of subscriptions, one at a time."""
    pair = Pair()
    pair.put(4)
    pair.put(4)
    assert calls_of(lambda: pair.all.take(1, 2)) <= 3


def test_order_forgets_what_was_taken_through_another():
    """Its entries never outnumber the messages by much, and what stands keeps its place."""
    pair = Pair()
    for number in range(3 * SPARE_ENTRIES):
        pair.put(number % 2)
        assert entries_of(pair.all) <= 2 * len(pair.waiting) + SPARE_ENTRIES
    for _ in range(3 * SPARE_ENTRIES // 2):
        pair.choose(even=True)
        assert entries_of(pair.all) <= 2 * len(pair.waiting) + SPARE_ENTRIES
    pair.check()
    for _ in range(3 * SPARE_ENTRIES // 2):
        pair.choose(even=False)
    assert entries_of(pair.even) <= SPARE_ENTRIES
    pair.check()


def due(message: Message, moment: int) -> tuple[int, int, int, Message]:
    """The entry of a message that is due at a moment."""
    return (moment, message.queue.created_position, message.sequence, message)


def test_deadlines_forget_messages_that_are_gone():
    """The heap is made anew once most of it is gone, keeps what stands and its order."""
    queue, deadlines = Queue("q", 0), new_state().births
    kept = []
    for number in range(6 * SPARE_DEADLINES):
        message = message_of(queue)
        deadlines.add(due(message, 10_000_000 - number))
        if number % 8:
            del queue.messages[message.sequence]
        else:
            kept.append(message)
        assert len(deadlines._entries) <= 2 * len(kept) + SPARE_DEADLINES + 1
    assert len(deadlines._entries) < 3 * SPARE_DEADLINES
    assert deadlines.first() == due(kept[-1], 10_000_000 - kept[-1].sequence)
    taken = deadlines.take_through((10_000_001,))
    assert [message for *_, message in taken] == kept[::-1]
    assert (deadlines.first(), deadlines._entries) == (None, [])


def test_deadlines_of_one_moment_come_by_creation_and_number():
    """Queues by the position that made them, messages by sequence number."""
    early, late = Queue("b", 1), Queue("a", 2)
    deadlines = new_state().births
    messages = [message_of(queue) for queue in (early, early, late, late)]
    for message in messages[::-1]:
        deadlines.add(due(message, 7))
    assert deadlines.take_through((7,)) == []
    assert [message for *_, message in deadlines.take_through((8,))] == messages


def test_header_fields_have_their_values():
    """Those that a selector may name, and the properties (PROTOCOL.md section 12)."""
    message = message_of(Queue("q", 0), priority=7)
    message.enqueued_at = 1_234_567
    assert value_in(message, "JMSDeliveryMode") == "PERSISTENT"
    message.persistent = False
    assert value_in(message, "JMSDeliveryMode") == "NON_PERSISTENT"
    assert value_in(message, "JMSPriority") == 7
    assert value_in(message, "JMSTimestamp") == 1_234
    assert value_in(message, "JMSMessageID") == "ID:" + "00" * 16
    names = ("JMSType", "JMSCorrelationID", "x")
    assert [value_in(message, name) for name in names] == [None] * 3
    message.header = NOTHING_SAID._replace(correlation_id="c", type="t", properties={"x": 1})
    assert [value_in(message, name) for name in ("JMSType", "JMSCorrelationID", "x")] == [
        "t",
        "c",
        1,
    ]
