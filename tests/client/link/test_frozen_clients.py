"""Clients that were frozen until their sessions ended: what they hold belongs to others by then."""

import signal
import time

import pytest

from ledgermq.client.engine.lease import STANDSTILL_SECONDS
from ledgermq.client.link.broker_news import BrokerNews
from ledgermq.client.link.transport import Transport
from ledgermq.client.settings import ConnectionSettings

HOLDER = """
import sys
import ledgermq

address, prefix, queue, way = sys.argv[1:]
connection = ledgermq.connect(address, topic_prefix=prefix, suspect_timeout_seconds=1.0)
session = connection.session()
consumer = session.consumer(queue, prefetch=10)


def got(seconds):
    if way == "one":
        return [one for one in [consumer.receive(seconds)] if one]
    return consumer.receive_many(1 if seconds else 10, seconds)


print(*(one.body for one in got(20)), flush=True)
sys.stdin.readline()
try:
    while bodies := [one.body for one in got(3)]:
        print(*bodies, flush=True)
except ledgermq.SessionLostError:
    print("lost", flush=True)
"""


@pytest.fixture
def connection(installation):
    """A connection to the real worker: processes cannot share what is in memory."""
    with installation.connect() as opened:
        yield opened


def woken(holder):
    """What a frozen client says from when it is woken and told to go on."""
    holder.stdin.write("go on\n")
    holder.stdin.flush()
    holder.send_signal(signal.SIGCONT)
    return holder.communicate(timeout=60)[0].split()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["one", "many"])
def test_what_was_fetched_ahead_is_not_handed_over_when_others_have_it(
    installation, connection, queue, eventually, way
):
    """A client that was frozen for longer than its session lives asks first (SES-65)."""
    with connection.session() as session, installation.program(HOLDER, queue, way) as holder:
        session.producer(queue).send_many([f"m{number}" for number in range(5)])
        first = holder.stdout.readline().split()
        assert first[0] == "m0"
        handle = connection.admin.sessions()[-1].session
        holder.send_signal(signal.SIGSTOP)
        eventually(lambda: handle not in [one.session for one in connection.admin.sessions()], 60)
        consumer = session.consumer(queue)
        others = [one.body for one in consumer.until_idle(2)]
        assert others[-4:] == ["m1", "m2", "m3", "m4"]
        assert woken(holder) == ["lost"]


SUBSCRIBER = """
import sys
import time
import ledgermq

address, prefix, topic = sys.argv[1:]
connection = ledgermq.connect(address, topic_prefix=prefix, client_id="billing", takeover="secret")
session = connection.session()
consumer = session.consumer(topic, subscription="all", durable=True)
print(consumer.receive(20).body, flush=True)
while not consumer._shared.buffer.count:
    time.sleep(0.05)
print("ahead", flush=True)
sys.stdin.readline()
got = []
try:
    while message := consumer.receive(3):
        got.append(message.body)
except ledgermq.SessionLostError:
    got.append("lost")
print(*got, flush=True)
"""


@pytest.mark.slow
def test_what_was_fetched_ahead_is_not_handed_over_by_a_client_that_was_replaced(
    installation, named
):
    """It was frozen for less than its session lives, and another one took its place (SES-65)."""
    topic, who = named, {"client_id": "billing", "takeover": "secret"}
    with installation.connect(**who) as first, first.session() as session:
        first.admin.create_topic(topic)
        session.consumer(f"topic:{topic}", subscription="all", durable=True).close()
        session.producer(f"topic:{topic}").send_many([f"m{number}" for number in range(100)])
    with installation.program(SUBSCRIBER, f"topic:{topic}") as holder:
        assert [holder.stdout.readline().strip() for _ in range(2)] == ["m0", "ahead"]
        holder.send_signal(signal.SIGSTOP)
        with installation.connect(**who) as second, second.session() as session:
            consumer = session.consumer(f"topic:{topic}", subscription="all", durable=True)
            others = [one.body for one in consumer.until_idle(STANDSTILL_SECONDS + 0.5)]
        assert others[-99:] == [f"m{number}" for number in range(1, 100)]
        assert woken(holder) == ["lost"]


def test_the_clock_of_a_connection_goes_on_while_the_machine_sleeps(monkeypatch):
    """Its sessions end meanwhile; the clock that Python waits by stands still (SES-65)."""
    asked, clock_gettime = [], time.clock_gettime

    def asleep(clock):
        asked.append(clock)
        return clock_gettime(clock) + 60.0

    settings = ConnectionSettings(bootstrap="127.0.0.1:1", queue_manager="QM1")
    transport = Transport(settings, BrokerNews(settings.bootstrap))
    try:
        before = transport.clock()
        monkeypatch.setattr(time, "clock_gettime", asleep)
        assert transport.clock() - before >= 60.0
        assert asked == [time.CLOCK_BOOTTIME]
    finally:
        transport.close(0.0)
