"""Puts that are not committed: who sees them when, and that their own session never gets them."""

import importlib.util

import pytest

import ledgermq
from ledgermq.client.receiving.consumer import Consumer
from ledgermq.testing import MemoryBroker
from support.checkout import ROOT

EXAMPLE = ROOT / "examples/groups/put_group_with_status_segments.py"
TARGET, STATUS = "queue:parts", "queue:parts.status"
BODIES = ["one", "two", "three", "four"]


class KilledError(BaseException):
    """The application is dead from here on."""


def put_group(session):
    """The example's function, which clears its statuses in a unit of work of its own."""
    spec = importlib.util.spec_from_file_location("put_group_with_status_segments", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.put_group(session, TARGET, STATUS, BODIES)


def test_a_session_never_gets_its_own_uncommitted_puts(connection, queue):
    """INF-02, decision 31: not even after flush, which lets others see that they are pending."""
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue)
        session.producer(queue).send("own")
        assert consumer.receive(0) is None
        session.flush()
        assert consumer.receive(0.05) is None
        assert list(session.browser(queue)) == []
        session.commit()
        assert consumer.receive(20).body == "own"


def test_statuses_of_a_group_are_cleared_in_one_more_unit_of_work(monkeypatch):
    """GRP-36, decision 31: a crash before it leaves all of group and status, a start clears it."""
    broker = MemoryBroker()
    connection = broker.connect()
    real = Consumer.receive

    def killed(*_, **__):
        raise KilledError

    monkeypatch.setattr(Consumer, "receive", killed)
    with pytest.raises(KilledError), connection.session(transacted=True) as session:
        put_group(session)
    broker.crash(connection)
    monkeypatch.setattr(Consumer, "receive", real)
    with broker.connect() as after, after.session(transacted=True) as session:
        shown = [list(session.browser(one, order="LOGICAL")) for one in (TARGET, STATUS)]
        assert [one.body for one in shown[0]] == BODIES
        last = shown[1][-1]
        assert last.segment_status is ledgermq.SegmentStatus.LAST_SEGMENT
        put_group(session)
        assert [one.body for one in session.browser(TARGET)] == BODIES
        assert list(session.browser(STATUS)) == []


def test_flush_makes_gathered_puts_pending_at_once(connection, queue):
    """INF-02, decision 32: others see them without waiting; what was only sent may be gathered."""
    name = queue.removeprefix("queue:")
    connection.admin.create_queue(name)
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        for flush in (session.flush, producer.flush):
            before = connection.admin.queue_status(name).uncommitted_puts
            producer.send("x")
            flush()
            status = connection.admin.queue_status(name)
            assert status.uncommitted_puts == before + 1
            assert (status.current, status.message_count) == (0, 0)


def test_gathered_puts_are_pending_for_others_soon_without_any_call(connection, queue, eventually):
    """INF-02, decision 32: the client writes them on its own within a second or so."""
    name = queue.removeprefix("queue:")
    connection.admin.create_queue(name)
    with connection.session(transacted=True) as session:
        session.producer(queue).send("x")
        eventually(lambda: connection.admin.queue_status(name).uncommitted_puts == 1)
