"""A worker that is told to end: it writes what it folded into a checkpoint before it leaves."""

from __future__ import annotations

import pytest

from ledgermq.processor.checkpoints.loading import readable_manifests
from ledgermq.processor.checkpoints.stored_records import read_stored_records
from ledgermq.wire.topics.reading import PartitionReader


@pytest.mark.kafka
@pytest.mark.slow
def test_what_a_stopped_worker_folded_is_in_a_checkpoint(place):
    """The newest one covers the whole log, though none was due; the next worker starts there."""
    first = place.worker("first", checkpoint_seconds=3600)
    with place.connect() as connection:
        connection.admin.create_queue("q")
        with connection.session() as session:
            for number in range(20):
                session.producer("queue:q").send(str(number))
    assert first.stop() == 0
    with PartitionReader(place.bootstrap, 30.0) as reader:
        _, end = reader.ends(place.topics.operations, place.claim.partition)
        manifests = readable_manifests(read_stored_records(reader, place.ledger))
    assert next(iter(manifests)) == end - 1
    second = place.worker("second")
    assert f"state loaded at position {end - 1} (from a checkpoint)" in second.log
    with place.connect() as connection:
        assert connection.admin.queue_status("q").current == 20
