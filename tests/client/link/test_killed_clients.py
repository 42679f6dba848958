"""Clients that are killed while their application holds a message: what counts (decision 24)."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

HOLDER = """
import os
import signal
import sys
import threading
import ledgermq

address, prefix, queue, how = sys.argv[1:]


def show(session, message):
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    print(session.handle, message.delivery_count, flush=True)
    threading.Event().wait(600)


connection = ledgermq.connect(address, topic_prefix=prefix, suspect_timeout_seconds=1.0)
session = connection.session(ack="AUTO" if how == "listens" else "CLIENT")
consumer = session.consumer(queue, prefetch=10)
if how == "listens":
    consumer.set_message_listener(lambda message: show(session, message))
    threading.Event().wait(600)
show(session, consumer.receive(20))
"""

Start = Callable[..., subprocess.Popen]


@pytest.fixture
def connection(installation):
    """A connection to the real worker: processes cannot share what is in memory."""
    with installation.connect() as opened:
        yield opened


@pytest.fixture
def start(installation, queue) -> Iterator[Start]:
    """Starts processes that get the first message of the queue, and in the end kills them."""
    with ExitStack() as started:
        yield lambda how: started.enter_context(installation.program(HOLDER, queue, how))


@pytest.mark.slow
@pytest.mark.parametrize(("how", "limit"), [("receives", 1), ("listens", 0)])
def test_what_is_held_for_long_moves_after_one_delivery_more_than_its_limit(
    connection, start, queue, named, eventually, how, limit
):
    """Each life gets it, holds it for longer than a second and is killed (decision 24, INF-16)."""
    connection.admin.create_queue(f"{named}.dead")
    connection.admin.create_queue(named, redelivery_limit=limit, error_destination=f"{queue}.dead")
    with connection.session() as session:
        session.producer(queue).send_many(["poison", "behind it"])
        for life in range(limit + 1):
            assert connection.admin.queue_status(named).moved == 0
            holder = start(how)
            handle, count = map(int, holder.stdout.readline().split())
            assert count == life + 1
            if not life:
                # It says so by itself: its application does nothing any more. Later ones had to
                # say so before (H20).
                eventually(lambda one=handle: connection.admin.session(one).handed_through == 1)
            holder.send_signal(signal.SIGKILL)
        dead = session.consumer(f"{queue}.dead").receive(60)
        assert (dead.body, dead.origin.backout_count) == ("poison", limit + 1)
        neighbour = session.consumer(queue).receive(20)
        assert (neighbour.body, neighbour.redelivered) == ("behind it", True)


@pytest.mark.slow
def test_what_is_held_for_less_than_a_second_does_not_count(connection, start, queue, named):
    """It comes again as redelivered, though its limit allows a single delivery."""
    connection.admin.create_queue(named, redelivery_limit=0)
    with connection.session() as session:
        session.producer(queue).send("held shortly")
        assert start("dies").wait(60) == -signal.SIGKILL
        message = session.consumer(queue).receive(60)
    assert (message.delivery_count, message.redelivered) == (2, True)
