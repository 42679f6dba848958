"""Completion callbacks: what they may end, whose thread they are in, who waits for them."""

import queue as threads_queue
import threading

import pytest

import ledgermq

ENDS = ["commit", "rollback", "close"]


def ending(session, call, found):
    """A callback that ends a session, and tells how that went."""

    def callback(_):
        try:
            getattr(session, call)()
            found.put("done")
        except ledgermq.IllegalStateError as error:
            found.put(str(error))

    return callback


@pytest.mark.parametrize("call", ENDS)
def test_ses_19_a_callback_cannot_end_its_own_session(connection, queue, call):
    """SES-19, decision 26: commit, rollback and close raise, before and after the outcome."""
    found = threads_queue.Queue()
    with connection.session(transacted=True) as session:
        session.producer(queue).send("x")
        future = session.commit_async()
        future.add_done_callback(ending(session, call, found))
        future.result(20)
        # That it is done already makes no difference.
        future.add_done_callback(ending(session, call, found))
        for _ in range(2):
            text = found.get(timeout=20)
            assert text.startswith(f"{call} cannot be called by a completion callback")
        assert not session.is_closed


def test_a_callback_that_would_do_nothing_yet_is_refused(connection, queue):
    """A coroutine function, as for listeners, and what cannot be called at all, by name."""

    async def later(_):
        """Nobody would await it."""

    with connection.session() as session:
        future = session.producer(queue).send_async("x")
        with pytest.raises(ledgermq.IllegalStateError, match="does nothing yet when it is called"):
            future.add_done_callback(later)
        with pytest.raises(ledgermq.ArgumentTypeError, match="callback is None"):
            future.add_done_callback(None)
        assert future.result(20).sequence == 0


@pytest.mark.parametrize("call", ["close"])
def test_ses_19_a_callback_of_a_send_cannot_close_its_session_or_connection(place, queue, call):
    """SES-19, decision 26: also where a transacted send is done at once."""
    found = threads_queue.Queue()
    with place.connect() as connection:
        with connection.session(transacted=True) as session:
            done = session.producer(queue).send_async("x")
            for one in (session, connection):
                done.add_done_callback(ending(one, call, found))
        with connection.session() as session:
            sent = session.producer(queue).send_async("x")
            for one in (session, connection):
                sent.add_done_callback(ending(one, call, found))
        for _ in range(4):
            assert "cannot be called by a completion callback" in found.get(timeout=20)
        assert not connection.is_closed


@pytest.mark.parametrize("call", ENDS)
def test_ses_19_other_sessions_are_free_in_a_callback(connection, queue, call):
    """SES-19, decision 26: of the same connection too, whether the send was done or not."""
    found = threads_queue.Queue()
    with connection.session() as session:
        producer = session.producer(queue)
        for _ in range(3):
            other = connection.session(transacted=True)
            other.producer(queue).send("by another")
            producer.send_async("x").add_done_callback(ending(other, call, found))
            assert found.get(timeout=20) == "done"
            other.close()


def test_a_callback_may_go_on_with_its_session(connection, queue):
    """It sends, and waits for the outcome, as a JMS completion listener may."""
    found = threads_queue.Queue()
    with connection.session() as session:
        producer = session.producer(queue)
        producer.send_async("x").add_done_callback(lambda _: found.put(producer.send("y").sequence))
        assert found.get(timeout=20) == 1


def test_ses_18_a_commit_waits_for_the_callbacks_of_those_before_it(connection, queue):
    """SES-18: when commit returns, they have returned."""
    entered, called = threading.Event(), []

    def callback(_):
        entered.wait(20)
        called.append(1)

    with connection.session(transacted=True) as session:
        for body in "ab":
            session.producer(queue).send(body)
            session.commit_async().add_done_callback(callback)
        entered.set()
        session.commit()
        assert called == [1, 1]


@pytest.mark.parametrize("ending", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
def test_a_callback_that_would_end_its_thread_does_not_keep_others_from_being_called(
    connection, queue, caplog, ending
):
    """Such as one that calls sys.exit(): commit would wait in vain for those behind it."""
    found = threads_queue.Queue()

    def fail(_):
        raise ending

    with connection.session() as session:
        producer, engine = session.producer(queue), session._engine
        with engine.lock:
            engine.callbacks.soon(lambda: fail(None))
            engine.callbacks.soon(lambda: found.put("called"))
        assert found.get(timeout=20) == "called"
        producer.send_async("x").add_done_callback(lambda _: found.put("called too"))
        assert found.get(timeout=20) == "called too"
    assert "a callback of the application failed" in caplog.text


def test_callbacks_that_no_thread_was_to_be_had_for_are_called_with_the_next_one(
    connection, queue, monkeypatch, caplog
):
    """The reader, which finds no thread, still tells everybody else what came."""
    found = threads_queue.Queue()
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == "ledgermq-callbacks":
            raise RuntimeError("can't start new thread")
        start(thread)

    with connection.session() as session:
        callbacks = session._engine.callbacks
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            callbacks.soon(lambda: found.put("first"))
        callbacks.soon(lambda: found.put("second"))
        assert [found.get(timeout=20) for _ in range(2)] == ["first", "second"]
    assert "can't start new thread" in caplog.text
