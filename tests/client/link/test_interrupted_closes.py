"""Ctrl-C at any moment of the close of a session or connection: what it holds goes to others."""

import itertools

import pytest

from support.interrupting import interrupted_at


@pytest.fixture
def other(memory):
    """A session of another connection."""
    with memory.connect() as connection, connection.session() as session:
        yield session


def holding(connection, other, ack):
    """A session that was handed a message, and has not settled it."""
    other.producer("queue:q").send("a")
    session = connection.session(ack=ack)
    assert session.consumer("queue:q").receive(20).body == "a"
    return session


@pytest.mark.parametrize("ack", ["CLIENT", "TRANSACTED"])
def test_an_interrupted_close_of_a_session_closes_it_or_can_be_done_again(memory, other, ack):
    """Else the session would hold what it has for as long as its connection is open."""
    taking = other.consumer("queue:q", prefetch=0)
    with memory.connect(timeout=20.0) as connection:
        for moment in itertools.count(1):
            session = holding(connection, other, ack)
            was = interrupted_at(moment, session.close)
            session.close()
            assert session.is_closed
            message = taking.receive(5)
            assert message is not None, moment
            if not was:
                break
    assert moment > 50


@pytest.mark.slow
def test_an_interrupted_close_of_a_connection_leaves_nothing_behind_or_can_be_done_again(
    memory, other
):
    """Else its heartbeats would keep its sessions alive."""
    taking = other.consumer("queue:q", prefetch=0)
    for moment in itertools.count(1):
        connection = memory.connect(timeout=20.0)
        holding(connection, other, "CLIENT")
        was = interrupted_at(moment, connection.close)
        connection.close()
        assert connection.is_closed
        assert not connection._running.reader.is_alive(), moment
        assert not connection._running.heartbeats._thread.is_alive(), moment
        memory.crash(connection)
        assert taking.receive(5) is not None, moment
        if not was:
            break
    assert moment > 100
