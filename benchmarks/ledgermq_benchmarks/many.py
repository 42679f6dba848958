"""The rows with many takers: ten subscriptions of a topic, a thousand sessions in a loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection as Pipe

import ledgermq
from ledgermq import aio
from ledgermq_benchmarks.fold import BATCH_MESSAGES, BODY_BYTES
from ledgermq_benchmarks.life import PREFETCH_MESSAGES, WAIT_SECONDS, start, times

SUBSCRIPTIONS = 10
SESSIONS = 1_000
# Sessions that are being opened at a time.
OPENING = 50


def _topic(destination: str) -> str:
    return "topic:" + destination.partition(":")[2]


def fan_out_producer(address: str, destination: str, messages: int, pipe: Pipe) -> dict[str, float]:
    """Publishes without waiting; `messages` counts deliveries."""
    body = os.urandom(BODY_BYTES)
    with ledgermq.connect(address) as connection, connection.session() as session:
        producer = session.producer(_topic(destination))
        started = start(pipe)
        for _ in range(messages // SUBSCRIPTIONS):
            producer.send_async(body)
        session.flush()
        return times(started)


def fan_out_consumer(address: str, destination: str, messages: int, pipe: Pipe) -> dict[str, float]:
    """Ten consumers, each with a subscription of its own, take turns."""
    with ledgermq.connect(address) as connection, connection.session() as session:
        topic = _topic(destination)
        left = {
            session.consumer(topic, prefetch=PREFETCH_MESSAGES): messages // SUBSCRIPTIONS
            for _ in range(SUBSCRIPTIONS)
        }
        started = start(pipe)
        while left:
            for consumer in list(left):
                got = len(consumer.receive_many(BATCH_MESSAGES, timeout=WAIT_SECONDS))
                assert got, "a subscription ran dry"
                left[consumer] -= got
                if not left[consumer]:
                    del left[consumer]
        session.close()
        return times(started)


def thousand_producer(
    address: str, destination: str, messages: int, pipe: Pipe
) -> dict[str, float]:
    """A thousand sessions in one event loop, each sending one message at a time."""

    async def work(session: aio.Session, queue: str) -> None:
        body = os.urandom(BODY_BYTES)
        producer = session.producer(queue)
        for _ in range(messages // SESSIONS):
            await producer.send(body)

    return asyncio.run(_thousand(address, destination, pipe, work))


def thousand_consumer(
    address: str, destination: str, messages: int, pipe: Pipe
) -> dict[str, float]:
    """A thousand sessions in one event loop, each receiving one message at a time."""

    async def work(session: aio.Session, queue: str) -> None:
        consumer = await session.consumer(queue, prefetch=1)
        for _ in range(messages // SESSIONS):
            message = await consumer.receive(timeout=WAIT_SECONDS)
            assert message is not None, "the queue ran dry"

    return asyncio.run(_thousand(address, destination, pipe, work))


async def _thousand(
    address: str,
    destination: str,
    pipe: Pipe,
    work: Callable[[aio.Session, str], Awaitable[None]],
) -> dict[str, float]:
    """Opens the sessions, each with a queue of its own, and lets all of them work at once."""
    async with aio.connect(address) as connection:
        turn = asyncio.Semaphore(OPENING)

        async def opened() -> aio.Session:
            async with turn:
                return await connection.session()

        sessions = await asyncio.gather(*(opened() for _ in range(SESSIONS)))
        started = start(pipe)
        await asyncio.gather(
            *(work(session, f"{destination}.{number}") for number, session in enumerate(sessions))
        )
        return times(started)
