"""A connection belongs to the event loop that it was made in."""

import asyncio

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.testing import MemoryBroker

QUEUE = "queue:q"
CALLS = {
    "session": lambda connection, session, consumer: connection.session(),
    "consumer": lambda connection, session, consumer: session.consumer(QUEUE),
    "requestor": lambda connection, session, consumer: session.requestor(QUEUE),
    "receive": lambda connection, session, consumer: consumer.receive(1),
    "send": lambda connection, session, consumer: session.producer(QUEUE).send("y"),
    "recover": lambda connection, session, consumer: session.recover(),
    "close consumer": lambda connection, session, consumer: consumer.close(),
    "close session": lambda connection, session, consumer: session.close(),
}


@pytest.mark.parametrize("closed", [True, False])
def test_another_event_loop_is_refused_at_once_and_may_close(closed):
    """Nothing would wake a coroutine there: it waited for ever, or took what worked for lost."""
    broker = MemoryBroker()

    async def first():
        connection = aio.Connection(broker.connect())
        session = await connection.session()
        return connection, session, await session.consumer(QUEUE)

    async def second(connection, session, consumer):
        for call in CALLS.values():
            with pytest.raises(ledgermq.IllegalStateError, match="event loop"):
                await call(connection, session, consumer)
        assert not consumer.is_closed
        assert not session.is_closed
        await connection.close()
        assert session.is_closed

    loop = asyncio.new_event_loop()
    things = loop.run_until_complete(first())
    if closed:
        loop.close()
    asyncio.run(asyncio.wait_for(second(*things), 30))
    if not closed:
        loop.close()
    with broker.connect() as connection:
        assert list(connection.browser(QUEUE)) == []
