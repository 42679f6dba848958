"""Chunks: whatever the outcomes hold beside bodies, a record of a lane is no larger than it may."""

from __future__ import annotations

import asyncio

import pytest

from ledgermq.processor.lanes.lanes import LaneWriter
from ledgermq.processor.metrics.labels import Labels
from ledgermq.processor.metrics.tally import Tally
from ledgermq.processor.owner.folding import NoRecord
from ledgermq.protocol import outcomes as out
from ledgermq.protocol.limits import (
    DELIVERED_CONTENT_BYTES_MAX,
    HEADER_BYTES_MAX,
    UNIT_OF_WORK_DESTINATIONS_MAX,
)
from ledgermq.wire.framing.codec import decode_chunk
from ledgermq.wire.topics.log_topics import DERIVED_BYTES_MAX
from ledgermq.wire.topics.registry import Claim

CONNECTION = bytes(16)
CHUNK_BYTES = 1024 * 1024


class Lane:
    """A producer that keeps the records."""

    def __init__(self):
        self.values = []

    def send_outcomes(self, _book, _connection, _lane, value, *_more):
        """Takes a record."""
        self.values.append(value)

    def poll(self):
        """Does nothing."""

    async def wait_for_room(self):
        """There always is."""


class Bodies:
    """Bodies of one byte, all at hand."""

    def fill(self, messages):
        """Fills them in."""
        for message in messages:
            message["content"] = b"x"
        return len(messages)


def written(outcomes):
    """The values of the records in which a lane writer puts outcomes of one entry."""
    lane = Lane()
    lanes = LaneWriter(Claim("QM1", 0, 1), lane, Bodies(), CHUNK_BYTES, Tally(Labels(0)))
    addressed = [out.Addressed(CONNECTION, 0, -1, -1, one) for one in outcomes]
    asyncio.run(lanes.send([(NoRecord(0), addressed, bytes(32))]))
    return lane.values


def delivered(index, headers):
    """A delivery of messages with these headers."""
    messages = [
        {
            "sequence": number,
            "put_position": 1,
            "put_index": number,
            "message_id": bytes(16),
            "priority": 4,
            "persistent": True,
            "backout_count": 0,
            "enqueued_at": 1,
            "content": b"",
            "header": header,
        }
        for number, header in enumerate(headers)
    ]
    fields = {"session": 1, "consumer": 1, "destination": "queue:q", "first_delivery": 1}
    return out.Delivered(position=1, index=index, messages=messages, **fields)


def check(outcomes):
    """All come, in order, in records that their topic takes."""
    values = written(outcomes)
    found = [one for value in values for one in decode_chunk(value).outcomes]
    assert [one.index for one in found] == [one.index for one in outcomes]
    # Above what they aim at by one outcome at most.
    assert max(map(len, values)) < 4 * CHUNK_BYTES < DERIVED_BYTES_MAX


def test_headers_count_in_the_size_of_a_chunk():
    """500 messages with properties of 64 KiB and bodies of a byte made one record of 32 MB (H2)."""
    header = out.EMPTY_HEADER | {"properties": {"p": "x" * (HEADER_BYTES_MAX - 1)}}
    count = DELIVERED_CONTENT_BYTES_MAX // HEADER_BYTES_MAX
    check([delivered(index, [header] * count) for index in range(32)])


@pytest.mark.slow
def test_names_of_properties_count_in_the_size_of_a_chunk():
    """Very many small properties are no less than one large one (H2)."""
    header = out.EMPTY_HEADER | {"properties": {f"{n:x}": True for n in range(5_000)}}
    check([delivered(index, [header] * 15) for index in range(32)])


def test_destinations_of_a_commit_count_in_the_size_of_a_chunk():
    """Ten commits, each to as many destinations as may be, made one record of 14 MB (H2)."""
    runs = [
        {"destination": f"queue:{number:0128}", "first_sequence": 2**53, "count": 10_000}
        for number in range(UNIT_OF_WORK_DESTINATIONS_MAX)
    ]
    fields = {"session": 1, "session_sequence": 1, "enqueued": runs, "consumed": 0}
    check([out.Committed(position=1, index=index, **fields) for index in range(10)])
