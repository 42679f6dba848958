"""Signal handlers that close what they interrupt, in the middle of a call that has the lock."""

import signal
import threading

import pytest

from ledgermq.client import closing


def closing_thread():
    """The thread that goes on with closing, if there is one."""
    return next((one for one in threading.enumerate() if one.name == "ledgermq-closing"), None)


@pytest.fixture
def interrupted(in_memory, monkeypatch):
    """A session and a consumer whose next receive is interrupted, and what sets the handler."""
    monkeypatch.setattr(closing, "MOMENT_SECONDS", 0.2)
    session = in_memory.session(ack="CLIENT")
    session.producer("queue:q").send_many("ab")
    consumer = session.consumer("queue:q")
    take = consumer._shared.take_locked
    signals = [signal.SIGUSR1]

    def take_and_be_interrupted():
        if signals:
            signal.raise_signal(signals.pop())
        return take()

    monkeypatch.setattr(consumer._shared, "take_locked", take_and_be_interrupted)
    before = signal.getsignal(signal.SIGUSR1)
    yield session, consumer
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("what", ["connection", "session", "consumer"])
def test_a_signal_handler_can_close_what_it_interrupts(in_memory, interrupted, what):
    """The call ends first, as its handler waits for nothing; what it got goes back in the end."""
    session, consumer = interrupted
    close = {"connection": in_memory, "session": session, "consumer": consumer}[what].close
    signal.signal(signal.SIGUSR1, lambda *_: close())
    assert consumer.receive(20).body == "a"
    thread = closing_thread()
    if thread is not None:
        thread.join(20)
    assert consumer.is_closed
    assert session.is_closed is (what != "consumer")
    assert in_memory.is_closed is (what == "connection")


def test_a_signal_handler_that_interrupts_nothing_closes_at_once(in_memory, interrupted):
    """As any other call would."""
    session, _ = interrupted
    signal.signal(signal.SIGUSR1, lambda *_: session.close())
    signal.raise_signal(signal.SIGUSR1)
    assert session.is_closed
    assert closing_thread() is None


def test_what_closing_from_a_signal_handler_raises_is_logged(in_memory, interrupted, caplog):
    """Nobody else would be told."""
    session, consumer = interrupted

    def close(*_):
        in_memory._running.transport.write = lambda *_, **__: None
        session.close(timeout=0.05)

    signal.signal(signal.SIGUSR1, close)
    assert consumer.receive(20).body == "a"
    thread = closing_thread()
    if thread is not None:
        thread.join(20)
    assert "closing from a signal handler did not work" in caplog.text
    del in_memory._running.transport.write
