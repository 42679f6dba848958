"""Looking whether the log ends with a hole, where the broker takes long to tell its end."""

import asyncio
from types import SimpleNamespace

from ledgermq.processor.owner import holes
from ledgermq.processor.owner.holes import HoleWatch

CLAIM = SimpleNamespace(partition=0, queue_manager="QM1")


class Folder:
    """One that waits for position 5."""

    expected = 5

    def __len__(self) -> int:
        return 0


class SideTopic:
    """One that tells no end before it is told to; counts who asks."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()

    async def end_of_operations(self, _: int) -> None:
        """Not known in the end."""
        self.asked += 1
        await self.may_answer.wait()


def test_one_look_at_the_end_is_enough_while_a_broker_is_away(monkeypatch):
    """Each takes a thread, of which there are few: bodies and checkpoints would wait for one."""
    monkeypatch.setattr(holes, "END_SECONDS", 0.0)

    async def work():
        side_topic = SideTopic()
        watch = HoleWatch(CLAIM, Folder(), side_topic)
        await watch.look_at_end()
        assert watch.end_is_due
        looking = asyncio.create_task(watch.look_at_end())
        await asyncio.sleep(0.01)
        assert side_topic.asked == 1
        assert not watch.end_is_due
        side_topic.may_answer.set()
        await looking
        assert watch.end_is_due

    asyncio.run(work())
