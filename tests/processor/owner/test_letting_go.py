"""An owner lets go of its state: nothing of it stays hidden from Python's search for cycles."""

import asyncio
import gc
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ledgermq.core.state.manager import new_state
from ledgermq.core.state.records import Message
from ledgermq.processor.checkpoints.loading import Loaded
from ledgermq.processor.checkpoints.stored_records import checkpoint_producer
from ledgermq.processor.checkpoints.writing import Checkpointer
from ledgermq.processor.owner.owner import Owner, Surroundings
from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.testing import MemoryBroker
from ledgermq.wire.topics.identity import LogIdentity
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim


async def _nothing(*_):
    """Succeeds at once."""


@pytest.fixture
def owner(tmp_path):
    """One whose log is nowhere."""
    around = Surroundings(
        settings=WorkerSettings(bootstrap="127.0.0.1:1", data_directory=tmp_path),
        topics=Topics("ledgermq"),
        producer=None,
        consumer=None,
        side_topic=SimpleNamespace(leave=_nothing),
    )
    return Owner(Claim("QM1", 0, 1), around)


def test_a_state_that_is_let_go_of_while_it_is_loaded_does_not_stay_in_memory(owner, monkeypatch):
    """As where a rebalance follows another: its thread ends after the owner (H11)."""
    loading, released = threading.Event(), threading.Event()

    def load():
        loading.set()
        assert released.wait(20.0)

    monkeypatch.setattr(owner, "_read_checkpoint", load)

    async def let_go():
        task = asyncio.create_task(owner.run())
        assert await asyncio.to_thread(loading.wait, 20.0)
        task.cancel()
        await owner.close()
        released.set()

    gc.unfreeze()
    asyncio.run(let_go())
    assert gc.get_freeze_count() == 0


def messages():
    """How many messages of states are in memory."""
    return sum(isinstance(one, Message) for one in gc.get_objects())


def state_with_messages():
    """The state of a queue manager with a thousand messages, of groups and a topic too."""
    broker = MemoryBroker()
    with broker.connect() as connection, connection.session() as session:
        session.consumer("topic:t", subscription="s", durable=True, shared=True)
        for _ in range(100):
            for place in ("queue:q", "queue:r", "topic:t"):
                producer = session.producer(place, time_to_live=3600, priority=7)
                producer.send_many(["a", "b"])
            with session.producer("queue:g").group() as group:
                group.send("a")
                group.send("b", last=True)
    return broker._state


def test_the_messages_of_a_state_that_was_given_up_leave_the_memory_at_once(owner):
    """Cycles are looked for seldom: each taking over left a whole state behind for hours (H11)."""
    gc.collect()
    before = messages()
    owner.folder = SimpleNamespace(state=state_with_messages())
    assert messages() - before > 700
    gc.disable()
    try:
        asyncio.run(owner.close())
        assert messages() - before < 10
    finally:
        gc.enable()


def test_an_owner_that_is_closed_has_let_go_of_its_ways_to_the_checkpoints(owner):
    """Seven threads and thirteen files stayed whenever a worker gave a queue manager up."""

    def threads():
        return {one.name for one in Path("/proc/self/task").iterdir()}

    before, ledger = threads(), Ledger("127.0.0.1:1", Topics(), owner.claim, 1.0)
    identity = LogIdentity(cluster_id="c", topic_id="t")
    checkpointer = Checkpointer(ledger, Loaded(state=new_state(), identity=identity), "w")
    checkpointer._producer = checkpoint_producer(ledger)
    assert checkpointer._reader is not None
    owner.checkpoints = SimpleNamespace(checkpointer=checkpointer)
    assert len(threads() - before) > 4
    asyncio.run(owner.close())
    deadline = time.monotonic() + 20
    while not threads() <= before:
        assert time.monotonic() < deadline, threads() - before
        time.sleep(0.02)
