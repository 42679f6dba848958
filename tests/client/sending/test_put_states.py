"""Tests of where a producer is in its group when outcomes are late, unknown or refused, by hand."""

from concurrent.futures import Future

import pytest

import ledgermq
from ledgermq import GroupPlace
from ledgermq.client.sending.grouping import PutState, is_open, place_of
from ledgermq.client.sending.receipts import settle
from ledgermq.protocol.operations import Put
from ledgermq.protocol.outcomes import Enqueued
from support.brokers.hand_made import refused

GROUP = bytes(range(24))
ORDERED = {"group": GroupPlace(), "logical_order": True}


def numbers(route):
    """Return the group sequence of every message written."""
    puts = [message for one in route.written(Put) for message in one.messages]
    return [message["header"]["group"]["group_sequence"] for message in puts]


def enqueued(put, first_sequence, **fields):
    """Return the answer to a Put."""
    return Enqueued(
        position=50,
        index=0,
        session=put.session,
        session_sequence=put.session_sequence,
        first_sequence=first_sequence,
        count=len(put.messages),
        **fields,
    )


def test_a_put_whose_outcome_is_unknown_counts_as_put(route, by_hand):
    """It may have been applied: the next message has the next number; `resolve` tells more."""
    route.silent.add(Put)
    with by_hand.session() as session:
        producer = session.producer("queue:q")
        with pytest.raises(ledgermq.OutcomeUnknownError) as caught:
            producer.send("1", **ORDERED, timeout=0.02)
        with pytest.raises(ledgermq.OutcomeUnknownError):
            producer.send("2", **ORDERED, timeout=0.02)
        route.tell(enqueued(route.written(Put)[0], 7))
        receipt = caught.value.resolve(20)
        assert (receipt.sequence, receipt.group.group_sequence) == (7, 1)
    assert numbers(route) == [1, 2]


def test_what_is_refused_one_after_the_other_takes_the_place_back_to_the_first(route, by_hand):
    """However many were under way: the next message has the number of the first refused."""
    with by_hand.session() as session:
        producer = session.producer("queue:q")
        route.silent.add(Put)
        first = producer.send_async("1", **ORDERED)
        route.tell(enqueued(route.written(Put)[0], 0))
        assert first.result(20).group.group_sequence == 1
        route.silent.clear()
        route.refusing[Put] = "group-clash"
        futures = [producer.send_async(str(number), **ORDERED) for number in (2, 3, 4)]
        assert all(isinstance(one.exception(20), ledgermq.GroupClashError) for one in futures)
        with pytest.raises(ledgermq.GroupClashError):
            producer.send("again", **ORDERED)
        with pytest.raises(ledgermq.GroupClashError):
            producer.send("again", **ORDERED)
    assert numbers(route)[-2:] == [2, 2]


def put(number, group_id=GROUP, **fields):
    """Return what a put carries."""
    return {
        "group_id": group_id,
        "group_sequence": number,
        "offset": 0,
        "length": 0,
        "in_group": True,
        "last_in_group": False,
        "segment": False,
        "last_segment": False,
        "logical_order": True,
    } | fields


def refused_puts(state, *given):
    """Moves a state by puts that are refused later; returns what to wait for."""
    outcomes = []
    for one in given:
        outcome, before, state.current = Future(), state.current, one
        state.expect(outcome, one, before)
        outcomes.append(outcome)
    return outcomes


def test_a_refusal_of_a_group_that_was_left_moves_nothing():
    """Only the group that the producer is in is gone back in."""
    state = PutState()
    (outcome,) = refused_puts(state, put(1))
    state.current = put(1, b"x" * 24)
    settle(outcome, ledgermq.GroupClashError("refused"))
    state.settle()
    assert state.current["group_id"] == b"x" * 24


def test_outcomes_are_taken_in_order():
    """What is still under way keeps its place, and what worked keeps it for good."""
    state = PutState()
    first, second, third = refused_puts(state, put(1), put(2), put(3))
    settle(third, ledgermq.GroupClashError("refused"))
    state.settle()
    assert state.current["group_sequence"] == 3
    settle(first)
    settle(second, ledgermq.GroupClashError("refused"))
    state.settle()
    assert state.current["group_sequence"] == 1
    state.settle()
    assert state.current["group_sequence"] == 1


def test_an_open_group_or_message_is_told_by_its_last_put():
    """The last segment of a last message ends both (GRP-22)."""
    assert not is_open(None)
    assert is_open(put(1))
    assert not is_open(put(1, last_in_group=True))
    assert is_open(put(1, last_in_group=True, segment=True))
    assert not is_open(put(1, last_in_group=True, segment=True, last_segment=True))
    assert is_open(put(1, in_group=False, segment=True))
    assert not is_open(put(1, in_group=False, segment=True, last_segment=True))
    assert place_of(put(3)) == GroupPlace(group_id=GROUP, group_sequence=3)


def test_what_is_refused_after_its_caller_gave_up_takes_the_place_back(route, by_hand):
    """The next message would follow one that the queue does not have, so that no group is whole."""
    with by_hand.session() as session:
        producer = session.producer("queue:q")
        route.silent.add(Put)
        group = producer.group(GROUP, after=4)
        with pytest.raises(ledgermq.OutcomeUnknownError) as caught:
            group.send("5", timeout=0.02)
        assert group.group_sequence == 5
        given = route.written(Put)[-1]
        route.tell(refused(0, given.session, given.session_sequence, "group-clash"))
        with pytest.raises(ledgermq.GroupClashError):
            caught.value.resolve(20)
        assert group.group_sequence == 4
        with pytest.raises(ledgermq.OutcomeUnknownError) as caught:
            group.send("5", timeout=0.02)
        route.tell(enqueued(route.written(Put)[-1], 7))
        caught.value.resolve(20)
        with pytest.raises(ledgermq.OutcomeUnknownError):
            group.send("6", timeout=0.02)
    assert numbers(route) == [5, 5, 6]


@pytest.mark.parametrize("limit", ["a", None, True, 1.0, -2, 2**31])
def test_a_redelivery_limit_that_cannot_be_is_refused_where_it_is_set(by_hand, limit):
    """The next send raised what nobody documents, or something about an encoding."""
    with by_hand.session() as session:
        producer = session.producer("queue:q", redelivery_limit=3)
        with pytest.raises(ledgermq.IllegalStateError, match=r"redelivery_limit is .*, must be -1"):
            producer.redelivery_limit = limit
        assert producer.redelivery_limit == 3
