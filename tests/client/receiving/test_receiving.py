"""Tests of consumers: order, time-outs, iteration, prefetch, closing from another thread."""

import threading
import time

import pytest

import ledgermq


def fill(connection, queue, bodies, **settings):
    """Puts bodies to a queue."""
    with connection.session() as session:
        producer = session.producer(queue)
        for body in bodies:
            producer.send_async(body, **settings)
        producer.flush()


def written_by(connection):
    """The number of the last operation of each session; the log itself also grows by ticks."""
    return {
        one.session: one.last_sequence
        for one in connection.admin.sessions()
        if one.connection == connection.identity
    }


def test_messages_come_by_priority_then_in_order(connection, queue):
    """Priority 9 first; within a priority by sequence number."""
    with connection.session() as session:
        producer = session.producer(queue)
        for number, priority in enumerate([4, 9, 0, 4, 9]):
            producer.send(str(number), priority=priority)
        consumer = session.consumer(queue)
        found = [consumer.receive(20).body for _ in range(5)]
    assert found == ["1", "4", "0", "3", "2"]


def test_receive_without_a_message_returns_none_and_leaves_its_request_standing(connection, queue):
    """After a time-out the next message still comes, without a further request on the log."""
    with connection.session() as session, connection.session() as other:
        consumer = session.consumer(queue)
        assert consumer.receive(0.3) is None
        assert consumer.receive(0) is None
        before = written_by(connection)
        assert consumer.receive(0.3) is None
        assert written_by(connection) == before
        other.producer(queue).send("late")
        assert consumer.receive(20).body == "late"


def test_iteration_ends_when_the_queue_is_idle(connection, queue):
    """`until_idle` yields what is there and stops once nothing has come for a while."""
    fill(connection, queue, [str(number) for number in range(700)])
    with connection.session() as session:
        found = [int(one.body) for one in session.consumer(queue, prefetch=50).until_idle(1.0)]
    assert found == list(range(700))


def test_iteration_ends_when_the_consumer_is_closed(connection, queue):
    """A plain `for` goes on until consumer or session close."""
    fill(connection, queue, ["a", "b", "c"])
    with connection.session() as session, session.consumer(queue) as consumer:
        found = []
        for message in consumer:
            found.append(message.body)
            if len(found) == 3:
                consumer.close()
    assert found == ["a", "b", "c"]


def test_receive_many_takes_what_is_there(connection, queue):
    """It waits for the first message only, and never returns more than asked for."""
    fill(connection, queue, [str(number) for number in range(25)])
    with connection.session() as session:
        consumer = session.consumer(queue)
        found = []
        while len(found) < 25:
            some = consumer.receive_many(10, 20)
            assert 1 <= len(some) <= 10
            found += [int(one.body) for one in some]
        assert found == list(range(25))
        assert consumer.receive_many(10, 0.2) == []
        with pytest.raises(ledgermq.IllegalStateError):
            consumer.receive_many(0)


def test_with_a_prefetch_of_one_others_get_the_rest(connection, queue):
    """A consumer that holds one message leaves the next to another consumer."""
    fill(connection, queue, ["a", "b"])
    with connection.session(transacted=True) as one, connection.session(transacted=True) as other:
        first = one.consumer(queue, prefetch=1).receive(20)
        second = other.consumer(queue, prefetch=1).receive(20)
        assert [first.body, second.body] == ["a", "b"]


def test_closing_a_consumer_gives_back_what_nobody_saw(connection, queue):
    """Prefetched messages go to the next consumer, undelivered as far as counts tell."""
    fill(connection, queue, [str(number) for number in range(10)])
    with connection.session() as session:
        with session.consumer(queue, prefetch=10) as consumer:
            assert consumer.receive(20).body == "0"
        with session.consumer(queue, prefetch=10) as consumer:
            found = [consumer.receive(20) for _ in range(9)]
    assert [one.body for one in found] == [str(number) for number in range(1, 10)]
    assert not any(one.redelivered for one in found)


def test_a_consumer_that_was_dropped_keeps_nothing_from_the_next_one(connection, queue):
    """Nobody can receive from it any more, but what it had asked for was on its way to it."""
    fill(connection, queue, "abc")
    with connection.session() as session:
        found = [session.consumer(queue).receive(20).body for _ in "abc"]
    assert found == ["a", "b", "c"]


@pytest.mark.parametrize("settle", ["acknowledge", "commit"])
def test_a_consumer_that_was_dropped_is_closed_without_further_calls(
    connection, queue, eventually, settle
):
    """Once its message is settled, as it may keep a group together; then others get the rest."""
    fill(connection, queue, "ab")
    with connection.session(ack="CLIENT", transacted=settle == "commit") as session:
        assert session.consumer(queue).receive(20).body == "a"
        time.sleep(1.2)  # two rounds of the heartbeats
        assert connection.admin.queue_status(queue).receivers == 1
        getattr(session, settle)()
        eventually(lambda: connection.admin.queue_status(queue).receivers == 0)
        with connection.session() as other:
            assert other.consumer(queue).receive(20).body == "b"


def test_a_dropped_consumer_with_a_listener_goes_on(connection, queue):
    """The session has the listener, which may be all that the application is for."""
    got = threading.Event()
    with connection.session() as session:
        session.consumer(queue).set_message_listener(lambda _: got.set())
        time.sleep(1.2)  # two rounds of the heartbeats
        fill(connection, queue, "a")
        assert got.wait(20)


def test_a_dropped_consumer_of_a_topic_keeps_its_subscription(connection, named):
    """Which would end with it, and with it what is published meanwhile."""
    topic, shared = f"topic:{named}", {"subscription": "s", "shared": True}
    with connection.session() as session:
        session.consumer(topic, **shared)
        time.sleep(1.2)  # two rounds of the heartbeats
        session.producer(topic).send("a")
        assert session.consumer(topic, **shared).receive(20).body == "a"


def test_a_coroutine_s_consumer_that_was_dropped_keeps_nothing_either(run, queue):
    """As a thread's."""

    async def work(connection):
        async with connection.session() as session:
            for body in "abc":
                await session.producer(queue).send(body)
            return [(await (await session.consumer(queue)).receive(20)).body for _ in "abc"]

    assert run(work) == ["a", "b", "c"]


def test_messages_that_cross_the_close_of_their_consumer_are_not_kept_back(connection, queue):
    """Credit granted just before a close brings messages that nobody will take; all go back."""
    fill(connection, queue, [str(number) for number in range(2_000)])
    seen = []
    with connection.session() as session:
        while len(seen) < 2_000:
            # Closing right after the grant of more makes deliveries cross the close.
            with session.consumer(queue, prefetch=20) as consumer:
                for _ in range(min(10 + len(seen) % 7, 2_000 - len(seen))):
                    message = consumer.receive(20)
                    assert message is not None, f"only {len(seen)} came"
                    seen.append(int(message.body))
    assert seen == list(range(2_000))


@pytest.mark.parametrize("what", ["consumer", "session", "connection"])
def test_close_from_another_thread_ends_a_receive_that_waits(place, queue, what):
    """The blocked call returns None, whatever of the three is closed (SES-01, SES-21)."""
    connection = place.connect()
    session = connection.session()
    consumer = session.consumer(queue)
    found = []
    waiting = threading.Thread(target=lambda: found.append(consumer.receive()))
    waiting.start()
    while session._engine._user is None:
        pass
    {"consumer": consumer, "session": session, "connection": connection}[what].close()
    waiting.join(20)
    assert found == [None]
    connection.close()


def test_use_by_two_threads_at_once_is_refused(connection, queue):
    """While one thread waits in a session, another one cannot send through it (SES-01)."""
    with connection.session() as session:
        consumer = session.consumer(queue)
        producer = session.producer(queue)
        waiting = threading.Thread(target=consumer.receive, args=(20,))
        waiting.start()
        while session._engine._user is None:
            pass
        with pytest.raises(ledgermq.IllegalStateError, match="another thread"):
            producer.send("x")
        with connection.session() as other:
            other.producer(queue).send("x")
        waiting.join(20)


def test_sessions_in_many_threads_share_a_connection(connection, queue):
    """Sixteen threads, each with its own session, send and get without mixing anything up."""
    bodies = [[f"{thread}/{number}" for number in range(40)] for thread in range(16)]
    found: list[str] = []

    def work(mine: list[str]) -> None:
        with connection.session() as session:
            producer, consumer = session.producer(queue), session.consumer(queue, prefetch=1)
            for body in mine:
                producer.send(body)
                found.append(consumer.receive(60).body)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(found) == sorted(body for mine in bodies for body in mine)


def test_a_queue_with_gets_disabled_takes_messages_and_delivers_none(connection, queue):
    """Delivery goes on where it stopped when the queue is resumed."""
    connection.admin.create_queue(queue)
    connection.admin.suspend_queue(queue)
    with connection.session() as session:
        session.producer(queue).send("x")
        consumer = session.consumer(queue)
        assert consumer.receive(0.5) is None
        connection.admin.resume_queue(queue)
        assert consumer.receive(20).body == "x"


def test_prefetch_0_asks_no_longer_after_a_time_out(connection, queue):
    """So a message goes to whoever waits for it, not to whoever waited once."""
    with connection.session() as first, connection.session() as second:
        idle = first.consumer(queue, prefetch=0)
        assert idle.receive(0.1) is None
        status = connection.admin.queue_status(queue.partition(":")[2])
        first.producer(queue).send("x")
        assert (status.receivers, status.current) == (1, 0)
        waiting = second.consumer(queue, prefetch=0)
        assert waiting.receive(20).body == "x"
        assert idle.receive(0) is None
        first.producer(queue).send("y")
        assert idle.receive(20).body == "y"


def test_competing_consumers_with_prefetch_0_get_messages_in_the_order_of_their_calls(
    connection, queue
):
    """None of them holds what another could have."""
    fill(connection, queue, [str(number) for number in range(6)])
    with connection.session() as first, connection.session() as second:
        consumers = [one.consumer(queue, prefetch=0) for one in (first, second)]
        found = [consumers[turn % 2].receive(20).body for turn in range(6)]
    assert found == ["0", "1", "2", "3", "4", "5"]
