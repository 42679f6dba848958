"""Tests of groups, segments and logical order in an event loop: the same calls, awaited."""

import asyncio

import pytest

from ledgermq import (
    GetMatch,
    GroupStatus,
    IncompleteGroupWarning,
    InconsistentBrowseError,
    MatchOptionsError,
    Order,
)
from support.messages.group_puts import group_id, put

E1 = (
    *("A", "Y1{g=Y.1}", "Z2{g=Z.2!}", "Y2{g=Y.2}", "Y3a{g=Y.3!@0+3}", "Y3b{g=Y.3!@3+3!}"),
    *("Z1{g=Z.1}", "B"),
)
LOGICAL = ["A", "Y1", "Y2", "Y3a", "Y3b", "Z1", "Z2", "B"]


@pytest.fixture
def filled(place):
    """Puts messages from another connection."""

    def fill(queue, *words):
        with place.connect() as connection, connection.session() as session:
            put(session, queue, *words)

    return fill


@pytest.mark.parametrize("prefetch", [0, 1, 200])
def test_logical_order_in_an_event_loop(run, queue, filled, prefetch):
    """E1, and E2's loop over a group."""
    filled(queue, *E1)

    async def work(connection):
        async with connection.session(transacted=True) as session:
            consumer = await session.consumer(queue, order=Order.LOGICAL, prefetch=prefetch)
            found = [await consumer.receive(20) for _ in LOGICAL]
            await session.commit()
            return found

    found = run(work)
    assert [one.body for one in found] == LOGICAL
    assert found[1].group_status is GroupStatus.MESSAGE_IN_GROUP


@pytest.mark.parametrize("prefetch", [0, 2, 200])
def test_whole_groups_in_an_event_loop(run, queue, filled, prefetch):
    """With time-outs and a coroutine that is cancelled, nothing is lost."""
    filled(queue, *E1, "M1{g=M.1}")

    async def work(connection):
        own = {"order": Order.LOGICAL, "all_messages_available": True} if prefetch else {}
        async with connection.session(ack="CLIENT") as session:
            consumer = await session.consumer(queue, prefetch=prefetch, **own)
            found = [await consumer.receive_group(20 if prefetch else 0) for _ in range(4)]
            assert await consumer.receive_group(0) == []
            waiting = asyncio.create_task(consumer.receive_group())
            await asyncio.sleep(0.1)
            waiting.cancel()
            await asyncio.to_thread(filled, queue, "M2{g=M.2!}")
            found.append(await consumer.receive_group(20))
            await session.acknowledge()
            return [[one.body for one in group] for group in found]

    expected = [["A"], ["Y1", "Y2", "Y3a", "Y3b"], ["Z1", "Z2"], ["B"], ["M1", "M2"]]
    assert run(work) == expected


def test_options_of_a_call_in_an_event_loop(run, queue, filled):
    """Matching, what it disagrees with, complete messages and warnings."""
    filled(queue, *E1[:2], *E1[3:6], "X1{g=X.1}", "X2{g=X.2}", "N", "X3{g=X.3}")

    async def work(connection):
        async with connection.session() as session:
            consumer = await session.consumer(queue, prefetch=0)
            found = [await consumer.receive(20, match=GetMatch(group_id=group_id("Y")))]
            found.append(await consumer.receive(20, order=Order.LOGICAL))
            with pytest.raises(MatchOptionsError):
                await consumer.receive(20, order=Order.LOGICAL, match=GetMatch(group_sequence=4))
            found.append(await consumer.receive(20, order=Order.LOGICAL, complete_message=True))
            found.append(await consumer.receive(20, match=GetMatch(group_sequence=1)))
            found += [await consumer.receive(20, order="LOGICAL") for _ in range(2)]
            with pytest.warns(IncompleteGroupWarning):
                found.append(await consumer.receive(20))
            found.append(await consumer.receive(20))
            return [one.body for one in found]

    assert run(work) == ["Y1", "Y2", "Y3aY3b", "A", "X1", "X2", "N", "X3"]


def test_a_cancelled_call_with_options_leaves_the_next_one_its_own(run, queue, filled):
    """What it asked for is withdrawn before other options are asked for."""

    async def work(connection):
        async with connection.session() as session:
            consumer = await session.consumer(queue, prefetch=0)
            match = GetMatch(correlation_id="x")
            waiting = asyncio.create_task(consumer.receive(match=match))
            await asyncio.sleep(0.1)
            waiting.cancel()
            late = asyncio.create_task(consumer.receive(20, match=GetMatch(correlation_id="y")))
            await asyncio.sleep(0.1)
            await asyncio.to_thread(filled, queue, "X{correlation=x}", "Y{correlation=y}")
            return (await late).body, (await consumer.receive(20)).body

    assert run(work) == ("Y", "X")


def test_browsing_calls_in_an_event_loop(run, queue, filled):
    """First, next and iteration of a session's browser, and the message under its cursor."""
    filled(queue, *E1)

    async def work(connection):
        async with connection.session() as session:
            async with session.browser(queue, order=Order.LOGICAL) as browser:
                assert browser.destination == queue
                assert [one.body async for one in browser] == LOGICAL
                found = [await browser.first(match=GetMatch(group_id=group_id("Z")))]
                found.append(await browser.next())
                with pytest.raises(InconsistentBrowseError):
                    await browser.next(order=Order.PHYSICAL)
                consumer = await session.consumer(queue, prefetch=0)
                found.append(await consumer.receive(under_cursor=browser))
                assert await consumer.receive(under_cursor=browser) is None
            logical = [one.body async for one in connection.browse(queue, order="LOGICAL")]
            # Z2 is what comes next in group Z.
            assert logical == LOGICAL[:6]
            return [one.body for one in found]

    assert run(work) == ["Z1", "Z2", "Z2"]


@pytest.mark.parametrize("ack", ["CLIENT", "INDIVIDUAL"])
def test_a_complete_message_is_acknowledged_as_one_in_an_event_loop(
    run, connection, queue, filled, ack
):
    """All its segments are settled."""
    filled(queue, "S1{g=-S.1@0+2}", "S2{g=-S.1@2+2!}")

    async def work(connection):
        async with connection.session(ack=ack) as session:
            consumer = await session.consumer(queue, complete_message=True)
            message = await consumer.receive(20)
            await message.acknowledge()
            return message.body

    assert run(work) == "S1S2"
    assert connection.admin.queue_status(queue.partition(":")[2]).message_count == 0
