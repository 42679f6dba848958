"""Messages that expire where they wait for the application: they go back, and expire (SES-66)."""

import asyncio
import threading
import time

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.client.sansio.buffer import NEVER, ConsumerBuffer
from ledgermq.client.sansio.log_clock import UNKNOWN, LogClock
from ledgermq.client.sansio.ranges import DeliveryRanges
from ledgermq.protocol.operations import GiveBack
from support.brokers.hand_made import delivered
from support.brokers.hand_route import HandRoute

QUEUE = "queue:q"


def put(connection, *bodies, destination=QUEUE):
    """Messages; those whose body begins with "s" expire after a second."""
    with connection.session() as session:
        producer = session.producer(destination)
        for body in bodies:
            producer.send(body, time_to_live=1 if body.startswith("s") else 0)


def counts(connection):
    """What became of the messages."""
    told = connection.admin.queue_status("q")
    return told.message_count, told.expired


@pytest.mark.parametrize("ack", ["AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL", "TRANSACTED"])
@pytest.mark.parametrize("how", ["receive", "receive_many", "until_idle", "iterator"])
def test_what_expired_while_it_was_prefetched_is_not_handed_over(memory, ack, how):
    """It goes back without a backout, counts as expired, and later messages come in its place."""
    with memory.connect() as connection, connection.session(ack=ack) as session:
        put(connection, "first", "s1", "s2", "last", "s3")
        consumer = session.consumer(QUEUE)
        assert consumer.receive(20).body == "first"
        memory.advance(2)
        if how == "receive":
            found = [consumer.receive(20), consumer.receive(0)][:1]
        elif how == "receive_many":
            found = consumer.receive_many(10, 20)
        elif how == "until_idle":
            found = list(consumer.until_idle(0.01))
        else:
            found = [next(iter(consumer))]
        assert [one.body for one in found] == ["last"]
        assert found[0].delivery_count == 1
        put(connection, "new")
        assert consumer.receive(20).body == "new"
        if ack == "TRANSACTED":
            session.commit()
        elif ack in ("CLIENT", "INDIVIDUAL"):
            session.acknowledge()
    with memory.connect() as connection:
        assert counts(connection) == (0, 3)


def test_what_expires_goes_back_although_nobody_receives(memory, eventually):
    """The keeper of the connection returns it: its place and its quota are free."""
    with memory.connect() as connection, connection.session() as session:
        put(connection, "s1", "s2", "long")
        consumer = session.consumer(QUEUE)
        assert consumer.receive(20).body == "s1"
        memory.advance(2)
        eventually(lambda: counts(connection)[1] == 1)
        assert consumer.receive(20).body == "long"


def test_a_listener_does_not_get_what_expired_while_another_message_was_handled(memory):
    """It waited for the listener to return."""
    seen, go_on, done = [], threading.Event(), threading.Event()

    def listener(message):
        seen.append(message.body)
        if message.body == "first":
            go_on.wait(20)
        if message.body == "last":
            done.set()

    with memory.connect() as connection, connection.session() as session:
        put(connection, "first", "s1", "s2", "last")
        consumer = session.consumer(QUEUE)
        consumer.set_message_listener(listener)
        while not seen:
            time.sleep(0.01)
        memory.advance(2)
        go_on.set()
        assert done.wait(20)
        assert seen == ["first", "last"]
    with memory.connect() as connection:
        assert counts(connection) == (0, 2)


def test_a_coroutine_does_not_get_what_expired(memory):
    """The client for asyncio, in AUTO and in a unit of work."""

    async def main():
        async with aio.Connection(memory.connect()) as connection:
            for transacted in (False, True):
                put(connection._connection, "first", "s1", "last")
                async with (
                    connection.session(transacted=transacted) as session,
                    session.consumer(QUEUE) as consumer,
                ):
                    assert (await consumer.receive(20)).body == "first"
                    memory.advance(2)
                    assert (await consumer.receive(20)).body == "last"
                    if transacted:
                        await session.commit()
            assert counts(connection._connection) == (0, 2)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_nothing_of_a_group_is_passed_over(memory):
    """An item that expired goes back with what follows it in logical order (GRP-03, GRP-14)."""
    with memory.connect() as connection, connection.session() as session:
        with session.producer(QUEUE).group() as group:
            for number in range(1, 5):
                life = 1 if number == 3 else 0
                group.send(str(number), last=number == 4, time_to_live=life)
        with connection.session(transacted=True) as other:
            consumer = other.consumer(QUEUE, order="LOGICAL")
            assert consumer.receive(20).body == "1"
            memory.advance(2)
            assert consumer.receive(20).body == "2"
            assert consumer.receive(0.1) is None
            assert counts(connection) == (3, 1)
            other.commit()
        assert [one.body for one in connection.browser(QUEUE)] == ["4"]


def test_a_group_that_was_being_gathered_goes_back_as_a_whole(memory):
    """It is not complete any more, so nothing of it comes (GRP-20)."""
    with memory.connect() as connection, connection.session() as session:
        with session.producer(QUEUE).group() as group:
            for number in range(1, 5):
                group.send(str(number), last=number == 4, time_to_live=1 if number == 2 else 0)
        consumer = session.consumer(
            QUEUE, prefetch=200, order="LOGICAL", all_messages_available=True
        )
        session._engine.run(consumer._shared.ask())
        while consumer._shared.buffer.count < 4:
            time.sleep(0.01)
        with session._engine.lock:
            consumer._shared.buffer.gather()
        memory.advance(2)
        assert consumer.receive_group(0.1) == []
        assert counts(connection) == (3, 1)
        put(connection, "alone")
        assert [one.body for one in consumer.receive_group(20)] == ["alone"]


def test_a_message_in_segments_expires_with_any_of_them(memory):
    """Got complete, it goes back with all its segments (GRP-38)."""
    with memory.connect() as connection, connection.session() as session:
        producer = session.producer(QUEUE)
        producer.send("first")
        producer.send_segmented("x" * 30, max_segment=10, time_to_live=1)
        producer.send("last")
        consumer = session.consumer(QUEUE, complete_message=True)
        assert consumer.receive(20).body == "first"
        memory.advance(2)
        assert consumer.receive(20).body == "last"
        assert counts(connection)[1] == 3


def test_what_expired_in_doubt_makes_room_for_the_next(memory):
    """A message that a lost session held, prefetched and expired (H20)."""
    first = memory.connect()
    put(first, "s1", "last")
    held = first.session(ack="CLIENT").consumer(QUEUE)
    assert held.receive(20).body == "s1"
    memory.crash(first)
    with memory.connect() as connection, connection.session() as session:
        put(connection, "s2")
        consumer = session.consumer(QUEUE)
        assert consumer.receive(20).body == "last"
        memory.advance(2)
        put(connection, "new")
        assert consumer.receive(20).body == "new"


def test_what_the_log_delivers_again_is_handed_over(monkeypatch):
    """Where the clocks disagree, the log is right: no message goes to and fro for ever."""
    route = HandRoute()
    with route.connected() as connection:
        session = connection.session(ack="CLIENT")
        consumer = session.consumer(QUEUE)
        route.lane.time_us = 10_000_000
        for first in (1, 2):
            told = delivered(0, session.handle, first, 1)
            told.messages[0]["sequence"] = 5
            told.messages[0]["header"] = header(9_000_000)
            route.tell(told)
            if first == 1:
                assert consumer.receive(0.2) is None
        assert consumer.receive(20).sequence == 5
        assert [one.unseen for one in route.written(GiveBack)] == [[{"first": 1, "last": 1}]]


def header(expires_at):
    """Of a message that expires."""
    return {
        "properties": {},
        "correlation_id": None,
        "type": None,
        "expires_at": expires_at,
        "deliver_at": -1,
        "group": None,
        "origin": None,
    }


def test_those_that_administration_did_not_take_away_go_back_all_the_same(eventually):
    """A refusal of all of them is followed by halves."""
    route = HandRoute()
    with route.connected() as connection:
        session = connection.session(ack="CLIENT")
        consumer = session.consumer(QUEUE)
        route.lane.time_us = 10_000_000
        route.refusing[GiveBack] = "delivery-unknown"
        told = delivered(0, session.handle, 1, 3)
        for message in told.messages:
            message["header"] = header(9_000_000)
        route.tell(told)
        assert consumer.receive(0.2) is None
        eventually(lambda: len(route.written(GiveBack)) == 5)
        named = [[(one["first"], one["last"]) for one in x.unseen] for x in route.written(GiveBack)]
        assert named == [[(1, 3)], [(1, 1)], [(2, 3)], [(2, 2)], [(3, 3)]]


def test_a_buffer_knows_when_something_in_it_may_expire():
    """So that messages which never expire cost nothing."""
    buffer = ConsumerBuffer(1, QUEUE, 10)
    told = delivered(0, 5, 1, 3)
    buffer.deliver(1, told.messages)
    assert buffer.expires_at == NEVER
    more = delivered(0, 5, 4, 2)
    more.messages[1]["header"] = header(50)
    buffer.grant()
    buffer.deliver(4, more.messages)
    assert buffer.expires_at == 50
    assert not buffer.expired(49)
    assert buffer.expires_at == 50
    found = buffer.expired(50)
    assert found.as_list() == [{"first": 5, "last": 5}]
    buffer.drop(found)
    assert (buffer.count, buffer.due, buffer.expires_at) == (4, 1, NEVER)
    assert [buffer.take()[0] for _ in range(4)] == [1, 2, 3, 4]


def test_halves_of_a_set_of_deliveries():
    """Together they are the whole."""
    ranges = DeliveryRanges([(1, 3), (7, 7), (9, 12)])
    lower, higher = ranges.halves()
    assert list(lower.numbers()) == [1, 2, 3, 7]
    assert list(higher.numbers()) == [9, 10, 11, 12]


def test_the_time_of_the_log_is_never_told_later_than_it_is():
    """The fastest record is the best; what is a minute old says nothing any more."""
    now = [100.0]
    clock = LogClock(lambda: now[0])
    assert clock.now_us() == UNKNOWN
    clock.note(5_000_000)
    now[0] += 1
    assert clock.now_us() == 6_000_000
    for _ in range(3):
        clock.note(5_500_000)
        assert clock.now_us() == 6_000_000
    clock.note(6_200_000)
    assert clock.now_us() == 6_200_000
    for _ in range(3):
        now[0] += 31
        clock.note(3_000_000)
    assert clock.now_us() == 34_000_000


def test_the_log_says_when_a_prefetched_message_has_expired(connection, queue, pass_time):
    """On Kafka too: by the append times of the lane."""
    with connection.session(ack="CLIENT") as session:
        producer = session.producer(queue)
        producer.send("first")
        producer.send("short", time_to_live=1)
        producer.send("last")
        consumer = session.consumer(queue)
        assert consumer.receive(20).body == "first"
        pass_time(1.5)
        message = consumer.receive(20)
        assert message.body == "last"
        session.acknowledge()
        told = connection.admin.queue_status(queue)
        assert (told.message_count, told.expired) == (0, 1)
    assert isinstance(message, ledgermq.Message)
