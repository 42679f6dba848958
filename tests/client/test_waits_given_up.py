"""What a session makes of an outcome that its caller gave up waiting for, or that others crossed.

Calls give up by their time-out or are cancelled; coroutines may share a session.
"""

import asyncio
import contextlib
import pickle
import threading
import time
from functools import partial

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.client.engine.outgoing import UnitOfWork
from ledgermq.client.sansio.protocol import OUTSTANDING_MAX
from ledgermq.protocol.operations import (
    Acknowledge,
    CloseConsumer,
    Commit,
    CreateTemporary,
    Get,
    OpenConsumer,
    Put,
    Recover,
    Rollback,
)
from ledgermq.protocol.outcomes import Committed, Enqueued
from ledgermq.protocol.reasons import Reason
from ledgermq.testing import MemoryBroker
from support.brokers.hand_made import accepted, delivered, refused, returned


def refuse(route, operation, reason):
    """Refuses an operation that has had no answer yet."""
    route.tell(refused(0, operation.session, operation.session_sequence, reason))


def messages_put(route):
    """How many messages were written."""
    return sum(len(put.messages) for put in route.written(Put))


def work_in_coroutines(connection, work, **settings):
    """Runs a coroutine with a session of a connection."""

    async def main():
        async with asyncio.timeout(60):
            await work(await aio.Connection(connection).session(**settings))

    asyncio.run(main())


async def come_to(holds):
    """Lets other coroutines go on until something holds."""
    while not holds():
        await asyncio.sleep(0.005)


def test_db_22_what_was_sent_after_a_commit_in_doubt_goes_on_with_its_unit_of_work(route, by_hand):
    """The commit is refused later as out of turn: the next one names its puts and the new ones."""
    route.silent |= {Commit}
    session = by_hand.session(transacted=True)
    producer = session.producer("queue:q")
    producer.send("one")
    with pytest.raises(ledgermq.TransactionInDoubtError) as doubt:
        session.commit(timeout=0.05)
    producer.send("two")
    refuse(route, route.written(Commit)[0], Reason.OUT_OF_TURN)
    with pytest.raises(ledgermq.OutOfTurnError):
        doubt.value.resolve(20)
    with pytest.raises(ledgermq.TransactionInDoubtError):
        session.commit(timeout=0.05)
    assert route.written(Commit)[1].puts == messages_put(route) == 2


@pytest.mark.parametrize("mode", ["CLIENT", "INDIVIDUAL"])
def test_db_22_an_acknowledgement_out_of_turn_that_nobody_waited_for_is_made_again(
    route, by_hand, mode
):
    """It settled nothing, so what it was about is as it was."""
    route.silent |= {Acknowledge}
    session = by_hand.session(ack=mode)
    consumer = session.consumer("queue:q")
    route.tell(delivered(0, session.handle, 1, 1, consumer._shared.buffer.number))
    message = consumer.receive(20)
    with pytest.raises(ledgermq.OutcomeUnknownError) as doubt:
        message.acknowledge(timeout=0.05)
    refuse(route, route.written(Acknowledge)[0], Reason.OUT_OF_TURN)
    with pytest.raises(ledgermq.OutOfTurnError):
        doubt.value.resolve(20)
    route.silent.clear()
    message.acknowledge(timeout=20)
    assert [one.deliveries for one in route.written(Acknowledge)] == [[{"first": 1, "last": 1}]] * 2


def test_what_is_left_is_acknowledged_though_nobody_waited_for_the_refusal():
    """Administration took one message away: the other two are not held for ever."""
    with MemoryBroker().connect(timeout=20.0) as memory, memory.session(ack="CLIENT") as session:
        session.producer("queue:q").send_many("abc")
        consumer = session.consumer("queue:q")
        assert [consumer.receive(20).body for _ in "abc"] == list("abc")
        memory.admin.correct("q", sequence=1, action="REMOVE", actor="test", reason="test")
        session.acknowledge(wait=False)
        session.flush()
        with pytest.raises(ledgermq.DeliveryUnknownError):
            session.acknowledge(wait=False)
        session.acknowledge(wait=False)
        session.flush()
        assert memory.admin.queue_status("q").message_count == 0


GOING_BACK = pytest.mark.parametrize(
    ("mode", "back", "settle", "operation"),
    [
        ("TRANSACTED", "rollback", "commit", Commit),
        ("CLIENT", "recover", "acknowledge", Acknowledge),
    ],
)


def going_back(route, connection, mode, back):
    """A session with two deliveries that go back, which nobody waits for, and its consumer."""
    route.silent |= {Rollback, Recover}
    session = connection.session(ack=mode)
    consumer = session.consumer("queue:q")
    route.tell(delivered(0, session.handle, 1, 2, consumer._shared.buffer.number))
    assert consumer.receive_many(2, timeout=20)
    with pytest.raises(ledgermq.OutcomeUnknownError) as caught:
        getattr(session, back)(timeout=0.05)
    return session, consumer, caught.value


@GOING_BACK
@pytest.mark.parametrize("is_refused", [True, False])
def test_what_is_going_back_is_not_settled_behind_it(
    route, by_hand, mode, back, settle, operation, is_refused
):
    """Nobody waits for the outcome: a commit behind it named what is not in flight any more.

    It was refused, and what had been sent since was undone. Refused, nothing has gone back.
    """
    route.silent.add(operation)
    session, _, doubt = going_back(route, by_hand, mode, back)
    if is_refused:
        refuse(
            route, [*route.written(Rollback), *route.written(Recover)][0], Reason.DELIVERY_UNKNOWN
        )
        with pytest.raises(ledgermq.DeliveryUnknownError):
            doubt.resolve(20)
    with contextlib.suppress(ledgermq.OutcomeUnknownError):
        getattr(session, settle)(timeout=0.05)
    named = [one.deliveries for one in route.written(operation) if one.deliveries]
    assert named == is_refused * [[{"first": 1, "last": 2}]]


@GOING_BACK
def test_what_went_back_though_nobody_waited_so_long_is_not_held(
    route, by_hand, mode, back, settle, operation
):
    """What is settled next is what was got since."""
    route.silent.add(operation)
    session, consumer, doubt = going_back(route, by_hand, mode, back)
    withdrawn = [*route.written(Rollback), *route.written(Recover)][0]
    route.tell(returned(0, session.handle, withdrawn.session_sequence))
    doubt.resolve(20)
    route.tell(delivered(0, session.handle, 3, 1, consumer._shared.buffer.number))
    assert consumer.receive(20) is not None
    with pytest.raises(ledgermq.OutcomeUnknownError):
        getattr(session, settle)(timeout=0.05)
    assert [one.deliveries for one in route.written(operation)] == [[{"first": 3, "last": 3}]]


def test_a_rollback_that_nobody_waited_so_long_for_undoes_a_failed_commit_all_the_same(
    route, by_hand
):
    """The session goes on once it is answered."""
    session = by_hand.session(transacted=True)
    consumer = session.consumer("queue:q")
    route.refusing[Commit] = "delivery-unknown"
    assert session.commit_async().exception(20) is not None
    route.silent |= {Rollback}
    with pytest.raises(ledgermq.OutcomeUnknownError) as doubt:
        session.rollback(timeout=0.05)
    rollback = route.written(Rollback)[0]
    with pytest.raises(ledgermq.IllegalStateError, match="roll back"):
        consumer.receive(0)
    route.tell(returned(0, session.handle, rollback.session_sequence))
    doubt.value.resolve(20)
    assert consumer.receive(0) is None


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_resolving_a_temporary_destination_names_it(route, by_hand, kind):
    """As its call would have."""
    route.silent |= {CreateTemporary}
    session = by_hand.session()
    session._engine.timeout_seconds = 0.05
    with pytest.raises(ledgermq.OutcomeUnknownError) as doubt:
        getattr(session, f"temporary_{kind}")()
    made = route.written(CreateTemporary)[0]
    route.tell(accepted(0, session.handle, made.session_sequence))
    assert doubt.value.resolve(20) == made.destination
    assert made.destination.startswith(f"{kind}:temporary/")


def test_resolving_a_consumer_brings_it(route, by_hand):
    """It gets messages as any other."""
    route.silent |= {OpenConsumer}
    session = by_hand.session()
    session._engine.timeout_seconds = 0.05
    with pytest.raises(ledgermq.OutcomeUnknownError) as doubt:
        session.consumer("queue:q")
    made = route.written(OpenConsumer)[0]
    route.tell(accepted(0, session.handle, made.session_sequence))
    consumer = doubt.value.resolve(20)
    route.tell(delivered(0, session.handle, 1, 1, made.consumer))
    assert consumer.receive(20) is not None


@pytest.mark.parametrize("transacted", [True, False])
def test_an_unknown_outcome_is_raised_in_another_process_too(route, by_hand, transacted):
    """A pool of processes pickles what is raised in it; who gets it cannot wait any longer."""
    route.silent |= {Commit, Put}
    session = by_hand.session(transacted=transacted)
    send = partial(session.producer("queue:q").send, "x")
    with pytest.raises(ledgermq.OutcomeUnknownError) as doubt:
        (session.commit if transacted else send)(timeout=0.05)
    told = pickle.loads(pickle.dumps(doubt.value))
    assert f"{told}. {told.advice}" == str(doubt.value)
    assert type(told) is type(doubt.value)
    with pytest.raises(ledgermq.OutcomeUnknownError):
        told.resolve(0)
    with pytest.raises(ledgermq.OutcomeUnknownError):
        doubt.value.resolve(0)
    assert doubt.value.resolver is not None


def test_resolving_a_coroutine_s_consumer_brings_it(route, by_hand):
    """As a thread's; and one that is refused is none."""
    route.silent |= {OpenConsumer}

    async def work(session):
        session._engine.timeout_seconds = 0.05
        found = []
        for _ in range(2):
            with pytest.raises(ledgermq.OutcomeUnknownError) as doubt:
                await session.consumer("queue:q")
            found.append(doubt.value)
        first, second = route.written(OpenConsumer)
        route.tell(accepted(0, first.session, first.session_sequence))
        refuse(route, second, "subscription-in-use")
        consumer = await asyncio.to_thread(found[0].resolve, 20)
        with pytest.raises(ledgermq.SubscriptionInUseError):
            await asyncio.to_thread(found[1].resolve, 20)
        route.tell(delivered(0, first.session, 1, 1, first.consumer))
        assert await consumer.receive(20) is not None
        assert list(session._engine.protocol.consumers) == [first.consumer]

    work_in_coroutines(by_hand, work)


def committed(session, number):
    """A commit of one message that worked."""
    same = {"session": session.handle, "session_sequence": number}
    runs = [{"destination": "queue:q", "first_sequence": 4, "count": 1}]
    return Committed(position=0, index=0, enqueued=runs, consumed=0, **same)


def test_the_log_says_what_became_of_a_commit_in_doubt(route, by_hand, caplog):
    """Whoever rolls back after it may take that for its end, though nothing of it is undone."""
    route.silent |= {Commit}
    session = by_hand.session(transacted=True)
    session.producer("queue:q").send("x")
    with pytest.raises(ledgermq.TransactionInDoubtError):
        session.commit(timeout=0.05)
    route.tell(committed(session, route.written(Commit)[0].session_sequence))
    session.rollback(timeout=20)
    assert f"a commit of session {session.handle} that was in doubt has worked" in caplog.text


def test_resolving_a_commit_waits_for_its_receipt(route, by_hand, monkeypatch):
    """The outcome is there a moment before it."""
    route.silent |= {Commit}
    session = by_hand.session(transacted=True)
    session.producer("queue:q").send("x")
    with pytest.raises(ledgermq.TransactionInDoubtError) as doubt:
        session.commit(timeout=0.05)
    note = UnitOfWork.committed

    def slowly(unit, reply):
        time.sleep(0.2)
        return note(unit, reply)

    monkeypatch.setattr(UnitOfWork, "committed", slowly)
    number = route.written(Commit)[0].session_sequence
    route.tell(committed(session, number))
    assert doubt.value.resolve(20).enqueued[0].first_sequence == 4


def test_what_another_coroutine_got_after_a_recover_can_be_acknowledged(route, by_hand):
    """It came behind the outcome, and before the coroutine that waits for that was woken."""
    route.silent |= {Recover}

    async def work(session):
        consumer = await session.consumer("queue:q")
        waiting = asyncio.create_task(consumer.receive(20))
        await come_to(lambda: route.written(Get) and not session._engine.protocol.pending)
        await asyncio.sleep(0.02)  # by then it waits again, so that it is woken first
        recovering = asyncio.create_task(session.recover())
        await come_to(lambda: route.written(Recover))
        recover = route.written(Recover)[0]
        route.tell(returned(0, recover.session, recover.session_sequence))
        route.tell(delivered(0, recover.session, 7, 1))
        buffer = consumer._shared.buffer
        while not buffer.count:
            time.sleep(0.001)  # no coroutine is to go on before the message is there
        message = await waiting
        await recovering
        await message.acknowledge()
        assert [one.deliveries for one in route.written(Acknowledge)] == [[{"first": 7, "last": 7}]]

    work_in_coroutines(by_hand, work, ack="CLIENT")


@pytest.mark.parametrize("destination", ["queue:full", "queue:another"])
def test_what_another_coroutine_sends_while_a_commit_waits_for_room_is_put(route, destination):
    """Every message that was sent is written, and counted by the commit of its unit of work."""
    route.silent |= {Put, Commit}

    async def work(session):
        producer = session.producer(None)
        sent = OUTSTANDING_MAX + 1
        for _ in range(sent):
            await producer.send("before", destination="queue:full")
        waits = session._engine.protocol.full
        committing = asyncio.create_task(session.commit(timeout=20))
        await asyncio.sleep(0)
        sending = asyncio.create_task(producer.send("meanwhile", destination=destination))
        await asyncio.sleep(0)
        for put in route.written(Put):
            route.tell(accepted(0, put.session, put.session_sequence))
        await sending
        await come_to(lambda: route.written(Commit))
        second = asyncio.create_task(session.commit(timeout=20))
        await come_to(lambda: len(route.written(Commit)) == 2)
        counted = sum(commit.puts for commit in route.written(Commit))
        assert waits
        assert counted == messages_put(route) == sent + 1
        committing.cancel()
        second.cancel()

    opened = route.connect(put_messages_max=1)
    opened._running.heartbeats.stop()
    work_in_coroutines(opened, work, transacted=True)
    opened._running.stop(0.0)


def test_ses_01_closing_a_consumer_from_another_thread_claims_no_session(route, by_hand):
    """Its user goes on meanwhile, and afterwards another thread may be that (SES-01)."""
    session = by_hand.session()
    closed, other = session.consumer("queue:a"), session.consumer("queue:b")
    route.silent |= {CloseConsumer}
    user = threading.Thread(target=closed.receive)
    user.start()
    with session._engine.lock:
        while session._engine._user is None:
            session._engine.condition.wait(0.01)
    closing = threading.Thread(target=closed.close)
    closing.start()
    user.join(20)
    assert other.receive(0) is None
    close = route.written(CloseConsumer)[0]
    route.tell(accepted(0, session.handle, close.session_sequence))
    closing.join(20)
    assert other.receive(0) is None


def test_ses_01_resolving_in_another_thread_claims_no_session(route, by_hand):
    """The error may be anybody's by then."""
    session = by_hand.session()
    route.silent |= {Put}
    with pytest.raises(ledgermq.OutcomeUnknownError) as doubt:
        session.producer("queue:a").send("x", timeout=0.05)
    receipts = []
    resolving = threading.Thread(target=lambda: receipts.append(doubt.value.resolve(20)))
    resolving.start()
    while not session._engine.condition._waiters:
        time.sleep(0.001)
    assert session.consumer("queue:b").receive(0) is None
    put = route.written(Put)[0]
    same = {"session": session.handle, "session_sequence": put.session_sequence}
    route.tell(Enqueued(position=0, index=0, first_sequence=7, count=1, **same))
    resolving.join(20)
    assert receipts[0].sequence == 7


def interrupt(monkeypatch, route):
    """Lets the next write be interrupted, when the log has it already."""
    write = route.log.write

    def once(*given, **named):
        monkeypatch.setattr(route.log, "write", write)
        write(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(route.log, "write", once)


def test_an_operation_that_was_interrupted_has_used_its_number(route, by_hand, monkeypatch):
    """The next one under it would be taken for its repeat: answered, and never applied."""
    session = by_hand.session()
    producer = session.producer("queue:q")
    route.silent |= {Put}
    interrupt(monkeypatch, route)
    with pytest.raises(KeyboardInterrupt):
        producer.send("one")
    with pytest.raises(ledgermq.OutcomeUnknownError):
        producer.send("two", timeout=0)
    first, second = [one.session_sequence for one in route.written(Put)]
    assert second == first + 1


def test_a_session_whose_commit_was_interrupted_can_be_rolled_back(route, by_hand, monkeypatch):
    """It does not wait for the commit, behind which the rollback is on the log."""
    session = by_hand.session(transacted=True)
    session.producer("queue:q").send("one")
    session.flush()
    route.silent |= {Commit}
    interrupt(monkeypatch, route)
    with pytest.raises(KeyboardInterrupt):
        session.commit()
    session.rollback(timeout=20)
    assert [type(one) for one in route.log.operations[-2:]] == [Commit, Rollback]


def test_what_is_sent_behind_a_rollback_that_was_cancelled_does_not_go_back_with_it(route, by_hand):
    """The rollback waits for a commit in doubt, and is made in the end: the next commit worked."""

    async def work(session):
        producer, consumer = session.producer("queue:q"), await session.consumer("queue:q")
        route.silent |= {Commit, Rollback}
        await producer.send("one")
        for call in (session.commit, session.rollback):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await call()
        going_on = [asyncio.create_task(producer.send("two"))]
        going_on.append(asyncio.create_task(consumer.receive(20)))
        await asyncio.sleep(0.05)
        number = consumer._shared.buffer.number
        commit = route.written(Commit)[0]
        same = {"session": commit.session, "session_sequence": commit.session_sequence}
        route.tell(Committed(position=0, index=0, enqueued=[], consumed=0, **same))
        await come_to(lambda: route.written(Rollback))
        rollback = route.written(Rollback)[0]
        route.tell(returned(0, rollback.session, rollback.session_sequence))
        route.tell(delivered(0, rollback.session, 1, 1, number))
        await asyncio.gather(*going_on)
        with pytest.raises(ledgermq.TransactionInDoubtError):
            await session.commit(timeout=0.05)
        last = route.written(Commit)[-1]
        assert (last.puts, last.deliveries) == (1, [{"first": 1, "last": 1}])
        written = [type(one) for one in route.log.operations]
        assert Put in written[written.index(Rollback) :]

    work_in_coroutines(by_hand, work, transacted=True)
