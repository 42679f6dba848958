"""What is no checkpoint, on the topic of checkpoints: passed over, never fatal, taken away."""

import hashlib
from types import SimpleNamespace

import pytest

from ledgermq.core.snapshot.state_records import root_of
from ledgermq.core.state.manager import new_state
from ledgermq.processor.checkpoints import loading as checkpoint_loading
from ledgermq.processor.checkpoints.digests import chunk_digest, state_digest
from ledgermq.processor.checkpoints.loading import VersionUnknownError, found_at, load, log_of
from ledgermq.wire.framing.checkpoint_chunks import encode_root
from ledgermq.wire.framing.checkpoint_keys import parse_key
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.topics.checkpoint_records import StoredRecords
from ledgermq.wire.topics.identity import LogIdentity
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim

CLAIM = Claim("QM1", 0, 1)
TOPICS = Topics("t")
IDENTITY = LogIdentity(cluster_id="c", topic_id="i")
MANIFEST = "ledgermq.checkpoint.Manifest"
GARBAGE_KEYS = [
    b"",
    b"\xff\xfe",
    b"QM1",
    b"QM1/manifest/",
    "QM1/manifest/²".encode(),
    "QM1/manifest/٣".encode(),
    b"QM1/manifest/-1",
    b"QM1/manifest/007",
    b"QM1/manifest/" + b"9" * 5000,
    b"QM1/manifest/\xff",
    b"QM1/chunk/",
    b"QM1/chunk/xyz",
    b"QM2/manifest/3",
    b"QM2/chunk/" + b"0" * 64,
    b"QM1/roots/0",
]


class Shelves:
    """A reader that knows the checkpoints given and an operations log of empty records."""

    def __init__(self, records: list[tuple[bytes | None, bytes | None]]) -> None:
        self._records = records

    def ends(self, topic, _partition):
        """The ends: as many operations as any manifest may ask for."""
        return (0, len(self._records) if topic == TOPICS.checkpoints else 0)

    def records(self, _topic, _partition, _first, _end):
        """The records of the checkpoints topic."""
        for key, value in self._records:
            yield SimpleNamespace(key=lambda key=key: key, value=lambda value=value: value)

    def record_at(self, _topic, _partition, _position):
        """Every operation is empty."""
        return SimpleNamespace(value=lambda: None, timestamp=lambda: (2, 5))


def chunk(value: bytes) -> tuple[bytes, bytes]:
    """A chunk as it is stored."""
    return (f"QM1/chunk/{chunk_digest(value)}".encode(), value)


def manifest(position: int, made_of: list[bytes], **changes) -> tuple[bytes, bytes]:
    """A manifest of chunks as it is stored, at its position's key."""
    digests = [chunk_digest(one) for one in made_of]
    kinds = ["root", *["block"] * (len(made_of) - 1)]
    told = {
        "queue_manager": "QM1",
        "position": position,
        "append_time_ms": 5,
        "version": 1,
        "cluster_id": "c",
        "topic_id": "i",
        "chain": bytes(32),
        "record_digest": hashlib.sha256(b"").digest(),
        "lane_ends": [0],
        "chunks": [
            {"kind": kind, "digest": digest, "queue": "", "block": -1}
            for kind, digest in zip(kinds, digests, strict=False)
        ],
        "digest": state_digest(digests),
        "worker": "w",
    }
    return (f"QM1/manifest/{position}".encode(), encode_record(MANIFEST, told | changes))


def whole(position: int) -> list[tuple[bytes, bytes]]:
    """A checkpoint that can be used."""
    state = new_state()
    state.position, state.time = position, 5_000
    root = encode_root(root_of(state))
    return [chunk(root), manifest(position, [root])]


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """The log that all checkpoints are of."""
    monkeypatch.setattr(checkpoint_loading, "log_identity", lambda *_: IDENTITY)


def loaded_from(records):
    """What a worker starts with."""
    return load(Shelves(records), Ledger("b", TOPICS, CLAIM, 1.0))


BLOCK = encode_record(
    "ledgermq.checkpoint.MessageBlock",
    {"queue": "q", "created_position": 99, "block": 0, "messages": []},
)
ROOT_OF_NOW = encode_root(root_of(new_state()))
STRAY = {"kind": "root", "digest": "no digest", "queue": "", "block": -1}
FOREIGN = {
    "no value in its schema": [(b"QM1/manifest/7", b"garbage")],
    "an empty value": [(b"QM1/manifest/7", b"")],
    "another record": [(b"QM1/manifest/7", ROOT_OF_NOW)],
    "no chunks": [manifest(7, [])],
    "chunks that are not there": [manifest(7, [b"gone"])],
    "a digest that is none": [manifest(7, [], chunks=[STRAY])],
    "a digest of others": [chunk(b"x"), manifest(7, [b"x"], digest="0" * 64)],
    "the position of another key": [(b"QM1/manifest/7", manifest(8, [b"x"])[1])],
    "another queue manager": [chunk(b"x"), manifest(7, [b"x"], queue_manager="QM2")],
    "another cluster and no chunks": [manifest(7, [b"gone"], cluster_id="elsewhere")],
    "chunks of garbage": [chunk(b"x"), manifest(7, [b"x"])],
    "a block for a root": [chunk(BLOCK), manifest(7, [BLOCK])],
    "a root of another position": [chunk(ROOT_OF_NOW), manifest(7, [ROOT_OF_NOW])],
    "a block of no queue": [chunk(ROOT_OF_NOW), chunk(BLOCK), manifest(7, [ROOT_OF_NOW, BLOCK])],
    "lanes that are not there": [chunk(b"x"), manifest(7, [b"x"], lane_ends=[9, 9, 9])],
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_manifest_that_is_not_whole_is_passed_over(what):
    """Whatever a manifest claims, without chunks that make its state an older one is taken."""
    loaded = loaded_from([*whole(3), *FOREIGN[what]])
    assert loaded.state.position == 3
    assert [one.position for one in loaded.manifests] == [3]
    assert b"QM1/manifest/7" in loaded.rubbish


UNKNOWN = b"\xc3\x01" + bytes(8)
PAGE = {"kind": "page", "digest": chunk_digest(UNKNOWN), "queue": "", "block": -1}
NEWER = {
    "root": [chunk(UNKNOWN), manifest(7, [UNKNOWN])],
    "block": [chunk(ROOT_OF_NOW), chunk(UNKNOWN), manifest(7, [ROOT_OF_NOW, UNKNOWN])],
    "page": [chunk(UNKNOWN), manifest(7, [], chunks=[PAGE])],
    "manifest": [(b"QM1/manifest/7", UNKNOWN)],
}


@pytest.mark.parametrize("part", NEWER)
def test_a_checkpoint_of_a_newer_release_stops_the_start(part):
    """From an older one its operations would be refused, though clients were told otherwise.

    Without an older one too: the log would be folded, and the checkpoint taken away.
    """
    newer = NEWER[part]
    for older in ([], whole(3)):
        with pytest.raises(VersionUnknownError, match=r"position 7 .* another release .* discard"):
            loaded_from([*older, *newer])
    assert loaded_from([*newer, *whole(9)]).state.position == 9


@pytest.mark.parametrize("part", NEWER)
@pytest.mark.parametrize("loads", [True, False])
def test_a_checkpoint_of_a_newer_release_is_known_by_its_schemas(part, loads):
    """Who only looks, as the doctor does, sees without making a state that no worker starts."""
    records = StoredRecords("QM1", dict(NEWER[part]))
    here = log_of(Shelves([]), Ledger("b", TOPICS, CLAIM, 1.0))
    found = found_at(here, records, 7, loads=loads)
    assert found.of_another_release
    assert "another release wrote it" in found.problem


def test_keys_that_are_none_are_passed_over_and_taken_away(caplog):
    """No key stops the start, the log says so once, and the next checkpoint removes them."""
    loaded = loaded_from([*((key, b"value") for key in GARBAGE_KEYS), *whole(3)])
    assert loaded.state.position == 3
    assert set(loaded.rubbish) == set(GARBAGE_KEYS)
    assert len([one for one in caplog.records if "no keys of its checkpoints" in one.message]) == 1


def test_without_any_checkpoint_that_is_whole_the_log_is_folded():
    """Foreign manifests alone leave the start of the log to begin with."""
    records = [one for found in FOREIGN.values() for one in found]
    assert loaded_from(records).state.position == -1


def test_foreign_manifests_do_not_keep_real_ones_from_staying():
    """Three manifests with huge positions are not the last three checkpoints (H13)."""
    far = [manifest(10**17 + at, [b"gone"]) for at in range(3)]
    loaded = loaded_from([*whole(1), *whole(2), *far])
    assert [one.position for one in loaded.manifests] == [2, 1]


def test_an_overwritten_chunk_is_written_again_when_it_is_needed():
    """A chunk whose bytes are not its own does not count as stored (H13)."""
    (key, _), stored = whole(3)
    loaded = loaded_from([(key, b"overwritten"), stored])
    assert loaded.state.position == -1
    assert loaded.stored == set()
    assert key in loaded.rubbish


@pytest.mark.parametrize("key", GARBAGE_KEYS)
def test_a_key_has_one_form_only(key):
    """Two keys never mean one checkpoint: what is not written as keys are is none."""
    assert parse_key("QM1", key) is None


def test_the_keys_of_checkpoints_are_read_back():
    """Positions and digests come back from the keys that are written."""
    assert parse_key("QM1", b"QM1/manifest/0") == 0
    assert parse_key("A/b", b"A/b/manifest/120") == 120
    assert parse_key("QM1", b"QM1/chunk/" + b"a" * 64) == "a" * 64
