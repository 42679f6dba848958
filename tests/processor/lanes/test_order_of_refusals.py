"""What is told of a session that has closed stands on the lane in the order of the log."""

from __future__ import annotations

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Delivered, Refused, SessionEnded
from support.brokers.raw_client import RawClient

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


class NotingClient(RawClient):
    """A client that notes in which order its lane tells what."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.told: list[str] = []

    def _take(self, full_name, value):
        before = len(self.outcomes), len(self.unchained), len(self.answers)
        super()._take(full_name, value)
        self.told += [type(one).__name__ for one in [*self.outcomes.values()][before[0] :]]
        self.told += [type(one).__name__ for one in self.unchained[before[1] :]]
        self.told += ["Answer"] * (len(self.answers) - before[2])


@pytest.mark.parametrize("cold", [False, True])
def test_a_session_that_closed_is_told_so_before_its_repeats_are_refused(place, cold):
    """A worker that starts finds all of it: a get, the close, what the client wrote again.

    Its bodies may have to be read back from the log first.
    """
    worker = place.worker(BODY_CACHE_BYTES=1 if cold else 64 * 1024 * 1024)
    client = NotingClient(place.bootstrap, place.topics, place.claim)
    place.clients.append(client)
    session = client.open("CLIENT")
    session.put("queue:q", 3, size=2_000)
    session.consumer(1, "queue:q", 0)
    client.read_until(lambda: len(client.outcomes) >= session.sequence + 1)
    worker.kill()
    client.told.clear()
    written = []
    for kind, fields in ((op.Get, {"consumer": 1, "credit": 3}), (op.Close, {"seen": []})):
        number = session.write(kind, **fields)
        written.append((kind, number, fields))
    for kind, number, fields in written:
        common = {"session": session.handle, "session_sequence": number}
        again = kind(**common, answered_through=session.answered, **fields)
        client.write(again, session.handle, number)
    client.flush()
    client.ask_only("RESYNC")
    place.worker(BODY_CACHE_BYTES=1 if cold else 64 * 1024 * 1024)
    client.read_until(lambda: client.told.count("Refused") == 2 and "Answer" in client.told)
    client.read(1.0)
    delivered = [one for one in client.outcomes.values() if isinstance(one, Delivered)]
    assert [len(one.messages) for one in delivered] == [3]
    assert any(isinstance(one, SessionEnded) for one in client.outcomes.values())
    assert all(isinstance(one, Refused) for one in client.unchained)
    kinds = ["Accepted", "Delivered", "SessionEnded", "Refused", "Refused"]
    assert [one for one in client.told if one != "Answer"] == kinds
    assert client.told.index("Answer") > client.told.index("SessionEnded")
