"""The producer of a worker: what ends it is told in words, and it rests while nothing waits."""

import asyncio
from types import SimpleNamespace

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


def test_a_producer_with_nothing_to_be_acknowledged_rests_until_something_is_written(monkeypatch):
    """It looked sixty times a second, most of what a worker without work took of a processor."""
    polls, written = [], []

    class Kept:
        def __init__(self, *_given, **_named):
            pass

        def poll(self, _seconds):
            polls.append(len(written))
            while written:
                written.pop()(None, SimpleNamespace(timestamp=lambda: (1, 5), offset=lambda: 7))

        def produce(self, *_given, on_delivery, **_named):
            written.append(on_delivery)

    monkeypatch.setattr(producer_module, "Producer", Kept)
    monkeypatch.setattr(producer_module, "IDLE_SECONDS", 3_600.0)

    async def live():
        producer = LogProducer("b", Topics("t"), [].append, 1_000)
        running = asyncio.create_task(producer.run())
        await asyncio.sleep(0.2)
        rested = list(polls)
        positions = [await producer.append_operation(0, b"", b"", []) for _ in range(2)]
        running.cancel()
        return rested, positions

    assert asyncio.run(live()) == ([0], [7, 7])
