"""Looking whether the log ends with a hole, where the broker takes long to tell its end."""

import asyncio

from ledgermq.processor.owner import holes
from ledgermq.processor.owner.holes import HoleWatch
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim

LEDGER = Ledger("", Topics(), Claim("QM1", 0, 1), 1.0)


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
        watch = HoleWatch(LEDGER, Folder(), side_topic)
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
