"""Old messages written again, from Python, where many are in the way that cannot be (H24)."""

from functools import partial

import pytest

from ledgermq.cli.commands.log import _tell_of_lost, _tell_of_staying
from ledgermq.cli.printing.output import Output
from ledgermq.client.admin.relocation import PINS_AT_A_TIME
from ledgermq.testing import MemoryBroker
from ledgermq.wire.topics.reading import BodyLostError, LogUnreadableError

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
        assert ("run this again once they are gone" in said[-1]) is not is_seen
        open_work.rollback()
        done = connection.admin.relocate_messages(values.get, before=ALL, **WHY)
        assert (done.messages, done.staying, done.more) == (1, (), False)


def test_messages_with_lost_bodies_hold_up_no_others(log):
    """They are told, by a look before it too; the log stays needed where they are (H24)."""
    memory, values = log
    with memory.connect() as connection, connection.session() as session:
        producer, other = session.producer("queue:q"), session.producer("queue:r")
        first = producer.send("whole").position
        gone, altered = producer.send("gone").position, other.send("altered").position
        together = [one.position for one in producer.send_many(["a", "b"])]
        values[altered] = values[first]

        def read(at):
            return values[at] if at != gone else fail(BodyLostError("no record any more"))

        relocate = partial(connection.admin.relocate_messages, read, before=ALL, **WHY)
        for dry_run in (True, False):
            done = relocate(dry_run=dry_run)
            assert (done.messages, done.staying, done.more) == (1 + len(together), (), False)
            assert [one.pin.put_position for one in done.lost] == [gone, altered]
            assert done.lost[0].why == "no record any more"
            assert f"position {altered} of the log does not hold it" in done.lost[1].why
        assert connection.admin.log_pins().needed_position == gone
        connection.admin.delete_messages("r", sequences=[0], **WHY)
        assert [one.pin.put_position for one in relocate().lost] == [gone]


def test_a_body_that_several_have_is_lost_to_each(log):
    """Copies of one put on a topic's subscriptions are told one by one."""
    memory, values = log
    with memory.connect() as connection, connection.session() as session:
        for name in ("a", "b"):
            session.consumer("topic:t", subscription=name, durable=True, shared=True).close()
        lost = session.producer("topic:t").send("news").position
        values[lost] = None
        done = connection.admin.relocate_messages(values.get, before=ALL, **WHY)
        assert (done.messages, [one.pin.subscription for one in done.lost]) == (0, ["a", "b"])


def test_a_log_that_does_not_answer_ends_the_command(log):
    """Nothing is known of its bodies."""
    memory, _ = log
    with memory.connect() as connection, connection.session() as session:
        session.producer("queue:q").send("whole")
        with pytest.raises(LogUnreadableError, match="no answer"):
            connection.admin.relocate_messages(
                lambda _: fail(LogUnreadableError("no answer")), before=ALL, **WHY
            )


def test_no_more_lost_messages_are_named_than_fit_on_a_screen(log, capsys):
    """The rest is counted."""
    memory, values = log
    with memory.connect() as connection, connection.session() as session:
        for one in session.producer("queue:q").send_many(["x"] * 22):
            values[one.position] = None
        done = connection.admin.relocate_messages(values.get, before=ALL, **WHY)
    _tell_of_lost(Output(as_json=False), done)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("the content of message 0 of queue:q, put at position")
    assert "Get the message or delete it" in said[0]
    assert said[-1] == "the content of 2 others is lost as well"


def test_who_asks_is_the_user_of_the_system_unless_told(log, monkeypatch):
    """It stands on the log beside the reason."""
    memory, values = log
    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    with memory.connect() as connection, connection.session() as session:
        session.producer("queue:q").send("whole")
        connection.admin.relocate_messages(values.get, before=ALL, reason="room")
    assert any(b"somebody" in value for value in values.values())
