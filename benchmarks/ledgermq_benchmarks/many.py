"""The rows with many takers: ten subscriptions of a topic, a thousand selectors, and a thousand
sessions in a loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from multiprocessing.connection import Connection as Pipe
from typing import Any

import ledgermq
from ledgermq import aio
from ledgermq_benchmarks.fold import BATCH_MESSAGES, BODY_BYTES
from ledgermq_benchmarks.life import PREFETCH_MESSAGES, WAIT_SECONDS, Address, start, times

SUBSCRIPTIONS = 10
TURN_MESSAGES = 100
SESSIONS = 1_000
# Sessions that are being opened at a time.
OPENING = 50


def _topic(destination: str) -> str:
    return "topic:" + destination.partition(":")[2]


def fan_out_producer(
    address: Address, destination: str, messages: int, pipe: Pipe
) -> dict[str, float]:
    """Publishes without waiting; `messages` counts deliveries."""
    body = os.urandom(BODY_BYTES)
    with ledgermq.connect(**address) as connection, connection.session() as session:
        producer = session.producer(_topic(destination))
        started = start(pipe)
        for _ in range(messages // SUBSCRIPTIONS):
            producer.send_async(body)
        session.flush()
        return times(started)


def _subscription(destination: str, _number: int) -> tuple[str, str]:
    return _topic(destination), ""


def selected(destination: str, number: int) -> tuple[str, str]:
    return destination, f"key = '{number}'"


def own_queue(destination: str, number: int) -> tuple[str, str]:
    return f"{destination}.{number}", ""


def keyed(count: int, number: int) -> Mapping[str, Any]:
    """The options of a send that one of `count` selectors takes."""
    return {"properties": {"key": str(number % count)}}


def in_turn_consumer(
    address: Address,
    destination: str,
    messages: int,
    pipe: Pipe,
    *,
    source: Callable[[str, int], tuple[str, str]],
    count: int,
) -> dict[str, float]:
    """Consumers of one session take turns, each with a destination and selector of its own."""
    with ledgermq.connect(**address) as connection, connection.session() as session:
        sources = [source(destination, number) for number in range(count)]
        left = {
            session.consumer(name, selector=selector, prefetch=PREFETCH_MESSAGES): messages // count
            for name, selector in sources
        }
        # The first call asks for messages, and would wait for its own answer.
        for consumer in left:
            consumer.receive_many(1, timeout=0)
        started = start(pipe)
        while left:
            for consumer in list(left):
                got = len(consumer.receive_many(BATCH_MESSAGES, timeout=WAIT_SECONDS))
                assert got, "a consumer ran dry"
                left[consumer] -= got
                if not left[consumer]:
                    del left[consumer]
        session.close()
        return times(started)


fan_out_consumer = partial(in_turn_consumer, source=_subscription, count=SUBSCRIPTIONS)


def in_turn_producer(
    address: Address, destination: str, messages: int, pipe: Pipe, *, count: int
) -> dict[str, float]:
    """Sends to queues in turn without waiting, some messages to each: a Put is for one of them."""
    body = os.urandom(BODY_BYTES)
    with ledgermq.connect(**address) as connection, connection.session() as session:
        producers = [session.producer(own_queue(destination, at)[0]) for at in range(count)]
        started = start(pipe)
        for number in range(messages):
            producers[number // TURN_MESSAGES % count].send_async(body)
        session.flush()
        return times(started)


def thousand_producer(
    address: Address, destination: str, messages: int, pipe: Pipe, *, sessions: int = SESSIONS
) -> dict[str, float]:
    """Many sessions in one event loop, each sending one message at a time."""

    async def work(session: aio.Session, queue: str) -> None:
        body = os.urandom(BODY_BYTES)
        producer = session.producer(queue)
        for _ in range(messages // sessions):
            await producer.send(body)

    return asyncio.run(_thousand(address, destination, pipe, sessions, work))


def thousand_consumer(
    address: Address, destination: str, messages: int, pipe: Pipe, *, sessions: int = SESSIONS
) -> dict[str, float]:
    """Many sessions in one event loop, each receiving one message at a time."""

    async def work(session: aio.Session, queue: str) -> None:
        consumer = await session.consumer(queue, prefetch=1)
        for _ in range(messages // sessions):
            message = await consumer.receive(timeout=WAIT_SECONDS)
            assert message is not None, "the queue ran dry"

    return asyncio.run(_thousand(address, destination, pipe, sessions, work))


async def _thousand(
    address: Address,
    destination: str,
    pipe: Pipe,
    count: int,
    work: Callable[[aio.Session, str], Awaitable[None]],
) -> dict[str, float]:
    """Opens the sessions, each with a queue of its own, and lets all of them work at once."""
    async with aio.connect(**address) as connection:
        turn = asyncio.Semaphore(OPENING)

        async def opened() -> aio.Session:
            async with turn:
                return await connection.session()

        sessions = await asyncio.gather(*(opened() for _ in range(count)))
        started = start(pipe)
        await asyncio.gather(
            *(work(session, f"{destination}.{number}") for number, session in enumerate(sessions))
        )
        return times(started)
