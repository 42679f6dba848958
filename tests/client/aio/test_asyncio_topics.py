"""Topics, selectors, requests and temporary destinations with `ledgermq.aio`."""

import asyncio
import uuid

import pytest

import ledgermq


def test_aio_subscribers_get_what_they_select(run, queue):
    """Each has its own subscription, and its own selector (SES-35, SES-70)."""
    topic = queue.replace("queue:", "topic:")

    async def work(connection):
        async with connection.session() as session:
            every = await session.consumer(topic)
            red = await session.consumer(topic, selector="color = 'red'")
            producer = session.producer(topic)
            for number, color in enumerate(("blue", "red", "green")):
                await producer.send(str(number), properties={"color": color})
            found = [(await every.receive(20)).body for _ in range(3)]
            return found, (await red.receive(20)).body, await red.receive(0)

    assert run(work) == (["0", "1", "2"], "1", None)


def test_aio_durable_subscriptions_are_kept_and_ended(run, queue):
    """Across connections of one client id (SES-47, SES-62)."""
    topic = queue.replace("queue:", "topic:")
    client_id = f"client-{uuid.uuid4().hex}"

    async def subscribe(connection):
        async with connection.session() as session:
            await session.consumer(topic, subscription="d", durable=True)
            await session.producer(topic).send("kept")

    async def take(connection):
        async with connection.session() as session:
            async with session.consumer(topic, subscription="d", durable=True) as consumer:
                body = (await consumer.receive(20)).body
            await session.unsubscribe("d")
            with pytest.raises(ledgermq.SubscriptionNotFoundError):
                await session.unsubscribe("d")
            return body

    run(subscribe, client_id=client_id)
    assert run(take, client_id=client_id) == "kept"


def test_aio_requests_get_their_replies(run, queue):
    """Asked and answered in one event loop (SES-39)."""

    async def answer(connection):
        async with connection.session() as session:
            consumer = await session.consumer(queue)
            request = await consumer.receive(20)
            await session.reply(request, f"re {request.body}")

    async def work(connection):
        answering = asyncio.create_task(answer(connection))
        async with connection.session() as session, session.requestor(queue) as requestor:
            reply = await requestor.request("hello", timeout=20)
            await answering
            return reply.body, await requestor.request("nobody", timeout=0.2)

    assert run(work) == ("re hello", None)


def test_aio_requests_in_a_transacted_session_are_refused(run, queue):
    """The request would wait for its own commit."""

    async def work(connection):
        async with connection.session(transacted=True) as session:
            with pytest.raises(ledgermq.IllegalStateError, match="transacted"):
                await session.requestor(queue)

    run(work)


def test_aio_temporary_destinations_end_when_deleted(run):
    """Queue and topic (SES-39)."""

    async def work(connection):
        async with connection.session() as session:
            for make in (session.temporary_queue, session.temporary_topic):
                destination = await make()
                consumer = await session.consumer(destination)
                await session.producer(destination).send("x")
                assert (await consumer.receive(20)).body == "x"
                await consumer.close()
                await session.delete_temporary(destination)
                with pytest.raises(ledgermq.TemporaryDestinationDeletedError):
                    await session.producer(destination).send("y")

    run(work)


def test_aio_browsers_select(run, queue):
    """Nothing is taken (SES-40)."""

    async def work(connection):
        async with connection.session() as session:
            producer = session.producer(queue, priority=2)
            for number in range(4):
                await producer.send(str(number), properties={"n": number}, delivery_delay=0)
        return [one.body async for one in connection.browse(queue, selector="n > 1")]

    assert run(work) == ["2", "3"]


def test_aio_prefetch_0_asks_no_longer_after_a_time_out(run, queue):
    """What comes then goes to whoever waits."""

    async def work(connection):
        async with connection.session() as first, connection.session() as second:
            idle = await first.consumer(queue, prefetch=0)
            assert await idle.receive(0.1) is None
            await first.producer(queue).send("x", time_to_live=60)
            waiting = await second.consumer(queue, prefetch=0)
            assert (await waiting.receive(20)).body == "x"
            assert await idle.receive(0) is None

    run(work)
