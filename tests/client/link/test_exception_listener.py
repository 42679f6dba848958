"""Exception listeners: what goes wrong while nobody calls reaches the application (SES-23)."""

import asyncio
import queue

import pytest

import ledgermq
from ledgermq import aio

WHO = {"reason": "test", "actor": "tester"}


def told(connection):
    """Where the errors that a connection's listener is told of arrive."""
    errors = queue.Queue()
    connection.set_exception_listener(errors.put)
    return errors


def test_a_listener_is_told_of_a_session_that_only_has_message_listeners(memory):
    """Nobody calls such a session, so nobody else would hear that it ended."""
    with memory.connect() as connection, memory.connect() as other:
        errors = told(connection)
        session = connection.session()
        session.consumer("queue:q").set_message_listener(print)
        other.admin.end_session(session.handle, **WHO)
        error = errors.get(timeout=20)
        assert isinstance(error, ledgermq.SessionLostError)
        assert str(session.handle) in str(error)
        with pytest.raises(ledgermq.SessionLostError):
            session.producer("queue:q")
        assert errors.empty(), "it is told once"


def test_what_ends_by_its_own_doing_is_no_problem(memory):
    """Neither sessions nor the connection that are closed are told of."""
    with memory.connect() as connection:
        errors = told(connection)
        with connection.session() as session:
            session.producer("queue:q").send("one")
    assert errors.empty()


def test_a_listener_may_close_its_connection_and_make_another(memory):
    """No close waits for it (SES-23)."""
    anew = queue.Queue()
    connection = memory.connect()

    def begin_anew(error):
        connection.close()
        anew.put(memory.connect())

    connection.set_exception_listener(begin_anew)
    session = connection.session()
    with memory.connect() as other:
        other.admin.end_session(session.handle, **WHO)
    with anew.get(timeout=20) as standing, standing.session() as goes_on:
        goes_on.producer("queue:q").send("one")
    assert connection.is_closed


def test_a_listener_that_fails_is_told_of_the_next_error_nevertheless(memory, caplog):
    """What it raises is logged."""
    errors = queue.Queue()

    def fail(error):
        errors.put(error)
        raise ValueError("of the application")

    with memory.connect() as connection, memory.connect() as other:
        connection.set_exception_listener(fail)
        for _ in range(2):
            other.admin.end_session(connection.session().handle, **WHO)
            errors.get(timeout=20)
    assert "of the application" in caplog.text


def test_a_listener_can_be_seen_replaced_and_taken_away(memory):
    """And a function that does nothing yet when it is called is refused."""
    with memory.connect() as connection, memory.connect() as other:
        assert connection.exception_listener is None
        first, second = queue.Queue(), queue.Queue()
        connection.set_exception_listener(first.put)
        connection.set_exception_listener(second.put)
        assert connection.exception_listener == second.put
        other.admin.end_session(connection.session().handle, **WHO)
        second.get(timeout=20)
        connection.set_exception_listener(None)
        other.admin.end_session(connection.session().handle, **WHO)
        connection.session().close()
        assert first.empty()
        assert second.empty()

        async def coroutine(error):
            """Does nothing yet when it is called."""

        with pytest.raises(ledgermq.IllegalStateError, match="coroutine"):
            connection.set_exception_listener(coroutine)


def test_a_listener_is_told_that_its_connection_cannot_go_on(memory):
    """With what every further call raises."""
    with memory.connect() as connection:
        errors = told(connection)
        connection._running.router.give_up("its outcomes are lost")
        error = errors.get(timeout=20)
        assert isinstance(error, ledgermq.ConnectionClosedError)
        with pytest.raises(ledgermq.ConnectionClosedError, match=str(error)):
            connection.session()


def test_the_event_loop_calls_the_listener_of_a_connection_for_asyncio(memory):
    """So it may touch what belongs to the loop."""

    async def scenario():
        connection = aio.Connection(memory.connect())
        told = asyncio.get_running_loop().create_future()
        connection.set_exception_listener(told.set_result)
        assert connection.exception_listener == told.set_result
        session = await connection.session()
        with memory.connect() as other:
            await asyncio.to_thread(other.admin.end_session, session.handle, **WHO)
        error = await asyncio.wait_for(told, 20)
        connection.set_exception_listener(None)
        assert connection.exception_listener is None
        await connection.close()
        return error

    assert isinstance(asyncio.run(scenario()), ledgermq.SessionLostError)
