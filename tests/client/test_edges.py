"""Small things at the edges that mutants showed nobody to look at."""

import asyncio
import uuid

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.client.receiving import browser
from ledgermq.client.settings import TOPIC_PREFIX_DEFAULT, settings_from
from ledgermq.testing import MemoryBroker

GIVEN = {
    "client_id": None,
    "takeover": None,
    "application": None,
    "timeout": 1.0,
    "suspect_timeout_seconds": 15.0,
    "topic_prefix": None,
    "allow_pickle": False,
}


@pytest.mark.parametrize(
    ("seconds", "allowed"), [(1, True), (45, True), (0.999, False), (46, False)]
)
def test_the_suspect_timeout_has_its_limits(seconds, allowed):
    """1 and 45 seconds are the shortest and the longest."""
    told = GIVEN | {"suspect_timeout_seconds": seconds}
    if allowed:
        assert settings_from("kafka://h:1/Q", **told).suspect_timeout_ms == seconds * 1000
    else:
        with pytest.raises(ledgermq.AddressError, match="must be 1 to 45"):
            settings_from("kafka://h:1/Q", **told)


def test_the_topic_prefix_is_the_one_given_or_the_default():
    """No prefix and an empty one are the default."""
    for prefix in (None, ""):
        found = settings_from("kafka://h:1/Q", **GIVEN | {"topic_prefix": prefix})
        assert found.topics.prefix == TOPIC_PREFIX_DEFAULT
    assert settings_from("kafka://h:1/Q", **GIVEN | {"topic_prefix": "p"}).topics.prefix == "p"


def test_a_browser_goes_on_behind_the_last_message_of_a_page(connection, queue, monkeypatch):
    """By priority and number, whatever the size of a page."""
    monkeypatch.setattr(browser, "PAGE_MESSAGES", 2)
    with connection.session() as session:
        producer = session.producer(queue)
        for number, priority in enumerate([4, 9, 0, 4, 9, 4, 0]):
            producer.send(str(number), priority=priority)
    assert [one.body for one in connection.browser(queue)] == ["1", "4", "0", "3", "5", "2", "6"]


def test_a_closed_requestor_sends_nothing(connection, queue):
    """Neither a request, nor does its temporary queue stay."""
    with connection.session() as session:
        requestor = session.requestor(queue)
        reply_to = requestor.reply_to
        requestor.close()
        requestor.close()
        with pytest.raises(ledgermq.IllegalStateError, match="closed"):
            requestor.request("x", timeout=1)
        with pytest.raises(ledgermq.QueueNotFoundError):
            connection.admin.queue_status(queue)
        with pytest.raises(ledgermq.LedgerMQError):
            session.producer(reply_to).send("late")


def test_a_consumer_of_a_lost_session_closes_without_a_word(place, queue):
    """There is nothing left to close."""
    name = f"client-{uuid.uuid4().hex}"
    with place.connect(client_id=name, takeover="t") as first:
        session = first.session()
        consumer = session.consumer(queue)
        with place.connect(client_id=name, takeover="t"):
            with pytest.raises(ledgermq.SessionLostError):
                consumer.receive(20)
            consumer.close()
            assert consumer.is_closed
            session.close()


def test_a_session_shows_what_it_is(connection):
    """Queue manager, handle, mode and whether it is open."""
    session = connection.session(ack="CLIENT")
    assert repr(session) == f"Session(QM1@{session.handle}, CLIENT, open)"
    session.close()
    assert repr(session).endswith("CLIENT, closed)")


def test_what_a_session_makes_shows_what_it_is_too():
    """For coroutines as for threads: logs and debuggers show it."""
    connection = MemoryBroker().connect()
    with connection.session() as session:
        consumer = session.consumer("queue:q")
        assert repr(session.producer("queue:q")) == "Producer(queue:q)"
        assert repr(consumer) == "Consumer(queue:q, open)"
        consumer.close()
        assert repr(consumer) == "Consumer(queue:q, closed)"
        browser = session.browser("queue:q")
        assert repr(browser) == "Browser(queue:q, open)"
        browser.close()
        assert repr(browser) == "Browser(queue:q, closed)"

    async def shown():
        async with (
            aio.Connection(connection) as own,
            own.session() as session,
            session.consumer("queue:q") as consumer,
            session.browser("queue:q") as browser,
        ):
            made = (consumer, session.producer("queue:q"), browser)
            return [repr(one) for one in (own, session, *made)]

    own, session, *rest = asyncio.run(shown())
    assert own == "Connection(QM1 at memory:1, open)"
    assert (session.startswith("Session(QM1@"), session.endswith(", AUTO, open)")) == (True, True)
    assert rest == ["Consumer(queue:q, open)", "Producer(queue:q)", "Browser(queue:q, open)"]


def test_a_rollback_waits_for_the_commit_before_it(connection, queue):
    """What a failed commit was to consume counts as backed out once, by the rollback."""
    connection.admin.create_queue(queue + ".small", message_bytes_max=10)
    with connection.session(transacted=True) as session:
        session.producer(queue).send("in")
        session.commit()
        consumer, small = session.consumer(queue), session.producer(queue + ".small")
        for number in range(1, 21):
            assert consumer.receive(20).delivery_count == number
            small.send("x" * 100)
            session.commit_async()
            session.rollback()


def test_what_is_created_without_a_description_has_none(connection, queue):
    """An empty text, for queues and topics."""
    name = queue.partition(":")[2]
    connection.admin.create_queue(queue)
    connection.admin.create_topic(name)
    assert connection.admin.queue_status(queue).description == ""
    assert connection.admin.topic(name).description == ""
