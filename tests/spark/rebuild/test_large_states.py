"""Checkpoints in parts as audit and rebuild read and make them (PROTOCOL.md §10)."""

import hashlib

import pytest

from ledgermq.wire.framing import checkpoint_chunks
from ledgermq.wire.framing.checkpoint_chunks import encode_block_record, manifest_pages, root_parts
from ledgermq_spark.rebuild.checkpoints import CheckpointBrokenError, Checkpoints, state_digest
from ledgermq_spark.rebuild.fold import FOLD_COLUMNS, FoldPlan, starting_state, state_rows
from support.checks import checks
from support.messages.large_states import LargeState


def _digest(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()


@pytest.fixture
def large(monkeypatch) -> LargeState:
    """A state whose root and blocks are cut, and whose references stand on pages."""
    monkeypatch.setattr(checkpoint_chunks, "CHUNK_BYTES_MAX", 2_000)
    large = LargeState()
    session = large.open()
    for number in range(60):
        large.put(session, f"queue:queue-{number % 5}", 3, p="z" * 300)
    large.put(large.open("TRANSACTED"), "queue:q", 20, p="z" * 300)
    return large


def test_rows_of_a_state_have_the_parts_of_a_block_in_order(large):
    """Rebuild and backup sort rows: the digest of what they bring is that of the state."""
    names = [name for name, _ in FOLD_COLUMNS]
    rows = [dict(zip(names, row, strict=True)) for row in state_rows(large.state, 0, b"")]
    blocks = [row for row in rows if row["part"] == "block"]
    assert len(blocks) > len({row["block"] for row in blocks}) + 5
    blocks.sort(key=lambda row: (row["created_position"], row["block"], row["number"]))
    (root,) = (row["payload"] for row in rows if row["part"] == "root")
    payloads = [row["payload"] for row in blocks]
    assert state_digest([root, *payloads]) == checks.digest(large.state)
    state = starting_state(FoldPlan(partition=0, root=root, blocks=payloads))
    assert checks.digest(state) == checks.digest(large.state)


def test_a_checkpoint_in_parts_is_read_whole_or_not_at_all(large):
    """Parts of the root are joined, pages are looked up; a page that is missing is said."""
    frozen = checks.freeze(large.state)
    kinds = [("root", one) for one in root_parts(frozen.root)]
    kinds += [("block", one) for one in frozen.blocks]
    references = [
        {"kind": kind, "digest": _digest(value), "queue": "", "block": -1} for kind, value in kinds
    ]
    pages = manifest_pages(references)
    assert len(pages) > 1
    chunks = {_digest(one): one for one in (*pages, *(value for _, value in kinds))}
    listed = [{"kind": "page", "digest": _digest(one), "queue": "", "block": -1} for one in pages]
    manifest = {"position": 7, "chunks": listed, "digest": checks.digest(large.state)}
    stored = Checkpoints(manifests={7: manifest}, chunks=chunks)
    found = stored.load(7)
    assert (found.root, tuple(found.blocks)) == frozen
    del chunks[listed[1]["digest"]]
    with pytest.raises(CheckpointBrokenError, match=r"position 7 is not whole: chunk \w+ is miss"):
        stored.load(7)
    assert encode_block_record(found.block_records()[0]) == [frozen.blocks[0]]
