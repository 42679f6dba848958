"""Times and flags as arguments: what is none is refused where the call begins."""

import asyncio
import math
from datetime import timedelta

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.client.arguments import SECONDS_MAX
from ledgermq.testing import MemoryBroker

QUEUE = "queue:q"
NO_NUMBERS = [True, "5", b"5", [1]]
OUT_OF_RANGE = [math.nan, math.inf, -math.inf, -1, -0.001, SECONDS_MAX + 1, 1e308, 10**400]
BAD = [
    *((one, ledgermq.ArgumentTypeError) for one in NO_NUMBERS),
    *((one, ledgermq.IllegalStateError) for one in OUT_OF_RANGE),
]
each_bad = pytest.mark.parametrize(("bad", "error"), BAD, ids=lambda one: str(one)[:20])

SESSION_CALLS = {
    "receive": lambda s, t: s.consumer(QUEUE).receive(t),
    "receive_many": lambda s, t: s.consumer(QUEUE).receive_many(1, t),
    "receive_group": lambda s, t: s.consumer(QUEUE, prefetch=0).receive_group(t),
    "until_idle": lambda s, t: s.consumer(QUEUE).until_idle(t),
    "close consumer": lambda s, t: s.consumer(QUEUE).close(timeout=t),
    "send": lambda s, t: s.producer(QUEUE).send("x", timeout=t),
    "send segmented": lambda s, t: s.producer(QUEUE).send_segmented("x", max_segment=9, timeout=t),
    "send many": lambda s, t: s.producer(QUEUE).send_many(["x"], timeout=t),
    "group send": lambda s, t: s.producer(QUEUE).group().send("x", last=True, timeout=t),
    "flush producer": lambda s, t: s.producer(QUEUE).flush(timeout=t),
    "flush": lambda s, t: s.flush(timeout=t),
    "result": lambda s, t: s.producer(QUEUE).send_async("x").result(t),
    "exception": lambda s, t: s.producer(QUEUE).send_async("x").exception(t),
    "request": lambda s, t: s.requestor(QUEUE).request("x", timeout=t),
    "recover": lambda s, t: s.recover(timeout=t),
    "acknowledge": lambda s, t: s.acknowledge(timeout=t),
    "acknowledge in turn": lambda s, t: s.acknowledge(turn_timeout=t),
    "close": lambda s, t: s.close(timeout=t),
}
TRANSACTED_CALLS = {
    "commit": lambda s, t: s.commit(timeout=t),
    "commit in turn": lambda s, t: s.commit(turn_timeout=t),
    "rollback": lambda s, t: s.rollback(timeout=t),
    "transaction": lambda s, t: s.transaction(turn_timeout=t).__enter__(),
    "get group": lambda s, t: ledgermq.get_group(s, QUEUE, print, status="queue:s", timeout=t),
}
AWAITED_CALLS = {
    "receive": lambda s, c, p, t: c.receive(t),
    "receive_group": lambda s, c, p, t: c.receive_group(t),
    "close consumer": lambda s, c, p, t: c.close(timeout=t),
    "send": lambda s, c, p, t: p.send("x", timeout=t),
    "send segmented": lambda s, c, p, t: p.send_segmented("x", max_segment=9, timeout=t),
    "send many": lambda s, c, p, t: p.send_many(["x"], timeout=t),
    "recover": lambda s, c, p, t: s.recover(timeout=t),
    "acknowledge": lambda s, c, p, t: s.acknowledge(timeout=t),
    "commit": lambda s, c, p, t: s.commit(timeout=t),
    "commit in turn": lambda s, c, p, t: s.commit(turn_timeout=t),
    "rollback": lambda s, c, p, t: s.rollback(timeout=t),
    "transaction": lambda s, c, p, t: s.transaction(turn_timeout=t).__aenter__(),
    "close": lambda s, c, p, t: s.close(timeout=t),
}


def test_a_timedelta_is_told_how_it_becomes_a_number():
    """Of seconds; what is in milliseconds has another number."""
    seconds = r"time_to_live is datetime\.timedelta.* must be a number or None; write its total_sec"
    broker = MemoryBroker()
    with broker.connect() as connection, connection.session() as session:
        with pytest.raises(ledgermq.ArgumentTypeError, match=seconds):
            session.producer(QUEUE).send("x", time_to_live=timedelta(hours=1))
        with pytest.raises(ledgermq.ArgumentTypeError, match=r"a whole number or None$"):
            session.consumer(QUEUE, redelivery_delay_ms=timedelta(seconds=1))


@each_bad
def test_every_time_out_is_checked_before_the_call_does_anything(memory, bad, error):
    """Decision 29: nan never ended a receive, infinity failed in a lock, True counted as 1."""
    with memory.connect() as connection:
        for transacted, calls in ((False, SESSION_CALLS), (True, TRANSACTED_CALLS)):
            for name, call in calls.items():
                with connection.session(transacted=transacted) as session:
                    with pytest.raises(error, match=r"time|seconds") as raised:
                        call(session, bad)
                    assert "must be" in str(raised.value), name
                    assert not session.is_closed
        with pytest.raises(error):
            connection.close(timeout=bad)
        assert not connection.is_closed
        with pytest.raises(error):
            memory.advance(bad)


@each_bad
def test_every_time_out_of_a_coroutine_is_checked_likewise(memory, bad, error):
    """Decision 29: the client for asyncio refuses what the other one refuses."""

    async def main():
        async with (
            aio.Connection(memory.connect()) as connection,
            connection.session(transacted=True) as session,
            session.consumer(QUEUE, prefetch=0) as consumer,
        ):
            producer = session.producer(QUEUE)
            for call in AWAITED_CALLS.values():
                with pytest.raises(error, match="must be"):
                    await call(session, consumer, producer, bad)
            assert not session.is_closed

    asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("name", ["timeout", "send_timeout_seconds", "suspect_timeout_seconds"])
@pytest.mark.parametrize("bad", [*NO_NUMBERS, *OUT_OF_RANGE], ids=lambda one: str(one)[:20])
def test_times_of_a_connection_are_checked_before_it_looks_for_a_broker(name, bad):
    """Decision 29: what librdkafka or a lock would choke on is refused by name."""
    with pytest.raises((ledgermq.AddressError, ledgermq.ArgumentTypeError), match=rf"\b{name}\b"):
        ledgermq.connect("kafka://localhost:1", **{name: bad})


def test_a_time_out_may_be_as_long_as_a_life(memory):
    """Decision 29: the limit is that of times to live, a hundred years, and is good for waits."""
    with memory.connect(timeout=SECONDS_MAX) as connection, connection.session() as session:
        session.producer(QUEUE).send("x", timeout=SECONDS_MAX)
        with session.consumer(QUEUE) as consumer:
            assert consumer.receive(SECONDS_MAX).body == "x"


@pytest.mark.parametrize("bad", ["no", 0, 1, "", [], 1.0])
def test_a_delivery_mode_is_true_or_false(memory, bad):
    """Decision 29: persistent="no" was sent as persistent; None stands for the producer's own."""
    with memory.connect() as connection, connection.session() as session:
        with pytest.raises(ledgermq.ArgumentTypeError, match="persistent"):
            session.producer(QUEUE, persistent=bad)
        producer = session.producer(QUEUE)
        with pytest.raises(TypeError, match="persistent"):
            producer.send("x", persistent=bad)
        with pytest.raises(ledgermq.LedgerMQError, match="persistent"):
            producer.send_async("x", persistent=bad)
        with pytest.raises(ledgermq.ArgumentTypeError, match="persistent"):
            producer.persistent = bad
        assert producer.send("x", persistent=False).sequence == 0


@pytest.mark.parametrize("name", ["time_to_live", "delivery_delay"])
@pytest.mark.parametrize("bad", [True, False, "5", *OUT_OF_RANGE], ids=lambda one: str(one)[:20])
def test_times_of_a_message_are_checked_before_it_is_sent(memory, name, bad):
    """Decision 29: a number of seconds within the limits, or an error that names the argument."""
    with memory.connect() as connection, connection.session() as session:
        producer = session.producer(QUEUE)
        with pytest.raises(ledgermq.LedgerMQError, match=name):
            producer.send("x", **{name: bad})
        assert producer.send("x").sequence == 0
