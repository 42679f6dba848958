"""The size of the log, as brokers tell it."""

import asyncio
from types import SimpleNamespace

from ledgermq.processor.log import sizes as module
from ledgermq.processor.log.sizes import LogSizes


def test_a_cluster_without_brokers_does_not_say_how_large_the_log_is(monkeypatch, caplog):
    """Kafka answers so while it starts; nothing asked is no size of 0."""

    class Client:
        cluster = SimpleNamespace(brokers=set)

        def __init__(self, **_given):
            pass

        async def bootstrap(self):
            """It is found."""

        async def close(self):
            """Nothing is open."""

    monkeypatch.setattr(module, "AIOKafkaClient", Client)
    monkeypatch.setattr(module, "aiokafka_options", lambda _: {})
    topics = SimpleNamespace(operations="o", outcomes="u", questions="q", checkpoints="c")
    ledger = SimpleNamespace(
        topics=topics, claim=SimpleNamespace(partition=0), bootstrap="b", lanes=[0]
    )
    assert asyncio.run(LogSizes(ledger).measure()) is None
    assert "names no broker" in caplog.text
