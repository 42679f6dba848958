"""Deliveries in doubt by hand: what is told before they are handed over, and who waits (H20)."""

import dataclasses
import threading

import pytest

import ledgermq
from ledgermq.protocol.operations import Alive
from support.brokers.hand_made import delivered


def doubtful(route, session, first, count=1, consumer=1):
    """Lets a consumer have a delivery in doubt."""
    told = delivered(0, session.handle, first, count, consumer)
    route.tell(dataclasses.replace(told, in_doubt=True))


def handings(route):
    """What was told before it was handed over."""
    return [one.handing for one in route.written(Alive) if one.handing]


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_delivery_in_doubt_is_told_of_before_it_is_handed_over(route, by_hand, many):
    """H20: what comes behind it without doubt is not; many at a time stop before it."""
    session = by_hand.session(ack="CLIENT")
    consumer = session.consumer("queue:q")
    route.tell(delivered(0, session.handle, 1, 1))
    doubtful(route, session, 2)
    route.tell(delivered(0, session.handle, 3, 2))
    with session._engine.lock:
        while consumer._shared.buffer.count < 4:
            assert session._engine.condition.wait(20)
    found = []
    while len(found) < 4:
        before = len(handings(route))
        some = consumer.receive_many(4, 20) if many else [consumer.receive(20)]
        found += [one.delivery for one in some]
        assert before or len(handings(route)) == (2 in found)
    assert found == [1, 2, 3, 4]
    assert handings(route) == [2]


def test_a_delivery_in_doubt_is_not_handed_over_before_there_is_an_answer(route, by_hand):
    """It stays here for the next call, which tells of it again."""
    session = by_hand.session(ack="CLIENT")
    session._engine.timeout_seconds = 0.02
    consumer = session.consumer("queue:q")
    route.silent.add(Alive)
    doubtful(route, session, 1)
    for _ in range(2):
        with pytest.raises(ledgermq.OutcomeUnknownError, match="Alive") as caught:
            consumer.receive(20)
    assert caught.value.destination == "queue:q"
    assert handings(route) == [1, 1]
    assert (consumer._shared.buffer.count, consumer._shared.buffer.in_doubt) == (1, True)
    route.silent.clear()
    session._engine.timeout_seconds = 20
    assert consumer.receive(20).delivery == 1


def test_a_listener_gets_a_delivery_in_doubt_once_it_was_told_of(route, by_hand):
    """H20: in the order of deliveries over all consumers (SES-04)."""
    session = by_hand.session()
    consumers = [session.consumer(f"queue:{name}") for name in "ab"]
    doubtful(route, session, 1, 1, 2)
    route.tell(delivered(0, session.handle, 2, 1))
    found, done = [], threading.Event()

    def listener(message):
        found.append((message.delivery, handings(route)))
        if len(found) == 2:
            done.set()

    with session._engine.lock:
        while sum(one._shared.buffer.count for one in consumers) < 2:
            assert session._engine.condition.wait(20)
        for consumer in consumers:
            session._work.listening._listeners[consumer._shared] = listener
        session._work.listening.set_locked(consumers[0]._shared, listener)
    assert done.wait(20)
    assert found == [(1, [1]), (2, [1])]


def test_a_consumer_closed_while_it_tells_of_a_doubt_hands_nothing_over(route, by_hand):
    """The delivery goes back as nobody's."""
    session = by_hand.session(ack="CLIENT")
    consumer = session.consumer("queue:q")
    answer = route.log.on_write

    def close(operation):
        if isinstance(operation, Alive) and operation.handing:
            consumer._shared.closed = True
        answer(operation)

    route.log.on_write = close
    doubtful(route, session, 1)
    assert consumer.receive(20) is None
    assert handings(route) == [1]
    assert not session._work.settling.handed
