"""Units of work and sessions that administration looks at and ends (SES-20, decision 12)."""

import asyncio
import threading

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.protocol.operations import Commit
from ledgermq.testing import MemoryBroker
from support.brokers.hand_made import delivered, refused

WHO = {"reason": "stuck since noon", "actor": "operator"}


def working(connection, queue):
    """A transacted session with two puts and a get that are not committed."""
    with connection.session() as filler:
        filler.producer(f"queue:{queue}").send("in")
    session = connection.session(transacted=True)
    assert session.consumer(f"queue:{queue}").receive(20).body == "in"
    producer = session.producer(f"queue:{queue}.out")
    producer.send("one")
    producer.send("two")
    session.flush()
    return session


def test_open_units_of_work_are_told_with_what_they_hold(connection):
    """By destination, with counts and bytes, and since when."""
    session = working(connection, "work.told")
    told = connection.admin.transaction(session.handle)
    assert told in connection.admin.transactions()
    assert [(one.destination, one.messages) for one in told.puts] == [("queue:work.told.out", 2)]
    assert [(one.destination, one.messages) for one in told.gets] == [("queue:work.told", 1)]
    assert all(one.bytes > 0 for one in (*told.puts, *told.gets))
    status = next(one for one in connection.admin.sessions() if one.session == session.handle)
    assert status.unit_of_work_began_at == told.began_at
    session.commit()
    with pytest.raises(ledgermq.SessionNotFoundError):
        connection.admin.transaction(session.handle)
    session.close()


def test_an_uncommitted_put_is_pending_though_nobody_flushed(connection, named, eventually):
    """A long unit of work is no secret: soon its puts stand in it, and the commit counts them."""
    connection.admin.create_queue(named)
    with connection.session(transacted=True) as session:
        producer = session.producer(f"queue:{named}")
        producer.send("one")
        eventually(lambda: connection.admin.queue_status(named).uncommitted_puts == 1)
        producer.send("two")
        eventually(lambda: connection.admin.queue_status(named).pending == 2)
        receipt = session.commit()
        assert sum(run.count for run in receipt.enqueued) == 2
        assert connection.admin.queue_status(named).current == 2


def test_a_commit_after_administration_rolled_back_raises_that_it_was(connection):
    """TransactionRolledBackError names who did it; the session goes on (SES-20, decision 12)."""
    session = working(connection, "work.ended")
    position = connection.admin.rollback_transaction(session.handle, **WHO)
    out = connection.admin.queue_status("work.ended", not_before=position)
    assert (out.current, out.uncommitted_gets) == (1, 0)
    found = connection.admin.session(session.handle)
    assert "stuck since noon" in found.unit_of_work_ended_by
    with pytest.raises(ledgermq.TransactionRolledBackError, match="operator"):
        session.commit()
    message = session.consumer("queue:work.ended").receive(20)
    assert (message.body, message.delivery_count) == ("in", 2)
    session.producer("queue:work.ended.out").send("again")
    committed = session.commit()
    status = connection.admin.queue_status("work.ended.out", not_before=committed.position)
    assert (status.message_count, status.next_sequence) == (1, 1)
    session.close()


def test_a_session_whose_unit_of_work_was_ended_may_roll_back_or_close(in_memory):
    """Neither is an error: the work is undone already."""
    first = working(in_memory, "q")
    in_memory.admin.rollback_transaction(first.handle, **WHO)
    first.rollback()
    assert first.consumer("queue:q").receive(20).body == "in"
    first.rollback()
    first.close()
    second = in_memory.session(transacted=True)
    assert second.consumer("queue:q").receive(20).body == "in"
    in_memory.admin.rollback_transaction(second.handle, **WHO)
    second.close()
    assert in_memory.admin.queue_status("q").current == 1


def test_there_is_nothing_to_roll_back_without_a_unit_of_work(in_memory):
    """An unknown session, and one that holds nothing."""
    session = in_memory.session(transacted=True)
    with pytest.raises(ledgermq.SessionNotFoundError) as refused:
        in_memory.admin.rollback_transaction(session.handle, **WHO)
    assert refused.value.code == "target-unknown"
    with pytest.raises(ledgermq.SessionNotFoundError):
        in_memory.admin.rollback_transaction(999_999, **WHO)
    with pytest.raises(ledgermq.SessionNotFoundError):
        in_memory.admin.session(999_999)
    session.close()


def test_administration_ends_a_session(connection):
    """What it holds goes back; its next call says that administration did it."""
    session = working(connection, "work.session")
    position = connection.admin.end_session(session.handle, **WHO)
    status = connection.admin.queue_status("work.session", not_before=position)
    assert (status.current, status.receivers) == (1, 0)
    with pytest.raises(ledgermq.TransactionRolledBackError, match=r"Administration|gone|ended"):
        session.commit()
    with pytest.raises(ledgermq.SessionNotFoundError):
        connection.admin.end_session(session.handle, **WHO)
    session.close()


@pytest.mark.parametrize("how", ["commit", "commit_async", "transaction"])
@pytest.mark.parametrize("known", [False, True], ids=["unaware", "told"])
def test_a_commit_of_an_ended_session_says_that_it_was_rolled_back(
    in_memory, eventually, how, known
):
    """Decision 12, SES-20: also when the client knew of the end before; other calls say why."""
    session = in_memory.session(transacted=True)
    producer = session.producer("queue:work.over")

    def end():
        in_memory.admin.end_session(session.handle, **WHO)
        if known:
            eventually(lambda: session.is_closed)

    def commit():
        if how == "transaction":
            with session.transaction():
                end()
            return
        producer.send("never")
        end()
        session.commit() if how == "commit" else session.commit_async().result(20)

    with pytest.raises(ledgermq.TransactionRolledBackError) as raised:
        commit()
    assert raised.value.retryable
    eventually(lambda: session.is_closed)
    with pytest.raises(ledgermq.TransactionRolledBackError, match="another session"):
        session.commit()
    for other in (session.rollback, lambda: producer.send("x"), session.flush):
        with pytest.raises(ledgermq.SessionLostError, match="another session"):
            other()
    session.close()
    with pytest.raises(ledgermq.IllegalStateError):
        session.commit()


def test_a_commit_of_an_ended_session_says_so_in_a_coroutine(in_memory):
    """Decision 12, SES-20: for asyncio alike, whether administration or silence ended it."""

    async def main():
        connection = aio.Connection(in_memory)
        session = await connection.session(transacted=True)
        await session.producer("queue:work.over").send("never")
        in_memory.admin.end_session(session.handle, **WHO)
        for _ in range(2):
            with pytest.raises(ledgermq.TransactionRolledBackError):
                await session.commit()
        with pytest.raises(ledgermq.SessionLostError):
            await session.rollback()
        await session.close()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_session_is_told_with_its_consumers_and_why_they_get_nothing(in_memory):
    """A limit, a queue whose gets are disabled, no credit (SES-07)."""
    in_memory.admin.create_queue("q", unacknowledged_max=1)
    with in_memory.session() as filler:
        filler.producer("queue:q").send_many("ab")
    with in_memory.session(ack="CLIENT") as session:
        consumer = session.consumer("queue:q", prefetch=10)
        message = consumer.receive(20)
        found = in_memory.admin.session(session.handle)
        assert found.status.in_flight == 1
        assert found.consumers[0].paused == ("unacknowledged-max",)
        (delivery,) = found.deliveries
        assert (delivery.sequence, delivery.destination) == (message.sequence, "queue:q")
        in_memory.admin.suspend_queue("q")
        paused = in_memory.admin.session(session.handle).consumers[0].paused
        assert paused == ("unacknowledged-max", "gets-disabled")
        message.acknowledge()
        in_memory.admin.resume_queue("q")
        assert consumer.receive(20).body == "b"


def put_for_ever(producer):
    """Ends when the producer's session knows that its unit of work is over."""
    while True:
        producer.send("second")


def test_calls_after_a_time_limit_raise_until_a_commit_did_and_the_session_goes_on():
    """`unit-of-work-timed-out` says which limit; the puts around it vanish, later ones do not."""
    broker = MemoryBroker()
    with broker.connect(timeout=20.0) as memory:
        session = memory.session(transacted=True, unit_of_work_idle_limit_ms=1_000)
        producer = session.producer("queue:q.out")
        producer.send("first")
        session.flush()
        broker.advance(1.2)
        with pytest.raises(ledgermq.TransactionRolledBackError, match="broke a time limit"):
            put_for_ever(producer)
        with pytest.raises(ledgermq.TransactionRolledBackError, match="broke a time limit"):
            producer.send("second")
        with pytest.raises(ledgermq.TransactionRolledBackError, match="idle limit"):
            session.commit()
        producer.send("third")
        committed = session.commit()
        status = memory.admin.queue_status("q.out", not_before=committed.position)
        assert status.message_count == 1


def test_who_waits_for_a_message_is_told_of_a_time_limit_and_gets_it_again_after_a_rollback():
    """Every receive raises until the session rolls back; what it got counts as backed out."""
    broker = MemoryBroker()
    with broker.connect(timeout=20.0) as memory:
        with memory.session() as filler:
            filler.producer("queue:q").send_many(["a", "b"])
        session = memory.session(transacted=True, unit_of_work_idle_limit_ms=1_000)
        consumer = session.consumer("queue:q", prefetch=0)
        assert consumer.receive(20).body == "a"
        memory.admin.suspend_queue("q")
        waiting = threading.Timer(0.2, broker.advance, (1.2,))
        waiting.start()
        for _ in range(2):
            with pytest.raises(ledgermq.TransactionRolledBackError, match="broke a time limit"):
                consumer.receive()
        waiting.join()
        memory.admin.resume_queue("q")
        session.rollback()
        again = consumer.receive(20)
        assert (again.body, again.delivery_count) == ("a", 2)
        session.commit()


@pytest.mark.parametrize("wrong", [-1, 2**53])
def test_a_time_limit_is_a_whole_number_in_range(in_memory, wrong):
    """IllegalStateError, with nothing opened."""
    for name in ("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms"):
        with pytest.raises(ledgermq.IllegalStateError, match=name):
            in_memory.session(transacted=True, **{name: wrong})


def test_a_receive_that_waits_hears_of_a_commit_that_failed(route, eventually):
    """What it got would go back with the rollback that is due, and it might wait for ever."""
    with route.connected() as connection:
        session = connection.session(transacted=True)
        consumer = session.consumer("queue:q")
        route.silent.add(Commit)
        session.commit_async()
        heard = []

        def receive():
            with pytest.raises(ledgermq.IllegalStateError, match="commit of this session failed"):
                consumer.receive(20)
            heard.append(True)

        waiting = threading.Thread(target=receive)
        waiting.start()
        eventually(lambda: session._engine._user is not None)
        (commit,) = route.written(Commit)
        route.tell(refused(50, session.handle, commit.session_sequence, "puts-mismatch"))
        waiting.join(20)
        assert heard == [True]
        session.rollback()
        route.tell(delivered(51, session.handle, 1, 1))
        assert consumer.receive(20).delivery == 1


def test_a_receive_waits_on_while_a_commit_that_is_waited_for_rolls_back(route):
    """Of another coroutine: that one undoes what failed by itself."""

    async def work(connection):
        async with aio.Connection(connection).session(transacted=True) as session:
            consumer = await session.consumer("queue:q")
            receiving = asyncio.ensure_future(consumer.receive(20))
            await asyncio.sleep(0)  # it begins to wait
            route.refusing[Commit] = "puts-mismatch"
            with pytest.raises(ledgermq.TransactionRolledBackError):
                await session.commit()
            assert not receiving.done()
            route.tell(delivered(51, session.handle, 1, 1))
            assert (await receiving).delivery == 1

    with route.connected() as connection:
        asyncio.run(asyncio.wait_for(work(connection), 20))
