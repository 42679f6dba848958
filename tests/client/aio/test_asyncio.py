"""`ledgermq.aio`: the client for asyncio, in memory and on the real broker."""

import asyncio
import threading
import time

import pytest

import ledgermq
from ledgermq import aio


def test_messages_are_sent_received_and_acknowledged(run, queue):
    """One after the other, each call awaited."""

    async def work(connection):
        async with connection.session(ack="INDIVIDUAL") as session:
            producer = session.producer(queue)
            receipts = [await producer.send({"id": number}, priority=4) for number in range(3)]
            async with session.consumer(queue) as consumer:
                messages = [await consumer.receive(20) for _ in range(3)]
                await messages[1].acknowledge()
                with pytest.raises(ledgermq.AlreadySettledError):
                    await messages[1].acknowledge()
                await session.acknowledge()
                assert await consumer.receive(0) is None
        assert [receipt.sequence for receipt in receipts] == [0, 1, 2]
        assert [message.body for message in messages] == [{"id": 0}, {"id": 1}, {"id": 2}]
        return (await connection.admin.queue_status(queue)).message_count

    assert run(work) == 0


def test_auto_acknowledges_what_was_awaited(run, place, queue):
    """At the latest when the session closes."""

    async def work(connection):
        async with connection.session() as session:
            await session.producer(queue).send_many(["a", "b", "c"])
            consumer = await session.consumer(queue)
            first = await consumer.receive(20)
            await first.acknowledge()
            return first.body

    assert run(work) == "a"
    with place.connect() as connection:
        assert [one.body for one in connection.browser(queue)] == ["b", "c"]


def test_several_are_received_at_once_and_until_nothing_comes(run, queue):
    """As with threads: what is here up to a number, then all until a wait was in vain."""

    async def work(connection):
        async with connection.session() as session, session.consumer(queue) as consumer:
            assert await consumer.receive_many(5, 0) == []
            await session.producer(queue).send_many(["a", "b", "c", "d"])
            some = await consumer.receive_many(3, 20)
            some += [one async for one in consumer.until_idle(0)]
            with pytest.raises(ledgermq.IllegalStateError, match="at least 1"):
                await consumer.receive_many(0)
            with pytest.raises(ledgermq.IllegalStateError, match="seconds"):
                consumer.until_idle(-1)
            await consumer.close()
            with pytest.raises(ledgermq.IllegalStateError, match="closed"):
                await consumer.receive_many(1)
            with pytest.raises(ledgermq.IllegalStateError, match="closed"):
                consumer.until_idle(1)
        return [one.body for one in some]

    assert run(work) == ["a", "b", "c", "d"]


def test_blocks_of_units_of_work_do_not_nest(run, queue):
    """Nothing of the outer one is committed (SES-11)."""

    async def work(connection):
        async with connection.session(transacted=True) as session:
            producer = session.producer(queue)
            with pytest.raises(ledgermq.IllegalStateError, match="do not nest"):  # noqa: PT012
                async with session.transaction():
                    await producer.send("x")
                    async with session.transaction():
                        pass
            async with session.consumer(queue) as consumer:
                return await consumer.receive(0)

    assert run(work) is None


def test_a_block_of_units_of_work_that_is_kept_begins_anew_each_time(run, queue):
    """Entered again it is another unit of work; after one that failed too."""

    async def work(connection):
        async with connection.session(transacted=True) as session:
            producer = session.producer(queue)
            block = session.transaction()
            async with block:
                await producer.send("a")
            with pytest.raises(KeyError):  # noqa: PT012
                async with block:
                    await producer.send("undone")
                    raise KeyError
            async with block:
                await producer.send("b")
            async with session.consumer(queue) as consumer:
                return [one.body for one in await consumer.receive_many(9, 5)]

    assert run(work) == ["a", "b"]


def test_a_browser_that_is_closed_meanwhile_says_so(run, queue):
    """Between two messages of a page too."""

    async def work(connection):
        async with connection.session() as session:
            await session.producer(queue).send_many(["a", "b"])
            browser = await session.browser(queue)
            shown = []
            with pytest.raises(ledgermq.IllegalStateError, match="closed"):  # noqa: PT012
                async for message in browser:
                    shown.append(message.body)
                    await browser.close()
        return shown

    assert run(work) == ["a"]


async def fail_in_a_transaction(session, consumer):
    """Gets a message, then fails as an application does."""
    async with session.transaction():
        assert (await consumer.receive(20)).body == "a"
        raise RuntimeError("application")


def test_units_of_work_commit_and_roll_back(run, queue):
    """Both directions as one, in calls and as a block."""

    async def work(connection):
        async with connection.session(transacted=True) as session:
            producer = session.producer(queue)
            await producer.send("gone")
            await session.rollback()
            async with session.transaction():
                await producer.send("a")
                await producer.send("b")
            consumer = await session.consumer(queue)
            with pytest.raises(RuntimeError):
                await fail_in_a_transaction(session, consumer)
            again = await consumer.receive(20)
            receipt = await session.commit()
            assert (again.body, again.delivery_count, receipt.consumed) == ("a", 2, 1)
        return [message.body async for message in connection.browse(queue)]

    assert run(work) == ["b"]


def test_a_refused_commit_rolls_back_and_says_why(run, queue):
    """As without asyncio."""

    async def work(connection):
        await connection.admin.create_queue(queue, message_bytes_max=100)
        async with connection.session(transacted=True) as session:
            await session.producer(queue).send(b"x" * 500)
            with pytest.raises(ledgermq.TransactionRolledBackError, match="bytes"):
                await session.commit()
            await session.producer(queue).send(b"small")
            return (await session.commit()).enqueued[0].count

    assert run(work) == 1


def test_a_receive_that_waits_does_not_hold_up_the_loop(run, queue):
    """And gets what is put meanwhile, by another coroutine of the same session."""

    async def work(connection):
        async with connection.session() as session:
            consumer = await session.consumer(queue)
            waiting = asyncio.create_task(consumer.receive(30))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            await session.producer(queue).send("x")
            return (await waiting).body

    assert run(work) == "x"


def test_a_receive_that_waits_goes_on_over_a_rollback(run, queue):
    """Of another coroutine, in the same session; what was given back comes to it."""

    async def work(connection):
        async with connection.session(transacted=True) as session:
            consumer = await session.consumer(queue)
            other = await session.consumer(queue + ".other")
            await session.producer(queue + ".other").send("a")
            await session.commit()
            waiting = asyncio.create_task(consumer.receive(30))
            assert (await other.receive(20)).body == "a"
            await session.producer(queue).send("never")
            await session.rollback()
            assert (await other.receive(20)).delivery_count == 2
            await session.producer(queue).send("b")
            await session.commit()
            return (await waiting).body

    assert run(work) == "b"


def test_a_receive_runs_out_of_time(run, queue):
    """None, about when it was due; nothing is left behind."""

    async def work(connection):
        async with connection.session() as session:
            consumer = await session.consumer(queue)
            started = time.monotonic()
            assert await consumer.receive(0.3) is None
            assert time.monotonic() - started >= 0.29
            assert session._taking._futures == []

    run(work)


def test_a_cancelled_receive_loses_nothing(run, queue):
    """The next one gets the message."""

    async def work(connection):
        async with connection.session() as session:
            consumer = await session.consumer(queue)
            for number in range(20):
                waiting = asyncio.create_task(consumer.receive(30))
                await asyncio.sleep(0)
                sending = asyncio.create_task(session.producer(queue).send(str(number)))
                await asyncio.sleep(0.002 * (number % 5))
                waiting.cancel()
                await sending
                got = (
                    None
                    if waiting.cancelled()
                    else await asyncio.gather(waiting, return_exceptions=True)
                )
                if got is None or isinstance(got[0], asyncio.CancelledError):
                    assert (await consumer.receive(20)).body == str(number)
                else:
                    assert got[0].body == str(number)

    run(work)


def test_consumers_are_iterated_over(run, queue):
    """Until they are closed."""

    async def work(connection):
        async with connection.session() as session:
            await session.producer(queue).send_many(str(number) for number in range(50))
            consumer = await session.consumer(queue, prefetch=7)
            found = []
            async for message in consumer:
                found.append(message.body)
                if len(found) == 50:
                    await consumer.close()
            return found

    assert run(work) == [str(number) for number in range(50)]


def test_closing_a_session_ends_a_receive(run, queue):
    """SES-21: it returns None."""

    async def work(connection):
        session = await connection.session()
        consumer = await session.consumer(queue)
        waiting = asyncio.create_task(consumer.receive())
        await asyncio.sleep(0.1)
        await session.close()
        assert await waiting is None
        with pytest.raises(ledgermq.IllegalStateError, match="closed"):
            await consumer.receive(0)

    run(work)


def test_many_sessions_need_no_threads(run, queue):
    """A hundred sessions that all wait at once; the number of threads is that of one connection."""

    async def work(connection):
        sessions = [await connection.session() for _ in range(100)]
        consumers = [await session.consumer(queue, prefetch=1) for session in sessions]
        await asyncio.to_thread(lambda: None)
        before = threading.active_count()
        waiting = [asyncio.create_task(consumer.receive(30)) for consumer in consumers]
        await asyncio.sleep(0.2)
        assert threading.active_count() <= before
        producer = sessions[0].producer(queue)
        await producer.send_many(str(number) for number in range(100))
        found = await asyncio.gather(*waiting)
        return {message.body for message in found}

    assert run(work) == {str(number) for number in range(100)}


def test_a_send_without_an_outcome_is_unknown(breakable):
    """The error resolves to the same operation, as without asyncio."""

    async def work():
        async with aio.Connection(breakable.connect()) as connection:
            session = await connection.session()
            producer = session.producer("queue:q")
            await producer.send("first")
            breakable.worker.pause()
            with pytest.raises(ledgermq.OutcomeUnknownError, match="worker") as caught:
                await producer.send("a", timeout=0.5)
            breakable.worker.resume()
            receipt = await asyncio.to_thread(caught.value.resolve, 20)
            return receipt.sequence

    assert asyncio.run(asyncio.wait_for(work(), 60)) == 1


def test_connect_takes_an_address(installation, queue):
    """Awaited, or as a block; what it raises is what `ledgermq.connect` raises."""

    async def work():
        settings = {"topic_prefix": installation.topics.prefix}
        async with aio.connect(installation.address, **settings) as connection:
            assert connection.queue_manager == "QM1"
            async with connection.session() as session:
                await session.producer(queue).send("x")
        assert connection.is_closed
        with pytest.raises(ledgermq.AddressError):
            await aio.connect("nowhere")

    asyncio.run(asyncio.wait_for(work(), 60))


# What calls back has no counterpart: a coroutine starts a task instead.
CALLING_BACK = {
    "commit_async",
    "exception_listener",
    "message_listener",
    "send_async",
    "set_message_listener",
}
OF_BOTH = ["Connection", "Session", "Producer", "Consumer", "Browser", "GroupSender"]


@pytest.mark.parametrize("name", OF_BOTH)
def test_the_names_are_those_of_threads(name):
    """All but those of what calls back."""
    of_threads, of_coroutines = (set(dir(getattr(one, name))) for one in (ledgermq, aio))
    public = {one for one in of_threads - of_coroutines if not one.startswith("_")}
    assert public - {"open_work"} <= CALLING_BACK


def test_flush_lets_others_see_what_a_unit_of_work_puts(run, queue):
    """Decision 32: at once, by the session or a producer; a refused put is raised there."""

    async def work(connection):
        admin = connection.admin
        await admin.create_queue(queue, message_bytes_max=100)
        found = []
        async with connection.session(transacted=True) as session:
            producer = session.producer(queue)
            for flush in (session.flush, producer.flush):
                await producer.send("x")
                await flush()
                status = await admin.queue_status(queue)
                found.append((status.uncommitted_puts, status.message_count))
            await producer.send("x" * 200)
            with pytest.raises(ledgermq.MessageTooLargeError):
                await session.flush(timeout=20)
            await session.commit()
        async with connection.session() as session:
            with pytest.raises(ledgermq.IllegalStateError):
                await session.flush(timeout=-1)
            await session.producer(queue).flush()
        with pytest.raises(ledgermq.IllegalStateError, match="closed"):
            await session.flush()
        return found, [one.body async for one in connection.browser(queue)]

    assert run(work) == ([(1, 0), (2, 0)], ["x", "x"])


def test_a_consumer_that_is_closed_is_not_iterated_over(run, queue):
    """As with threads: a loop around it would go round for ever, without a message or a wait."""

    async def work(connection):
        session = await connection.session()
        by_itself, by_session = [await session.consumer(queue) for _ in range(2)]
        await by_itself.close()
        with pytest.raises(ledgermq.IllegalStateError, match="the consumer is closed"):
            _ = [one async for one in by_itself]
        await session.close()
        with pytest.raises(ledgermq.IllegalStateError, match="the session is closed"):
            _ = [one async for one in by_session]

    run(work)


def test_settings_are_read_until_the_end(run, queue):
    """Of producers, consumers and browsers, as with threads (SES-25)."""

    async def work(connection):
        async with connection.session() as session:
            producer = session.producer(queue, priority=7, time_to_live=60, delivery_delay=0.5)
            producer.priority = 8
            consumer = await session.consumer(queue, selector="n > 1", prefetch=3)
            browser = await connection.browser(queue, selector="n > 2")
            await producer.send("x", delivery_delay=0)
            found = [producer.priority, producer.time_to_live, producer.delivery_delay]
            found += [producer.persistent, producer.redelivery_limit, producer.destination]
            found += [consumer.selector, consumer.prefetch, consumer.subscription]
            found += [browser.selector, browser.position]
            found += [one.priority async for one in connection.browser(queue)]
            await browser.close()
        for thing, name in [
            (producer, "priority"),
            (producer, "destination"),
            (consumer, "selector"),
            (consumer, "prefetch"),
            (browser, "position"),
        ]:
            with pytest.raises(ledgermq.LedgerMQError, match="closed"):
                getattr(thing, name)
        return found

    said = [8, 60, 0.5, True, -1, queue, "n > 1", 3, None, "n > 2", -1, 8]
    assert run(work) == said
