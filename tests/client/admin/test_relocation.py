"""Old messages written again, from Python, where many are in the way that cannot be (H24)."""

from functools import partial

import pytest

from ledgermq.cli.commands.log import _tell_of_staying
from ledgermq.cli.printing.output import Output
from ledgermq.client.admin.relocation import PINS_AT_A_TIME, BodyMissingError
from ledgermq.errors import LedgerMQError
from ledgermq.testing import MemoryBroker

WHY = {"reason": "room", "actor": "me"}
ALL = 1_000_000


def fail(error):
    """Raises it, where there is room for an expression only."""
    raise error


@pytest.fixture
def log(monkeypatch):
    """A queue manager in memory, and what stands at each position of its log."""
    memory, values = MemoryBroker(), {}
    fold = memory._fold

    def kept(value, headers):
        position = fold(value, headers)
        values[position] = value
        return position

    monkeypatch.setattr(memory, "_fold", kept)
    return memory, values


@pytest.mark.parametrize(
    ("behind", "is_seen", "told"),
    [
        (21, True, "1 other stays"),
        (PINS_AT_A_TIME - 1, True, f"{PINS_AT_A_TIME - 21} others stay"),
        (PINS_AT_A_TIME, False, f"{PINS_AT_A_TIME - 20} others stay"),
    ],
)
def test_what_stands_behind_many_uncommitted_puts_is_told_of(log, capsys, behind, is_seen, told):
    """They stay and hide it: it is said, and once they ended it is written again."""
    memory, values = log
    with memory.connect() as connection, connection.session(transacted=True) as open_work:
        open_work.producer("queue:q").send_many([b"open"] * behind)
        open_work.flush()
        with connection.session() as session:
            session.producer("queue:q").send("whole")
        done = connection.admin.relocate_messages(values.get, before=ALL, **WHY)
        assert (done.messages, len(done.staying), done.more) == (is_seen, behind, not is_seen)
        _tell_of_staying(Output(as_json=False), done)
        said = capsys.readouterr().err.splitlines()
        assert said[20] == f"{told} there for the same reason"
        assert ("run this again once they ended" in said[-1]) is not is_seen
        open_work.rollback()
        done = connection.admin.relocate_messages(values.get, before=ALL, **WHY)
        assert (done.messages, done.staying, done.more) == (1, (), False)


def test_a_body_that_is_gone_is_found_out_before_anything_is_written(log):
    """By a look at what would be written again, too."""
    memory, values = log
    with memory.connect() as connection, connection.session() as session:
        session.producer("queue:q").send("whole")
        position = session.producer("queue:q").send("lost").position
        look = partial(connection.admin.relocate_messages, before=ALL, dry_run=True, **WHY)
        assert look(values.get).messages == 2
        gone = LedgerMQError("no record any more")
        with pytest.raises(LedgerMQError, match="no record") as caught:
            look(lambda at: values[at] if at != position else fail(gone))
        (note,) = caught.value.__notes__
        assert note.startswith("there stood the content of message 1 of queue:q, put at position")
        values[position] = values[0]
        for dry_run in (True, False):
            with pytest.raises(BodyMissingError, match="does not hold message 1 of queue:q"):
                look(values.get, dry_run=dry_run)


def test_who_asks_is_the_user_of_the_system_unless_told(log, monkeypatch):
    """It stands on the log beside the reason."""
    memory, values = log
    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    with memory.connect() as connection, connection.session() as session:
        session.producer("queue:q").send("whole")
        connection.admin.relocate_messages(values.get, before=ALL, reason="room")
    assert any(b"somebody" in value for value in values.values())
