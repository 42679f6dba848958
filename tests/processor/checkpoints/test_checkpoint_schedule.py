"""When a checkpoint is due: by time, by operations, by blocks, and never too often (D5)."""

import asyncio
import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from ledgermq.processor.checkpoints import schedule as checkpoint_schedule
from ledgermq.processor.checkpoints.schedule import CheckpointSchedule
from ledgermq.processor.checkpoints.writing import CheckpointFailedError
from ledgermq.processor.worker.settings import WorkerSettings


class Hand:
    """A clock that a test turns, and a folder that says how much has changed."""

    def __init__(self, monkeypatch) -> None:
        self.now = 1_000.0
        self.blocks = 0
        self.operations = 0
        monkeypatch.setattr(checkpoint_schedule.time, "monotonic", lambda: self.now)
        settings = WorkerSettings(bootstrap="b:1", data_directory=Path())
        self.maker = SimpleNamespace(encoding_seconds=0.0)
        self.schedule = CheckpointSchedule("QM1", settings, self.maker, None, None)

    def is_due(self) -> bool:
        """Whether a checkpoint is due."""
        store = SimpleNamespace(touched_blocks=dict.fromkeys(range(self.blocks)))
        state = SimpleNamespace(stores={1: store})
        folder = SimpleNamespace(operations=self.operations, state=state)
        return self.schedule._is_due(folder, self.now)


@pytest.fixture
def hand(monkeypatch):
    """A schedule that has just begun."""
    return Hand(monkeypatch)


def test_a_checkpoint_is_due_after_time_operations_or_blocks(hand):
    """Each of the three is enough, and time counts only when something changed."""
    hand.now += 11.0
    assert not hand.is_due()
    hand.operations = 1
    assert hand.is_due()
    hand.now -= 11.0
    assert not hand.is_due()
    hand.operations = 100_000
    assert hand.is_due()
    hand.operations, hand.blocks = 1, 200
    assert hand.is_due()


def test_where_nothing_changed_no_queue_is_looked_at(hand):
    """There may be thousands, and a worker that has nothing to do looks five times a second."""
    hand.now += 11.0
    folder = SimpleNamespace(operations=0, state=None)
    assert not hand.schedule._is_due(folder, hand.now)


def test_encoding_takes_a_tenth_of_the_time_at_most(hand):
    """Where each message that leaves touches its own block, checkpoints come further apart."""
    hand.maker.encoding_seconds = 2.0
    hand.operations, hand.blocks = 1_000, 1_000
    hand.now += 19.0
    assert not hand.is_due()
    hand.now += 1.0
    assert hand.is_due()
    hand.maker.encoding_seconds = 100.0
    hand.now += 39.0
    assert not hand.is_due()
    hand.now += 1.0
    assert hand.is_due()


def test_who_asks_for_a_checkpoint_does_not_wait(hand):
    """The question CHECKPOINT is for the audit, which compares a state of now."""
    hand.maker.encoding_seconds = 100.0
    hand.schedule.wanted.append(object())
    assert hand.is_due()


class Failing:
    """A maker of checkpoints that fails as long as it is told to."""

    encoding_seconds = 0.0
    durable = None
    fails = True

    def __init__(self) -> None:
        self.tries = 0

    def snapshot(self, *_):
        """Nothing is needed."""

    async def write(self, *_):
        """Counts, and fails."""
        self.tries += 1
        if self.fails:
            raise CheckpointFailedError("QM1: it was not written")


@pytest.mark.parametrize("changed", [100_000, 0])
def test_a_checkpoint_that_fails_is_tried_again_at_a_growing_distance(hand, caplog, changed):
    """Not each second for ever: said 14 times in 10 minutes, then that it is over (D5).

    So it is where nothing has changed since; it waited for that, whatever it had said.
    """
    maker = Failing()
    settings = WorkerSettings(bootstrap="b:1", data_directory=Path())
    schedule = CheckpointSchedule("QM1", settings, maker, None, asyncio.run)
    state = SimpleNamespace(stores={}, position=5)
    folder = SimpleNamespace(operations=100_000, state=state, chain=b"", last_record=object())
    lanes = SimpleNamespace(mark=lambda: None)
    tried_at = []
    with caplog.at_level("INFO"):
        for _ in range(6_000):
            hand.now += 0.1
            folder.operations += changed
            before = maker.tries
            schedule.look(folder, lanes, None)
            tried_at += [hand.now] * (maker.tries - before)
        maker.fails = False
        hand.now += 60.0
        schedule.look(folder, lanes, None)
    pauses = [round(b - a) for a, b in itertools.pairwise(tried_at)]
    assert pauses == [2, 4, 8, 16, 32, *[60] * 8]
    assert len([one for one in caplog.messages if "trying again in" in one]) == 14
    assert caplog.messages[-1] == "QM1: checkpoints can be written again"
