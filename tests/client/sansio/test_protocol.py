"""Tests of the protocol core without Kafka: numbering, retries, chain, buffers, ranges."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.client.reasons import REASON_ERRORS, error_of_reason
from ledgermq.client.sansio.buffer import ConsumerBuffer
from ledgermq.client.sansio.chain import Chain
from ledgermq.client.sansio.protocol import OUTSTANDING_MAX, SessionProtocol
from ledgermq.client.sansio.ranges import DeliveryRanges
from ledgermq.errors import LedgerMQError, RefusedError
from ledgermq.protocol.operations import Alive, Rollback
from ledgermq.protocol.outcomes import Accepted, Delivered, Refused, Returned
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.codec import decode_operation
from ledgermq.wire.topics.address import AddressError, parse_address


def write(protocol, operation, **fields):
    """An operation on its way, as the engine writes it."""
    pending = protocol.prepare(operation, **fields)
    protocol.register(pending)
    protocol.withdraw_for(pending)
    return pending


def accepted(number, position=0):
    """A reply to an operation of session 5."""
    return Accepted(position=position, index=0, session=5, session_sequence=number)


def gap(number, expected):
    """A gap refusal of an operation of session 5."""
    return Refused(
        position=0,
        index=0,
        session=5,
        session_sequence=number,
        reason="session-sequence-gap",
        detail="",
        expected_sequence=expected,
    )


def delivered(first, count, consumer=1):
    """A delivery of messages whose sequence numbers are their delivery numbers."""
    return Delivered(
        position=0,
        index=0,
        session=5,
        consumer=consumer,
        destination="queue:q",
        first_delivery=first,
        messages=[{"sequence": number} for number in range(first, first + count)],
    )


def drained(buffer):
    """Delivery numbers in the buffer."""
    return [buffer.take()[0] for _ in range(buffer.count)]


def test_operations_are_numbered_and_tell_what_was_answered():
    """1, 2, 3 … and the number up to which no reply is missing, whatever order replies come in."""
    protocol = SessionProtocol(5)
    for _ in range(3):
        write(protocol, Alive)
    protocol.take_reply(accepted(2))
    assert decode_operation(write(protocol, Alive).value).answered_through == 0
    protocol.take_reply(accepted(1))
    last = decode_operation(write(protocol, Alive).value)
    assert (last.session, last.session_sequence, last.answered_through) == (5, 5, 2)


def test_a_reply_settles_once():
    """A second copy finds nothing to settle."""
    protocol = SessionProtocol(5)
    pending = write(protocol, Alive)
    assert protocol.take_reply(accepted(1)) is pending
    assert protocol.take_reply(accepted(1)) is None


def test_too_many_unanswered_operations_make_the_session_full():
    """An answered operation behind an unanswered one makes no room: its reply is kept too."""
    protocol = SessionProtocol(5)
    for _ in range(OUTSTANDING_MAX):
        assert not protocol.full
        write(protocol, Alive)
    assert protocol.full
    protocol.take_reply(accepted(7))
    assert protocol.full
    protocol.take_reply(accepted(1))
    assert not protocol.full


def test_one_gap_is_closed_by_one_repeat():
    """All operations behind the lost one are refused; the first refusal alone repeats them."""
    protocol = SessionProtocol(5)
    written = [write(protocol, Alive) for _ in range(5)]
    for pending in written:
        pending.sends += 1
    again = protocol.take_gap(gap(3, expected=2))
    assert [pending.number for pending in again] == [2, 3, 4, 5]
    for pending in again:
        pending.sends += 1
    assert protocol.take_gap(gap(4, expected=2)) == []
    assert protocol.take_gap(gap(5, expected=2)) == []
    again = protocol.take_gap(gap(4, expected=3))
    assert [pending.number for pending in again] == [3, 4, 5], "the repeat of 3 was lost as well"


def test_what_nobody_can_read_is_not_written_again_without_a_pause():
    """Each repeat stands on the log for ever; the heartbeats' come after pauses that grow."""
    protocol = SessionProtocol(5)
    again, repeats = [write(protocol, Alive) for _ in range(2)], -1
    while again:
        repeats += 1
        assert repeats < 100
        for pending in again:
            pending.sends += 1
        again = protocol.take_gap(gap(2, expected=1))
    assert repeats == 10
    assert protocol.unread is protocol.pending[1]
    protocol.take_reply(accepted(1))
    assert [one.number for one in protocol.take_gap(gap(2, expected=2))] == [2]


def test_deliveries_are_dropped_while_a_rollback_is_under_way():
    """They go back with it; those behind its reply count again."""
    protocol = SessionProtocol(5)
    buffer = protocol.open_consumer("queue:q", 10)
    protocol.take_delivered(delivered(1, 3))
    assert buffer.grant() == 10
    rollback = write(protocol, Rollback, seen=[])
    assert (buffer.count, buffer.due) == (0, 10)
    protocol.take_delivered(delivered(4, 2))
    protocol.take_reply(
        Returned(
            position=9,
            index=0,
            session=5,
            session_sequence=rollback.number,
            returned=5,
            discarded=0,
        )
    )
    protocol.take_delivered(delivered(6, 2))
    assert drained(buffer) == [6, 7]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=20))
def test_repeated_and_overlapping_deliveries_are_buffered_once(parts):
    """Whatever is told again after a hole, each delivery number comes out once, in order."""
    protocol = SessionProtocol(5)
    buffer = protocol.open_consumer("queue:q", 100)
    highest = 0
    for back, count in parts:
        first = max(1, highest + 1 - back)
        protocol.take_delivered(delivered(first, count))
        highest = max(highest, first + count - 1)
    assert drained(buffer) == list(range(1, highest + 1))


def test_deliveries_that_cross_the_close_of_their_consumer_are_known():
    """They were seen by nobody and must go back."""
    protocol = SessionProtocol(5)
    buffer = protocol.open_consumer("queue:q", 10)
    assert protocol.take_delivered(delivered(1, 4)) is buffer
    assert protocol.take_delivered(delivered(1, 4)) is None
    buffer.take()
    assert protocol.close_consumer(1).as_list() == [{"first": 2, "last": 4}]
    assert protocol.take_delivered(delivered(5, 2)) is None
    assert protocol.take_late(1).as_list() == [{"first": 5, "last": 6}]
    assert not protocol.take_late(1)


@given(st.integers(1, 50), st.lists(st.sampled_from(["deliver", "take", "run"]), max_size=60))
def test_credit_buffered_and_due_messages_add_up_to_the_prefetch(prefetch, steps):
    """Of `prefetch` messages each is standing credit, in the buffer, or due to be granted."""
    buffer = ConsumerBuffer(1, "queue:q", prefetch)
    credit, number = buffer.grant(), 1
    for step in steps:
        if step == "deliver" and credit:
            some = min(credit, 3)
            buffer.deliver(number, [{}] * some)
            credit, number = credit - some, number + some
        elif step == "take" and buffer.count:
            buffer.take()
        elif step == "run" and buffer.count:
            buffer.take_run(2)
        if buffer.due >= buffer.threshold:
            credit += buffer.grant()
        assert credit + buffer.count + buffer.due == prefetch
        assert len(buffer.unseen()) == buffer.count
    assert credit or buffer.count, "a consumer that wants messages has credit or messages"


@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)), st.randoms())
def test_ranges_are_the_set_they_were_made_of(numbers, removed, dice):
    """In any order of adding and taking out, the ranges rise, are apart, and hold the set."""
    ranges = DeliveryRanges()
    order = list(numbers)
    dice.shuffle(order)
    for number in order:
        ranges.add_range(number, number)
    for number in removed:
        assert ranges.discard(number) == (number in numbers)
    left = numbers - removed
    told = ranges.as_list()
    assert [n for one in told for n in range(one["first"], one["last"] + 1)] == sorted(left)
    for before, after in itertools.pairwise(told):
        assert before["last"] + 1 < after["first"]
    assert len(ranges) == len(left)
    assert bool(ranges) == bool(left)
    assert all(number in ranges for number in left)
    kept = {number for number in left if number % 2}
    ranges.keep_only(kept)
    assert len(ranges) == len(kept)


def outcomes(first, count):
    """Outcomes at positions from `first` on, one each."""
    return [accepted(1, position) for position in range(first, first + count)]


@given(st.data())
def test_a_chain_accepts_each_outcome_once_and_in_order(data):
    """Lost, repeated, cut-otherwise chunks and answers at any time: no gap, no repeat."""
    chain = Chain()
    total = 40
    got, told = [], 0
    for _ in range(data.draw(st.integers(1, 25))):
        first = data.draw(st.integers(0, total - 1))
        count = data.draw(st.integers(1, total - first))
        previous = (first - 1, 0) if first else (-1, -1)
        before = chain.last
        found = [one.position for one in chain.accept(*previous, outcomes(first, count))]
        if found:
            assert found[0] == before[0] + 1
            assert found == list(range(found[0], found[-1] + 1))
        got += found
        if chain.hole and data.draw(st.booleans()):
            # The worker's answer covers everything up to some position at or past the hole.
            reached = data.draw(st.integers(chain.wanted, total))
            told = max(told, reached + 1)
            for held in chain.resume(reached, 0):
                got += [one.position for one in chain.accept(*held)]
    assert len(got) == len(set(got))
    missing = set(range(chain.last[0] + 1)) - set(got)
    assert all(position < told for position in missing), "only an answer may stand in for outcomes"


def test_a_chain_without_a_hole_waits_for_no_position():
    """Before its first hole, and again when that is closed: who asks then is answered at once."""
    chain = Chain()
    assert chain.wanted == -1
    chain.accept(7, 0, outcomes(8, 1))
    assert chain.wanted == 8
    assert [one[:2] for one in chain.resume(8, 0)] == [(7, 0)]
    assert (chain.hole, chain.wanted, chain.last) == (False, -1, (8, 0))
    chain.accept(20, 0, outcomes(21, 1))
    chain.accept(-1, -1, outcomes(30, 1))
    assert (chain.hole, chain.wanted, chain.resume(30, 0)) == (False, -1, [])


def test_the_last_chunk_again_brings_nothing_and_opens_no_hole():
    """Kafka may write a record twice."""
    chain = Chain()
    for accepted in (3, 0):
        assert len(chain.accept(-1, -1, outcomes(0, 3))) == accepted
    assert not chain.hole


def test_the_first_chunk_may_come_again_with_more_in_it():
    """Only what is new of it counts; the chain has not begun anew."""
    chain = Chain()
    chain.accept(-1, -1, outcomes(0, 1))
    assert [one.position for one in chain.accept(-1, -1, outcomes(0, 3))] == [1, 2]
    assert chain.restarts == 0


def test_a_chunk_of_no_outcomes_brings_nothing():
    """Nothing follows it, and nothing is missing behind it."""
    chain = Chain()
    assert list(chain.accept(7, 0, [])) == []
    assert not chain.hole


def test_a_chunk_that_is_not_chained_is_read_at_any_time():
    """Refusals without a known session have no place in the chain."""
    chain = Chain()
    chain.accept(7, 0, outcomes(8, 1))
    assert chain.hole
    assert len(chain.accept(-1, -2, outcomes(3, 1))) == 1
    assert chain.hole


def test_a_chain_that_begins_anew_is_followed():
    """The queue manager forgot the connection; a repeated beginning is no new one."""
    chain = Chain()
    chain.accept(-1, -1, outcomes(0, 3))
    assert list(chain.accept(-1, -1, outcomes(0, 2))) == []
    assert chain.restarts == 0
    assert len(chain.accept(-1, -1, outcomes(9, 1))) == 1
    assert (chain.restarts, chain.last) == (1, (9, 0))


@pytest.mark.parametrize(
    ("address", "bootstrap", "queue_manager"),
    [
        ("kafka://localhost:9092/QM1", "localhost:9092", "QM1"),
        ("kafka://localhost", "localhost:9092", "QM1"),
        ("kafka://localhost/", "localhost:9092", "QM1"),
        ("kafka://a:1,b,c:3/Sales.EU", "a:1,b:9092,c:3", "Sales.EU"),
        ("kafka://[::1]:9093/QM2", "[::1]:9093", "QM2"),
        ("kafka://[::1]/QM2", "[::1]:9092", "QM2"),
    ],
    ids=range(6),
)
def test_an_address_names_brokers_and_a_queue_manager(address, bootstrap, queue_manager):
    """Port 9092 and QM1 are what is meant where nothing is said."""
    assert parse_address(address) == (bootstrap, queue_manager)


@pytest.mark.parametrize(
    "address",
    ["", "localhost", "http://a", "kafka://", "kafka://a:0", "kafka://:1", "kafka://a/b c"],
    ids=range(7),
)
def test_a_text_that_is_no_address_is_refused(address):
    """The error shows the form."""
    with pytest.raises(AddressError):
        parse_address(address)


# Refusals that no operation of this client can meet, and those that the protocol core deals with.
ELSEWHERE = {
    Reason.ANSWER_EXPIRED,
    Reason.POSITION_SKIPPED,
    Reason.RECORD_EMPTY,
    Reason.RECORD_UNREADABLE,
    Reason.SCHEMA_UNKNOWN,
    Reason.SESSION_SEQUENCE_GAP,
    Reason.SESSION_WINDOW_FULL,
    Reason.TIMESTAMP_UNTRUSTED,
    Reason.TIME_DISAGREES,
}


def test_every_reason_that_an_application_can_meet_has_its_error():
    """A reason code added to the protocol must be given an exception here."""
    assert set(Reason) - ELSEWHERE <= set(REASON_ERRORS)
    for reason, kind in REASON_ERRORS.items():
        error = error_of_reason(reason, "why", queue_manager="QM1", position=7)
        assert type(error) is kind
        assert isinstance(error, LedgerMQError)
        assert (error.code, error.position) == (reason, 7)
        assert "QM1@7" in str(error)
        assert "why" in str(error)


def test_an_unknown_reason_is_still_an_error_with_its_code():
    """A newer worker may refuse for reasons that this client does not know."""
    error = error_of_reason("brand-new", "why", queue_manager="QM1")
    assert isinstance(error, RefusedError)
    assert error.code == "brand-new"


def told(pending):
    """Up to which delivery an operation says that everything was handed over."""
    return decode_operation(pending.value).handed_through


def test_every_operation_tells_up_to_where_everything_was_handed_over():
    """H20: what is buffered is not, nor what crossed the close of its consumer."""
    protocol = SessionProtocol(5)
    assert told(write(protocol, Alive)) == 0
    first, second = (protocol.open_consumer("queue:q", 10) for _ in range(2))
    protocol.take_delivered(delivered(1, 2, consumer=2))
    protocol.take_delivered(delivered(3, 3, consumer=1))
    assert told(write(protocol, Alive)) == 0
    second.take()
    assert told(write(protocol, Alive)) == 1
    second.take()
    first.take()
    assert told(write(protocol, Alive)) == 3
    protocol.close_consumer(2)
    assert told(write(protocol, Alive)) == 3
    first.take_run(2)
    assert told(write(protocol, Alive)) == 5
    protocol.take_delivered(delivered(6, 2, consumer=2))
    protocol.take_delivered(delivered(8, 1, consumer=1))
    assert told(write(protocol, Alive)) == 5
    protocol.take_late(2)
    assert told(write(protocol, Alive)) == 7


def test_the_lowest_of_some_ranges_is_found_wherever_it_stands():
    """Ranges are kept in the order in which they were added."""
    ranges = DeliveryRanges([(7, 9), (3, 4), (12, 12)])
    assert ranges.lowest == 3
    assert (3 in ranges, 4 in ranges, 5 in ranges, 9 in ranges, 13 in ranges) == (
        *(True, True, False, True),
        False,
    )
    assert repr(ranges) == "DeliveryRanges(3..4, 7..9, 12..12)"
    assert [ranges.discard(number) for number in (8, 8, 13)] == [True, False, False]
    assert repr(ranges) == "DeliveryRanges(3..4, 7..7, 9..9, 12..12)"
    ranges.take_all()
    assert not ranges


def test_the_next_delivery_is_in_doubt_until_it_was_told_of():
    """H20: that one only, and only while it is here."""
    buffer = ConsumerBuffer(1, "queue:q", 10)
    assert not buffer.in_doubt
    buffer.doubt = 4
    assert not buffer.in_doubt
    buffer.deliver(3, [{}, {}])
    assert not buffer.in_doubt
    assert buffer.take() == (3, {})
    assert buffer.in_doubt
    buffer.resolve(3)
    assert buffer.in_doubt
    buffer.resolve(4)
    assert (buffer.in_doubt, buffer.doubt) == (False, 0)
    buffer.doubt = 4
    buffer.withdraw()
    assert (buffer.doubt, buffer.count, buffer.due) == (0, 0, 10)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.randoms())
def test_ranges_added_whole_are_the_set_they_were_made_of(sizes, dice):
    """In whatever order they come, alone or all at once; taking them leaves none."""
    runs, first = [], 1
    for place, size in enumerate(sizes):
        if place % 3:
            runs.append((first, first + size - 1))
        first += size
    numbers = [number for low, high in runs for number in range(low, high + 1)]
    dice.shuffle(runs)
    ranges, other = DeliveryRanges(), DeliveryRanges()
    for place, run in enumerate(runs):
        (ranges if place % 2 else other).add_range(*run)
    ranges.add_all(other)
    found = [n for one in ranges.as_list() for n in range(one["first"], one["last"] + 1)]
    assert found == numbers
    assert len(ranges) == len(numbers)
    assert not ranges or ranges.lowest == numbers[0]
    taken = ranges.take_all()
    assert (len(taken), len(ranges)) == (len(numbers), 0)
