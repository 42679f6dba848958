"""A client's router and a worker's answers together: all that is in flight is told (H2)."""

import asyncio
from types import SimpleNamespace
from typing import Any

from ledgermq.processor.owner.answers import Answerer
from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Delivered
from support.brokers.hand_made import IDENTITY, Desk
from support.messages.large_states import LargeState

SIZE = 200_000


class Bodies:
    """Contents that say where they stand."""

    def fill(self, messages: list[Any]) -> int:
        """Fills in all of them."""
        for message in messages:
            message["content"] = message["put_position"].to_bytes(8, "big") * (SIZE // 8)
        return SIZE * len(messages)


def test_a_client_that_lost_all_outcomes_has_what_is_in_flight_and_every_reply(monkeypatch):
    """H2: 12 MB in flight and the replies of three sessions come over several pages."""
    large = LargeState()
    desk = Desk()
    handles = [large.open(connection=IDENTITY) for _ in range(3)]
    cores = [desk.session(handle) for handle in handles]
    holder, core = handles[1], cores[1]
    large.keeps_replies = True
    for one in cores:
        desk.write(one, op.OpenConsumer, consumer=1, destination="queue:q")
        desk.write(one, op.Get, consumer=1, credit=60)
    for handle in (holder, handles[0], handles[2]):
        large.do(op.OpenConsumer, handle, consumer=1, destination="queue:q")
        credit = 60 if handle == holder else 1
        large.do(op.Get, handle, consumer=1, credit=credit)
    putter = large.open()
    taken: list[Delivered] = []
    take = core.take

    def noted(outcome):
        taken.extend([outcome] if isinstance(outcome, Delivered) else [])
        take(outcome)

    monkeypatch.setattr(core, "take", noted)
    for _ in range(60):
        large.put(putter, "queue:q", size=SIZE)
    sent: list[bytes] = []
    lanes = SimpleNamespace(send_answer=lambda *told: sent.append(told[2]))
    answerer = Answerer("QM1", "w", lanes, Bodies(), None)
    desk.log.on_ask = lambda ask: answerer.take(ask, 0)
    desk.router.ask_resync()
    pages = 0
    while answerer.waiting:
        asyncio.run(answerer.answer_due(large.state))
        desk.router.take([sent.pop()])
        pages += 1
    assert pages > 3
    assert len(desk.settled) == 6
    numbers = [one.first_delivery + at for one in taken for at in range(len(one.messages))]
    in_flight = list(large.state.sessions[holder].deliveries)
    assert numbers == in_flight
    assert len(in_flight) > 50
    contents = {message["content"] for one in taken for message in one.messages}
    assert len(contents) == len(in_flight)
    assert all(one.error is None for one in desk.settled)
    assert desk.router.chain.last[0] == large.state.position
