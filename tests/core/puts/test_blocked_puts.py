"""Puts that wait for room in vain are told what held them up (INF-20)."""

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Refused
from ledgermq.protocol.settings import given_settings
from support.brokers.log_writer import Script


def refusals(script):
    """What was refused of a log, in the order of the log."""
    answers = (one.outcome for found in script.outcomes for one in found)
    return [one for one in answers if isinstance(one, Refused)]


def test_a_put_is_told_by_what_it_was_held_up():
    """The first by the quota, one that would fit by those before it."""
    script = Script()
    first, second, third = script.session(), script.session(), script.session()
    first.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 2}))
    first.put("q", "one")
    script.blocking_ms = lambda: 5_000
    second.put("q", "two", "three")
    script.blocking_ms = lambda: 1_000
    third.put("q", "four")
    for _ in range(2):
        script.wait(3)
        script.add(op.Tick(worker="w"))
    told = refusals(script)
    assert [one.session for one in told] == [third.handle, second.handle]
    assert "no room in the quota, behind earlier puts, for queue:q" in told[0].detail
    assert "no room in the quota of queue:q" in told[1].detail


def test_a_put_that_only_the_storage_holds_up_is_told_so():
    """No quota is used up, but what stands there keeps all segments in use (INF-20, DB-15)."""
    script = Script()
    session, other = script.session(), script.session()
    session.send(op.AlterQueueManager, segment_bytes=8_192, segments_min=1, segments_max=1)
    session.put("q", "a" * 6_000)
    script.blocking_ms = lambda: 1_000
    other.put("q", "b" * 6_000)
    script.wait(3)
    script.add(op.Tick(worker="w"))
    (told,) = refusals(script)
    assert told.session == other.handle
    assert "no room in the storage, whose segments are in use, for queue:q" in told.detail
