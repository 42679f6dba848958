"""Message listeners: serial delivery, acknowledgement after return, close, errors (SES-02..22)."""

import asyncio
import functools
import queue as threads_queue
import sys
import threading
import time

import pytest

import ledgermq
from ledgermq.client.engine import listening
from support.messages.bodies import put


def test_a_listener_gets_every_message_in_order(connection, queue):
    """Those that are there, and those that come later."""
    got = threads_queue.Queue()
    put(connection, queue, *(str(number) for number in range(300)))
    with connection.session() as session:
        consumer = session.consumer(queue, prefetch=20)
        consumer.set_message_listener(lambda message: got.put(message.body))
        put(connection, queue, "later")
        found = [got.get(timeout=20) for _ in range(301)]
        assert consumer.message_listener is not None
    assert found == [*(str(number) for number in range(300)), "later"]
    assert connection.admin.queue_status(queue).message_count == 0


def test_ses_04_the_listeners_of_a_session_are_called_one_at_a_time(connection, queue):
    """In one thread, whatever the number of consumers."""
    running, overlaps, got = threading.Lock(), [], threads_queue.Queue()

    def listener(message):
        if not running.acquire(blocking=False):
            overlaps.append(message)
            return
        time.sleep(0.01)
        running.release()
        got.put((message.destination, threading.get_ident()))

    put(connection, queue, *"abc")
    put(connection, queue + ".b", *"abc")
    with connection.session() as session:
        consumers = [session.consumer(queue), session.consumer(queue + ".b")]
        for consumer in consumers:
            consumer.set_message_listener(listener)
        found = [got.get(timeout=20) for _ in range(6)]
    assert not overlaps
    assert len({thread for _, thread in found}) == 1
    assert {destination for destination, _ in found} == {queue, queue + ".b"}


def test_ses_05_a_message_is_acknowledged_once_its_listener_has_returned(
    connection, queue, eventually
):
    """Not before: until then it stands in the queue as unacknowledged."""
    entered, leave = threading.Event(), threading.Event()

    def listener(_):
        entered.set()
        assert leave.wait(20)

    put(connection, queue, "a")
    with connection.session() as session:
        session.consumer(queue).set_message_listener(listener)
        assert entered.wait(20)
        assert connection.admin.queue_status(queue).unacknowledged == 1
        leave.set()
        eventually(lambda: connection.admin.queue_status(queue).message_count == 0)


@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK"])
def test_ses_05_what_a_listener_fails_on_comes_again(connection, queue, mode, caplog):
    """With its delivery count raised, before those behind it; the error is logged."""
    seen = threads_queue.Queue()

    def listener(message):
        seen.put((message.body, message.delivery_count))
        if message.delivery_count < 3:
            raise ValueError("not yet")

    put(connection, queue, "a", "b")
    with connection.session(ack=mode) as session:
        session.consumer(queue).set_message_listener(listener)
        found = [seen.get(timeout=20) for _ in range(6)]
    # What was behind it had not been seen, so its count is that of its own failures.
    assert found == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)]
    assert connection.admin.queue_status(queue).message_count == 0
    assert "not yet" in caplog.text


async def cancelling_itself():
    """What a coroutine does that gives up in the way of event loops."""
    asyncio.current_task().cancel()
    await asyncio.sleep(20)


@pytest.mark.parametrize(
    "fail", [lambda: asyncio.run(cancelling_itself()), sys.exit], ids=["cancelled", "exit"]
)
def test_ses_05_whatever_a_listener_raises_the_listeners_go_on(connection, queue, fail, caplog):
    """Also what is no Exception, and would end their thread: its message comes again."""
    seen = threads_queue.Queue()

    def listener(message):
        seen.put((message.body, message.delivery_count))
        if message.delivery_count == 1:
            fail()

    put(connection, queue, "a", "b")
    with connection.session() as session:
        session.consumer(queue).set_message_listener(listener)
        found = [seen.get(timeout=20) for _ in range(4)]
    assert found == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert connection.admin.queue_status(queue).message_count == 0
    assert "the listener of" in caplog.text


async def coroutine_function(message):
    """Does nothing before it is awaited."""


def generator_function(message):
    """Does nothing before somebody iterates."""
    yield message


class CoroutineObject:
    """Can be called as a coroutine function."""

    async def __call__(self, message):
        """Does nothing before it is awaited."""


@pytest.mark.parametrize(
    "late",
    [
        coroutine_function,
        functools.partial(coroutine_function),
        generator_function,
        CoroutineObject(),
    ],
    ids=["coroutine", "partial", "generator", "object"],
)
def test_a_listener_that_would_do_nothing_yet_is_refused(connection, queue, late):
    """Its message would be acknowledged, and nobody would have worked on it."""
    with connection.session() as session:
        consumer = session.consumer(queue)
        with pytest.raises(ledgermq.IllegalStateError, match="does nothing yet"):
            consumer.set_message_listener(late)
        put(connection, queue, "a")
        assert consumer.receive(20).body == "a"


def test_ses_05_a_listener_that_returns_a_coroutine_has_failed(connection, queue, caplog):
    """A lambda around a coroutine function has not begun with its work either."""
    seen, coroutines = threads_queue.Queue(), iter([coroutine_function("a"), None])

    def listener(message):
        seen.put(message.delivery_count)
        return next(coroutines)

    put(connection, queue, "a")
    with connection.session() as session:
        session.consumer(queue).set_message_listener(listener)
        assert [seen.get(timeout=20) for _ in range(2)] == [1, 2]
    assert connection.admin.queue_status(queue).message_count == 0
    assert "returned a coroutine" in caplog.text


def test_failures_in_a_row_make_the_pauses_longer(connection, queue, monkeypatch):
    """A message that nobody can process must not keep a processor busy."""
    monkeypatch.setattr(listening, "PAUSE_FIRST_SECONDS", 0.02)
    times, enough = [], threading.Event()

    def listener(_):
        times.append(time.monotonic())
        if len(times) >= 5:
            enough.set()
        raise ValueError("never")

    put(connection, queue, "a")
    session = connection.session()
    session.consumer(queue).set_message_listener(listener)
    assert enough.wait(20)
    session.close()
    assert times[4] - times[3] > times[1] - times[0]
    assert connection.admin.queue_status(queue).message_count == 1


def test_ses_12_a_listener_commits_its_transacted_session(connection, queue):
    """What it got and what it sent, as one."""
    done = threading.Event()
    put(connection, queue, "a", "b")
    with connection.session(transacted=True) as session:
        target = session.producer(queue + ".out")

        def listener(message):
            target.send(message.body.upper())
            if message.body == "b":
                session.commit()
                done.set()

        session.consumer(queue).set_message_listener(listener)
        assert done.wait(20)
    assert [one.body for one in connection.browser(queue + ".out")] == ["A", "B"]
    assert connection.admin.queue_status(queue).message_count == 0


def test_a_client_listener_acknowledges_or_recovers(connection, queue):
    """SES-06, SES-28: both from within the listener."""
    seen = threads_queue.Queue()
    put(connection, queue, "a", "b")
    with connection.session(ack="CLIENT") as session:

        def listener(message):
            seen.put((message.body, message.delivery_count))
            if message.delivery_count == 1:
                session.recover()
            else:
                message.acknowledge()

        session.consumer(queue).set_message_listener(listener)
        found = [seen.get(timeout=20) for _ in range(4)]
    assert found == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert connection.admin.queue_status(queue).message_count == 0


def test_ses_02_other_threads_may_not_use_the_session(connection, queue):
    """It belongs to the thread of its listeners, until the last one is taken away."""
    with connection.session() as session:
        consumer, producer = session.consumer(queue), session.producer(queue)
        consumer.set_message_listener(lambda _: None)
        with pytest.raises(ledgermq.IllegalStateError, match="listeners, whose thread"):
            producer.send("x")
        with pytest.raises(ledgermq.IllegalStateError, match=r"listeners"):
            consumer.receive(0)
        consumer.set_message_listener(None)
        producer.send("x")
        assert consumer.receive(20).body == "x"
        assert consumer.message_listener is None


@pytest.mark.parametrize("leave", ["set_message_listener", "close"])
def test_ses_02_after_its_last_listener_a_session_is_used_at_once(connection, queue, leave):
    """Without a moment in which it still belongs to the thread that called it."""
    with connection.session(transacted=True) as session, connection.session() as other:
        producer = other.producer(queue)
        for _ in range(20):
            consumer, got = session.consumer(queue), threading.Event()
            consumer.set_message_listener(lambda _, got=got: got.set())
            producer.send("x")
            assert got.wait(20)
            if leave == "close":
                consumer.close()
            else:
                consumer.set_message_listener(None)
            assert session.commit().consumed == 1
            consumer.close()


def test_a_consumer_is_closed_in_the_pause_of_its_listener(connection, queue, monkeypatch):
    """Nothing runs that it would have to wait for, and the session is free."""
    monkeypatch.setattr(listening, "PAUSE_FIRST_SECONDS", 3600.0)
    monkeypatch.setattr(listening, "PAUSE_MAX_SECONDS", 3600.0)
    failed = threading.Event()

    def listener(_):
        failed.set()
        raise ValueError

    put(connection, queue, "a")
    with connection.session() as session:
        consumer = session.consumer(queue)
        consumer.set_message_listener(listener)
        assert failed.wait(20)
        consumer.close()
        again = session.consumer(queue).receive(20)
        assert (again.body, again.delivery_count) == ("a", 2)


def test_a_listener_that_is_set_again_at_once_is_served(connection, queue):
    """Whatever the thread of the session was about to do."""
    with connection.session() as session, connection.session() as other:
        consumer, producer = session.consumer(queue), other.producer(queue)
        for number in range(50):
            got = threading.Event()
            consumer.set_message_listener(lambda _, got=got: got.set())
            producer.send(str(number))
            assert got.wait(20), number
            consumer.set_message_listener(None)


@pytest.mark.parametrize("what", ["session", "consumer"])
def test_ses_21_close_waits_for_the_listener_in_progress(connection, queue, what):
    """And the message that it has counts as handed over."""
    entered, leave, left = threading.Event(), threading.Event(), threading.Event()

    def listener(_):
        entered.set()
        assert leave.wait(20)
        left.set()

    put(connection, queue, "a", "b")
    session = connection.session()
    consumer = session.consumer(queue)
    consumer.set_message_listener(listener)
    assert entered.wait(20)
    closing = threading.Thread(target=(session if what == "session" else consumer).close)
    closing.start()
    closing.join(0.3)
    assert closing.is_alive()
    leave.set()
    closing.join(20)
    assert not closing.is_alive()
    assert left.is_set()
    session.close()
    assert [one.body for one in connection.browser(queue)] == ["b"]


@pytest.mark.parametrize("mode", ["AUTO", "CLIENT", "TRANSACTED"])
@pytest.mark.parametrize("what", ["session", "connection"])
def test_ses_21_a_listener_has_its_session_until_it_returns(
    own_connection, connection, queue, eventually, what, mode
):
    """Whoever closes meanwhile waits for it, so it can send and settle; nothing else is called."""
    entered, said = threading.Event(), []

    def listener(message):
        entered.set()
        eventually(lambda: session.is_closed)
        assert session.ack_mode == mode
        producer.send(message.body + "'")
        assert [one.body for one in session.browser(queue)] == []
        if mode == "TRANSACTED":
            said.append(session.commit().consumed)
        message.acknowledge()
        consumer.set_message_listener(None)
        said.append(message.body)

    session = own_connection.session(ack=mode)
    consumer, producer = session.consumer(queue), session.producer(queue + ".out")
    put(connection, queue, "a", "b")
    consumer.set_message_listener(listener)
    assert entered.wait(20)
    (session if what == "session" else own_connection).close()
    assert said == ([1, "a"] if mode == "TRANSACTED" else ["a"])
    with pytest.raises(ledgermq.IllegalStateError, match="closed"):
        producer.send("x")
    left = [(one.body, one.delivery_count) for one in connection.browser(queue)]
    assert left == [("b", 1)]
    assert [one.body for one in connection.browser(queue + ".out")] == ["a'"]


def test_ses_21_a_connection_that_is_closed_lets_no_listener_begin_again(
    own_connection, connection, queue, eventually
):
    """All of its sessions with listeners end at once; what they have not begun goes back unseen."""
    begun, leave = [], threading.Event()

    def listener(message):
        begun.append(message.body)
        assert leave.wait(60)

    put(connection, queue, *"abcd")
    sessions = [own_connection.session() for _ in range(2)]
    for session in sessions:
        session.consumer(queue, prefetch=1).set_message_listener(listener)
    eventually(lambda: len(begun) == 2)
    closing = threading.Thread(target=own_connection.close)
    closing.start()
    eventually(lambda: all(session.is_closed for session in sessions))
    leave.set()
    closing.join(60)
    assert len(begun) == 2
    left = [(one.body, one.delivery_count) for one in connection.browser(queue)]
    assert left == [("c", 1), ("d", 1)]


def test_ses_21_a_listener_has_the_other_sessions_until_it_returns(
    own_connection, connection, queue, eventually
):
    """Those without listeners are closed last, whichever was opened first."""
    entered = threading.Event()

    def listener(message):
        entered.set()
        eventually(lambda: session.is_closed)
        for producer in producers:
            producer.send(message.body)

    first, session, last = (own_connection.session() for _ in range(3))
    producers = [one.producer(queue + ".out") for one in (first, last)]
    put(connection, queue, "a")
    session.consumer(queue).set_message_listener(listener)
    assert entered.wait(20)
    own_connection.close()
    assert [one.body for one in connection.browser(queue + ".out")] == ["a", "a"]
    assert connection.admin.queue_status(queue).message_count == 0


def test_ses_21_a_connection_that_is_closed_keeps_no_listener_waiting_for_a_message(
    own_connection, connection, queue, eventually
):
    """What waits in another session of it goes on with None, now and for each further wait."""
    entered, said = threading.Event(), []

    def listener(message):
        entered.set()
        said.append(requestor.request(message.body))
        said.append(requestor.request(message.body))

    requestor = own_connection.session().requestor(queue + ".nobody")
    session = own_connection.session()
    put(connection, queue, "a")
    session.consumer(queue).set_message_listener(listener)
    assert entered.wait(20)
    closing = threading.Thread(target=own_connection.close)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
    assert said == [None, None]
    assert connection.admin.queue_status(queue).message_count == 0


@pytest.mark.parametrize("what", ["session", "connection"])
def test_ses_22_a_listener_cannot_close_its_own_session(connection, queue, what):
    """Nor the connection: it would wait for itself. Both stay as they were."""
    found = threads_queue.Queue()

    def listener(message):
        try:
            (session if what == "session" else connection).close()
        except ledgermq.IllegalStateError as error:
            found.put((message.body, str(error)))

    put(connection, queue, "a", "b")
    with connection.session() as session:
        session.consumer(queue).set_message_listener(listener)
        texts = [found.get(timeout=20) for _ in range(2)]
    assert [body for body, _ in texts] == ["a", "b"]
    assert "close it elsewhere" in texts[0][1]
    assert not connection.is_closed


def test_a_listener_may_close_its_consumer(connection, queue):
    """Nothing more comes; what was prefetched goes back unseen."""
    calls, closed = [], threading.Event()
    put(connection, queue, "a", "b")
    with connection.session() as session:
        consumer = session.consumer(queue)

        def listener(message):
            calls.append(message.body)
            consumer.close()
            closed.set()

        consumer.set_message_listener(listener)
        assert closed.wait(20)
    assert calls == ["a"]
    assert [(one.body, one.delivery_count) for one in connection.browser(queue)] == [("b", 1)]


def test_a_closed_consumer_takes_no_listener(connection, queue):
    """Nor does one of a closed session."""
    with connection.session() as session:
        consumer = session.consumer(queue)
        consumer.close()
        with pytest.raises(ledgermq.IllegalStateError, match="closed"):
            consumer.set_message_listener(print)
        other = session.consumer(queue)
    with pytest.raises(ledgermq.IllegalStateError, match="closed"):
        other.set_message_listener(print)
