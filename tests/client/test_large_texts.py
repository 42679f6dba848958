"""Texts of megabytes where a name is wanted: the call fails, session and queue manager go on."""

import pytest

import ledgermq
from ledgermq.protocol.limits import HEADER_BYTES_MAX

LONG = "\x01" * 3_000_000


def test_a_subscription_with_a_name_of_megabytes_is_refused(connection, queue, named):
    """The refusal quotes a part of it, and so fits into a record of the lane (decision 8, H2)."""
    with connection.session() as session:
        with pytest.raises(ledgermq.LedgerMQError) as raised:
            session.consumer(f"topic:{named}", subscription=LONG, durable=True, shared=True)
        assert len(str(raised.value)) < 10_000
        session.producer(queue).send("goes on")
        assert session.consumer(queue).receive(20).body == "goes on"


def test_a_connection_with_a_client_id_of_megabytes_is_refused(place, connection, queue):
    """An error of the call; the queue manager goes on (H27)."""
    with pytest.raises(ledgermq.LedgerMQError), place.connect(client_id=LONG) as opened:
        opened.session()
    with connection.session() as session:
        session.producer(queue).send("goes on")
        assert session.consumer(queue).receive(20).body == "goes on"


def test_messages_with_the_largest_properties_are_delivered_in_several_records(connection, queue):
    """200 with 64 KiB each are more than a record of the lane takes, though not in bodies (H2)."""
    properties = {"p": "x" * (HEADER_BYTES_MAX - 1)}
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        for number in range(200):
            producer.send(str(number), properties=properties)
        session.commit()
        consumer = session.consumer(queue)
        found = [consumer.receive(20) for _ in range(200)]
        assert [one.body for one in found] == [str(number) for number in range(200)]
        assert all(one.properties == properties for one in found)
        session.commit()
