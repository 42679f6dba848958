"""What checkpoints are worth beside the digests of a rebuild, without a broker."""

import hashlib
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ledgermq.processor.checkpoints import restoring
from ledgermq.processor.checkpoints.digests import chunk_digest
from ledgermq.processor.checkpoints.loading import FoundCheckpoint
from ledgermq.processor.checkpoints.restoring import find_checkpoints, judge
from ledgermq.wire.framing.checkpoint_chunks import MANIFEST
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.topics.checkpoint_records import StoredRecords
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim

CHAIN = bytes(32)
REBUILT = {7: ("a" * 64, CHAIN)}


@pytest.mark.parametrize(
    ("changes", "verdict", "retired", "why"),
    [
        ({}, "right", False, ""),
        ({"digest": "b" * 64}, "wrong", True, "its state is not that of the log"),
        ({"chain": b"\1" * 32}, "wrong", True, "its digest chain is not that of the log"),
        ({"problem": "chunk x is missing"}, "unusable", True, "chunk x is missing"),
        ({"position": 8}, "not judged", False, "the rebuild did not come to its position"),
        ({"position": 8, "problem": "it is far"}, "unusable", True, "it is far"),
    ],
)
def test_a_checkpoint_is_taken_away_only_if_it_is_known_to_be_of_no_use(
    changes, verdict, retired, why
):
    """State and chain must both be those of the rebuild; what was not judged stays."""
    whole = {"position": 7, "digest": "a" * 64, "chain": CHAIN, "problem": ""}
    (found,) = judge([FoundCheckpoint(**(whole | changes))], REBUILT)
    assert (found.verdict, found.is_retired) == (verdict, retired)
    assert found.why.startswith(why)
    assert bool(found.why) == bool(why)


def test_a_whole_checkpoint_that_makes_no_state_is_of_no_use(monkeypatch):
    """A restore would begin with it, and never come to an end."""
    root = encode_record("ledgermq.question.Heartbeat", {"connection": bytes(16)})
    digest = chunk_digest(root)
    manifest = {
        "queue_manager": "QM1",
        "position": 7,
        "append_time_ms": 0,
        "version": 1,
        "cluster_id": "",
        "topic_id": "",
        "chain": CHAIN,
        "record_digest": b"",
        "lane_ends": [],
        "chunks": [{"kind": "root", "digest": digest, "queue": "", "block": -1}],
        "digest": hashlib.sha256(bytes.fromhex(digest)).hexdigest(),
        "worker": "w",
    }
    values = {b"QM1/manifest/7": encode_record(MANIFEST, manifest)}
    values[f"QM1/chunk/{digest}".encode()] = root
    stored = StoredRecords("QM1", values)

    @contextmanager
    def reader(*_):
        yield SimpleNamespace(ends=lambda *_: (0, 9))

    here = SimpleNamespace(difference=lambda _: "", lost_outcomes=lambda _: None, identity=None)
    monkeypatch.setattr("ledgermq.wire.topics.ledger.PartitionReader", reader)
    monkeypatch.setattr(restoring, "log_of", lambda *_: here)
    monkeypatch.setattr(restoring, "read_stored_records", lambda *_: stored)
    (found,) = find_checkpoints(Ledger("", Topics("ledgermq"), Claim("QM1", 0, 1), 1.0))
    assert (found.position, found.problem) == (7, "its chunks do not make a state")
