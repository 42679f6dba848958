"""Who coordinates, asked while Kafka tells an empty list of brokers: it is asked again."""

from __future__ import annotations

import asyncio
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaConnectionError
from confluent_kafka.admin import AdminClient, NewTopic

from ledgermq.processor.faust_shell.application import make_application
from ledgermq.processor.faust_shell.sharing import Sharing, Standing
from ledgermq.processor.faust_shell.transport import LogConsumerThread
from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.relay.transaction_markers import finish_transaction
from ledgermq.wire.topics.log_topics import Topics


@pytest.fixture(params=["told", "hung up"])
def starting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of the first questions for metadata Kafka knows no broker, or hangs up at the second."""
    told: list[str] = []
    send = AIOKafkaConnection.send

    async def answered(connection: Any, asked: Any, *given: Any, **options: Any) -> Any:
        answer = await send(connection, asked, *given, **options)
        if "Metadata" in type(answer).__name__ and len(told) < 3:
            told.append(type(answer).__name__)
            if request.param == "hung up" and len(told) == 2:
                connection.close()
                raise KafkaConnectionError("hung up")
            answer.brokers = []
        return answer

    monkeypatch.setattr(AIOKafkaConnection, "send", answered)
    return told


def test_a_worker_waits_for_its_group_until_there_is_a_broker(broker, starting, tmp_path) -> None:
    """It joins then; an assertion of aiokafka ended it, with a traceback."""
    topic = f"none-yet-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()

    async def join() -> set[Any]:
        settings = WorkerSettings.from_environment(
            bootstrap=broker.bootstrap, data_directory=tmp_path, web_port=-1
        )
        sharing = Sharing(topic, Standing, frozenset)
        app: Any = make_application(settings, Topics(topic), None, lambda _: None, sharing)
        thread: Any = SimpleNamespace(app=app)
        consumer = LogConsumerThread._create_worker_consumer(thread, app.transport)
        async with asyncio.timeout(60):
            try:
                await consumer.start()
                consumer.subscribe([topic])
                while not consumer.assignment():
                    await consumer.getmany(timeout_ms=100)
                return set(consumer.assignment())
            finally:
                await consumer.stop()

    assert {one.topic for one in asyncio.run(join())} == {topic}
    assert len(starting) >= 3


def test_how_a_transaction_ended_is_asked_once_there_is_a_broker(broker, starting) -> None:
    """Of one that nobody began there is nothing to finish."""
    asked = (broker.bootstrap, f"none-{uuid.uuid4().hex}", "topic", 60)
    assert finish_transaction(*asked, check_position=pytest.fail) == ""
    assert len(starting) >= 3


def test_aiokafka_still_asserts() -> None:
    """Once it does not, what stands before it can go."""

    async def ask() -> None:
        client = AIOKafkaClient(bootstrap_servers="127.0.0.1:1")
        client.get_random_node = lambda: None
        with pytest.raises(AssertionError, match="bootstrap"):
            await client.coordinator_lookup(0, "group")
        await client.close()

    asyncio.run(ask())
