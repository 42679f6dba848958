"""Bodies that must be read back hold up nobody but who wants them (H21)."""

import asyncio
import threading
import tracemalloc
from collections import OrderedDict
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from ledgermq.processor.lanes import bodies as bodies_module
from ledgermq.processor.lanes import lanes as lanes_module
from ledgermq.processor.lanes.bodies import BodyStore, LogReader
from ledgermq.processor.lanes.lanes import LaneWriter
from ledgermq.processor.metrics.labels import Labels
from ledgermq.processor.metrics.tally import Tally
from ledgermq.processor.owner.folding import NoRecord
from ledgermq.protocol import outcomes as out
from ledgermq.protocol.operations import Alive, Put
from ledgermq.wire.framing.codec import decode_chunk, encode_operation
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import (
    BodyLostError,
    LogDamagedError,
    LogUnreadableError,
    PartitionReader,
)
from ledgermq.wire.topics.registry import Claim

ONE, TWO = b"1" * 16, b"2" * 16


class Log:
    """Bodies of which some are cold until the test lets them come."""

    def __init__(self) -> None:
        self.cold: set[int] = set()
        self.come = asyncio.Event()
        self.silent = False

    def fill(self, messages):
        """Fills in what is warm."""
        if any(one["put_position"] in self.cold for one in messages):
            return -1
        for one in messages:
            one["content"] = b"%d" % one["put_position"]
        return 10

    async def fill_cold(self, messages, where):
        """Waits until bodies may come."""
        assert where == "queue:q"
        await self.come.wait()
        if self.silent:
            raise LogUnreadableError("it does not answer")
        self.cold -= {one["put_position"] for one in messages}
        return self.fill(messages)


class Lane:
    """A producer that keeps what it is given and acknowledges at once."""

    def __init__(self) -> None:
        self.came: list[tuple[bytes, int]] = []

    def send_outcomes(self, book, connection, lane, value, *_more):
        """Takes a chunk."""
        chunk = decode_chunk(value)
        # The digest chain is that of the last outcome, held or not (PROTOCOL.md section 10).
        assert chunk.chain == b"%d" % chunk.outcomes[-1].position
        self.came += [(connection, one.position) for one in chunk.outcomes]
        book.sent[lane] += 1
        book.acknowledged[lane] += 1

    def poll(self):
        """Does nothing."""

    async def wait_for_room(self):
        """There always is."""


def delivered(position, connection, count=1):
    """A delivery of messages that were put at its position."""
    messages = [
        {
            "put_position": position,
            "put_index": index,
            "message_id": bytes(16),
            "sequence": index,
            "priority": 4,
            "persistent": True,
            "backout_count": 0,
            "enqueued_at": 1,
            "content": b"",
        }
        for index in range(count)
    ]
    outcome = out.Delivered(
        position=position,
        index=0,
        session=1,
        consumer=1,
        destination="queue:q",
        first_delivery=1,
        messages=messages,
    )
    return (NoRecord(position), [out.Addressed(connection, 0, -1, -1, outcome)], b"%d" % position)


def accepted(position, connection):
    """A reply."""
    outcome = out.Accepted(position=position, index=0, session=1, session_sequence=position)
    return (NoRecord(position), [out.Addressed(connection, 0, -1, -1, outcome)], b"%d" % position)


class Stage:
    """A lane writer whose surroundings belong to the test, with its release running."""

    async def __aenter__(self):
        self.log, self.lane = Log(), Lane()
        self.lanes = LaneWriter(Claim("QM1", 0, 1), self.lane, self.log, 1_000, Tally(Labels(0)))
        self.releasing = asyncio.create_task(self.lanes.release())
        return self

    async def __aexit__(self, *_error):
        self.releasing.cancel()
        await asyncio.gather(self.releasing, return_exceptions=True)


def test_a_cold_body_holds_up_its_own_connection_only():
    """What others get goes out at once; the connection's own outcomes keep their order (H21)."""

    async def course():
        async with Stage() as stage:
            stage.log.cold = {2, 5}
            await stage.lanes.send([accepted(1, ONE), delivered(2, ONE), accepted(3, TWO)])
            await stage.lanes.send([accepted(4, ONE), delivered(5, ONE), delivered(6, TWO)])
            await stage.lanes.send([accepted(7, ONE)])
            await asyncio.sleep(0.01)
            before = list(stage.lane.came)
            stage.log.come.set()
            await asyncio.wait_for(stage.lanes.acknowledged(stage.lanes.mark()), 5)
            return before, stage.lane.came

    before, after = asyncio.run(course())
    assert before == [(ONE, 1), (TWO, 3), (TWO, 6)]
    assert [position for name, position in after if name == ONE] == [1, 2, 4, 5, 7]
    assert len(after) == 7


def test_a_checkpoint_waits_for_what_is_held():
    """What waits for its body is not on the lane yet: no manifest passes it (H1, H21)."""

    async def course():
        async with Stage() as stage:
            stage.log.cold = {1}
            await stage.lanes.send([delivered(1, ONE)])
            waiting = asyncio.create_task(stage.lanes.acknowledged(stage.lanes.mark()))
            await stage.lanes.send([accepted(2, TWO)])
            await asyncio.sleep(0.03)
            assert not waiting.done()
            # What is held after the mark does not matter.
            mark_of_none = stage.lanes.mark()._replace(held=0)
            await asyncio.wait_for(stage.lanes.acknowledged(mark_of_none), 5)
            stage.log.come.set()
            await asyncio.wait_for(waiting, 5)
            assert (ONE, 1) in stage.lane.came

    asyncio.run(course())


def test_the_fold_waits_when_very_much_is_held(monkeypatch):
    """What is held is bounded, and a log that does not answer ends the wait with its error (D6)."""
    monkeypatch.setattr(lanes_module, "HELD_MESSAGES_MAX", 10)

    async def course():
        async with Stage() as stage:
            stage.log.cold = {1, 2}
            await asyncio.wait_for(stage.lanes.send([delivered(1, ONE, 8)]), 5)
            sending = asyncio.create_task(stage.lanes.send([delivered(2, TWO, 8)]))
            await asyncio.sleep(0.03)
            assert not sending.done()
            stage.log.silent = True
            stage.log.come.set()
            with pytest.raises(LogUnreadableError):
                await asyncio.wait_for(sending, 5)
            with pytest.raises(LogUnreadableError):
                await stage.releasing

    asyncio.run(course())


class Reader:
    """A log of Puts of ten messages each."""

    last_used = 0.0

    def __init__(self, **lost):
        self.lost = lost

    def value_at(self, position):
        """The Put at a position."""
        if position in self.lost.get("gone", ()):
            raise BodyLostError("it is gone", is_cut=True)
        if position in self.lost.get("changed", ()):
            return b"no operation"
        if position in self.lost.get("other", ()):
            return encode_operation(Alive(session=1, session_sequence=1, answered_through=0))
        messages = [
            {
                "message_id": bytes(16),
                "priority": 4,
                "persistent": True,
                "content": b"%d:%d" % (position, index),
            }
            for index in range(10)
        ]
        return encode_operation(
            Put(
                session=1,
                session_sequence=1,
                answered_through=0,
                destination="queue:q",
                messages=messages,
            )
        )

    def close(self):
        """Does nothing."""


def test_a_delivery_from_all_over_the_log_keeps_little_in_memory(monkeypatch):
    """Every body is right, and of the Puts that were read only the last stay (D6, H21)."""
    monkeypatch.setattr(bodies_module, "READ_BYTES", 5_000)
    store = BodyStore(10**9, Reader())
    messages = [{"put_position": one, "put_index": one % 10} for one in range(500, 0, -1)]

    async def course():
        wanted = asyncio.create_task(store.fill_cold(messages))
        # What others do with the store meanwhile changes nothing.
        await asyncio.sleep(0)
        store._kept = OrderedDict()
        return await wanted

    size = asyncio.run(course())
    assert [one["content"] for one in messages] == [
        b"%d:%d" % (n, n % 10) for n in range(500, 0, -1)
    ]
    assert size == sum(len(one["content"]) for one in messages)
    assert sum(cost for cost, _ in store._kept.values()) <= 5_000
    assert 500 in store._kept
    store.close()


@pytest.mark.parametrize("messages", [1, 3, 100])
@pytest.mark.parametrize("content_bytes", [0, 200, 5_000])
def test_the_cache_takes_no_more_memory_than_it_may(messages, content_bytes):
    """Small bodies put one by one too: these once took nearly twice as much (D6)."""
    store = BodyStore(1_000_000, Reader())
    size = messages * (content_bytes + 40)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for position in range(1_000, 1_000 + 3_000_000 // size):
            made = [{"content": bytes(content_bytes) + b"%d" % n} for n in range(messages)]
            store.add(position, made, size)
        del made
        assert 500_000 < tracemalloc.get_traced_memory()[0] - before <= 1_100_000
    finally:
        tracemalloc.stop()
    store.close()


def test_what_is_lost_is_left_empty_and_said_once_with_message_and_place(caplog):
    """Gone, changed, or of another operation: the others are right, and nobody is held up (D6)."""
    store = BodyStore(10**9, Reader(gone=[1], changed=[2], other=[3]))
    messages = [
        {"put_position": one, "put_index": 0, "message_id": bytes([one] * 16), "sequence": one}
        for one in range(1, 5)
    ]
    messages.append({"put_position": 4, "put_index": 10, "message_id": bytes(16), "sequence": 9})
    for _ in range(2):
        size = asyncio.run(store.fill_cold(messages[:4], "queue:q"))
        assert [one["content"] for one in messages[:4]] == [b"", b"", b"", b"4:0"]
        assert size == 3
    store._kept.clear()
    asyncio.run(store.fill_cold(messages[4:]))
    assert messages[4]["content"] == b""
    told = [one.getMessage() for one in caplog.records]
    assert [one.partition("[body-lost]")[1] for one in told] == ["[body-lost]"] * 4
    assert f"message {'01' * 16}, number 1 of queue:q, is lost: it is gone" in told[0]
    assert "number 2 of queue:q, is lost: the log was changed: position 2 holds" in told[1]
    assert "number 3 of queue:q, is lost: the log was changed: position 3 holds" in told[2]
    assert "number 9, is lost: the log was changed: position 4 holds" in told[3]
    store.close()


def test_where_very_many_are_lost_it_is_said_that_no_more_are_named(caplog, monkeypatch):
    """Else whoever reads the log takes the named ones for all."""
    monkeypatch.setattr(bodies_module, "LOST_MAX", 2)
    store = BodyStore(10**9, Reader(gone=[1, 2, 3, 4]))
    messages = [
        {"put_position": one, "put_index": 0, "message_id": bytes(16), "sequence": one}
        for one in range(1, 5)
    ]
    for _ in range(2):
        asyncio.run(store.fill_cold(messages, "queue:q"))
    told = [one.getMessage() for one in caplog.records]
    assert ["number 1 of" in told[0], "number 2 of" in told[1]] == [True, True]
    assert told[2:] == ["the contents of more than 2 messages are lost: no more of them are named"]
    store.close()


def test_a_log_that_was_cut_is_refused_where_an_answer_is_old():
    """The message may be elsewhere by now; one that is damaged is not elsewhere."""
    store = BodyStore(10**9, Reader(gone=[1], changed=[2]))
    gone, changed = (
        {"put_position": one, "put_index": 0, "message_id": bytes(16), "sequence": one}
        for one in (1, 2)
    )
    with pytest.raises(BodyLostError):
        asyncio.run(store.fill_cold([gone], refuse_cut=True))
    assert asyncio.run(store.fill_cold([changed], refuse_cut=True)) == 0
    store.close()


class NeverClosed:
    """A consumer that comes upon a damaged record, and does not end any more if it did."""

    def __init__(self, *_given, **_named) -> None:
        self.met_damage = False

    def assign(self, _partitions):
        """Goes anywhere."""

    def poll(self, _timeout):
        """What librdkafka says of a damaged record."""
        self.met_damage = True
        return SimpleNamespace(error=lambda: KafkaError(KafkaError._BAD_MSG), offset=lambda: 3)

    def consume(self, **_how):
        """Nothing behind it."""
        return []

    def close(self):
        """Waits for what never happens."""
        if self.met_damage:
            threading.Event().wait()


def read_a_body():
    """Reads back a body from the log."""
    LogReader(Ledger("127.0.0.1:9092", Topics("t"), Claim("QM1", 0, 1), 5.0)).value_at(3)


def read_a_partition():
    """Reads a partition, and closes what reads it."""
    with PartitionReader("127.0.0.1:9092", 5) as reader:
        list(reader.records("t", 0, 3))


@pytest.mark.parametrize(
    ("read", "where", "raised"),
    [
        (read_a_body, "processor.lanes.bodies", BodyLostError),
        (read_a_partition, "wire.topics.reading", LogDamagedError),
    ],
)
def test_a_reader_that_does_not_close_any_more_holds_up_nobody(monkeypatch, read, where, raised):
    """A few of a thousand that met damage did not: its worker delivered nothing more (D6)."""
    monkeypatch.setattr(f"ledgermq.{where}.Consumer", NeverClosed)
    ended = threading.Event()

    def reading():
        with pytest.raises(raised):
            read()
        ended.set()

    threading.Thread(target=reading, daemon=True).start()
    assert ended.wait(20)


class SmallRecords:
    """A consumer of a log of small records, which counts how many it was asked for."""

    def __init__(self) -> None:
        self.next = self.read = 0

    def assign(self, partitions):
        """Goes where it is sent."""
        self.next = partitions[0].offset

    def consume(self, count):
        """The next records."""
        places = range(self.next, self.next + count)
        self.next += count
        self.read += count
        return [
            SimpleNamespace(error=lambda: None, offset=lambda at=at: at, value=lambda: bytes(100))
            for at in places
        ]


def test_records_that_come_by_again_leave_the_memory_of_others_alone(monkeypatch):
    """Counted twice, they took all of it, for as long as bodies were read without a pause (D6)."""
    consumer = SmallRecords()
    monkeypatch.setattr(bodies_module, "READ_BYTES", 120_000)
    monkeypatch.setattr(bodies_module, "take_batch", lambda one, count, _: one.consume(count))
    reader = LogReader(Ledger("127.0.0.1:9092", Topics("t"), Claim("QM1", 0, 1), 5.0))
    monkeypatch.setattr(reader, "_consumer", consumer)
    for position in range(900, -1, -10):
        assert reader.value_at(position) == bytes(100)
    before = consumer.read
    for position in range(1_000):
        reader.value_at(position)
    assert consumer.read == before
