"""What a reader of the log takes for an answer while Kafka changes leaders, without a broker."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from ledgermq.wire.topics.reading import offsets_of


class NewLeader:
    """A consumer whose partition has a leader that does not know its end yet, once."""

    def __init__(self, code: int) -> None:
        self._refusals = [KafkaException(KafkaError(code))]

    def get_watermark_offsets(self, *_, **__):
        """The ends, the second time."""
        if self._refusals:
            raise self._refusals.pop()
        return 3, 7

    def list_topics(self, *_, **__):
        """Is asked for in between."""
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


@pytest.mark.parametrize(
    "code", [KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION]
)
def test_a_leader_that_does_not_know_its_end_yet_is_asked_again(code):
    """A worker ended of it when two of three nodes came back."""
    assert offsets_of(NewLeader(code), TopicPartition("t", 0), 10.0) == (3, 7)
