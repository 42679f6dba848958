"""More ranges of deliveries than one operation may have: several operations, or an error in time.

The limit is two here, for the client and for the queue manager.
"""

import pytest

import ledgermq
from ledgermq.client.sansio import ranges
from ledgermq.testing import MemoryBroker
from ledgermq.wire.framing import list_entries

COUNT = 5
BODIES = [str(number) for number in range(COUNT)]


@pytest.fixture
def connection(monkeypatch):
    """A connection where an operation has at most two ranges."""
    monkeypatch.setattr(ranges, "LIST_ENTRIES_MAX", 2)
    monkeypatch.setattr(list_entries, "LIST_ENTRIES_MAX", 2)
    with MemoryBroker().connect() as opened:
        yield opened


def alternating(connection, **options):
    """A session with deliveries of two consumers by turns, and what one of them received."""
    session = connection.session(**options)
    seen, unseen = session.consumer("queue:seen"), session.consumer("queue:unseen")
    for consumer in (seen, unseen):
        assert consumer.receive(0.05) is None
    with connection.session() as sender:
        producers = [sender.producer("queue:seen"), sender.producer("queue:unseen")]
        for number in range(COUNT):
            for producer in producers:
                producer.send(str(number))
    assert [seen.receive(20).body for _ in range(COUNT)] == BODIES
    return session, seen, unseen


def counts(connection, queue):
    """How often each message of a queue was delivered that is there, by body."""
    return {one.body: one.delivery_count for one in connection.browser(queue)}


def test_acknowledging_very_much_takes_several_operations(connection):
    """All that was received is settled, and nothing else (SES-06)."""
    session, _, _ = alternating(connection, ack="CLIENT")
    session.acknowledge()
    session.close()
    assert counts(connection, "queue:seen") == {}
    assert counts(connection, "queue:unseen") == dict.fromkeys(BODIES, 1)


@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK"])
def test_the_library_acknowledges_very_much_in_several_operations(connection, mode):
    """As the application does (SES-05, SES-08)."""
    session, _, _ = alternating(connection, ack=mode)
    session.close()
    assert counts(connection, "queue:seen") == {}
    assert counts(connection, "queue:unseen") == dict.fromkeys(BODIES, 1)


@pytest.mark.parametrize(
    ("ack", "undo"), [("CLIENT", "recover"), ("TRANSACTED", "rollback"), ("CLIENT", "close")]
)
def test_what_goes_back_of_very_much_is_all_there_and_counts_for_the_oldest(connection, ack, undo):
    """Nothing is lost or settled; what an operation cannot name as seen counts no backout (INF-08,
    INF-13, SES-24).
    """
    session, _, _ = alternating(connection, ack=ack)
    getattr(session, undo)()
    session.close()
    found = counts(connection, "queue:seen")
    assert found == {"0": 2, "1": 2} | dict.fromkeys(BODIES[2:], 1)
    assert counts(connection, "queue:unseen") == dict.fromkeys(BODIES, 1)


def test_a_commit_that_cannot_name_all_it_got_is_refused_before_it_is_written(connection):
    """Nothing is consumed that was not received; the unit of work stays for rollback (SES-15)."""
    session, seen, _ = alternating(connection, transacted=True)
    session.producer("queue:sent").send("x")
    for _ in range(2):
        with pytest.raises(ledgermq.TransactionTooLargeError, match="commit more often"):
            session.commit()
    session.rollback()
    assert [seen.receive(20).body for _ in range(2)] == BODIES[:2]
    session.commit()
    session.close()
    assert set(counts(connection, "queue:seen")) == set(BODIES[2:])
    assert counts(connection, "queue:sent") == {}


def test_closing_a_consumer_gives_back_all_that_it_did_not_hand_over(connection):
    """In several operations, while the session goes on (SES-24)."""
    session, _, unseen = alternating(connection, ack="CLIENT")
    unseen.close()
    with connection.session(ack="CLIENT") as other:
        consumer = other.consumer("queue:unseen")
        assert [consumer.receive(20).body for _ in range(COUNT)] == BODIES
    session.close()
