"""A reply that does not fit what was asked is an error that says so, and no other."""

import asyncio

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.protocol.operations import Acknowledge, Close, Commit, Get, Put, Recover, Rollback
from ledgermq.protocol.outcomes import (
    Accepted,
    Administered,
    Committed,
    Enqueued,
    Returned,
    SessionEnded,
)
from support.brokers.hand_made import delivered
from support.brokers.hand_route import HandRoute

QUEUE = "queue:q"
REPLIES = {
    "accepted": (Accepted, {}),
    "enqueued": (Enqueued, {"first_sequence": 0, "count": 1}),
    "enqueued two": (Enqueued, {"first_sequence": 0, "count": 2}),
    "enqueued none": (Enqueued, {"first_sequence": 0, "count": 0}),
    "returned": (Returned, {"returned": 0, "discarded": 0}),
    "committed nothing": (Committed, {"enqueued": [], "consumed": 0}),
    "committed a put": (
        Committed,
        {"enqueued": [{"destination": QUEUE, "first_sequence": 0, "count": 1}], "consumed": 0},
    ),
    "committed two puts": (
        Committed,
        {"enqueued": [{"destination": QUEUE, "first_sequence": 0, "count": 2}], "consumed": 0},
    ),
    "committed a get": (Committed, {"enqueued": [], "consumed": 1}),
    "ended": (SessionEnded, {"reason": "CLOSED", "returned": 0, "discarded": 0}),
    "administered": (
        Administered,
        {"affected": 0, "skipped": 0, "more": False, "last_sequence": -1, "next_sequence": 0},
    ),
}


class Lying(HandRoute):
    """A queue manager that answers some kinds of operations with whatever the test wants.

    Attributes:
        lies: The reply to give, by kind of operation.
    """

    def __init__(self):
        super().__init__()
        self.lies = {}

    def _answer(self, operation):
        lie = self.lies.get(type(operation))
        if lie is None:
            super()._answer(operation)
            return
        kind, fields = REPLIES[lie]
        position = len(self.log.operations) - 1
        number = operation.session_sequence
        self.tell(
            kind(
                position=position,
                index=0,
                session=operation.session,
                session_sequence=number,
                **fields,
            )
        )


@pytest.fixture
def route():
    """The queue manager."""
    return Lying()


def commit(session):
    """A commit of one put."""
    session.producer(QUEUE).send("x")
    return session.commit()


CALLS = {
    Put: ("AUTO", lambda s: s.producer(QUEUE).send("x"), {"enqueued"}),
    Recover: ("CLIENT", lambda s: s.recover(), {"returned"}),
    Rollback: ("TRANSACTED", lambda s: s.rollback(), {"returned"}),
    Commit: ("TRANSACTED", commit, {"committed a put"}),
}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("kind", CALLS, ids=lambda one: one.__name__)
def test_a_reply_of_another_kind_or_count_is_told(route, by_hand, kind, reply):
    """What was asked, what came, and the position; an AssertionError reached the application."""
    mode, call, fitting = CALLS[kind]
    session = by_hand.session(ack=mode)
    route.lies[kind] = reply
    if reply in fitting:
        call(session)
        return
    with pytest.raises(ledgermq.UnexpectedReplyError, match=kind.__name__) as raised:
        call(session)
    assert isinstance(raised.value.position, int)
    assert raised.value.code == "reply-unexpected"
    assert "report" in str(raised.value)


def test_a_put_with_an_id_comes_in_whole_or_not_at_all(route, by_hand):
    """It may have been put before; two messages of one are as odd as ever."""
    producer = by_hand.session().producer(QUEUE)
    route.lies[Put] = "enqueued none"
    assert producer.send("x", deduplication_id="one").duplicate
    route.lies[Put] = "enqueued two"
    with pytest.raises(ledgermq.UnexpectedReplyError, match="2 came in"):
        producer.send("x", deduplication_id="two")


@pytest.mark.parametrize("reply", ["committed nothing", "accepted", "committed a get"])
def test_a_commit_that_was_answered_oddly_is_not_rolled_back_behind_its_back(route, by_hand, reply):
    """It may have been applied: the session goes on only after a rollback that is asked for."""
    session = by_hand.session(transacted=True)
    route.lies[Commit] = reply
    with pytest.raises(ledgermq.UnexpectedReplyError):
        commit(session)
    assert route.written(Rollback) == []
    with pytest.raises(ledgermq.TransactionError, match="roll back first"):
        session.commit()
    session.rollback()
    route.lies[Commit] = "committed a put"
    assert commit(session).enqueued[0].count == 1


@pytest.mark.parametrize("kind", [Put, Commit], ids=lambda one: one.__name__)
def test_futures_and_coroutines_tell_it_too(route, by_hand, kind):
    """Asynchronous sends and commits, and the client for asyncio."""
    mode = CALLS[kind][0]
    session = by_hand.session(ack=mode)
    route.lies[kind] = "ended" if kind is Commit else "accepted"
    producer = session.producer(QUEUE)
    future = producer.send_async("x") if kind is Put else session.commit_async()
    assert isinstance(future.exception(20), ledgermq.UnexpectedReplyError)

    async def main():
        async_connection = aio.Connection(by_hand)
        other = await async_connection.session(ack=mode)
        call = other.producer(QUEUE).send("x") if kind is Put else other.commit()
        with pytest.raises(ledgermq.UnexpectedReplyError):
            await call

    asyncio.run(asyncio.wait_for(main(), 20))


def test_an_administration_that_was_answered_oddly_says_so(route, by_hand):
    """Operations on messages, and others."""
    from ledgermq.protocol.administration import PurgeQueue
    from ledgermq.protocol.operations import CreateQueue

    route.lies |= {PurgeQueue: "accepted", CreateQueue: "administered"}
    with pytest.raises(ledgermq.UnexpectedReplyError, match="PurgeQueue"):
        by_hand.admin.purge_queue("q", reason="r", actor="a")
    with pytest.raises(ledgermq.UnexpectedReplyError, match="CreateQueue"):
        by_hand.admin.create_queue("q")


def test_what_nobody_waits_for_is_raised_by_a_later_call(route, by_hand, eventually):
    """An odd reply to a grant or an acknowledgement does not pass silently."""
    session = by_hand.session()
    consumer = session.consumer(QUEUE)
    route.lies[Get] = "enqueued"
    with pytest.raises(ledgermq.UnexpectedReplyError, match="Get"):
        consumer.receive(20)
    route.lies = {Acknowledge: "enqueued"}
    route.tell(delivered(0, session.handle, 1, 1))
    assert consumer.receive(20) is not None
    with session._engine.lock:
        session._work.settling.write_acknowledgements_locked()
    eventually(lambda: session._engine._deferred is not None)
    with pytest.raises(ledgermq.UnexpectedReplyError, match="Acknowledge"):
        consumer.receive(20)


def test_a_reply_to_what_was_never_written_is_raised_by_the_next_call(route, by_hand, eventually):
    """A number that the session has not come to: somebody else writes in its name."""
    session = by_hand.session(ack="CLIENT")
    route.tell(
        Accepted(position=9, index=0, session=session.handle, session_sequence=7),
    )
    eventually(lambda: session._engine._deferred is not None)
    with pytest.raises(ledgermq.UnexpectedReplyError, match="has written"):
        session.recover()
    session.recover()


def test_a_close_that_was_answered_oddly_says_so(route, by_hand):
    """It is an error, not a failed assertion."""
    session = by_hand.session()
    route.lies[Close] = "accepted"
    with pytest.raises(ledgermq.UnexpectedReplyError, match="Close"):
        session.close()
