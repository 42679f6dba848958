"""What a checkpoint is cut into: every chunk fits a record, and small states are as they were
(PROTOCOL.md §10).
"""

import hashlib

import pytest

from ledgermq.core.snapshot.state_records import blocks
from ledgermq.processor.checkpoints.digests import chunk_digest, state_digest
from ledgermq.protocol import operations as op
from ledgermq.wire.framing.checkpoint_chunks import (
    CHUNK_BYTES_MAX,
    ChunkError,
    encode_block_record,
    manifest_pages,
    references_of,
    root_parts,
)
from ledgermq.wire.framing.codec import decode_record
from ledgermq.wire.topics.log_topics import DERIVED_BYTES_MAX
from support.checks import checks
from support.messages.large_states import LargeState


def _with_headers(count: int, size: int) -> LargeState:
    """A queue with messages that have one property each, of that many bytes."""
    large = LargeState()
    session = large.open()
    for _ in range(count):
        large.put(session, "queue:q", p="z" * size)
    return large


def _references(count: int) -> list[dict[str, object]]:
    return [
        {
            "kind": "block",
            "digest": hashlib.sha256(b"%d" % number).hexdigest(),
            "queue": f"queue-{number}",
            "block": 0,
        }
        for number in range(count)
    ]


def _parts(large: LargeState) -> dict[int, bytes]:
    """The chunks of all blocks by the first sequence number in each."""
    values = [value for block in blocks(large.state) for value in encode_block_record(block)]
    return {decode_record(one)[1]["messages"][0]["sequence"]: one for one in values}


def test_a_block_of_large_headers_is_cut_until_its_parts_fit():
    """1,100 messages with a property of 20 KB made one record of over 10 MiB (D5)."""
    large = _with_headers(1_100, 20_000)
    parts = _parts(large)
    assert list(parts) == [0, 128, 256, 384, 512, 640, 768, 896, 1024]
    assert max(map(len, parts.values())) < CHUNK_BYTES_MAX + 1_000
    frozen = checks.freeze(large.state)
    assert list(frozen.blocks) == list(parts.values())
    assert checks.digest(checks.thaw(frozen)) == checks.digest(large.state)


def test_parts_that_a_message_did_not_leave_stay_as_they_are():
    """What is written again after one message left is one part, not all of its block (D5)."""
    large = _with_headers(500, 20_000)
    before = _parts(large)
    session = large.open()
    large.do(op.OpenConsumer, session, consumer=1, destination="queue:q")
    large.do(op.Get, session, consumer=1, credit=1)
    large.do(op.Acknowledge, session, deliveries=[{"first": 1, "last": 1}])
    after = _parts(large)
    assert list(after) == [1, *list(before)[1:]]
    assert list(after.values())[1:] == list(before.values())[1:]


def test_a_message_with_the_largest_header_fits_whatever_stands_beside_it():
    """64 KiB of header in each of 1,024 messages still makes records that the log takes."""
    large = _with_headers(1_024, 65_535)
    assert max(map(len, _parts(large).values())) < CHUNK_BYTES_MAX + 1_000


def test_a_large_root_is_cut_every_4_mib_and_a_small_one_is_not():
    """One session can hold more than a record takes: 80 open puts with headers of 64 KB."""
    large = LargeState()
    session = large.open("TRANSACTED")
    large.put(session, "queue:q", 80, p="z" * 60_000)
    frozen = checks.freeze(large.state)
    parts = root_parts(frozen.root)
    assert [len(one) for one in parts] == [CHUNK_BYTES_MAX, len(frozen.root) - CHUNK_BYTES_MAX]
    assert b"".join(parts) == frozen.root
    assert checks.digest(large.state) == state_digest(map(chunk_digest, parts))
    assert checks.freeze(checks.thaw(frozen)) == frozen
    small = frozen.root[:CHUNK_BYTES_MAX]
    assert root_parts(small) == [small]


def test_references_stand_in_the_manifest_as_long_as_it_has_room():
    """A checkpoint of few blocks has the manifest that it always had."""
    assert manifest_pages(_references(1_000)) == []


def test_references_of_many_blocks_stand_on_pages():
    """85,000 queues with a message each have 85,000 blocks, more than a manifest can list."""
    references = [{**_references(1)[0], "kind": "root"}, *_references(85_000)]
    pages = manifest_pages(references)
    assert len(pages) > 1
    assert max(map(len, pages)) < DERIVED_BYTES_MAX / 2
    chunks = {chunk_digest(one): one for one in pages}
    listed = [{"kind": "page", "digest": one, "queue": "", "block": -1} for one in chunks]
    assert references_of({"chunks": listed}, chunks) == references


def test_pages_far_from_a_change_stay_as_they_are():
    """A block that goes at the front leaves most pages as they are stored already (D5)."""
    references = _references(200_000)
    before, after = set(manifest_pages(references)), set(manifest_pages(references[1:]))
    assert len(after - before) <= 3
    assert len(after) >= 8


@pytest.mark.parametrize(
    ("chunk", "said"),
    [
        (None, "is missing"),
        (b"else", "is damaged"),
    ],
)
def test_a_page_that_is_not_whole_is_said(chunk, said):
    """A checkpoint whose list cannot be read is passed over, not taken for a shorter one."""
    digest = chunk_digest(b"page")
    listed = [{"kind": "page", "digest": digest, "queue": "", "block": -1}]
    with pytest.raises(ChunkError, match=said):
        references_of({"chunks": listed}, {} if chunk is None else {digest: chunk})


def test_a_page_that_is_another_record_is_said():
    """A chunk with the right digest need not be a page."""
    value = encode_block_record(next(iter(blocks(_with_headers(1, 10).state))))[0]
    for found, said in (
        (value, "found ledgermq.checkpoint.MessageBlock"),
        (b"nothing", "cannot be read"),
    ):
        digest = chunk_digest(found)
        listed = [{"kind": "page", "digest": digest, "queue": "", "block": -1}]
        with pytest.raises(ChunkError, match=said):
            references_of({"chunks": listed}, {digest: found})
