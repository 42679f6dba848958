"""What a session tells of what it has handed over: when, how often, of what (decision 24)."""

import itertools
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgermq.client.link.heartbeats import Heartbeats
from ledgermq.client.sansio.handed_over import HandedOver
from ledgermq.client.sansio.ranges import DeliveryRanges
from ledgermq.protocol.operations import Acknowledge, Alive, Close, Recover
from ledgermq.protocol.outcomes import Returned
from support.brokers.hand_made import accepted, delivered

MODES = ["AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL", "TRANSACTED"]


@pytest.fixture
def rounds(desk):
    """Lets the keeper make rounds at moments of the clock; tells how many Alives there are."""
    keeper = Heartbeats(desk.router, desk.log, 1e9)

    def make(*moments):
        written = []
        for now in moments:
            desk.log.now = now
            keeper._round(now)
            written.append(len(alives(desk)))
        return written

    return make


def alives(desk):
    """What was told: `handed_through` and `handing` of each Alive; repeats are the same one."""
    told = {one.session_sequence: one for one in desk.log.operations if isinstance(one, Alive)}
    return [(one.handed_through, one.handing) for one in told.values()]


def got(desk, core, *numbers, buffer):
    """The application gets so many messages of a consumer, which are these deliveries."""
    with core.lock:
        for number in numbers:
            assert buffer.take()[0] == number
            desk.works[core].settling.handed.add_range(number, number)


@pytest.fixture
def holding(desk):
    """A session of two consumers: 1, 2 and 5 were delivered to the first, 3 and 4 to the second."""
    core = desk.session(5)
    buffers = [core.protocol.open_consumer(f"queue:{name}", 10) for name in "ab"]
    for first, count, consumer in ((1, 2, 1), (3, 2, 2), (5, 1, 1)):
        core.take(delivered(0, 5, first, count, consumer))
    return core, *buffers


def test_what_is_held_is_told_within_a_second_and_once(desk, rounds, holding):
    """One operation for a message that is held for an hour (decision 24)."""
    core, first, _ = holding
    got(desk, core, 1, buffer=first)
    assert rounds(100.0, 100.5, 101.0, 101.5, 3700.0) == [0, 1, 1, 1, 1]
    assert alives(desk) == [(1, 0)]


def test_what_was_noticed_a_moment_ago_is_not_told_yet(desk, rounds, holding):
    """It may be settled meanwhile, though a round comes early."""
    core, first, _ = holding
    got(desk, core, 1, buffer=first)
    assert rounds(100.0, 100.3, 100.5) == [0, 0, 1]


def test_a_session_that_holds_nothing_new_tells_nothing(desk, rounds, holding):
    """Neither what is only prefetched, nor what an operation has told of, is told again."""
    core, first, _ = holding
    assert rounds(100.0, 100.5, 101.0) == [0, 0, 0]
    got(desk, core, 1, 2, buffer=first)
    desk.write(core, Acknowledge, deliveries=[{"first": 1, "last": 1}])
    desk.works[core].settling.handed.discard(1)
    assert rounds(102.0, 102.5, 103.0) == [0, 0, 0]


def test_what_is_settled_within_the_second_is_not_told(desk, rounds, holding):
    """Nor does it make what came after it be told too early."""
    core, first, _ = holding
    got(desk, core, 1, buffer=first)
    assert rounds(100.0) == [0]
    desk.works[core].settling.handed.take_all()
    got(desk, core, 2, buffer=first)
    assert rounds(100.5, 101.0) == [0, 1]
    assert alives(desk) == [(2, 0)]


def test_it_is_told_at_most_once_a_second(desk, rounds, holding):
    """However often more is handed over, and however close the rounds are."""
    core, first, second = holding
    got(desk, core, 1, buffer=first)
    assert rounds(100.0, 100.5) == [0, 1]
    got(desk, core, 2, buffer=first)
    assert rounds(100.6, 101.1, 101.4) == [1, 1, 1]
    got(desk, core, 3, buffer=second)
    assert rounds(101.5, 101.6, 102.6) == [2, 2, 2]
    assert alives(desk) == [(1, 0), (3, 0)]


def test_what_one_consumer_handed_over_is_told_by_name_while_another_has_not(desk, rounds, holding):
    """`handed_through` stays below what is in a buffer; one Alive for each such consumer."""
    core, first, second = holding
    got(desk, core, 3, buffer=second)
    assert rounds(100.0, 100.5, 101.0) == [0, 1, 1]
    got(desk, core, 4, buffer=second)
    got(desk, core, 1, buffer=first)
    assert rounds(102.0, 102.5, 103.0) == [1, 2, 2]
    got(desk, core, 2, 5, buffer=first)
    assert rounds(104.0, 104.5, 105.0) == [2, 3, 3]
    assert alives(desk) == [(0, 3), (1, 4), (5, 0)]


def test_the_last_that_is_held_is_named(desk, rounds, holding):
    """The queue manager passes over a delivery that is settled (INDIVIDUAL)."""
    core, _, second = holding
    got(desk, core, 3, 4, buffer=second)
    desk.works[core].settling.handed.discard(4)
    rounds(100.0, 100.5)
    assert alives(desk) == [(0, 3)]


def test_a_message_in_doubt_that_was_told_of_is_not_told_again(desk, rounds, holding):
    """H20 has told it, exactly and in time."""
    core, _, second = holding
    with core.lock:
        second.doubt = 3
        steps = desk.works[core].unseen.report_doubt(second)
        next(steps)  # written, and not answered yet
    got(desk, core, 3, buffer=second)
    assert rounds(100.0, 100.5, 101.0) == [1, 1, 1]


def test_what_a_closed_consumer_handed_over_is_told_too(desk, rounds, holding):
    """It stays with the session."""
    core, _, second = holding
    got(desk, core, 3, buffer=second)
    with core.lock:
        desk.works[core].unseen.close_consumer_locked(2)
    rounds(100.0, 100.5)
    assert alives(desk) == [(0, 3)]


@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK"])
def test_what_is_acknowledged_in_time_is_not_told(desk, rounds, mode):
    """AUTO and DUPS_OK write their acknowledgements within the second, which tell of it."""
    core = desk.session(5, mode)
    core.protocol.open_consumer("queue:a", 10)
    core.take(delivered(0, 5, 1, 2))
    with core.lock:
        core.protocol.consumers[1].take()
        desk.works[core].settling.unwritten.add_range(1, 1)
    assert rounds(100.0, 100.5, 101.0) == [0, 0, 0]
    assert [one.handed_through for one in desk.log.operations] == [1]


def test_in_a_crowd_it_is_told_later(desk, rounds, holding):
    """A session with too much unanswered adds nothing of its own."""
    core, first, _ = holding
    for _ in range(240):
        desk.write(core, Acknowledge, deliveries=[])
    got(desk, core, 1, buffer=first)
    assert rounds(100.0, 100.5, 101.0) == [0, 0, 0]
    core.take(accepted(7, 5, 1))
    assert rounds(101.1, 101.6) == [0, 1]


@pytest.mark.parametrize("kind", [Close, Recover])
def test_what_goes_back_is_not_told(desk, rounds, holding, kind):
    """The operation that gives it back names it."""
    core, first, _ = holding
    got(desk, core, 1, buffer=first)
    rounds(100.0)
    desk.write(core, kind, seen=desk.works[core].settling.handed.as_list())
    assert rounds(101.0, 102.0) == [0, 0]


def test_after_it_went_back_what_comes_again_is_told(desk, rounds, holding):
    """Under its new delivery number."""
    core, first, _ = holding
    got(desk, core, 1, buffer=first)
    desk.write(core, Recover, seen=desk.works[core].settling.handed.as_list())
    desk.works[core].settling.handed.take_all()
    core.take(Returned(position=8, index=0, session=5, session_sequence=1, returned=5, discarded=0))
    core.take(delivered(0, 5, 6, 2))
    got(desk, core, 6, buffer=first)
    assert rounds(100.0, 100.5, 101.0) == [0, 1, 1]
    assert alives(desk) == [(6, 0)]


def test_a_session_that_is_over_tells_nothing(desk, rounds, holding):
    """Its messages went back."""
    core, first, _ = holding
    got(desk, core, 1, buffer=first)
    rounds(100.0)
    core.forget("gone")
    assert rounds(101.0, 102.0) == [0, 0]


@pytest.mark.parametrize("mode", MODES)
def test_what_a_listener_works_on_is_told_in_every_mode(route, mode):
    """While it runs, its message counts as handed over, also while `close` waits for it."""
    entered, leave = threading.Event(), threading.Event()

    def listener(_):
        entered.set()
        assert leave.wait(20)

    with route.connected() as connection:
        session = connection.session(ack=mode)
        session.consumer("queue:a").set_message_listener(listener)
        route.tell(delivered(0, session.handle, 1, 2))
        assert entered.wait(20)
        closing = threading.Thread(target=session.close)
        closing.start()
        before = len(route.written(Alive))
        for now in (100.0, 101.0, 102.0):
            route.log.now = now
            connection._running.heartbeats.report_handed_over()
        told = [(one.handed_through, one.handing) for one in route.written(Alive)[before:]]
        leave.set()
        closing.join(20)
    assert told == [(1, 0)]
    assert not closing.is_alive()


def ranges_of(numbers):
    """A set of ranges of some numbers."""
    found = DeliveryRanges()
    for number in numbers:
        found.add_range(number, number)
    return found


def numbers_in(ranges):
    """The numbers in a set of ranges, in order."""
    told = ranges.as_list()
    return [number for one in told for number in range(one["first"], one["last"] + 1)]


@given(st.lists(st.integers(1, 30), unique=True), st.sets(st.integers(1, 30)), st.integers(0, 31))
def test_ranges_in_common_and_above_are_those_of_the_sets(numbers, others, limit):
    """In whatever order they were added."""
    ranges = ranges_of(numbers)
    assert numbers_in(ranges.common(ranges_of(sorted(others)))) == sorted(others & set(numbers))
    above = ranges.above(limit)
    assert numbers_in(above) == sorted(number for number in numbers if number > limit)
    assert not above or above.highest == max(numbers)
    assert len(ranges) == len(numbers)


class Log:
    """A session of three consumers and what the log knows of it, worked out number by number."""

    def __init__(self):
        self.word = HandedOver()
        self.buffers = {1: [], 2: [], 3: []}
        self.consumer_of = {}
        self.held = {}
        self.told = set()
        self.told_at = []

    def deliver(self, consumer, count, _now):
        """A consumer is delivered some messages."""
        first = len(self.consumer_of) + 1
        numbers = range(first, first + count)
        self.consumer_of |= dict.fromkeys(numbers, consumer)
        self.buffers[consumer] += numbers
        self.word.give(consumer, first, first + count - 1)

    def take(self, consumer, count, now):
        """The application gets some of them."""
        for number in self.buffers[consumer][:count]:
            self.held[number] = now
        del self.buffers[consumer][:count]

    def settle(self, consumer, count, _now):
        """It settles the last ones that it has of a consumer."""
        mine = [number for number in self.held if self.consumer_of[number] == consumer]
        for number in mine[-count:]:
            del self.held[number]

    def operate(self, consumer, count, _now):
        """An operation is written."""
        self.word.reported_through = self.through
        self.told |= set(range(1, self.through + 1))

    @property
    def through(self):
        """What an operation would tell as `handed_through`."""
        return min([len(self.consumer_of) + 1, *self.unseen]) - 1

    @property
    def unseen(self):
        """What was delivered and not handed over."""
        return list(itertools.chain(*self.buffers.values()))

    def round(self, now):
        """The keeper looks; what it tells must be true, new and in time."""
        due = self.word.due(now, [ranges_of(self.held)], self.through)
        for number in due:
            assert number == 0 or number in self.held, "passed over by the queue manager"
            owner = self.consumer_of.get(number)
            mine = {one for one in self.consumer_of if self.consumer_of[one] == owner}
            self.told |= {one for one in mine if one <= number}
        if due:
            before = set(self.told)
            self.operate(0, 0, now)
            assert due != [0] or self.told != before, "nothing new was told"
            self.told_at.append(now)
        assert not self.told & set(self.unseen), "nobody has seen that"
        late = {one for one, since in self.held.items() if now - since >= 1.0}
        assert late <= self.told


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["deliver", "deliver", "take", "take", "settle", "operate", "wait"]),
        st.integers(1, 3),
        st.integers(1, 4),
    ),
    max_size=60,
)


@settings(max_examples=150)
@given(STEPS)
def test_what_is_held_is_told_in_time_and_nothing_else_ever(steps):
    """Rounds are half a second apart, and whatever happens between them, what is held is told
    within a second, at most once a second, and nothing that nobody has seen (decision 24).
    """
    log, now = Log(), 0.0
    for what, consumer, count in steps:
        if what == "wait":
            now += 0.5
            log.round(now)
        else:
            getattr(log, what)(consumer, count, now)
    for _ in range(4):
        now += 0.5
        log.round(now)
    assert set(log.held) <= log.told
    count = len(log.told_at)
    for _ in range(4):
        now += 0.5
        log.round(now)
    assert len(log.told_at) == count, "told again"
    assert all(after - before >= 1.0 for before, after in itertools.pairwise(log.told_at))


def test_what_was_settled_is_forgotten_though_an_older_one_is_held_for_long():
    """Two consumers in turn, for months: else each round takes longer, with the session's lock."""
    known = HandedOver()
    held = DeliveryRanges([(1, 1)])
    for number in range(1, 1_001):
        known.give(number % 2, number, number)
    known.reported_through = 1_000
    assert known.due(1.0, [held], 1_000) == []
    assert {one: given.as_list() for one, given in known._given.items()} == {
        1: [{"first": 1, "last": 1}]
    }


def test_of_consumers_that_have_nothing_any_more_nothing_is_remembered():
    """A session that opens one for each request, and holds what it gets for seconds, for months."""
    known = HandedOver()
    for number in range(1, 101):
        known.give(number, number, number)
        known.report(number, number)
        known.reported_through = number
        assert known.due(float(number), [], number) == []
    assert len(known._reported) <= 1
