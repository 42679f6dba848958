"""What ends the producer of a worker is told in words."""

import asyncio

import pytest
from confluent_kafka import KafkaError, KafkaException

from ledgermq.processor.lanes import producer as producer_module
from ledgermq.processor.lanes.producer import LogProducer, WriteFailedError
from ledgermq.wire.topics.log_topics import Topics


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "__cluster_metadata.* put back all of it"),
        (KafkaError.INVALID_PRODUCER_EPOCH, "failed for good: lost$"),
    ],
)
def test_a_producer_that_kafka_will_not_have_any_more_is_told_in_words(monkeypatch, code, said):
    """Kafka gives out its number again where its own metadata are older than its other data."""

    class Refused:
        def __init__(self, *_given, **_named):
            pass

        def poll(self, _seconds):
            """The library's own way to tell that all is over."""
            raise KafkaException(KafkaError(code, "lost", fatal=True))

    monkeypatch.setattr(producer_module, "Producer", Refused)
    failed = []
    producer = LogProducer("b", Topics("t"), failed.append, 1_000)
    with pytest.raises(WriteFailedError, match=said):
        asyncio.run(producer.run())
    assert [type(one) for one in failed] == [WriteFailedError]
