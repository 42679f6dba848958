"""Tests of how queues come and go, read off administrative operations without the fold."""

from ledgermq_spark.administration import read_directory
from ledgermq_spark.directory import AdministrationRow, Situation


def row(position, kind, queue="q", **more):
    """An administrative operation in turn."""
    return AdministrationRow(position=position, kind=kind, queue=queue, **more)


def test_a_first_use_creates_a_queue_and_a_later_create_is_refused():
    """Automatic creation comes first in the log."""
    found = read_directory([row(5, "CreateQueue"), row(2, "Use")], {})
    assert [(one.queue, one.created) for one in found.lifetimes] == [("q", 2)]
    assert found.refusals == {5: "queue-exists"}


def test_a_queue_comes_back_as_another_one():
    """A use after the deletion begins a new life; its limit does not pass on."""
    rows = [
        row(1, "CreateQueue", message_bytes_max=100),
        row(3, "DeleteQueue", flag=True),
        row(7, "Use"),
    ]
    found = read_directory(rows, {3: Situation(unconsumed=2)})
    assert [(one.created, one.deleted) for one in found.lifetimes] == [(1, 3), (7, None)]
    assert found.purged == {3: 2}
    assert [found.message_bytes_max("q", at) for at in (1, 2, 7, 8)] == [0, 100, 0, 0]


def test_what_is_in_use_or_not_empty_stays():
    """A deletion is refused with the first reason that applies."""
    rows = [row(1, "Use"), row(2, "DeleteQueue", flag=True), row(3, "DeleteQueue", flag=False)]
    situations = {2: Situation(in_use=1, unconsumed=1), 3: Situation(unconsumed=1)}
    found = read_directory(rows, situations)
    assert found.refusals == {2: "queue-in-use", 3: "queue-not-empty"}


def test_a_removed_message_no_longer_fills_its_queue():
    """A correction that removes the last message makes the queue empty."""
    rows = [
        row(1, "Use"),
        row(2, "Correct", number=0, action="REMOVE"),
        row(3, "Correct", number=0, action="REMOVE"),
        row(4, "DeleteQueue", flag=False),
    ]
    resident = Situation(resident=True)
    found = read_directory(rows, {2: resident, 3: resident, 4: Situation(unconsumed=1)})
    assert found.refusals == {3: "sequence-unknown"}
    assert found.lifetimes[0].deleted == 4


def test_automatic_creation_counts_from_the_entry_after_its_switch():
    """A use where it is off finds only queues that stand."""
    rows = [row(1, "Use"), row(4, "AlterQueueManager", flag=False)]
    found = read_directory(rows, {})
    assert found.use_refusal("new", 4) is None
    assert found.use_refusal("new", 5) == "queue-unknown"
    assert found.use_refusal("q", 5) is None
