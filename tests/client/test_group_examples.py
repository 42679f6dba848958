"""Groups across units of work, killed before every single call and started again (E3 to E6b)."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import ModuleType

import pytest

import ledgermq
from ledgermq.client.receiving.consumer import Consumer
from ledgermq.client.sending.producer import Producer
from ledgermq.client.session import Session
from ledgermq.testing import MemoryBroker
from support.checkout import ROOT, SERVICES

EXAMPLES = ROOT / "examples" / "groups"
TARGET, STATUS, OUT = "queue:target", "queue:status", "queue:out"
PUT_BODIES = [f"part {number}" for number in range(1, 10)]


def example(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def put_by_one_call(session, target, status, bodies):
    """The helper, with as many messages in a unit of work as the examples have."""
    ledgermq.put_group(session, target, bodies, status=status, messages_per_unit_of_work=3)


def get_by_one_call(session, source, status, process):
    """The helper, with as many messages in a unit of work as the examples have."""
    ledgermq.get_group(
        session, source, process, status=status, messages_per_unit_of_work=4, timeout=5
    )


PUTTERS: dict[str, Callable[..., None]] = {
    "example": example("put_group").put_group,
    "segments": example("put_group_with_status_segments").put_group,
    "one call": put_by_one_call,
}
GETTERS: dict[str, Callable[..., None]] = {
    "example": example("get_group").get_group,
    "one call": get_by_one_call,
}


class KilledError(BaseException):
    """The application is dead from here on."""


class Life:
    """Counts the calls of an application and ends it before one of them."""

    def __init__(self, monkeypatch) -> None:
        self.left = -1
        self.calls = 0
        for kind, name in ((Producer, "send"), (Consumer, "receive"), (Session, "commit")):
            monkeypatch.setattr(kind, name, self._counted(getattr(kind, name)))

    def _counted(self, real):
        def call(*arguments, **more):
            if self.calls == self.left:
                raise KilledError
            self.calls += 1
            return real(*arguments, **more)

        return call

    def ends_before(self, call: int) -> None:
        """The next application is killed before its call of this number; -1: never."""
        self.calls, self.left = 0, call


@pytest.fixture
def broker_in_memory() -> MemoryBroker:
    """A queue manager of this test alone."""
    return MemoryBroker(now=datetime.now(UTC))


@pytest.fixture
def life(monkeypatch) -> Life:
    """How long the next application lives."""
    return Life(monkeypatch)


def run(broker: MemoryBroker, work: Callable[[Session], None]) -> bool:
    """Runs an application; whether it came to its end."""
    connection = broker.connect(timeout=20.0)
    try:
        with connection.session(transacted=True) as session:
            work(session)
    except KilledError:
        broker.crash(connection)
        return False
    connection.close()
    return True


def bodies_on(broker: MemoryBroker, queue: str) -> list:
    """What a queue holds, in physical order."""
    with broker.connect() as connection, connection.session() as session:
        try:
            return [message.body for message in session.browser(queue)]
        except ledgermq.QueueNotFoundError:
            return []


def status_of(broker: MemoryBroker, variant: str) -> int:
    """How far the status queue says that the group is; 0: it is empty."""
    found = bodies_on(broker, STATUS)
    if not found:
        return 0
    if variant == "segments":
        return int.from_bytes(bytes.fromhex(found[-1])[24:], "big")
    assert len(found) == 1, "one status at a time"
    return found[0]["group_sequence"]


def each_call(life: Life, broker: MemoryBroker, work: Callable[[Session], None]) -> Iterator[int]:
    """Kills an application before its first call, the next before its second, and so on, until one
    comes to its end.
    """
    for call in range(1000):
        life.ends_before(call)
        done = run(broker, work)
        life.ends_before(-1)
        yield call
        if done:
            return
    raise AssertionError("it never came to its end")


@pytest.mark.slow
@pytest.mark.parametrize("variant", PUTTERS)
def test_a_putter_killed_before_any_call_goes_on_where_it_was_cut_off(
    variant, life, broker_in_memory
):
    """E3 and E4: what is there is what the status says (GRP-25, GRP-27, GRP-28, GRP-29, GRP-30)."""
    seen = []

    def work(session):
        PUTTERS[variant](session, TARGET, STATUS, PUT_BODIES)

    for _ in each_call(life, broker_in_memory, work):
        there = bodies_on(broker_in_memory, TARGET)
        assert there == PUT_BODIES[: len(there)]
        told = status_of(broker_in_memory, variant)
        if len(there) < len(PUT_BODIES):
            assert told == len(there), "the status is committed with the messages"
        seen.append(len(there))
    assert sorted(set(seen)) == [0, 3, 6, 9]
    assert status_of(broker_in_memory, variant) == 0
    with broker_in_memory.connect() as connection:
        (group,) = connection.admin.groups(TARGET.removeprefix("queue:"))
        assert group.complete


@pytest.mark.slow
@pytest.mark.parametrize("variant", GETTERS)
def test_a_getter_killed_before_any_call_goes_on_where_it_was_cut_off(
    variant, life, broker_in_memory
):
    """E5 and E6: each message is processed once for good, in order, four a commit (GRP-31..35)."""
    run(broker_in_memory, lambda session: PUTTERS["one call"](session, TARGET, STATUS, PUT_BODIES))
    seen = []

    def work(session):
        out = session.producer(OUT)
        GETTERS[variant](session, TARGET, STATUS, lambda message: out.send(message.body))

    for _ in each_call(life, broker_in_memory, work):
        done = bodies_on(broker_in_memory, OUT)
        assert done == PUT_BODIES[: len(done)]
        assert len(bodies_on(broker_in_memory, TARGET)) == len(PUT_BODIES) - len(done)
        expected = len(done) if len(done) < len(PUT_BODIES) else 0
        assert status_of(broker_in_memory, variant) == expected
        seen.append(len(done))
    assert sorted(set(seen)) == [0, 4, 8, 9]


@pytest.mark.slow
@pytest.mark.parametrize("variant", GETTERS)
@pytest.mark.parametrize("count", [1, 4, 5, 8])
def test_a_group_that_ends_with_a_unit_of_work_leaves_no_status(
    variant, count, life, broker_in_memory
):
    """E6b and GRP-33: groups of one, of one more than a unit of work, and of whole ones."""
    bodies = PUT_BODIES[:count]
    run(broker_in_memory, lambda session: PUTTERS["one call"](session, TARGET, STATUS, bodies))

    def work(session):
        out = session.producer(OUT)
        GETTERS[variant](session, TARGET, STATUS, lambda message: out.send(message.body))

    for _ in each_call(life, broker_in_memory, work):
        done = bodies_on(broker_in_memory, OUT)
        assert status_of(broker_in_memory, variant) == (len(done) if len(done) < count else 0)
    assert bodies_on(broker_in_memory, OUT) == bodies


def test_a_getter_may_begin_before_the_group_is_complete(broker_in_memory):
    """What came in time is committed; the next call goes on behind it (GRP-31)."""
    got = []
    with broker_in_memory.connect() as connection:
        with connection.session() as session, session.producer(TARGET).group() as group:
            group.send("1")
            group.send("2")
            with connection.session(transacted=True) as getter:
                count = ledgermq.get_group(
                    getter, TARGET, lambda one: got.append(one.body), status=STATUS, timeout=0.1
                )
                assert (count, got) == (2, ["1", "2"])
            group.send("3", last=True)
        with connection.session(transacted=True) as getter:
            count = ledgermq.get_group(
                getter, TARGET, lambda one: got.append(one.body), status=STATUS, timeout=5
            )
            assert (count, got) == (1, ["1", "2", "3"])
            assert ledgermq.get_group(getter, TARGET, got.append, status=STATUS, timeout=0) == 0


def test_one_call_for_a_group_refuses_what_cannot_be_resumed(broker_in_memory):
    """No transacted session, no bodies, fewer bodies than were put, a foreign status queue."""
    with broker_in_memory.connect() as connection:
        with connection.session() as session, pytest.raises(ledgermq.IllegalStateError):
            ledgermq.put_group(session, TARGET, ["1"], status=STATUS)
        with connection.session(transacted=True) as session:
            with pytest.raises(ledgermq.IllegalStateError, match="at least one"):
                ledgermq.put_group(session, TARGET, [], status=STATUS)
            with pytest.raises(ledgermq.IllegalStateError, match="at least 1"):
                ledgermq.put_group(
                    session, TARGET, ["1"], status=STATUS, messages_per_unit_of_work=0
                )
            session.producer(STATUS).send("something else")
            session.commit()
            with pytest.raises(ledgermq.MessageFormatError, match="no status"):
                ledgermq.put_group(session, TARGET, ["1"], status=STATUS)
            session.rollback()


# Kills its own process before a call of that number.
DYING = """
import os, runpy, signal, sys
import ledgermq
from ledgermq.client.receiving import consumer
from ledgermq.client.sending import producer
from ledgermq.client import session
left = int(sys.argv[1])

def dying(kind, name):
    real = getattr(kind, name)
    def call(*arguments, **more):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return real(*arguments, **more)
    setattr(kind, name, call)

for kind, name in ((producer.Producer, "send"), (consumer.Consumer, "receive"),
                   (session.Session, "commit")):
    dying(kind, name)
real_connect = ledgermq.connect
prefix = sys.argv[2]
ledgermq.connect = lambda address: real_connect(
    address, topic_prefix=prefix, suspect_timeout_seconds=1.0)
sys.argv = sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("name", ["put_group", "put_group_with_status_segments"])
def test_the_examples_survive_kill_minus_9_on_the_real_broker_kafka(name, installation, queue):
    """Processes that are killed with SIGKILL at some of their calls, then one that is not."""
    status, got = f"{queue}.status", f"{queue}.got"

    def start(calls: int, script: str, *arguments: str) -> tuple[int, str]:
        found = subprocess.run(
            [
                *(sys.executable, "-c", DYING, str(calls), installation.topics.prefix),
                *(str(EXAMPLES / f"{script}.py"), installation.address, *arguments),
            ],
            env={**os.environ, "PYTHONPATH": str(SERVICES)},
            stdout=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
        return found.returncode, found.stdout

    for calls in (2, 5, 9):
        assert start(calls, name, queue, status, "9")[0] == -signal.SIGKILL
    assert start(-1, name, queue, status, "9")[0] == 0
    for calls in (3, 7):
        assert start(calls, "get_group", queue, got)[0] == -signal.SIGKILL
    code, output = start(-1, "get_group", queue, got)
    assert code == 0
    assert output.splitlines()[-1] == "part 9"
    with installation.connect() as connection:
        for left in (queue, status, got):
            name_of = left.removeprefix("queue:")
            assert connection.admin.queue_status(name_of).message_count == 0


@pytest.mark.parametrize("how", ["put", "get"])
def test_a_group_begins_in_a_unit_of_work_of_its_own(how):
    """What was sent before would be committed with a part of the group; it stays as it is."""
    calls = {
        "put": lambda one, **more: ledgermq.put_group(one, TARGET, ["a"], status=STATUS, **more),
        "get": lambda one, **more: ledgermq.get_group(
            one, TARGET, print, status=STATUS, timeout=0, **more
        ),
    }
    with (
        MemoryBroker().connect() as connection,
        connection.session(transacted=True) as session,
    ):
        session.producer(OUT).send("before")
        with pytest.raises(ledgermq.IllegalStateError, match="open already"):
            calls[how](session)
        with pytest.raises(ledgermq.ArgumentTypeError, match="messages_per_unit_of_work"):
            calls[how](session, messages_per_unit_of_work="3")
        session.commit()
        assert [one.body for one in connection.browser(OUT)] == ["before"]
        calls[how](session)
