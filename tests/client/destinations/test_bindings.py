"""Bindings: what is put to topics goes on to queues and other topics."""

import pytest

import ledgermq


def test_what_is_put_to_topics_of_a_pattern_is_on_the_queue_they_are_bound_to(connection, queue):
    """It says where it came from; a topic that is made by the put is bound as well."""
    name = queue.removeprefix("queue:")
    connection.admin.create_queue(name)
    connection.admin.bind(f"{name}.*.eu", queue, selector="amount > 1000")
    with connection.session() as session, session.consumer(queue) as consumer:
        for topic, amount in (("air.eu", 7), ("air.us", 5000), ("sea.eu", 5000)):
            producer = session.producer(f"topic:{name}.{topic}")
            producer.send(topic, properties={"amount": amount})
        message = consumer.receive(10)
        assert (message.body, message.origin.reason) == ("sea.eu", "bound")
        assert message.origin.destination == f"topic:{name}.sea.eu"
        message.acknowledge()
        assert consumer.receive(0.2) is None
    assert connection.admin.topic(f"{name}.air.eu").dropped == 1
    assert connection.admin.topic(f"{name}.sea.eu").moved == 1


def test_one_subscription_gets_what_is_put_to_many_topics(in_memory):
    """They are bound to a topic of their own, and each has its own subscriptions too."""
    in_memory.admin.create_topic("all")
    in_memory.admin.bind("orders.#", "topic:all")
    with in_memory.session() as session:
        every, one = session.consumer("topic:all"), session.consumer("topic:orders.eu")
        session.producer("topic:orders").send("first")
        session.producer("topic:orders.eu").send("second")
        assert [every.receive(5).body, every.receive(5).body] == ["first", "second"]
        assert one.receive(5).body == "second"


def test_a_unit_of_work_hands_on_with_its_commit(in_memory):
    """What is rolled back is handed on by nobody."""
    in_memory.admin.create_queue("q")
    in_memory.admin.bind("t", "queue:q")
    with in_memory.session(transacted=True) as session:
        producer = session.producer("topic:t")
        producer.send("never")
        session.rollback()
        producer.send("now")
        assert in_memory.admin.queue_status("q").message_count == 0
        session.commit()
        assert [one.body for one in session.browser("queue:q")] == ["now"]


def test_bindings_are_listed_altered_and_ended(in_memory):
    """In the order in which they were made; each is named by its topics and its destination."""
    admin = in_memory.admin
    admin.create_queue("q")
    admin.create_topic("u")
    admin.bind("t.#", "queue:q")
    admin.bind("topic:t.a", "topic:u")
    admin.bind("t.#", "queue:q", selector="a = 1")
    told = [(one.topics, one.destination, one.selector) for one in admin.bindings()]
    assert told == [("t.#", "queue:q", "a = 1"), ("t.a", "topic:u", "")]
    assert [one.topics for one in admin.bindings("topic:t.b")] == ["t.#"]
    assert admin.bindings("u") == []
    admin.unbind("t.#", "queue:q")
    assert [one.topics for one in admin.bindings()] == ["t.a"]
    with pytest.raises(ledgermq.errors.BindingNotFoundError, match=r"'t.#'"):
        admin.unbind("t.#", "queue:q")


@pytest.mark.parametrize(
    ("topics", "destination", "selector", "error"),
    [
        ("a*", "queue:q", "", ledgermq.InvalidDestinationError),
        ("#.a.#", "queue:q", "", ledgermq.InvalidDestinationError),
        ("", "queue:q", "", ledgermq.InvalidDestinationError),
        ("t", "q", "", ledgermq.InvalidDestinationError),
        ("t", "queue:x", "", ledgermq.TemporaryDestinationDeletedError),
        ("t", "queue:q", "a =", ledgermq.InvalidSelectorError),
        ("t", "topic:t", "", ledgermq.RefusedError),
        (7, "queue:q", "", ledgermq.errors.ArgumentTypeError),
    ],
)
def test_what_binds_nothing_is_refused(in_memory, topics, destination, selector, error):
    """It says what is wrong, and nothing is bound."""
    in_memory.admin.create_queue("q")
    in_memory.admin.create_topic("t")
    with pytest.raises(error):
        in_memory.admin.bind(topics, destination, selector=selector)
    assert in_memory.admin.bindings() == []


def test_a_destination_is_there_while_it_is_bound(in_memory):
    """The error says by what."""
    in_memory.admin.create_queue("q")
    in_memory.admin.bind("t.*", "queue:q")
    with pytest.raises(ledgermq.DestinationInUseError, match=r"binding of topics t.\*"):
        in_memory.admin.delete_queue("q")
