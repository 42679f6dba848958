"""Serving in tests of services: until an event happens, or a limit has passed."""

import asyncio

LIMIT_SECONDS = 120


async def served(service, enough):
    """Serves until an event happens."""
    serving = asyncio.create_task(service.serve())
    waiting = asyncio.create_task(enough.wait())
    done, _ = await asyncio.wait(
        {serving, waiting}, timeout=LIMIT_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
    waiting.cancel()
    service.stop()
    await serving
    assert done, "the service did nothing"


def put(connection, queue, *bodies):
    """Puts bodies to a queue."""
    with connection.session() as session:
        session.producer(queue).send_many(bodies)
