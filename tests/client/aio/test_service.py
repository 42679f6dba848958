"""Services: decorated functions that get messages, until they are told to stop."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.aio import service as service_module
from ledgermq.errors import IllegalStateError, InvalidDestinationError, InvalidSelectorError
from ledgermq.protocol.operations import (
    Acknowledge,
    Commit,
    Get,
    Open,
    OpenConsumer,
    Recover,
    Rollback,
)
from support.brokers.hand_made import delivered
from support.brokers.serving import LIMIT_SECONDS, served
from support.messages.bodies import left, put

EXAMPLE = Path(__file__).parents[3] / "examples" / "services" / "bill_orders.py"


def test_what_a_function_returned_from_is_acknowledged(service, own_connection, queue):
    """Each message once, and the queue is empty then."""
    put(own_connection, queue, *"abcdef")
    seen, enough = [], asyncio.Event()

    @service.consumer(queue, concurrency=3)
    async def take(message):
        seen.append(message.body)
        if len(seen) == 6:
            enough.set()

    asyncio.run(served(service, enough))
    assert sorted(seen) == list("abcdef")
    assert own_connection.admin.queue_status(queue).message_count == 0


def test_no_more_messages_are_at_work_than_concurrency_says(service, own_connection, queue):
    """Three of nine at a time, and really three."""
    put(own_connection, queue, *"abcdefghi")
    at_work, most, done, enough = set(), [], [], asyncio.Event()

    @service.consumer(queue, concurrency=3)
    async def take(message):
        at_work.add(message.body)
        most.append(len(at_work))
        while len(done) < 3 and len(at_work) < 3:
            await asyncio.sleep(0.01)
        at_work.discard(message.body)
        done.append(message.body)
        if len(done) == 9:
            enough.set()

    asyncio.run(served(service, enough))
    assert max(most) == 3


def test_a_message_that_a_function_failed_on_comes_again(service, own_connection, queue):
    """Counted, until it succeeds; a delay would be that of the option (INF-09)."""
    put(own_connection, queue, "bad", "good")
    seen, enough = [], asyncio.Event()

    @service.consumer(queue, redelivery_delay_ms=0)
    async def take(message):
        seen.append((message.body, message.delivery_count))
        if message.body == "bad" and message.delivery_count < 3:
            raise ValueError("not today")
        if len(seen) == 4:
            enough.set()

    asyncio.run(served(service, enough))
    assert [one for one in seen if one[0] == "bad"] == [("bad", 1), ("bad", 2), ("bad", 3)]
    assert ("good", 1) in seen
    assert own_connection.admin.queue_status(queue).message_count == 0


def test_what_a_transacted_function_sends_is_committed_with_its_message(
    service, own_connection, queue
):
    """A failed call leaves no trace of what it sent."""
    put(own_connection, queue, "one")
    answers = queue + ".answers"
    enough = asyncio.Event()

    @service.consumer(queue, transacted=True, redelivery_delay_ms=0)
    async def take(message, session):
        await session.producer(answers).send(f"{message.body} at {message.delivery_count}")
        if message.delivery_count == 1:
            raise ValueError("the first time")
        enough.set()

    asyncio.run(served(service, enough))
    assert own_connection.admin.queue_status(queue).message_count == 0
    assert left(own_connection, answers) == [("one at 2", 1)]


def test_a_plain_function_runs_in_a_thread_of_its_own(service, own_connection, queue):
    """Two that wait for each other are at work at the same time."""
    put(own_connection, queue, "a", "b")
    barrier = threading.Barrier(2, timeout=LIMIT_SECONDS)
    names, enough = [], asyncio.Event()
    loops = []

    @service.consumer(queue, concurrency=2)
    def take(message):
        barrier.wait()
        names.append(threading.current_thread().name)
        if len(names) == 2:
            loops[0].call_soon_threadsafe(enough.set)

    async def serving():
        loops.append(asyncio.get_running_loop())
        await served(service, enough)

    asyncio.run(serving())
    assert len(set(names)) == 2
    assert own_connection.admin.queue_status(queue).message_count == 0


def test_a_function_that_is_at_work_may_end_before_the_service_does(service, own_connection, queue):
    """What it worked on is acknowledged, and no further message is begun."""
    put(own_connection, queue, "a", "b")
    seen, enough = [], asyncio.Event()

    @service.consumer(queue)
    async def take(message):
        enough.set()
        await asyncio.sleep(0.3)
        seen.append(message.body)

    asyncio.run(served(service, enough))
    assert seen == ["a"]
    assert left(own_connection, queue) == [("b", 1)]


def test_a_function_that_does_not_end_is_cancelled_and_its_message_goes_back(
    place, own_connection, queue
):
    """After the time that the service says; the message was delivered once."""
    put(own_connection, queue, "a")
    service = aio.Service(place.connect, stop_timeout_seconds=0.1)
    enough, cancelled = asyncio.Event(), []

    @service.consumer(queue, redelivery_delay_ms=0)
    async def take(message):
        enough.set()
        try:
            await asyncio.sleep(LIMIT_SECONDS)
        except asyncio.CancelledError:
            cancelled.append(message.body)
            raise

    asyncio.run(served(service, enough))
    assert cancelled == ["a"]
    assert left(own_connection, queue) == [("a", 2)]


def test_what_may_pass_is_tried_again(place, own_connection, queue, monkeypatch):
    """A broker that is away at first; then a session that was lost."""
    monkeypatch.setattr(service_module, "BACK_OFF_SECONDS", 0.01)
    put(own_connection, queue, "a", "b")
    tries, seen, enough = [], [], asyncio.Event()

    def connect(**settings):
        tries.append(settings)
        if len(tries) < 3:
            raise ledgermq.BrokerUnavailableError("nobody is there")
        return place.connect(**settings)

    service = aio.Service(connect)

    @service.consumer(queue, redelivery_delay_ms=0)
    async def take(message):
        seen.append(message.body)
        if len(seen) == 1:
            raise SystemError("falls over")
        if len(seen) == 3:
            enough.set()

    recovered = []

    async def lose(self, **options):
        recovered.append(self)
        raise ledgermq.SessionLostError("it was lost")

    with monkeypatch.context() as patch:
        patch.setattr(aio.Session, "recover", lose)
        asyncio.run(served(service, enough))
    assert len(tries) == 3
    assert len(recovered) == 1
    assert sorted(seen) == ["a", "a", "b"]
    assert own_connection.admin.queue_status(queue).message_count == 0


async def come_to(holds, task):
    """Waits until something holds; raises what ended the task before."""
    while not holds():
        if task.done():
            task.result()
            pytest.fail("the service ended")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("silent", "transacted", "fails"),
    [
        (OpenConsumer, False, False),
        (Acknowledge, False, False),
        (Recover, False, True),
        (Commit, True, False),
        (Rollback, True, True),
    ],
)
def test_a_service_goes_on_though_no_worker_answered_in_time(
    route, monkeypatch, silent, transacted, fails
):
    """Whatever it waited for meanwhile: it opens another session once somebody answers."""
    monkeypatch.setattr(service_module, "BACK_OFF_SECONDS", 0.05)
    service = aio.Service(partial(route.connect, timeout=0.2), stop_timeout_seconds=20.0)

    async def take(*_):
        if fails:
            raise ValueError

    service.consumer("queue:q", transacted=transacted)(take)

    def sessions_asking():
        return list(dict.fromkeys((one.session, one.consumer) for one in route.written(Get)))

    async def serving():
        route.silent |= {silent}
        sessions = len(route.written(Open))
        task = asyncio.create_task(service.serve())
        asked = 0 if silent is OpenConsumer else 1
        if asked:
            await come_to(sessions_asking, task)
            session, consumer = sessions_asking()[0]
            route.tell(delivered(0, session, 1, 1, consumer))
        # One session is the connection's own.
        await come_to(lambda: len(route.written(Open)) == sessions + 3, task)
        route.silent.clear()
        await come_to(lambda: len(sessions_asking()) == asked + 1, task)
        service.stop()
        await task

    asyncio.run(asyncio.wait_for(serving(), LIMIT_SECONDS))


def test_an_error_that_stays_ends_the_service(service):
    """It is raised, and the service may be stopped all the same."""

    @service.consumer("queue:orders", selector="no selector")
    async def take(message):
        raise AssertionError("nothing is delivered")

    with pytest.raises(InvalidSelectorError):
        asyncio.run(service.serve())
    service.stop()


def test_wrong_consumers_are_refused_where_they_are_said():
    """A function that cannot be called, a concurrency that cannot be, one that is too late."""
    service = aio.Service("kafka://localhost:1/QM1")

    async def nothing():
        raise AssertionError

    async def two(message, session):
        raise AssertionError

    for destination in ("", "orders", "nonsense:orders", "queue:", "topic:a b"):
        with pytest.raises(InvalidDestinationError, match="is no destination"):
            service.consumer(destination)
    for concurrency in (0, 1_001):
        with pytest.raises(IllegalStateError, match="concurrency"):
            service.consumer("queue:q", concurrency=concurrency)
    with pytest.raises(IllegalStateError, match="called with one message"):
        service.consumer("queue:q")(nothing)
    with pytest.raises(IllegalStateError, match="called with one message"):
        service.consumer("queue:q")(two)
    with pytest.raises(IllegalStateError, match="a message and its session"):
        service.consumer("queue:q", transacted=True)(nothing)
    assert service.consumer("queue:q", transacted=True)(two) is two


def test_several_consumers_of_a_topic_have_to_share_a_subscription(service, own_connection, named):
    """Else each of them is given every message, and the function is called that often for it."""
    topic = f"topic:{named}"
    for options in ({}, {"subscription": "s", "durable": True}):
        with pytest.raises(IllegalStateError, match="shared=True"):
            service.consumer(topic, concurrency=2, **options)
    seen, enough = [], asyncio.Event()

    @service.consumer(topic, concurrency=2, subscription="s", shared=True, durable=True)
    async def take(message):
        seen.append(message.body)
        enough.set()

    with own_connection.session() as session:
        options = {"subscription": "s", "shared": True, "durable": True}
        session.consumer(topic, **options).close()
        session.producer(topic).send("a")
    asyncio.run(served(service, enough))
    assert seen == ["a"]


def test_a_stop_before_the_service_has_begun_ends_it(service):
    """A web server that fails as it starts stops what was only to be started."""
    service.consumer("queue:q")(print)

    async def serving():
        task = asyncio.create_task(service.serve())
        service.stop()
        await asyncio.wait_for(task, LIMIT_SECONDS)

    asyncio.run(serving())


def test_a_service_that_was_stopped_serves_again(service, own_connection, queue):
    """Also where it was stopped once more after its end."""
    seen, enough = [], asyncio.Event()

    @service.consumer(queue)
    async def take(message):
        seen.append(message.body)
        enough.set()

    async def serving():
        for body in "ab":
            await asyncio.to_thread(put, own_connection, queue, body)
            enough.clear()
            await served(service, enough)
            service.stop()

    asyncio.run(serving())
    assert seen == ["a", "b"]


def test_a_service_that_is_cancelled_while_it_connects_leaves_nothing_open(place, eventually):
    """The connection is closed once it is there."""
    begun, go_on, opened = threading.Event(), threading.Event(), []

    def connect(**settings):
        begun.set()
        go_on.wait(LIMIT_SECONDS)
        opened.append(place.connect(**settings))
        return opened[0]

    async def serving():
        service = aio.Service(connect)
        service.consumer("queue:q")(print)
        task = asyncio.create_task(service.serve())
        await asyncio.to_thread(begun.wait, LIMIT_SECONDS)
        task.cancel()
        await asyncio.wait({task}, timeout=LIMIT_SECONDS)
        go_on.set()
        assert task.cancelled()

    asyncio.run(serving())
    # Its thread keeps no event loop from ending.
    eventually(lambda: opened and opened[0].is_closed)


@pytest.mark.parametrize("ending", ["stop", "cancel"])
def test_a_service_that_connects_ends_at_once(ending):
    """Where a broker is away an attempt takes half a minute; by then a supervisor kills it."""
    begun, go_on, given_up = threading.Event(), threading.Event(), threading.Event()

    def connect(**_):
        begun.set()
        go_on.wait(LIMIT_SECONDS)
        given_up.set()
        raise ledgermq.BrokerUnavailableError("away")

    async def serving():
        service = aio.Service(connect)
        service.consumer("queue:q")(print)
        task = asyncio.create_task(service.serve())
        await asyncio.to_thread(begun.wait, LIMIT_SECONDS)
        service.stop() if ending == "stop" else task.cancel()
        await asyncio.wait({task}, timeout=20)
        return task.done()

    try:
        assert asyncio.run(serving())
        assert not given_up.is_set()
    finally:
        go_on.set()


def test_run_says_where_it_can_be_called(service):
    """In a thread, or where an event loop runs, it names `serve`."""
    refused = []

    def run():
        with pytest.raises(IllegalStateError, match=r"main thread.*serve\(\)"):
            service.run()
        refused.append("thread")

    async def run_in_a_loop():
        with pytest.raises(IllegalStateError, match=r"event loop.*serve\(\)"):
            service.run()
        refused.append("loop")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(LIMIT_SECONDS)
    asyncio.run(run_in_a_loop())
    assert refused == ["thread", "loop"]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "30", True, None])
def test_a_stop_time_out_that_is_none_is_refused_at_once(seconds):
    """Not when the service is to stop, where it would fail or wait for ever."""
    with pytest.raises(ledgermq.LedgerMQError, match="stop_timeout_seconds"):
        aio.Service("kafka://localhost:1/QM1", stop_timeout_seconds=seconds)


@pytest.mark.parametrize("address", [None, 5, b"kafka://localhost:1/QM1"])
def test_an_address_that_is_none_is_refused_at_once(address):
    """It is text, or what opens a connection."""
    with pytest.raises(ledgermq.ArgumentTypeError, match="address"):
        aio.Service(address)


PROGRAM = """
    from ledgermq import aio
    from ledgermq.testing import MemoryBroker

    broker = MemoryBroker()
    with broker.connect() as connection, connection.session() as session:
        session.producer("queue:orders").send("one")
    service = aio.Service(broker.connect)

    @service.consumer("queue:orders")
    async def take(message):
        print(message.body, flush=True)

    service.run()
    with broker.connect() as connection:
        print(connection.admin.queue_status("orders").message_count, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_program_and_what_it_was_at_is_settled(number):
    """As supervisors and container engines end a process."""
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        stdout=subprocess.PIPE,
        env=os.environ,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "one\n"
    program.send_signal(number)
    assert program.stdout.read() == "0\n"
    assert program.wait(LIMIT_SECONDS) == 0


HANGING = """
    import time
    from ledgermq import aio
    from ledgermq.testing import MemoryBroker

    broker = MemoryBroker()
    with broker.connect() as connection, connection.session() as session:
        session.producer("queue:orders").send("one")
    service = aio.Service(broker.connect, stop_timeout_seconds=0.1)

    @service.consumer("queue:orders", redelivery_delay_ms=0)
    def take(message):
        print(message.body, flush=True)
        time.sleep(1_000)

    service.run()
    with broker.connect() as connection:
        print(connection.admin.queue_status("orders").message_count, flush=True)
"""


def test_a_plain_function_that_does_not_end_keeps_no_program_alive():
    """Its message goes back, and the process ends as one whose functions are coroutines."""
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HANGING)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ,
        text=True,
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "one\n"
        program.send_signal(signal.SIGTERM)
        assert program.wait(LIMIT_SECONDS) == 0
        assert program.stdout.read() == "1\n"
    finally:
        program.kill()


@pytest.mark.kafka
def test_the_example_bills_orders_until_it_is_told_to_stop(installation):
    """On the real broker; an order that fails is left to the queue's rule."""
    with installation.connect() as connection:
        connection.admin.create_queue("dead")
        rule = {"redelivery_limit": 0, "error_destination": "queue:dead"}
        connection.admin.create_queue("orders", **rule)
        with connection.session() as session:
            producer = session.producer("queue:orders")
            producer.send({"id": 1, "amount": 100})
            producer.send({"id": 2, "amount": 0})
            producer.send({"id": 3, "amount": 10})
        address = f"kafka://{installation.bootstrap}/{connection.queue_manager}"
        program = subprocess.Popen(
            [sys.executable, str(EXAMPLE), address],
            env=os.environ | {"LEDGERMQ_TOPIC_PREFIX": installation.topics.prefix},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert program.stdout is not None
        lines = sorted(program.stdout.readline() for _ in range(2))
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (dead := list(connection.browser("queue:dead"))):
            assert time.monotonic() < deadline, "the order that fails does not leave its queue"
            time.sleep(0.05)
        program.send_signal(signal.SIGTERM)
        assert program.wait(LIMIT_SECONDS) == 0
        assert lines == ["order 1: 119.00\n", "order 3: 11.90\n"]
        assert [one.body["id"] for one in dead] == [2]
        for name in ("orders", "bills"):
            assert connection.admin.queue_status(name).message_count == 0
