"""A bridge that is ended between what goes aside and what goes on, on an embedded queue manager."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ledgermq.client.sending.sourced import SourcedPuts
from ledgermq.relay import bridge_in
from ledgermq.relay.bridge_in import BridgeIn
from ledgermq.testing import MemoryBroker

# The first is JSON and no text, the last text and no JSON.
VALUES = ["1".encode("utf-16"), b"1", b"no JSON"]


def record(offset):
    """A record that has nothing but a value."""
    told = {
        "topic": "t",
        "partition": 0,
        "offset": offset,
        "value": VALUES[offset],
        "key": None,
        "headers": None,
        "timestamp": (0, 0),
        "error": None,
    }
    return SimpleNamespace(**{name: lambda one=value: one for name, value in told.items()})


class _Reader:
    """Reads the values as the records of one partition."""

    source = "kafka:t/1/2"

    def __init__(self, *_):
        self.at_end = set()

    def partitions(self):
        return [0]

    def ends(self, _):
        return 0, len(VALUES)

    def assign(self, positions):
        self.first = positions[0]

    def read(self, _):
        self.at_end.add(0)
        return {0: [record(offset) for offset in range(self.first, len(VALUES))]}

    def close(self):
        pass


class Killed(BaseException):
    """Nothing is done after it."""


@pytest.mark.parametrize(
    ("first", "second"), [("json", "text"), ("text", "json"), ("json", "json")]
)
def test_a_bridge_that_goes_on_with_another_body_leaves_no_record_out(monkeypatch, first, second):
    """What went aside of one body says nothing of what is no message of another."""
    broker = MemoryBroker()
    with broker.connect() as connection:
        connection.admin.create_queue("q")
        connection.admin.create_queue("aside")
    monkeypatch.setattr(bridge_in, "TopicReader", _Reader)
    put = SourcedPuts.put

    def run(body):
        BridgeIn(
            connect=broker.connect,
            bootstrap="",
            topic="t",
            target="queue:q",
            body=body,
            bad="queue:aside",
            until_end=True,
        ).run()

    def killed_before_the_second(self, destination, *rest):
        if destination == "queue:q":
            raise Killed
        return put(self, destination, *rest)

    monkeypatch.setattr(SourcedPuts, "put", killed_before_the_second)
    with pytest.raises(Killed):
        run(first)
    monkeypatch.setattr(SourcedPuts, "put", put)
    run(second)
    run(second)
    with broker.connect() as connection:
        found = [
            one.properties["LedgerMQ_KafkaOffset"]
            for queue in ("q", "aside")
            for one in connection.browser(f"queue:{queue}")
        ]
    assert set(found) == set(range(len(VALUES)))
    assert first != second or len(found) == len(VALUES)
