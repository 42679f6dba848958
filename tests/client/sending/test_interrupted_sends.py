"""Ctrl-C at any moment of a send that is not waited for: it is sent once, or not at all."""

import itertools

import pytest

from ledgermq.testing import MemoryBroker
from support.interrupting import interrupted_at


def test_an_interrupted_send_async_is_sent_once_at_most():
    """What was on its way already was sent again with the next one, under another number."""
    memory = MemoryBroker()
    with memory.connect(timeout=20.0) as connection, connection.session() as session:
        producer = session.producer("queue:q")
        for moment in itertools.count(1):
            was = interrupted_at(moment, lambda: producer.send_async(str(moment)))  # noqa: B023
            producer.flush(timeout=5)
            if not was:
                break
        sent = [int(one.body) for one in connection.browser("queue:q")]
    assert moment > 20
    assert sent == sorted(set(sent))
    assert sent[-1] == moment


@pytest.mark.parametrize("ack", ["AUTO", "CLIENT"])
def test_an_interrupted_close_of_a_consumer_closes_it_or_can_be_done_again(ack):
    """Else nobody would ever get what it was given and has not handed over."""
    memory = MemoryBroker()
    with memory.connect(timeout=20.0) as connection, connection.session(ack=ack) as session:
        for moment in itertools.count(1):
            with connection.session() as sending:
                sending.producer("queue:q").send_many("ab")
            consumer = session.consumer("queue:q")
            assert consumer.receive(20).body == "a"
            was = interrupted_at(moment, consumer.close)
            consumer.close()
            with connection.session() as other:
                assert other.consumer("queue:q").receive(20).body == "b", moment
            if not was:
                break
            if ack == "CLIENT":
                session.acknowledge()
