"""However a session ends while its application holds messages, the next call says so (SES-20)."""

import pytest

import ledgermq
from ledgermq.protocol.operations import CloseConsumer, Suspect
from ledgermq.testing import MemoryBroker

WHO = {"reason": "it hangs", "actor": "ann"}
LOST, CLOSED = ledgermq.SessionLostError, ledgermq.IllegalStateError


@pytest.fixture
def memory():
    """A queue manager in memory with messages on a queue."""
    found = MemoryBroker()
    with found.connect() as connection, connection.session() as session:
        session.producer("queue:q").send_many(["a", "b", "c"])
    return found


def lose(memory, connection, session):
    """The queue manager hears nothing of its client."""
    session._engine._show_life_locked = lambda: None
    memory._append(Suspect(worker="w", sessions=[session.handle]))
    memory.advance(16)


def end_by_administration(memory, connection, session):
    """An administrator ends it."""
    with memory.connect() as other:
        other.admin.end_session(session.handle, **WHO)


def take_over(memory, connection, session):
    """The application was started again, and takes over the client id of the one before."""
    memory.connect(client_id="app", takeover="one").close()


def close_session(memory, connection, session):
    """Another thread closes it."""
    session.close()


def close_connection(memory, connection, session):
    """Another thread closes its connection."""
    connection.close()


ENDS = {
    lose: (LOST, "lost"),
    end_by_administration: (LOST, "ended"),
    take_over: (LOST, "taken_over"),
    close_session: (CLOSED, "closed"),
    close_connection: (CLOSED, "closed"),
}
CALLS = {
    "receive": lambda session, consumer, producer, message: consumer.receive(0),
    "receive_many": lambda session, consumer, producer, message: consumer.receive_many(2, 0),
    "iterate": lambda session, consumer, producer, message: next(iter(consumer)),
    "send": lambda session, consumer, producer, message: producer.send("x"),
    "acknowledge message": lambda session, consumer, producer, message: message.acknowledge(),
    "acknowledge": lambda session, consumer, producer, message: session.acknowledge(),
    "recover": lambda session, consumer, producer, message: session.recover(),
    "commit": lambda session, consumer, producer, message: session.commit(),
    "rollback": lambda session, consumer, producer, message: session.rollback(),
    "flush": lambda session, consumer, producer, message: session.flush(),
    "consumer": lambda session, consumer, producer, message: session.consumer("queue:s"),
}
# What is of the other kind of session is wrong use.
FOR_OTHERS = [one for one in CALLS if one not in ("commit", "rollback")]
FOR_TRANSACTED = [one for one in CALLS if not one.startswith(("acknowledge", "recover"))]
TABLE = [
    pytest.param(end, mode, call, id=f"{end.__name__}-{mode}-{call}")
    for end in ENDS
    for mode in ("AUTO", "DUPS_OK", "CLIENT", "INDIVIDUAL", "TRANSACTED")
    for call in (FOR_TRANSACTED if mode == "TRANSACTED" else FOR_OTHERS)
]


@pytest.mark.parametrize(("end", "mode", "call"), TABLE)
def test_the_next_call_says_that_the_session_is_over(memory, end, mode, call):
    """Whichever it is, in every mode: lost, ended and taken over alike; a closed one is closed."""
    connection = memory.connect(client_id="app", takeover="one")
    session = connection.session(ack=mode)
    consumer, producer = session.consumer("queue:q"), session.producer("queue:r")
    message = consumer.receive(20)
    assert message.body == "a"
    end(memory, connection, session)
    with session._engine.lock:
        while not session._engine.ended:
            assert session._engine.condition.wait(20)
    kind, word = ENDS[end]
    if call == "commit" and kind is LOST:
        kind = ledgermq.TransactionRolledBackError
    for _ in range(2):
        with pytest.raises(kind, match=word):
            CALLS[call](session, consumer, producer, message)
    session.close()
    assert "r" not in memory._state.queues, "nothing was sent"


def test_an_error_in_a_consumers_block_is_not_hidden_by_one_of_its_close(route, caplog):
    """Who reads the error of the close would look for the fault in the wrong place."""
    with route.connected() as connection, connection.session() as session:
        route.silent.add(CloseConsumer)
        session._engine.timeout_seconds = 0.02
        with pytest.raises(KeyError), session.consumer("queue:q"):
            raise KeyError("the block's own")
        assert "closing a consumer after an exception did not work" in caplog.text
        with pytest.raises(ledgermq.OutcomeUnknownError), session.consumer("queue:q"):
            pass
        session._engine.timeout_seconds = 20
