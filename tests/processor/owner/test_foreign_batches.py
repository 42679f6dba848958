"""What only clients in other languages write: any codec, names of headers that are no UTF-8."""

from __future__ import annotations

import pytest

from ledgermq.processor.worker.membership import running_workers
from ledgermq.wire.framing.confluent import readable_headers
from ledgermq.wire.topics.reading import PartitionReader
from support.brokers.foreign_batches import producers, write_unnamed_header

pytestmark = pytest.mark.kafka


def topics_of(place):
    """All five."""
    topics = place.topics
    return [
        *(topics.registry, topics.operations, topics.outcomes),
        *(topics.questions, topics.checkpoints),
    ]


def check_at_work(place, worker, body):
    """The worker folds and answers questions, and so does one that starts anew."""
    for number in range(2):
        with place.connect() as connection, connection.session() as session:
            session.producer("queue:q").send(f"{body} {number}")
            message = session.consumer("queue:q").receive(timeout=20)
            assert message.body == f"{body} {number}"
            assert connection.admin.queue_status("q").name == "q"
        assert worker.code is None, worker.log[-4000:]
        if number == 0:
            worker.kill()
            worker = place.worker("again")
    assert running_workers(place.bootstrap, place.topics, 20)


@pytest.mark.parametrize("value", [None, b"", b"rubbish", b"\0\0\0\0\1rubbish"])
def test_a_header_whose_name_is_no_text_stops_no_worker(place, value):
    """On whatever topic, now and for whoever starts later; it has no time either."""
    worker = place.worker()
    for topic in topics_of(place):
        write_unnamed_header(place.bootstrap, topic, value, b"QM1/chunk/x")
    check_at_work(place, worker, "named")


def test_a_name_that_is_no_text_is_seen_however_often_one_looks(place):
    """The first look is an error; a second one at the same record once ended the process."""
    write_unnamed_header(place.bootstrap, place.topics.questions, b"x", headers=[("a", b"b")])
    with PartitionReader(place.bootstrap, 20) as reader:
        record = reader.record_at(place.topics.questions, 0, 0)
    assert [readable_headers(record) for _ in range(1000)] == [None] * 1000
    assert record.value() == b"x"


def test_every_codec_is_read_on_every_topic(place):
    """A client in another language may compress, and librdkafka if it is told to."""
    worker = place.worker()
    for producer in producers(place.bootstrap):
        for topic in topics_of(place):
            for _ in range(20):
                producer.produce(topic, b"rubbish " * 200, key="QM1/chunk/x", partition=0)
        assert producer.flush(30) == 0
    check_at_work(place, worker, "compressed")
