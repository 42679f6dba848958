"""Tests of administering topics, subscriptions and limits: what is changed shows."""

from datetime import datetime

import pytest

import ledgermq
from ledgermq.protocol.operations import CloseConsumer, OpenConsumer


@pytest.fixture
def connection(own_connection):
    """Shared with no other test: these number consumers of the administration's session."""
    return own_connection


@pytest.fixture
def topic(queue) -> str:
    """The name of a topic that only this test uses."""
    return queue.removeprefix("queue:")


@pytest.fixture
def subscribe(connection, topic):
    """Opens a consumer of the topic on the administration's session; it gets nothing."""
    numbers = iter(range(1, 100))

    def open_consumer(name="", *, on=connection, **fields):
        number = next(numbers)
        kind = {"subscription": name, "durable": bool(name), "shared": bool(name)}
        named = {"consumer": number, "destination": f"topic:{topic}", **kind, **fields}
        on.admin._change(OpenConsumer, **named)
        return number

    return open_consumer


@pytest.fixture
def unreceive(connection):
    """Closes a consumer that `subscribe` opened."""

    def close_consumer(number, *, on=connection):
        on.admin._change(CloseConsumer, consumer=number, unseen=[])

    return close_consumer


@pytest.fixture
def publish(connection, topic):
    """Puts texts to the topic, the first with region EU, the others with US."""

    def put(*bodies):
        with connection.session() as session:
            producer = session.producer(f"topic:{topic}")
            for place, body in enumerate(bodies):
                producer.send(body, properties={"region": "US" if place else "EU"})

    return put


def test_topic_is_created_and_deleted(connection, topic):
    """Its status shows the settings at the position of the change or later; then it is gone."""
    admin = connection.admin
    position = admin.create_topic(topic, description="rates", message_bytes_max=1_000)
    status = admin.topic(f"topic:{topic}", not_before=position)
    assert (status.name, status.created_position) == (topic, position)
    assert status.position >= position
    assert (status.description, status.message_bytes_max) == ("rates", 1_000)
    assert (status.temporary, status.first_enqueued_at) == (False, None)
    assert topic in [one.name for one in admin.topics()]
    assert admin.queue_manager_status().topics >= 1
    admin.delete_topic(f"topic:{topic}")
    assert topic not in [one.name for one in admin.topics()]
    for gone in (admin.topic, admin.delete_topic):
        with pytest.raises(ledgermq.TopicNotFoundError) as caught:
            gone(topic)
        assert (caught.value.code, caught.value.destination) == ("topic-unknown", f"topic:{topic}")


def test_topic_that_exists_is_not_created_again(connection, topic):
    """A queue of the same name is another destination and does not stand in the way."""
    connection.admin.create_queue(topic)
    connection.admin.create_topic(topic)
    with pytest.raises(ledgermq.DestinationExistsError) as caught:
        connection.admin.create_topic(topic)
    assert (caught.value.code, caught.value.destination) == ("topic-exists", f"topic:{topic}")


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "queue:orders", "ä"])
def test_name_that_no_topic_may_have_is_refused(connection, name):
    """Before anything is written to the log; names of temporary ones are for the fold to refuse."""
    for call in (connection.admin.create_topic, connection.admin.topic):
        with pytest.raises(ledgermq.InvalidDestinationError) as caught:
            call(name)
        assert caught.value.position is None
    with pytest.raises(ledgermq.InvalidDestinationError) as caught:
        connection.admin.create_topic("temporary/mine")
    assert caught.value.code == "name-invalid"


def test_topic_with_consumers_or_durable_subscriptions_is_not_deleted(
    connection, topic, subscribe, unreceive
):
    """Consumers stand in the way always, durable subscriptions unless they are purged."""
    admin = connection.admin
    admin.create_topic(topic)
    consumer = subscribe("audit")
    with pytest.raises(ledgermq.DestinationInUseError) as caught:
        admin.delete_topic(topic, purge=True)
    assert caught.value.code == "topic-in-use"
    unreceive(consumer)
    with pytest.raises(ledgermq.DestinationInUseError) as caught:
        admin.delete_topic(topic)
    assert caught.value.code == "topic-not-empty"
    admin.delete_topic(topic, purge=True)
    assert admin.subscriptions(topic) == []


def test_seq_17_statuses_of_a_topic_and_its_subscriptions_count_apart(
    connection, topic, subscribe, publish
):
    """SEQ-17: a message counts once for the topic, and in each subscription that wanted it."""
    admin = connection.admin
    publish("before anybody listens")
    subscribe(f"all.{topic}")
    subscribe(f"some.{topic}", selector="region = 'US'")
    subscribe(no_local=True)
    publish("a", "b", "c")
    status = admin.topic(topic)
    assert (status.subscriptions, status.receivers) == (3, 3)
    assert (status.message_count, status.sent_and_committed, status.dropped) == (3, 0, 1)
    assert (status.min_sequence, status.max_sequence, status.next_sequence) == (1, 3, 4)
    assert isinstance(status.first_enqueued_at, datetime)
    assert status.first_enqueued_at <= status.last_enqueued_at
    every, some, alone = admin.subscriptions(f"topic:{topic}")
    assert (every.name, every.kind) == (f"all.{topic}", "durable")
    assert (every.shared, every.durable) == (True, True)
    assert (every.added, every.message_count, every.current, every.pending) == (3, 3, 3, 0)
    assert (some.selector, some.added, some.min_sequence) == ("region = 'US'", 2, 2)
    assert (alone.kind, alone.durable, alone.no_local, alone.added) == ("consumer", False, True, 0)
    assert {one.topic for one in (every, some, alone)} == {topic}
    assert admin.queue_manager_status().subscriptions >= 3


def test_ses_62_unsubscribe_deletes_what_nobody_uses(
    connection, topic, subscribe, unreceive, publish
):
    """SES-62, SES-63: with consumers it is refused; then subscription and messages go."""
    admin, name = connection.admin, f"kept.{topic}"
    consumer = subscribe(name)
    publish("x")
    with pytest.raises(ledgermq.SubscriptionInUseError) as caught:
        admin.unsubscribe(name)
    assert caught.value.code == "subscription-in-use"
    unreceive(consumer)
    admin.unsubscribe(name)
    assert admin.subscriptions(topic) == []
    status = admin.topic(topic)
    assert (status.message_count, status.dropped) == (0, 1)


def test_ses_64_unknown_subscription_is_an_invalid_destination(connection, topic):
    """SES-64: the exception is a kind of InvalidDestinationError."""
    with pytest.raises(ledgermq.InvalidDestinationError) as caught:
        connection.admin.unsubscribe(topic)
    assert isinstance(caught.value, ledgermq.SubscriptionNotFoundError)
    assert caught.value.code == "subscription-unknown"


@pytest.mark.parametrize(
    ("fields", "kind", "code"),
    [
        ({"name": "s", "shared": False}, ledgermq.ClientIDMissingError, "client-id-missing"),
        ({"selector": "a ="}, ledgermq.InvalidSelectorError, "selector-invalid"),
        ({"name": "a b"}, ledgermq.InvalidSubscriptionError, "subscription-invalid"),
        (
            {"destination": "topic:temporary/00/x"},
            ledgermq.TemporaryDestinationDeletedError,
            "destination-unknown",
        ),
    ],
    ids=["client-id", "selector", "subscription", "temporary"],
)
def test_refusals_of_subscribing_have_errors_of_their_own(subscribe, fields, kind, code):
    """SES-45 and its like: each reason has a class that a program can catch."""
    with pytest.raises(kind) as caught:
        subscribe(**fields)
    assert caught.value.code == code


def test_ses_60_shared_and_unshared_do_not_share_a_name(place, topic, subscribe):
    """SES-60: within a client id the second one is refused, whichever it is."""
    with place.connect(client_id=topic) as connection:
        subscribe("first", on=connection)
        with pytest.raises(ledgermq.SubscriptionDiffersError) as caught:
            subscribe("first", on=connection, shared=False)
        assert caught.value.code == "subscription-differs"
        subscribe("second", on=connection, shared=False)
        with pytest.raises(ledgermq.SubscriptionDiffersError):
            subscribe("second", on=connection)


def test_ses_62_subscriptions_are_unsubscribed_by_their_client_id(
    place, topic, subscribe, unreceive
):
    """SES-62: another client id, and none, know no subscription of that name."""
    with place.connect(client_id=topic) as owner:
        unreceive(subscribe("own", on=owner, shared=False), on=owner)
        (one,) = owner.admin.subscriptions(topic)
        assert (one.client_id, one.shared, one.durable) == (topic, False, True)
        with place.connect() as other, pytest.raises(ledgermq.SubscriptionNotFoundError):
            other.admin.unsubscribe("own")
        owner.admin.unsubscribe("own")
        assert owner.admin.subscriptions(topic) == []


def test_topics_unknown_to_the_queue_manager_have_no_subscriptions(connection, topic):
    """The list of them is empty, and a name that is none is refused."""
    assert connection.admin.subscriptions(topic) == []
    with pytest.raises(ledgermq.InvalidDestinationError):
        connection.admin.subscriptions("a b")


def test_ses_07_unacknowledged_max_is_set_altered_and_taken_away(connection, queue):
    """SES-07: a session holds no more than that; the session's status shows who waits."""
    admin = connection.admin
    admin.create_queue(queue, unacknowledged_max=1)
    with connection.session(ack="CLIENT") as session:
        session.producer(queue).send_many(["a", "b"])
        consumer = session.consumer(queue)
        first = consumer.receive(20)
        status = admin.queue_status(queue)
        assert (status.unacknowledged_max, status.temporary) == (1, False)
        assert (status.unacknowledged, status.current) == (1, 1)
        (own,) = [one for one in admin.sessions() if one.session == session.handle]
        assert (own.consumers, own.consumers_paused, own.in_flight) == (1, 1, 1)
        assert own.client_id == ""
        first.acknowledge()
        assert consumer.receive(20).body == "b"
    admin.alter_queue(queue, description="changed")
    assert admin.queue_status(queue).unacknowledged_max == 1
    admin.alter_queue(queue, unacknowledged_max=0)
    assert admin.queue_status(queue).unacknowledged_max == 0
    with pytest.raises(ledgermq.RefusedError) as caught:
        admin.alter_queue(queue, unacknowledged_max=1_000_001)
    assert caught.value.code == "setting-invalid"
