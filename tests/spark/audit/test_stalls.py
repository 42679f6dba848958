"""What a report says of messages that wait for long."""

from ledgermq.core.queries import obstacles
from ledgermq.protocol import operations as op
from ledgermq_spark.rebuild.stalls import STALL_SECONDS, stalls_of
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script
from support.random_logs.random_ends import timed_message

HOUR_MS = 3_600_000


def stalls(script):
    """What is told at the end of a log."""
    state, _ = Logs().fold("QM1", script.entries)
    return stalls_of(state)


def waiting():
    """Return a log with messages that wait for several things, and its session."""
    script = Script()
    session = script.session("TRANSACTED")
    session.put("held", "a")
    session.commit()
    session.consumer("held", credit=1)
    other = script.session()
    other.put("empty", "b")
    other.consumer("empty", 1, credit=1)
    other.acknowledge(1)
    other.subscribe("t", 2, 0, subscription="s", durable=True, shared=True)
    other.publish("t", "c")
    later = timed_message(script, (0, HOUR_MS, 0))
    other.send(op.Put, destination="queue:later", messages=[later])
    return script, session


def pass_by(script, session, seconds):
    """Lets time go by in steps that are no leap of a clock."""
    for _ in range(10):
        script.wait(seconds / 10)
        session.send(op.Alive)


def test_messages_that_nobody_gets_for_minutes_are_told_with_what_holds_them_up():
    """The oldest first; not what has to wait by its own delay, and nothing of an empty queue."""
    script, session = waiting()
    pass_by(script, session, STALL_SECONDS)
    held, copied = stalls(script)
    assert (held["destination"], held["subscription"], held["messages"]) == ("queue:held", "", 1)
    holder = f"consumer 1 of session {session.handle}"
    assert held["obstacles"][0].startswith(f"1 message is delivered to {holder} since ")
    assert (copied["destination"], copied["subscription"]) == ("topic:t", "s")
    assert any("asks for nothing" in one for one in copied["obstacles"])
    assert held["since"] < copied["since"]


def test_what_has_waited_for_less_is_not_told():
    """By a tick."""
    script, session = waiting()
    pass_by(script, session, STALL_SECONDS - 1)
    assert stalls(script) == []


def test_a_stall_with_more_obstacles_than_are_listed_says_so(monkeypatch):
    """As `ledgermq queue why` does."""
    monkeypatch.setattr(obstacles, "OBSTACLES_MAX", 1)
    script, session = waiting()
    session.consumer("held", number=2)
    pass_by(script, session, STALL_SECONDS)
    assert [one["obstacles"][1:] for one in stalls(script)] == [["there are more"], []]
