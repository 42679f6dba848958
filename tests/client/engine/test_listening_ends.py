"""How message listeners begin, fail and end, by hand: whose the session is, who is told."""

import logging
import threading

import pytest

import ledgermq
from ledgermq.client.engine import listening as module
from ledgermq.protocol.operations import Acknowledge, CloseConsumer, Get, Recover
from support.brokers.hand_made import delivered


def deliver(route, session, first, count=1, consumer=1):
    """Lets a consumer of the session have messages."""
    route.tell(delivered(0, session.handle, first, count, consumer))


def wait_until(core, holds):
    """Waits for news of the session until something holds."""
    with core.lock:
        while not holds():
            assert core.condition.wait(20), "nothing happened"


def test_the_session_is_the_listeners_until_the_last_was_taken_away(route, by_hand):
    """SES-02: meanwhile `receive` is refused, to the listeners too, and afterwards it works."""
    session = by_hand.session()
    consumer, other = session.consumer("queue:a"), session.consumer("queue:b")
    said = []

    def listener(message):
        try:
            other.receive(0)
        except ledgermq.IllegalStateError as error:
            said.append(str(error))
        other.set_message_listener(None)
        consumer.set_message_listener(None)

    other.set_message_listener(print)
    consumer.set_message_listener(listener)
    assert (consumer.message_listener, other.message_listener) == (listener, print)
    with pytest.raises(ledgermq.IllegalStateError, match="the session has message listeners"):
        consumer.receive(0)
    deliver(route, session, 1)
    wait_until(session._engine, lambda: not session._work.listening.active)
    assert "set_message_listener(None)" in said[0]
    assert (consumer.message_listener, other.message_listener) == (None, None)
    deliver(route, session, 2)
    assert consumer.receive(20).delivery == 2


def test_a_listener_is_replaced_in_place(route, by_hand):
    """The next message goes to the new one, in the same thread."""
    session = by_hand.session(ack="CLIENT")
    consumer = session.consumer("queue:a")
    calls, done = [], threading.Event()

    def second(message):
        calls.append(("second", message.delivery, threading.get_ident()))
        done.set()

    def first(message):
        calls.append(("first", message.delivery, threading.get_ident()))
        consumer.set_message_listener(second)

    consumer.set_message_listener(first)
    deliver(route, session, 1, 2)
    assert done.wait(20)
    assert [call[:2] for call in calls] == [("first", 1), ("second", 2)]
    assert len({call[2] for call in calls}) == 1
    assert route.written(Acknowledge) == []
    session.close()
    assert session._work.settling.handed.as_list() == [{"first": 1, "last": 2}]


def test_the_oldest_delivery_of_all_consumers_is_next(route, by_hand):
    """SES-04: a session has one order."""
    session = by_hand.session()
    consumers = [session.consumer(f"queue:{name}") for name in "ab"]
    order, done = [], threading.Event()

    def listener(message):
        order.append((message.destination, message.delivery))
        if len(order) == 4:
            done.set()

    for first, count, number in ((1, 1, 2), (2, 2, 1), (4, 1, 2)):
        deliver(route, session, first, count, number)
    with by_hand.session() as other:
        other.producer("queue:c").close()
    for consumer in consumers:
        session._engine.run(consumer._shared.ask())
    with session._engine.lock:
        for consumer in consumers:
            session._work.listening._listeners[consumer._shared] = listener
        session._work.listening.set_locked(consumers[0]._shared, listener)
    assert done.wait(20)
    assert order == [("queue:b", 1), ("queue:a", 2), ("queue:a", 3), ("queue:b", 4)]


def test_a_listener_that_fails_gets_its_message_again_after_a_pause_that_grows(
    route, by_hand, monkeypatch, caplog
):
    """AUTO: 0.05 seconds first, twice as long each time up to 5; a success begins anew."""
    session = by_hand.session()
    core, consumer = session._engine, session.consumer("queue:a")
    # No machine has been running for so long: its own waits are told apart.
    now, deadlines = [1e9], []
    wait_locked = core.wait_locked

    class Clock:
        monotonic = staticmethod(lambda: now[0])

    def wait(deadline, **claims):
        if deadline is None or deadline < now[0]:
            return wait_locked(deadline, **claims)
        deadlines.append(round(deadline - now[0], 3))
        return False

    monkeypatch.setattr(module, "time", Clock)
    monkeypatch.setattr(core, "wait_locked", wait)
    done, calls = threading.Event(), []

    def listener(message):
        calls.append(message.delivery)
        if message.delivery == 11:
            done.set()
        if message.delivery not in (9, 11):
            deliver(route, session, message.delivery + 1)
            raise ValueError("not this one")
        if message.delivery == 9:
            deliver(route, session, 10)

    # What is delivered before a Recover is answered would go back with it.
    monkeypatch.setattr(session._work.settling, "return_failed", lambda *_: iter(()))
    consumer.set_message_listener(listener)
    deliver(route, session, 1)
    assert done.wait(20)
    assert calls == list(range(1, 12))
    assert deadlines == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 0.05]
    assert caplog.text.count("the listener of queue:a failed on Message(") == 9


@pytest.mark.parametrize(("mode", "recovers"), [("AUTO", 1), ("DUPS_OK", 1), ("CLIENT", 0)])
def test_what_a_listener_failed_on_goes_back_where_the_library_acknowledges(
    route, by_hand, mode, recovers
):
    """In the other modes the application settles, also after an error."""
    session = by_hand.session(ack=mode)
    consumer = session.consumer("queue:a")
    done = threading.Event()

    def listener(message):
        if message.delivery == 1:
            deliver(route, session, 2)
            raise ValueError("not this one")
        done.set()

    answer = route.log.on_write

    def write(operation):
        answer(operation)
        if isinstance(operation, Recover):
            deliver(route, session, 3)

    route.log.on_write = write
    consumer.set_message_listener(listener)
    deliver(route, session, 1)
    assert done.wait(20)
    assert [one.seen for one in route.written(Recover)] == [[{"first": 1, "last": 1}]] * recovers
    handed = [{"first": 1, "last": 2}] if mode == "CLIENT" else []
    assert session._work.settling.handed.as_list() == handed


def test_a_listener_that_ends_its_thread_lets_its_consumer_close(route, by_hand, monkeypatch):
    """SES-21: whoever waits for it goes on, and the session is everybody's again."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    session = by_hand.session()
    core, consumer = session._engine, session.consumer("queue:a")
    inside = threading.Event()

    def listener(message):
        inside.set()
        waits = False
        while not waits:
            with core.lock:
                waits = consumer._closed
        raise SystemExit

    consumer.set_message_listener(listener)
    deliver(route, session, 1)
    assert inside.wait(20)
    consumer.close()
    assert not session._work.listening.active
    assert session._work.listening._busy_with is None
    assert core.owner is None
    assert len(route.written(CloseConsumer)) == 1
    assert consumer.is_closed
    session.consumer("queue:b")


def test_a_lost_session_ends_its_listeners_and_says_so(route, by_hand, caplog):
    """When it is told, the session is theirs no more; a normal end is not worth a word."""
    session = by_hand.session()
    consumer = session.consumer("queue:a")
    active = []

    class Watching(logging.Handler):
        def emit(self, record):
            if "the listeners of session" in record.getMessage():
                active.append(session._work.listening.active)

    watching = Watching()
    module.LOGGER.addHandler(watching)
    try:
        consumer.set_message_listener(print)
        thread = session._work.listening._thread
        session._engine.forget("gone")
        thread.join(20)
    finally:
        module.LOGGER.removeHandler(watching)
    assert active == [False]
    assert consumer.message_listener is print
    other = by_hand.session()
    other.consumer("queue:a").set_message_listener(print)
    caplog.clear()
    other.close()
    assert not caplog.records


def test_an_error_in_the_listeners_thread_is_raised_by_the_next_call(route, by_hand, caplog):
    """Nobody waits there: that giving a message back had no outcome ends the listeners."""
    session = by_hand.session()
    consumer = session.consumer("queue:a")
    session._engine.timeout_seconds = 0.02
    route.silent.add(Recover)
    consumer.set_message_listener(lambda _: 1 / 0)
    deliver(route, session, 1)
    wait_until(session._engine, lambda: not session._work.listening.active)
    assert "the listeners of session 2 end" in caplog.text
    assert "no outcome of Recover" in caplog.text
    with pytest.raises(ledgermq.OutcomeUnknownError, match="Recover"):
        consumer.receive(0)


@pytest.mark.parametrize("use", ["set", "receive", "many", "close"])
def test_a_closed_consumer_has_no_listener_and_gets_nothing(route, by_hand, use):
    """Closing it again does nothing."""
    session = by_hand.session()
    consumer = session.consumer("queue:a")
    consumer.close()
    calls = {
        "set": lambda: consumer.set_message_listener(print),
        "receive": lambda: consumer.receive(0),
        "many": lambda: consumer.receive_many(1, 0),
    }
    if use == "close":
        consumer.close()
    else:
        with pytest.raises(ledgermq.IllegalStateError, match="consumer is closed"):
            calls[use]()
    assert len(route.written(CloseConsumer)) == 1
    assert consumer.is_closed


def test_closing_the_last_consumer_ends_the_listeners_even_if_nobody_answers(route, by_hand):
    """SES-21: their thread does not wait for the outcome of the close."""
    session = by_hand.session()
    consumer = session.consumer("queue:a")
    consumer.set_message_listener(print)
    thread = session._work.listening._thread
    with session._engine.lock:
        while not route.written(Get):
            assert session._engine.condition.wait(20)
    route.silent.add(CloseConsumer)
    with pytest.raises(ledgermq.OutcomeUnknownError, match="CloseConsumer"):
        consumer.close(timeout=0.02)
    thread.join(20)
    assert not thread.is_alive()


def test_a_listener_set_beside_another_one_gets_messages_without_further_news(route, by_hand):
    """The thread that waits is told of it, and asks for its messages."""
    session = by_hand.session()
    first, second = session.consumer("queue:a"), session.consumer("queue:b")
    first.set_message_listener(print)
    with session._engine.lock:
        while session._engine.protocol.pending or not route.written(Get):
            assert session._engine.condition.wait(20)
    asked = threading.Event()
    answer = route.log.on_write

    def write(operation):
        answer(operation)
        if isinstance(operation, Get) and operation.consumer == 2:
            asked.set()

    route.log.on_write = write
    second.set_message_listener(print)
    assert asked.wait(20)


def test_a_listener_that_no_thread_was_to_be_had_for_can_be_set_again(route, by_hand, monkeypatch):
    """The first try changed nothing; the second one was taken, and nobody was ever called."""
    session = by_hand.session()
    consumer = session.consumer("queue:q")

    def refuse(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            consumer.set_message_listener(lambda _: None)
    assert consumer.message_listener is None
    got = threading.Event()
    consumer.set_message_listener(lambda _: got.set())
    deliver(route, session, 1)
    assert got.wait(20)
    session.close()
