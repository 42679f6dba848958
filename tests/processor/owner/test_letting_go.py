"""An owner lets go of its state: nothing of it stays hidden from Python's search for cycles."""

import asyncio
import gc
import threading
from types import SimpleNamespace

import pytest

from ledgermq.processor.owner.owner import Owner, Surroundings
from ledgermq.processor.worker.settings import WorkerSettings
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
