"""What a checkpointer writes, record by record, without a broker (D5, H13)."""

import asyncio
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException

from ledgermq.core.snapshot.state_records import root_of
from ledgermq.processor.checkpoints import loading as checkpoint_loading
from ledgermq.processor.checkpoints import writing as checkpoints
from ledgermq.processor.checkpoints.loading import Loaded
from ledgermq.processor.checkpoints.writing import Checkpointer, CheckpointFailedError
from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq.wire.framing import checkpoint_chunks, codec
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq.wire.topics.checkpoint_records import StoredRecords
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import DERIVED_BYTES_MAX, Topics
from ledgermq.wire.topics.registry import Claim
from support.checks import checks
from support.messages.large_states import LargeState

ROOM_FOR_FRAMING = 64 * 1024


class Desk:
    """A checkpointer of a state, and the topic that it writes to."""

    def __init__(self, monkeypatch, state) -> None:
        self.state = state
        ledger = Ledger("", Topics("ledgermq"), Claim("QM1", 0, 1), 1.0)
        self.topic: dict[str, bytes] = {}
        self.written: list[str] = []
        identity = SimpleNamespace(cluster_id="c", topic_id="t")
        self.maker = Checkpointer(ledger, Loaded(state=state, identity=identity), "w")
        monkeypatch.setattr(self.maker, "_write", self._take)
        reader = SimpleNamespace(ends=lambda *_: (0, 0))
        self.maker.__dict__["_reader"] = reader

    def _take(self, records) -> None:
        for name, value in records:
            key = name.decode()
            self.written.append(key)
            if value is None:
                self.topic.pop(key, None)
            else:
                assert len(key) + len(value) < DERIVED_BYTES_MAX - ROOM_FOR_FRAMING
                self.topic[key] = value

    def checkpoint(self) -> dict:
        """Makes one; its manifest."""
        self.written.clear()
        record = SimpleNamespace(timestamp=1, value=b"")
        snapshot = self.maker.snapshot(self.state, bytes(32), record, None)
        lanes = SimpleNamespace(acknowledged=_nothing)
        return asyncio.run(self.maker.write(snapshot, lanes, _nothing))

    def restored(self) -> Loaded:
        """What a worker that starts makes of the newest manifest."""
        shelf = StoredRecords("QM1", {key.encode(): value for key, value in self.topic.items()})
        newest = max(shelf.manifests)
        _, manifest = decode_record(shelf.manifests[newest])
        return checkpoint_loading.restored(manifest, shelf, None)


async def _nothing(*_):
    """Succeeds at once."""


@pytest.fixture
def large() -> LargeState:
    """2,000 queues with a message each, headers of 64 KB, and a large unit of work."""
    large = LargeState()
    session = large.open()
    for number in range(2_000):
        large.put(session, f"queue:queue-{number}")
    for _ in range(300):
        large.put(session, "queue:q", p="z" * 60_000)
    large.put(large.open("TRANSACTED"), "queue:q", 120, p="z" * 60_000)
    return large


def test_each_record_fits_and_a_restart_has_the_same_state(monkeypatch, large):
    """Root, blocks and manifest of a large state are cut; the same digest comes back (D5)."""
    monkeypatch.setattr(checkpoint_chunks, "CHUNK_BYTES_MAX", 128 * 1024)
    desk = Desk(monkeypatch, large.state)
    manifest = desk.checkpoint()
    kinds = [one["kind"] for one in manifest["chunks"]]
    assert set(kinds) == {"page"}
    assert len(kinds) > 1
    assert manifest["digest"] == checks.digest(large.state)
    loaded = desk.restored()
    assert checks.digest(loaded.state) == manifest["digest"]
    assert loaded.blocks == desk.maker._blocks


def test_what_did_not_change_is_not_written_again(monkeypatch, large):
    """A put to one queue of 2,001 writes its block, the end of the root and a page (D5)."""
    monkeypatch.setattr(checkpoint_chunks, "CHUNK_BYTES_MAX", 128 * 1024)
    desk = Desk(monkeypatch, large.state)
    desk.checkpoint()
    whole = len(desk.written)
    large.put(large.open(), "queue:queue-7")
    desk.checkpoint()
    digests = {one for one in desk.written if "/chunk/" in one and one in desk.topic}
    blocks = {
        f"QM1/chunk/{one}": queue for queue, chunks in desk.maker._blocks.values() for one in chunks
    }
    assert [blocks[one] for one in digests if one in blocks] == ["queue-7"]
    assert len(digests) < whole / 10
    assert checks.digest(desk.restored().state) == checks.digest(large.state)


def test_what_no_kept_checkpoint_needs_is_taken_away(monkeypatch):
    """After the fourth checkpoint only the chunks of three are there, pages included."""
    monkeypatch.setattr(checkpoint_chunks, "CHUNK_BYTES_MAX", 2_000)
    large = LargeState()
    session = large.open()
    for number in range(100):
        large.put(session, f"queue:queue-{number}")
    desk = Desk(monkeypatch, large.state)
    needed = []
    for _ in range(5):
        large.put(session, "queue:queue-1")
        desk.checkpoint()
        needed.append(set(desk.maker._kept[0].digests))
    kept = {key.rpartition("/")[2] for key in desk.topic if "/chunk/" in key}
    assert kept == needed[2] | needed[3] | needed[4]


def test_a_block_that_could_not_be_encoded_is_not_forgotten(monkeypatch):
    """Nothing else remembers that it changed: the next checkpoint has it (D5)."""
    large = LargeState()
    session = large.open()
    large.put(session, "queue:a")
    large.put(session, "queue:b")
    desk = Desk(monkeypatch, large.state)

    def fails(_):
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(checkpoints, "encode_block", fails)
        with pytest.raises(CheckpointFailedError, match="not written: MemoryError"):
            desk.checkpoint()
    large.do(op.CreateQueue, session, queue="c")
    assert desk.checkpoint()["digest"] == checks.digest(large.state)
    assert checks.digest(desk.restored().state) == checks.digest(large.state)


def test_a_chunk_whose_removal_is_in_doubt_is_written_again(monkeypatch):
    """Kafka removed it but did not say so; a state that needs it again must not lack it (H13)."""
    large = LargeState()
    session = large.open()
    large.put(session, "queue:a")
    desk = Desk(monkeypatch, large.state)
    desk.checkpoint()
    large.put(session, "queue:a")
    for _ in range(2):
        desk.checkpoint()
        large.put(session, "queue:b")

    def unacknowledged(records):
        desk._take(records)
        if any(value is None for _, value in records):
            raise KafkaException("not acknowledged")

    with monkeypatch.context() as broken:
        broken.setattr(desk.maker, "_write", unacknowledged)
        desk.checkpoint()
    assert len([one for one in desk.topic if "/manifest/" in one]) == 3, "the first is gone"
    # The block of queue a is byte for byte what it was at the first checkpoint.
    large.do(administration.DeleteMessages, session, **_second_message_of("a"))
    desk.checkpoint()
    assert checks.digest(desk.restored().state) == checks.digest(large.state)


def _second_message_of(queue: str) -> dict:
    """What DeleteMessages is given to remove the message with sequence number 1."""
    whose = {"source": f"queue:{queue}", "subscription": "", "client_id": "", "durable": False}
    which = {"selector": "", "sequences": [{"first": 1, "last": 1}], "after_sequence": -1}
    return {"selection": {**whose, **which, "limit": 100}, "actor": "a", "reason": "r"}


@pytest.fixture
def codec_calls(monkeypatch) -> list:
    """What is handed to the codec from now on."""
    found: list = []
    real = codec.schemaless_writer

    def counted(buffer, schema, datum):
        found.append(datum)
        return real(buffer, schema, datum)

    monkeypatch.setattr(codec, "schemaless_writer", counted)
    return found


def test_a_snapshot_is_of_its_moment_and_encoded_later(monkeypatch, codec_calls):
    """The loop takes what is there; what becomes of it meanwhile is in the next one (D5)."""
    large = LargeState()
    session = large.open("TRANSACTED", client_id="c")
    for number in range(5):
        settings = {"deduplication_window_ms": 1_000, "deduplication_ids_max": 5}
        large.do(op.CreateQueue, session, queue=f"q{number}", **settings)
    large.do(op.OpenConsumer, session, consumer=1, destination="queue:q1")
    large.do(
        *(op.OpenConsumer, session),
        consumer=2,
        destination="topic:t",
        subscription="s",
        durable=True,
    )
    large.do(op.Bind, session, topics="t", destination="queue:q1", selector="")
    message = {"message_id": bytes(16), "priority": 4, "persistent": True, "content": b"x"}
    known = {"destination": "queue:q1", "messages": [message], "deduplication_id": "known"}
    large.do(op.Put, session, **known)
    large.do(op.Commit, session, deliveries=[], puts=1)
    large.do(op.Get, session, consumer=1, credit=2)
    large.put(session, "queue:q2")
    digest, desk = checks.digest(large.state), Desk(monkeypatch, large.state)
    codec_calls.clear()
    record = SimpleNamespace(timestamp=1, value=b"")
    snapshot = desk.maker.snapshot(large.state, bytes(32), record, None)
    assert codec_calls == []
    large.do(op.Bind, session, topics="t", destination="queue:q1", selector="a = 1")
    large.do(op.Commit, session, deliveries=[{"first": 1, "last": 1}], puts=1)
    large.do(op.AlterQueue, session, queue="q0", description="d", deduplication_window_ms=0)
    large.do(op.CloseConsumer, session, consumer=1, unseen=[])
    large.do(op.Close, session, seen=[])
    assert checks.digest(large.state) != digest
    lanes = SimpleNamespace(acknowledged=_nothing)
    manifest = asyncio.run(desk.maker.write(snapshot, lanes, _nothing))
    assert manifest["digest"] == digest
    assert desk.checkpoint()["digest"] == checks.digest(large.state)


def test_the_codec_gets_a_long_root_in_parts(large, codec_calls):
    """All threads wait while it works; the bytes are those of the Root in one (D5)."""
    root = root_of(large.state)
    codec_calls.clear()
    value = checkpoint_chunks.encode_root(root)
    sizes = [len(one) for datum in codec_calls for one in datum.values() if isinstance(one, list)]
    assert (len(root["queues"]), sum(sizes), max(sizes)) == (2_001, 2_001 + 2 + 1, 63)
    whole = [*map(checkpoint_chunks._with_replies, root["sessions"])]
    assert value == encode_record(checkpoint_chunks.ROOT, root | {"sessions": whole})


def _entries_in(datum) -> list[dict]:
    """The queues among what the codec was given: one by itself, or those of a list."""
    return [datum] if "next_sequence" in datum else datum.get("queues", [])


def test_only_queues_that_changed_are_encoded_again(monkeypatch, large, codec_calls):
    """Of 2,001 queues one was put to; the others have their bytes from the checkpoint before."""
    desk = Desk(monkeypatch, large.state)
    desk.checkpoint()
    large.put(large.open(), "queue:queue-7")
    codec_calls.clear()
    manifest = desk.checkpoint()
    encoded = [one["name"] for datum in codec_calls for one in _entries_in(datum)]
    assert encoded == ["queue-7"]
    assert manifest["digest"] == checks.digest(large.state)
