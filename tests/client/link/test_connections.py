"""Connections over a route by hand, or in memory: opening, the reader, administration, the end."""

import dataclasses
import importlib
import pkgutil
import threading
import time

import pytest

import ledgermq
from ledgermq import client
from ledgermq.client import running_connection as module
from ledgermq.protocol.operations import Alive, Close, CreateQueue, Open, OpenConsumer, Put
from ledgermq.testing import MemoryBroker
from support.brokers.hand_made import ended
from support.brokers.hand_route import HandRoute


def hurry(connection):
    """Gives later calls on a connection a twentieth of a second."""
    running = connection._running
    running.settings = dataclasses.replace(running.settings, timeout_seconds=0.05)
    running.control.timeout_seconds = 0.05
    running.questions.timeout_seconds = 0.05


def closing(connection):
    """Ends it without waiting for anybody."""
    connection._running.stop(0.0)


# -- opening -----------------------------------------------------------------------------------


def test_a_connection_opens_a_session_for_itself_and_confirms_it(route):
    """H16: an Open alone ends after 30 seconds; Alive behind it makes the session stay."""
    with route.connect(client_id="me", takeover="t", application="shop") as connection:
        session = connection.session(ack="CLIENT")
        first, alive, second, again = route.log.operations[:4]
    assert (type(first), type(second)) == (Open, Open)
    assert [(type(one), one.session, one.session_sequence) for one in (alive, again)] == [
        (Alive, 0, 1),
        (Alive, 2, 1),
    ]
    assert session._engine.handle == 2
    assert (first.acknowledge_mode, second.acknowledge_mode) == ("AUTO", "CLIENT")
    assert (first.connection, first.lane) == (route.settings.identity, 2)
    assert (first.client, first.client_id) == ("ledgermq-python shop", "me")
    assert (first.suspect_timeout_ms, len(first.takeover)) == (15_000, 16)
    assert len({first.session_key, second.session_key}) == 2
    told = route.log.headers[0]
    assert (told["ce_id"], told["ce_type"]) == (b"-1:0", b"ledgermq.operation.Open")
    assert (told["ledgermq-lane"], told["ledgermq-session"]) == (b"2", b"-1")


def test_what_the_library_logs_has_one_name():
    """An application that wants to hear it, or not, names `ledgermq.client` alone."""
    modules = [
        importlib.import_module(one.name)
        for one in pkgutil.iter_modules(client.__path__, "ledgermq.client.")
    ]
    loggers = {one.LOGGER.name for one in modules if hasattr(one, "LOGGER")}
    assert loggers == {"ledgermq.client"}


def test_the_threads_of_a_connection_do_not_keep_a_program_alive(route):
    """They end with the connection, and with a program that never closes it."""
    connection = route.connect()
    consumer = connection.session().consumer("queue:a")
    consumer.set_message_listener(print)
    threads = [
        connection._running.reader,
        connection._running.heartbeats._thread,
        consumer._work.listening._thread,
    ]
    assert [thread.name for thread in threads] == [
        "ledgermq-reader",
        "ledgermq-heartbeats",
        "ledgermq-listener-2",
    ]
    assert all(thread.daemon and thread.is_alive() for thread in threads)
    connection.close()
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("name", ["ledgermq-reader", "ledgermq-heartbeats"])
def test_a_connection_that_gets_no_thread_leaves_none_behind(route, monkeypatch, name):
    """Where a system gives no more of them, each try to connect would take some for good."""
    start, before = threading.Thread.start, set(threading.enumerate())

    def refused(thread):
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        route.connect()
    assert set(threading.enumerate()) <= before


def test_without_an_application_the_client_says_what_it_is_alone(route):
    """No space is left at the end."""
    with route.connect():
        assert route.log.operations[0].client == "ledgermq-python"


def test_a_session_that_is_open_is_not_being_opened_any_more(route):
    """Else the keeper would ask for it for ever."""
    with route.connect() as connection:
        connection.session()
        assert connection._running.router.openings == {}
        route.refusing[Open] = "client-id-in-use"
        with pytest.raises(ledgermq.InvalidClientIDError, match="QM1@4"):
            connection.session()
        assert connection._running.router.openings == {}


def test_a_session_whose_answer_came_too_late_to_confirm_it_is_opened_anew(route, monkeypatch):
    """H16: no worker ran for longer than 30 seconds, and its session ends before Alive comes."""
    monkeypatch.setattr(module, "CERTAINLY_CONFIRMED_SECONDS", -1.0)
    with route.connect() as connection:
        answer, ended_at = route._answer, []

        def end_the_first(operation):
            if type(operation) is Alive and not ended_at:
                ended_at.append(operation.session)
                route.tell(ended(9, operation.session, 0, reason="UNCONFIRMED"))
                return
            answer(operation)

        route.log.on_write = end_the_first
        session = connection.session()
        assert session._engine.lost is None
        assert session._engine.handle > ended_at[0]
        assert ended_at[0] not in connection._running.router.sessions
        session.close()


def test_a_worker_that_does_not_answer_is_told_and_nothing_stays_behind(route):
    """Neither reader nor keeper go on for a connection that was not made."""
    before = set(threading.enumerate())
    route.silent.add(Open)
    with pytest.raises(ledgermq.WorkerUnavailableError, match=r"QM1 answered within 0.1 s"):
        route.connect(timeout=0.05)
    assert route.lane.closed
    assert set(threading.enumerate()) <= before


def test_a_connection_says_what_it_is(route):
    """Queue manager, identity, address and whether it is open."""
    connection = route.connect()
    assert connection.queue_manager == "QM1"
    assert connection.identity == route.settings.identity.hex()
    assert repr(connection) == "Connection(QM1 at h:1, open)"
    assert connection.is_closed is False
    connection.close()
    assert repr(connection) == "Connection(QM1 at h:1, closed)"
    assert connection.is_closed is True
    with pytest.raises(ledgermq.ConnectionClosedError, match="connect again"):
        connection.session()


def test_temporary_destinations_of_a_connection_differ(route):
    """Whatever their kind and session (SES-39)."""
    with route.connect() as connection:
        one, other = connection.session(), connection.session()
        made = [one.temporary_queue(), other.temporary_topic(), one.temporary_queue()]
    start = f"temporary/{connection.identity}"
    assert made == [f"queue:{start}/1", f"topic:{start}/2", f"queue:{start}/3"]


# -- the reader --------------------------------------------------------------------------------


def test_a_lane_that_went_on_without_the_reader_makes_it_ask(route):
    """H17: what was missed is told by the answer to RESYNC."""
    with route.connect():
        asked = threading.Event()
        route.log.on_ask = lambda _: asked.set()
        route.lane.missing = True
        route.tell(ended(90, 77))
        assert asked.wait(20)
        assert [ask["kind"] for ask in route.log.asks] == ["RESYNC"]


def test_the_reader_outlives_errors(route, monkeypatch, caplog):
    """The next read comes, and what it brings is taken."""
    monkeypatch.setattr(module, "READ_SECONDS", 0.01)
    with route.connect() as connection:
        route.lane.failures.append(ValueError("a fault"))
        connection.session().close()
        assert not route.lane.failures
    assert [one.message for one in caplog.records] == [
        "the reader of a connection goes on after an error"
    ]


def test_the_reader_serves_reports_once_in_a_while(route, monkeypatch):
    """Not with every read: that would cost more than what is read."""
    calls = []

    def serve():
        if threading.current_thread().name == "ledgermq-reader":
            calls.append(1)

    route.log.serve = serve
    monkeypatch.setattr(module, "SERVE_SECONDS", time.monotonic() / 2)
    with route.connect() as connection:
        for _ in range(5):
            connection.session().close()
    assert len(calls) == 1


# -- administration ----------------------------------------------------------------------------


def test_administration_opens_a_session_anew_when_its_own_was_lost(route):
    """And keeps it as long as it is there."""
    with route.connect() as connection:
        first = connection._running.control
        assert connection.admin.create_queue("a") == 2
        assert connection._running.control is first
        route.tell(ended(50, first.handle))
        with first.lock:
            while first.lost is None:
                first.condition.wait(20)
        connection.admin.create_queue("b")
        second = connection._running.control
        connection.admin.create_queue("c")
        assert connection._running.control is second
        assert list(connection._running.router.sessions) == [second.handle]
    sessions = [one.session for one in route.log.operations if isinstance(one, CreateQueue)]
    assert sessions == [first.handle, second.handle, second.handle]


def test_administration_waits_no_longer_than_the_connection_says(route):
    """Its outcome is unknown then, and the error names what it was about."""
    route.silent.add(CreateQueue)
    connection = route.connect()
    hurry(connection)
    with pytest.raises(ledgermq.OutcomeUnknownError, match=r"CreateQueue 2 .* 0.05 s") as caught:
        connection.admin.create_queue("a")
    assert caught.value.destination == "queue:a"
    with pytest.raises(ledgermq.WorkerUnavailableError, match=r"0.05 s"):
        connection.admin.list_queues()
    closing(connection)


# -- the end -----------------------------------------------------------------------------------


def test_closing_a_connection_closes_all_its_sessions_and_its_own():
    """In memory: the queue manager has none of them left, and nobody was suspected."""
    broker = MemoryBroker()
    with broker.connect() as other:
        connection = broker.connect()
        sessions = [connection.session(), connection.session(transacted=True)]
        assert len(other.admin.sessions()) == 4
        connection.close()
        connection.close()
        assert len(other.admin.sessions()) == 1
        assert all(session.is_closed for session in sessions)
    assert connection._running.control.ended
    assert connection._running.control.lost is None


def test_a_closed_session_is_not_kept(route):
    """A connection may open and close any number of them."""
    with route.connect() as connection:
        kept = connection.session()
        connection.session().close()
        assert list(connection._running.works) == [kept._work]
        assert set(connection._running.router.sessions) == {
            connection._running.control.handle,
            kept.handle,
        }


def test_a_close_without_an_answer_says_so(route):
    """The session of the connection itself ends when the queue manager hears no more of it."""
    connection = route.connect()
    route.silent.add(Close)
    with pytest.raises(ledgermq.OutcomeUnknownError, match=r"Close 2 of session QM1@0 within"):
        connection.close(timeout=0.02)
    assert connection.is_closed
    assert route.lane.closed
    assert connection._running.control.ended, "it is over in any case"
    connection.close()


def test_of_several_failures_at_the_close_the_first_is_raised(route):
    """Every session is closed all the same, and the connection with them."""
    connection = route.connect()
    handles = [connection.session().handle, connection.session().handle]
    route.silent.add(Close)
    with pytest.raises(ledgermq.OutcomeUnknownError, match=rf"QM1@{handles[0]} within"):
        connection.close(timeout=0.02)
    closed = [one.session for one in route.log.operations if isinstance(one, Close)]
    assert closed == [*handles, connection._running.control.handle]


def test_a_connection_whose_session_was_lost_closes_without_a_word(route, caplog):
    """Its own session is gone before its Close or by it: that is what close is for."""
    for at_close in (False, True):
        route = HandRoute()
        connection = route.connect()
        control = connection._running.control
        caplog.clear()
        if at_close:
            route.silent.add(Close)
            route.log.on_write = lambda _, route=route: route.tell(ended(50, 0))
        else:
            route.tell(ended(50, 0))
            with control.lock:
                while control.lost is None:
                    control.condition.wait(20)
        connection.close()
        assert control.lost is not None
        written = [one for one in route.log.operations if isinstance(one, Close)]
        assert len(written) == at_close
        assert len(caplog.records) == (not at_close)


def test_an_error_in_the_block_is_not_hidden_by_one_of_the_close(route, caplog):
    """The latter is logged; without the former it is raised."""
    route.silent.add(Close)

    def fails():
        with route.connect() as connection:
            hurry(connection)
            raise KeyError("the block's own")

    with pytest.raises(KeyError):
        fails()
    assert "closing a connection after an exception did not work" in caplog.text
    other = HandRoute()
    other.silent.add(Close)
    with pytest.raises(ledgermq.OutcomeUnknownError), other.connect() as connection:
        hurry(connection)


def test_a_broken_connection_says_why_and_is_closed_all_the_same(route):
    """Connecting again is what helps (H2)."""
    connection = route.connect()
    connection._running.router.broken = "outcomes were lost"
    for use in (
        connection.session,
        lambda: connection.admin,
        lambda: connection.browser("queue:a"),
    ):
        with pytest.raises(ledgermq.ConnectionClosedError, match="outcomes were lost"):
            use()
    connection.close()
    assert route.lane.closed


def test_after_a_fork_the_child_uses_and_closes_nothing(route, monkeypatch):
    """The parent's connection is the parent's."""
    connection = route.connect()
    assert connection._running in module.ALIVE
    monkeypatch.setattr(module, "ALIVE", {connection._running})
    admin, asked = connection.admin, []
    route.log.on_ask = asked.append
    route.silent.add(Put)
    sent = connection.session().producer("queue:q").send_async("x")
    module._mark_forked()
    for call in (connection.session, admin.list_queues, lambda: sent.result(2), sent.exception):
        with pytest.raises(ledgermq.IllegalStateError, match="fork"):
            call()
    assert not asked
    connection.close()
    assert not route.lane.closed
    connection._running.forked = False
    connection.close()
    assert route.lane.closed
    assert not module.ALIVE


def test_a_consumer_that_was_not_opened_is_none(route):
    """Its number is used up, its buffer is not kept."""
    with route.connect() as connection, connection.session() as session:
        route.refusing[OpenConsumer] = "queue-unknown"
        with pytest.raises(ledgermq.QueueNotFoundError):
            session.consumer("queue:a")
        assert session._engine.protocol.consumers == {}
        del route.refusing[OpenConsumer]
        assert session.consumer("queue:a")._shared.buffer.number == 2


def test_whoever_opens_a_session_hears_that_its_connection_is_closed(route):
    """Also where no worker answers: for that it would wait for half a minute more."""
    with route.connect(timeout=60.0) as connection:
        route.silent.add(Open)
        heard = []

        def open_session():
            with pytest.raises(ledgermq.ConnectionClosedError, match="the connection is closed"):
                connection.session()
            heard.append(True)

        opening = threading.Thread(target=open_session)
        opening.start()
        while len(route.written(Open)) < 2:
            time.sleep(0.01)
        connection.close()
        opening.join(20)
        assert heard == [True]
