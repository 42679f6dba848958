"""Topics and the four kinds of subscriptions, as applications use them (SES-37 to SES-64)."""

import pytest

import ledgermq


def bodies(consumer, count):
    """The bodies of so many messages."""
    return [consumer.receive(20).body for _ in range(count)]


def test_every_subscriber_gets_what_is_published_from_then_on(connection, topic):
    """Each consumer has a subscription of its own (SES-70); the topic numbers once (SEQ-17)."""
    with connection.session() as session, connection.session() as other:
        producer = session.producer(topic)
        assert producer.send("before").sequence == 0
        first, second = session.consumer(topic), other.consumer(topic)
        receipts = [producer.send(str(number)) for number in range(3)]
        assert [one.sequence for one in receipts] == [1, 2, 3]
        assert bodies(first, 3) == bodies(second, 3) == ["0", "1", "2"]
        assert first.receive(0) is None


def test_a_message_of_a_topic_says_where_it_came_from(connection, topic):
    """Destination and sequence number are the topic's."""
    with connection.session() as session:
        consumer = session.consumer(topic)
        session.producer(topic).send("x", properties={"n": 1})
        message = consumer.receive(20)
    assert (message.destination, message.sequence) == (topic, 0)
    assert message.properties == {"n": 1}


def test_a_unit_of_work_spans_queues_and_topics(connection, queue, topic):
    """Published with the commit, never with the rollback (SES-12, SES-13)."""
    with connection.session(transacted=True) as session, connection.session() as reader:
        subscriber, getter = reader.consumer(topic), reader.consumer(queue)
        session.producer(topic).send("undone")
        session.rollback()
        session.producer(topic).send("news")
        session.producer(queue).send("order")
        session.commit()
        assert bodies(subscriber, 1) == ["news"]
        assert bodies(getter, 1) == ["order"]
        assert subscriber.receive(0) is None


def test_no_local_leaves_out_what_the_own_connection_publishes(place, topic):
    """Of the four messages, those of the other connection (SES-37)."""
    with place.connect() as mine, place.connect() as other, mine.session() as session:
        consumer = session.consumer(topic, no_local=True)
        session.producer(topic).send("own")
        other.session().producer(topic).send("other")
        assert bodies(consumer, 1) == ["other"]
        assert consumer.receive(0) is None


def test_a_durable_subscription_keeps_messages_while_nobody_is_connected(place, topic, client_id):
    """Across connections; what was not acknowledged comes again (SES-47, SES-48)."""
    with place.connect(client_id=client_id) as connection, connection.session() as session:
        session.consumer(topic, subscription="audit", durable=True)
    with place.connect() as connection, connection.session() as session:
        for number in range(3):
            session.producer(topic).send(str(number))
    with place.connect(client_id=client_id) as connection:
        session = connection.session(ack=ledgermq.AckMode.INDIVIDUAL)
        consumer = session.consumer(topic, subscription="audit", durable=True)
        first, second, _ = (consumer.receive(20) for _ in range(3))
        second.acknowledge()
        assert first.body == "0"
    with place.connect(client_id=client_id) as connection, connection.session() as session:
        consumer = session.consumer(topic, subscription="audit", durable=True)
        assert bodies(consumer, 2) == ["0", "2"]
        consumer.close()
        session.unsubscribe("audit")


def test_a_durable_subscription_needs_a_client_id_unless_it_is_shared(connection, topic):
    """Refused without one (SES-45); a shared one has none (SES-55)."""
    with connection.session() as session:
        with pytest.raises(ledgermq.LedgerMQError, match="client id") as caught:
            session.consumer(topic, subscription="d", durable=True)
        assert caught.value.code == "client-id-missing"
        name = topic.partition(":")[2]
        consumer = session.consumer(topic, subscription=name, durable=True, shared=True)
        consumer.close()
        session.unsubscribe(name)


def test_one_consumer_at_a_time_on_an_unshared_durable_subscription(place, topic, client_id):
    """The second is refused, whatever it asks for, and may come when the first is gone (SES-49)."""
    with place.connect(client_id=client_id) as connection, connection.session() as session:
        first = session.consumer(topic, subscription="d", durable=True)
        for arguments in ({}, {"selector": "n > 1"}):
            with pytest.raises(ledgermq.LedgerMQError) as caught:
                session.consumer(topic, subscription="d", durable=True, **arguments)
            assert caught.value.code == "subscription-in-use"
        with pytest.raises(ledgermq.LedgerMQError) as caught:
            session.unsubscribe("d")
        assert caught.value.code == "subscription-in-use"
        first.close()
        session.consumer(topic, subscription="d", durable=True).close()
        session.unsubscribe("d")
        with pytest.raises(ledgermq.LedgerMQError) as caught:
            session.unsubscribe("d")
        assert caught.value.code == "subscription-unknown"


def test_another_selector_makes_a_durable_subscription_anew(place, topic, client_id):
    """What it held is gone (SES-51)."""
    with place.connect(client_id=client_id) as connection, connection.session() as session:
        session.consumer(topic, subscription="d", durable=True).close()
        producer = session.producer(topic)
        producer.send("old", properties={"n": 2})
        consumer = session.consumer(topic, subscription="d", durable=True, selector="n > 1")
        producer.send("small", properties={"n": 1})
        producer.send("new", properties={"n": 3})
        assert bodies(consumer, 1) == ["new"]
        assert consumer.receive(0) is None


def test_consumers_of_a_shared_subscription_share_its_messages(connection, topic):
    """Each message goes to one of them (SES-42), and the rest to whoever remains."""
    with connection.session() as session, connection.session() as other:
        first = session.consumer(topic, subscription="s", shared=True, prefetch=1)
        second = other.consumer(topic, subscription="s", shared=True, prefetch=1)
        producer = session.producer(topic)
        for number in range(4):
            producer.send(number_text(number))
        taken = [first.receive(20).body, second.receive(20).body, first.receive(20).body]
        second.close()
        taken.append(first.receive(20).body)
    assert sorted(taken) == [number_text(number) for number in range(4)]


def number_text(number):
    """A body."""
    return f"message {number}"


def test_a_shared_subscription_is_refused_with_another_selector_while_in_use(connection, topic):
    """It would have to be made anew under its consumers (SES-44)."""
    with connection.session() as session:
        session.consumer(topic, subscription="s", shared=True, selector="n > 1")
        with pytest.raises(ledgermq.LedgerMQError) as caught:
            session.consumer(topic, subscription="s", shared=True, selector="n > 2")
        assert caught.value.code == "subscription-in-use"


def test_a_client_id_is_one_connections_at_a_time(place, client_id):
    """The second is refused, unless it takes over with the token of the first (H27)."""
    with place.connect(client_id=client_id, takeover="secret") as first:
        with pytest.raises(ledgermq.LedgerMQError) as caught:
            place.connect(client_id=client_id)
        assert caught.value.code == "client-id-in-use"
        lost = pytest.raises(ledgermq.SessionLostError, match="taken_over")
        session = first.session()
        with place.connect(client_id=client_id, takeover="secret"), lost:
            session.producer("queue:x").send("x")


def test_a_restarted_client_has_its_work_back_at_once(place, queue, client_id):
    """It need not wait until the session of its earlier life is given up (H27)."""
    crashed = place.connect(client_id=client_id, takeover="t", suspect_timeout_seconds=45)
    session = crashed.session(ack=ledgermq.AckMode.CLIENT)
    session.producer(queue).send("work")
    assert session.consumer(queue).receive(20).body == "work"
    crashed._running.stop(0.0)
    with place.connect(client_id=client_id, takeover="t") as again, again.session() as session:
        message = session.consumer(queue).receive(10)
        assert (message.body, message.redelivered) == ("work", True)


def test_an_application_may_have_no_client_id_but_none_that_is_no_name(place):
    """A text that names nothing is refused before anything is sent."""
    with pytest.raises(ledgermq.InvalidClientIDError):
        place.connect(client_id="a b")
    with pytest.raises(ledgermq.LedgerMQError) as caught:
        place.connect(takeover="t")
    assert caught.value.code == "setting-invalid"
