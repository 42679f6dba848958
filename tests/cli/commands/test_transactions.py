"""`ledgermq txn` and `ledgermq session`: what others have open, and its end, in memory."""

import pytest

import ledgermq
from ledgermq.cli.printing.exits import OK, REFUSED, USAGE


@pytest.fixture
def session(broker_in_memory):
    """A transacted session with a put and a get that are not committed."""
    with broker_in_memory.connect() as connection:
        connection.admin.create_queue("q", fifo_mode="SERIALIZED")
        with connection.session() as filler:
            filler.producer("queue:q").send_many("ab")
        with connection.session(transacted=True) as opened:
            opened.consumer("queue:q", prefetch=5).receive(20)
            opened.producer("queue:r").send("x")
            opened.flush()
            yield opened


def test_open_units_of_work_are_listed_and_shown(memory, session):
    """By session, then by destination."""
    listed = memory("txn", "list")
    assert listed.code == OK
    assert str(session.handle) in listed.lines[1].split("\t")
    shown = memory("txn", "show", str(session.handle)).lines
    assert any(line.startswith("put\tqueue:r\t1\t") for line in shown)
    assert any(line.startswith("get\tqueue:q\t1\t") for line in shown)
    (told,) = memory("txn", "list", "--json").document
    assert (told["session"], told["puts"][0]["messages"]) == (session.handle, 1)
    assert memory("txn", "show", "999999").code == REFUSED


def test_a_rollback_says_what_it_does_and_wants_a_yes(memory, session):
    """--dry-run changes nothing; without --reason it is wrong use."""
    handle = str(session.handle)
    assert memory("txn", "rollback", handle, "--yes").code == USAGE
    assert memory("txn", "rollback", handle, "--reason", "stuck").code == USAGE
    dry = memory("txn", "rollback", handle, "--reason", "stuck", "--dry-run")
    assert "puts that vanish: 1, gets that go back: 1" in dry.lines[0]
    assert len(memory("txn", "list", "--json").document) == 1
    done = memory("txn", "rollback", handle, "--reason", "stuck", "--yes", "--json")
    assert (done.code, done.document["rolled_back"]) == (OK, True)
    assert memory("txn", "list", "--json").document == []
    shown = memory("session", "show", handle, "--json").document
    assert "stuck" in shown["unit_of_work_ended_by"]
    session.rollback()


def test_time_limits_are_set_and_shown_and_end_a_unit_of_work_with_its_cause(
    memory, session, broker_in_memory
):
    """For the queue manager; what is open then is ended too, and its session shows why."""
    assert memory("manager", "alter", "--unit-of-work-idle-limit", "-1s").code == USAGE
    assert memory("manager", "alter", "--unit-of-work-time-limit", "2s").code == OK
    lines = memory("manager", "show").lines
    assert "unit of work time limit\t2s" in lines
    assert "unit of work idle limit\tnone" in lines
    broker_in_memory.advance(2.1)
    shown = memory("session", "show", str(session.handle), "--json").document
    assert "its time limit: it was open for 2000 ms" in shown["unit_of_work_ended_by"]
    with pytest.raises(ledgermq.TransactionRolledBackError, match="time limit"):
        session.commit()


def test_a_session_is_shown_and_ended(memory, session):
    """Its consumers with why they get nothing; the end wants a yes."""
    handle = str(session.handle)
    lines = memory("session", "show", handle).lines
    assert any("fifo-mode" in line and "queue:q" in line for line in lines)
    assert memory("session", "end", handle, "--reason", "gone").code == USAGE
    ended = memory("session", "end", handle, "--reason", "gone", "--yes")
    assert "deliveries that go back: 1, open puts that vanish: 1" in ended.lines[0]
    assert memory("session", "show", handle).code == REFUSED
