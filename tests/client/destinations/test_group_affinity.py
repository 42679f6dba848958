"""Group affinity: all messages of a group to one consumer while it is there, then to the next."""

import ledgermq


def put_groups(connection, queue, names, count):
    """Puts messages of groups in turn, named as in Jakarta Messaging."""
    with connection.session() as session:
        producer = session.producer(queue)
        for number in range(1, count + 1):
            for name in names:
                properties = {"JMSXGroupID": name, "JMSXGroupSeq": number}
                producer.send(f"{name}{number}", properties=properties)


def drained(consumer):
    """All bodies that come to a consumer now."""
    return [message.body for message in consumer.until_idle(1.0)]


def test_a_group_goes_to_one_consumer_until_that_is_closed(connection, queue):
    """Each consumer gets whole groups in order; what comes after its close goes to the other."""
    connection.admin.create_queue(queue.removeprefix("queue:"), group_affinity=True)
    names = ["red", "green", "blue", "white"]
    with connection.session() as one, connection.session() as other:
        first, second = one.consumer(queue, prefetch=1), other.consumer(queue, prefetch=1)
        put_groups(connection, queue, names, 3)
        got = {0: [], 1: []}
        while len(got[0]) + len(got[1]) < 12:
            for place, consumer in enumerate((first, second)):
                message = consumer.receive(0.5)
                if message is not None:
                    got[place].append(message.body)
        owners = {}
        for place, bodies in got.items():
            assert bodies, "both take part"
            for name in names:
                of_group = [body for body in bodies if body.startswith(name)]
                if of_group:
                    assert of_group == [f"{name}{number}" for number in (1, 2, 3)]
                    assert owners.setdefault(name, place) == place
        assert set(owners) == set(names)
        first.close()
        put_groups(connection, queue, names, 1)
        assert sorted(drained(second)) == sorted(f"{name}1" for name in names)


def test_a_group_waits_for_its_consumer_while_others_pass(connection, queue):
    """A consumer that takes nothing more holds up its own groups only."""
    connection.admin.create_queue(queue.removeprefix("queue:"), group_affinity=True)
    with connection.session(ack=ledgermq.AckMode.CLIENT) as one, connection.session() as other:
        first = one.consumer(queue, prefetch=0)
        put_groups(connection, queue, ["red"], 3)
        held = first.receive(10)
        assert held.body == "red1"
        put_groups(connection, queue, ["green"], 2)
        assert drained(other.consumer(queue)) == ["green1", "green2"]
        assert [first.receive(10).body for _ in range(2)] == ["red2", "red3"]
        one.acknowledge()
