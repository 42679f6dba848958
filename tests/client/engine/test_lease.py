"""The lease by hand: nothing is handed over while it is not sure that the session is there."""

import dataclasses
import threading

import pytest

import ledgermq
from ledgermq.client.engine.lease import STANDSTILL_SECONDS
from ledgermq.protocol.operations import Alive, Get
from support.brokers.hand_made import Desk, accepted, delivered, ended

SUSPECT_SECONDS = 15.0


@pytest.fixture
def desk():
    """A router whose connection's last heartbeat on the log was written at 0."""
    made = Desk()
    made.log.heard_at = 0.0
    return made


@pytest.fixture
def engine(desk):
    """A session at it."""
    return desk.session(5)


@pytest.fixture
def lease(desk, engine):
    """That session's lease."""
    return desk.works[engine].lease


@pytest.fixture
def connection(route):
    """A connection whose last heartbeat on the log was written at 0; its clock stands still."""
    route.log.heard_at = 0.0
    with route.connected() as opened:
        yield opened


@pytest.fixture
def session(connection):
    """A session that is sure of itself until the clock is moved."""
    return connection.session(ack="CLIENT")


@pytest.fixture
def consumer(route, session):
    """A consumer with three messages in its buffer."""
    made = session.consumer("queue:q")
    route.tell(delivered(0, session.handle, 1, 3))
    with session._engine.lock:
        while made._shared.buffer.count < 3:
            assert session._engine.condition.wait(20)
    route.log.operations.clear()
    return made


def run_until(desk, engine, until):
    """The client runs until then; none of its heartbeats comes onto the log."""
    while desk.log.now < until:
        desk.log.now = min(desk.log.now + 1, until)
        engine.heard(desk.log.heard_at)


def asked(route):
    """How often the queue manager was asked whether the session is there."""
    return len(route.written(Alive))


def test_a_heartbeat_that_the_log_took_makes_sure_for_the_suspect_timeout(desk, engine, lease):
    """The queue manager suspects nobody sooner (H5)."""
    found = []
    for now, heard_at in ((14.9, 0.0), (15.0, 0.0), (15.0, 14.0)):
        run_until(desk, engine, now)
        found.append(lease.holds_locked())
        engine.heard(heard_at)
    assert found == [True, False, False]
    assert desk.log.kinds() == ["Alive"]


def test_a_heartbeat_in_time_renews_it(desk, engine, lease):
    """Also if it was written some time before; an older one does not shorten it."""
    run_until(desk, engine, 14.0)
    engine.heard(10.0)
    engine.heard(5.0)
    run_until(desk, engine, 24.9)
    assert lease.holds_locked()
    desk.log.now = 25.0
    assert not lease.holds_locked()


def test_it_begins_anew_when_the_question_was_written_and_not_when_it_was_answered(
    desk, engine, lease
):
    """The session may have been suspected right behind it."""
    log = desk.log
    log.now = 100.0
    assert not lease.holds_locked()
    assert not lease.holds_locked()
    assert log.kinds() == ["Alive"]
    run_until(desk, engine, 110.0)
    engine.take(accepted(7, 5, 1))
    for now, holds in ((114.9, True), (115.0, False)):
        run_until(desk, engine, now)
        assert lease.holds_locked() is holds
    assert log.kinds() == ["Alive", "Alive"]


@pytest.mark.parametrize("first", ["round", "receive"])
def test_a_client_that_stood_still_asks_though_its_heartbeat_is_on_the_log(
    desk, engine, lease, first
):
    """Somebody may have taken its connection over; whoever wakes first does not make it sure."""
    log = desk.log
    log.now = STANDSTILL_SECONDS
    if first == "round":
        engine.heard(0.0)
    assert not lease.holds_locked()
    engine.heard(log.now)
    assert not lease.holds_locked()
    engine.take(accepted(7, 5, 1))
    assert lease.holds_locked()
    assert log.kinds() == ["Alive"]


@pytest.mark.parametrize("first", ["round", "answer"])
def test_what_was_asked_before_a_standstill_does_not_make_sure(desk, engine, lease, first):
    """Its answer may be old; so it asks anew."""
    log = desk.log
    log.now = 10.0
    assert not lease.holds_locked()
    log.now = 13.0
    if first == "round":
        engine.heard(10.0)
    engine.take(accepted(7, 5, 1))
    assert not lease.holds_locked()
    engine.take(accepted(8, 5, 2))
    assert lease.holds_locked()
    assert log.kinds() == ["Alive", "Alive"]


def test_in_a_full_session_it_waits_for_room(desk, engine, lease):
    """What is pending is answered first."""
    while not engine.protocol.full:
        desk.write(engine, Alive)
    written = len(desk.log.operations)
    desk.log.now = 100.0
    assert not lease.holds_locked()
    assert len(desk.log.operations) == written


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_it_asks_once_before_it_hands_over(route, consumer, many):
    """What comes behind is sure with it."""
    route.log.now = SUSPECT_SECONDS
    got = consumer.receive_many(1, 20) if many else [consumer.receive(20)]
    got += [consumer.receive(20), consumer.receive(0)]
    assert [one.delivery for one in got] == [1, 2, 3]
    assert asked(route) == 1


def test_without_an_answer_receive_returns_in_time_and_the_message_stays(route, session, consumer):
    """Nobody knows whose it is; the next call waits for the same answer."""
    route.silent.add(Alive)
    route.log.now = SUSPECT_SECONDS
    session._engine.timeout_seconds = 0.01
    assert [consumer.receive(seconds) for seconds in (0.01, 0)] == [None, None]
    assert consumer.receive_many(3, 0.01) == []
    assert asked(route) == 1
    assert not session._work.settling.handed
    alive = route.written(Alive)[0]
    route.tell(accepted(50, session.handle, alive.session_sequence))
    assert consumer.receive(20).delivery == 1


def test_a_session_that_is_gone_hands_nothing_over(route, session, consumer):
    """Whoever waits for the answer hears of it."""
    route.log.now = SUSPECT_SECONDS
    route.silent.add(Alive)
    route.log.on_write = lambda _: route.tell(ended(50, session.handle))
    with pytest.raises(ledgermq.SessionLostError):
        consumer.receive(20)
    assert not session._work.settling.handed


def test_a_listener_is_called_once_it_is_sure(route, session, consumer):
    """With the first message."""
    route.log.now = SUSPECT_SECONDS
    found, done = [], threading.Event()

    def listener(message):
        found.append((message.delivery, asked(route)))
        if len(found) == 3:
            done.set()

    consumer.set_message_listener(listener)
    assert done.wait(20)
    assert found == [(1, 1), (2, 1), (3, 1)]


def test_a_session_with_a_listener_can_be_closed_while_nobody_answers(route, session, consumer):
    """The listener was not called."""
    called, asking = [], threading.Event()
    answer = route.log.on_write

    def write(operation):
        if isinstance(operation, Alive):
            asking.set()
        else:
            answer(operation)

    route.log.on_write = write
    route.log.now = SUSPECT_SECONDS
    consumer.set_message_listener(called.append)
    assert asking.wait(20)
    session.close()
    assert (asked(route), called) == (1, [])


def freezes_at(route, session, is_it):
    """The client stands still while such an operation is answered; then its session is gone."""
    answer, frozen = route.log.on_write, threading.Event()

    def write(operation):
        if frozen.is_set():
            route.tell(ended(50, session.handle))
            return
        if is_it(operation):
            route.log.now += SUSPECT_SECONDS
            frozen.set()
        answer(operation)

    route.log.on_write = write


def test_it_asks_again_when_it_was_frozen_while_it_told_of_a_doubt(route, session):
    """The answer may be old: what came behind it is not read yet."""
    consumer = session.consumer("queue:q")
    freezes_at(route, session, lambda one: isinstance(one, Alive))
    route.tell(dataclasses.replace(delivered(0, session.handle, 1, 1), in_doubt=True))
    with pytest.raises(ledgermq.SessionLostError):
        consumer.receive(20)
    assert not session._work.settling.handed


def is_withdrawal(operation):
    """Whether it asks for nothing any longer."""
    return isinstance(operation, Get) and operation.credit == 0


def crosses_a_withdrawal(route, session):
    """The next Get that withdraws credit crosses a message."""
    answer = route.log.on_write

    def write(operation):
        if is_withdrawal(operation):
            route.tell(delivered(0, session.handle, 1, 1))
        answer(operation)

    route.log.on_write = write


@pytest.mark.parametrize("way", ["receive", "receive_group"])
def test_it_asks_again_when_it_was_frozen_while_it_withdrew_its_request(route, session, way):
    """A message that crossed that is not handed over before its session is sure to be there."""
    consumer = session.consumer("queue:q", prefetch=0)
    crosses_a_withdrawal(route, session)
    freezes_at(route, session, is_withdrawal)
    with pytest.raises(ledgermq.SessionLostError):
        getattr(consumer, way)(0.01)
    assert not session._work.settling.handed


def test_what_crosses_a_withdrawal_is_handed_over_once_it_is_sure(route, session):
    """Its call asks, though its time is over: nobody else may have the message now."""
    consumer = session.consumer("queue:q", prefetch=0)
    crosses_a_withdrawal(route, session)
    route.log.operations.clear()
    route.log.now = SUSPECT_SECONDS
    assert consumer.receive(0.01).delivery == 1
    assert asked(route) == 1
