"""Tests of wrong use and bad addresses: a clear error with a stable code, and nothing lost."""

import multiprocessing
import socket

import pytest

import ledgermq
from ledgermq import AckMode


@pytest.mark.parametrize("ack", [one for one in AckMode if one is not AckMode.TRANSACTED])
def test_commit_and_rollback_need_a_transacted_session(connection, ack):
    """The error names the mode and what to do (SES-17)."""
    with connection.session(ack=ack) as session:
        for call in (session.commit, session.commit_async, session.rollback):
            with pytest.raises(ledgermq.IllegalStateError, match="transacted"):
                call()
        with pytest.raises(ledgermq.IllegalStateError), session.transaction():
            pass


def test_recover_is_not_for_a_transacted_session_and_acknowledge_does_nothing(connection, queue):
    """SES-31, decision 34: what was handed over stays in the unit of work."""
    with connection.session(ack=AckMode.TRANSACTED) as session:
        session.producer(queue).send("x")
        session.commit()
        message = session.consumer(queue).receive(20)
        with pytest.raises(ledgermq.IllegalStateError, match="transacted"):
            session.recover()
        session.acknowledge()
        message.acknowledge()
        assert connection.admin.queue_status(queue).uncommitted_gets == 1
        session.rollback()
        assert session.consumer(queue).receive(20).delivery_count == 2
    with pytest.raises(ledgermq.IllegalStateError, match="closed"):
        session.acknowledge()


def test_acknowledge_in_a_transacted_session_does_nothing_in_coroutines_too(run, queue):
    """Decision 34, SES-13: of a session and of a message."""

    async def work(connection):
        async with connection.session(transacted=True) as session:
            await session.producer(queue).send("x")
            await session.commit()
            async with session.consumer(queue) as consumer:
                message = await consumer.receive(20)
                await message.acknowledge()
                await session.acknowledge()
                await session.rollback()
                return (await consumer.receive(20)).delivery_count

    assert run(work) == 2


def test_use_after_close_is_refused_and_closing_twice_is_fine(place, queue):
    """Consumer, producer, session and connection say that they are closed (SES-25, SES-26)."""
    connection = place.connect()
    session = connection.session()
    consumer, producer = session.consumer(queue), session.producer(queue)
    consumer.close()
    consumer.close()
    producer.close()
    producer.close()
    with pytest.raises(ledgermq.IllegalStateError, match="closed"):
        consumer.receive(0)
    with pytest.raises(ledgermq.IllegalStateError, match="closed"):
        producer.send("x")
    other = session.producer(queue)
    session.close()
    session.close()
    with pytest.raises(ledgermq.IllegalStateError, match="closed"):
        other.send("x")
    with pytest.raises(ledgermq.IllegalStateError, match="closed"):
        session.consumer(queue)
    admin = connection.admin
    connection.close()
    connection.close()
    for refused in (
        connection.session,
        lambda: connection.admin,
        # It would never be told of anything.
        lambda: connection.set_exception_listener(print),
        # Not that a session is closed: whoever administers has none.
        lambda: admin.create_queue(queue),
        admin.list_queues,
    ):
        with pytest.raises(ledgermq.ConnectionClosedError):
            refused()
    connection.set_exception_listener(None)


def test_a_browsed_message_cannot_be_acknowledged(connection, queue):
    """It was looked at, not got."""
    with connection.session() as session:
        session.producer(queue).send("x")
        (message,) = list(session.browser(queue))
        with pytest.raises(ledgermq.IllegalStateError, match="browsed"):
            message.acknowledge()


@pytest.mark.parametrize("destination", ["orders", "pigeon:prices", "queue:", "topic:a b", ""])
def test_a_text_that_is_no_destination_is_refused(connection, destination):
    """The error says how destinations are written."""
    with connection.session() as session:
        for make in (session.producer, session.consumer, session.browser):
            with pytest.raises(ledgermq.InvalidDestinationError, match=r"queue:NAME|characters"):
                make(destination)


def test_an_unknown_queue_is_refused_when_queues_are_not_created_on_first_use(breakable):
    """Sending, getting, browsing and asking about it all say that it is unknown."""
    with breakable.connect() as connection:
        connection.admin.alter_queue_manager(automatic_creation=False)
        with connection.session() as session:
            producer = session.producer("queue:nowhere")
            for call in (
                lambda: producer.send("x"),
                lambda: producer.send_async("x").result(20),
                lambda: session.consumer("queue:nowhere"),
                lambda: list(session.browser("queue:nowhere")),
                lambda: connection.admin.queue_status("nowhere"),
                lambda: connection.admin.delete_queue("nowhere"),
            ):
                with pytest.raises(ledgermq.QueueNotFoundError, match="nowhere") as caught:
                    call()
                assert caught.value.code == "queue-unknown"
                assert caught.value.destination == "queue:nowhere"
            connection.admin.create_queue("nowhere")
            assert producer.send("x").sequence == 0


def test_a_broker_that_cannot_be_reached_is_told_within_the_time_out():
    """The error names the address and is retryable."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(ledgermq.BrokerUnavailableError, match=str(port)) as caught:
            ledgermq.connect(f"kafka://127.0.0.1:{port}/QM1", timeout=1.5)
    assert caught.value.retryable
    assert isinstance(caught.value, ConnectionError)


def test_an_unknown_queue_manager_is_told_with_those_known(empty_place):
    """Nothing is claimed by connecting."""
    with pytest.raises(ledgermq.QueueManagerNotFoundError, match="known: QM1"):
        ledgermq.connect(
            f"kafka://{empty_place.bootstrap}/OTHER", topic_prefix=empty_place.topics.prefix
        )


def test_missing_topics_are_told(broker):
    """A wrong prefix, or no worker ever: the error names the topic."""
    with pytest.raises(ledgermq.LogError, match=r"no-such-prefix\.outcomes"):
        ledgermq.connect(f"kafka://{broker.bootstrap}", topic_prefix="no-such-prefix")


def test_a_log_without_a_worker_is_told(empty_place):
    """The log is there, nobody answers the Open: the error says so, and what to start."""
    with pytest.raises(ledgermq.WorkerUnavailableError, match="no worker of QM1") as caught:
        empty_place.connect(timeout=1.5)
    assert caught.value.code == "worker-unavailable"


@pytest.mark.parametrize(
    "address",
    ["localhost:9092", "kafka://", "kafka:///QM1", "kafka://h:x/QM1", "kafka://h:1/bad name"],
)
def test_a_bad_address_is_refused_at_once(address):
    """Before anything is asked of the network."""
    with pytest.raises(ledgermq.AddressError):
        ledgermq.connect(address)


@pytest.mark.parametrize("scheme", ["kafka", "amqp"])
def test_a_password_in_an_address_is_refused_and_not_shown(scheme):
    """It would be taken for a part of the host, and stand in errors and logs."""
    with pytest.raises(ledgermq.AddressError, match=r"sasl\.password") as caught:
        ledgermq.connect(f"{scheme}://me:sesame@localhost:9092/QM1")
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"suspect_timeout_seconds": 0.5}, {"timeout": 0.0}])
def test_settings_out_of_range_are_refused(settings):
    """They would be refused by the queue manager, or never work."""
    with pytest.raises(ledgermq.AddressError, match="must be"):
        ledgermq.connect("kafka://localhost:1", **settings)


def test_an_unknown_acknowledge_mode_is_refused(connection):
    """The text names those that there are."""
    with pytest.raises(
        ledgermq.IllegalStateError, match="AUTO, DUPS_OK, CLIENT, INDIVIDUAL, TRANSACTED"
    ):
        connection.session(ack="LAZY")


@pytest.mark.parametrize("prefetch", [-2, -1, 2_000_000])
def test_a_prefetch_out_of_range_is_refused(connection, queue, prefetch):
    """Not negative, at most the standing credit that the queue manager allows."""
    with connection.session() as session, pytest.raises(ledgermq.IllegalStateError):
        session.consumer(queue, prefetch=prefetch)


CHILD_CALLS = {
    "session": lambda c, s, p, got, b: c.session(),
    "admin": lambda c, s, p, got, b: c.admin,
    "producer": lambda c, s, p, got, b: s.producer("queue:q"),
    "consumer": lambda c, s, p, got, b: s.consumer("queue:q"),
    "send": lambda c, s, p, got, b: p.send("x"),
    "send_async": lambda c, s, p, got, b: p.send_async("x"),
    "receive": lambda c, s, p, got, b: got.receive(1),
    "recover": lambda c, s, p, got, b: s.recover(),
    "browse": lambda c, s, p, got, b: b.first(),
}


def _use_in_child(things, answers):
    for call in CHILD_CALLS.values():
        try:
            answers.put(repr(call(*things)))
        except ledgermq.LedgerMQError as error:
            answers.put(str(error))
    _, session, _, consumer, _ = things
    consumer.close()
    session.close()
    answers.put("closed")


@pytest.mark.filterwarnings("ignore:This process")
def test_all_of_a_connection_is_refused_at_once_in_a_forked_child(connection, queue):
    """The child is told to connect anew, and gets nothing that the parent was handed."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with connection.session() as session:
        producer, consumer = session.producer(queue), session.consumer(queue)
        producer.send_many(["a", "b"])
        assert consumer.receive(20).body == "a"
        things = connection, session, producer, consumer, session.browser(queue)
        # Another thread that is inside of the session when it is forked is not there in the child.
        with session._engine.lock:
            child = context.Process(target=_use_in_child, args=(things, answers))
            child.start()
        for call in CHILD_CALLS:
            assert "fork" in answers.get(timeout=20), call
        assert answers.get(timeout=20) == "closed"
        child.join(20)
        assert consumer.receive(20).body == "b"
