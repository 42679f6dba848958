"""Stories of puts and commits that wait for a quota, and are let in or wait in vain."""

from __future__ import annotations

from typing import NamedTuple

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.brokers.log_writer import Script, ScriptSession, color_header


class Waited(NamedTuple):
    """The positions of what waited, and of the acknowledgement that let the first one in."""

    let_in: int
    acknowledged: int
    in_unit: int
    commit: int
    held_by_all: int
    in_vain: int
    at_the_end: int


def held_up() -> tuple[Script, Waited]:
    """Puts and a commit that wait, are let in by what others do, or wait in vain."""
    script = Script()
    script.blocking_ms = lambda: 2_000
    first, second, unit = script.session(), script.session(), script.session("TRANSACTED")
    first.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 2}))
    first.put("q", "one", "two")
    let_in = second.put("q", "three")
    in_unit = unit.put("q", "four")
    commit = unit.commit()
    first.consumer("q", 1, credit=1)
    acknowledged = first.acknowledge(1)
    first.get(1)
    first.acknowledge(2)
    in_vain = second.put("q", "five")
    script.wait(3)
    script.add(op.Tick(worker="w"))
    first.send(op.AlterQueueManager, messages_max=3)
    second.put("r", "six")
    held_by_all = second.put("r", "seven")
    first.send(op.AlterQueueManager, messages_max=0)
    at_the_end = second.put("q", "eight")
    return script, Waited(
        let_in=let_in,
        acknowledged=acknowledged,
        in_unit=in_unit,
        commit=commit,
        held_by_all=held_by_all,
        in_vain=in_vain,
        at_the_end=at_the_end,
    )


def let_in_as_a_put_begins() -> Script:
    """What expires lets in what waits, and its commit; the Put of that entry comes behind it."""
    script = Script()
    script.blocking_ms = lambda: 5_000
    first, unit = script.session(), script.session("TRANSACTED")
    first.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 2}))
    brief = color_header("red") | {"time_to_live_ms": 1_000}
    first.send(op.Put, destination="queue:q", messages=[script.message("one", 4, brief)])
    unit.put("q", "two")
    unit.put("q", "three")
    unit.commit()
    script.wait(2)
    unit.put("r", "four")
    unit.rollback()
    return script


def let_in_as_its_unit_is_ended() -> Script:
    """What expires lets in a put, whose unit of work is rolled back by hand in the same entry."""
    script = Script()
    script.blocking_ms = lambda: 5_000
    first, unit = script.session(), script.session("TRANSACTED")
    first.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 1}))
    brief = color_header("red") | {"time_to_live_ms": 1_000}
    first.send(op.Put, destination="queue:q", messages=[script.message("one", 4, brief)])
    unit.put("q", "two")
    script.wait(2)
    first.send(op.RollbackTransaction, target_session=unit.handle, actor="a", reason="r")
    return script


def over_before_there_was_a_limit() -> Script:
    """Units of work are open for longer than the limits that they are given then."""
    script = Script()
    first = script.session(suspect_timeout_ms=45_000)
    for name in ("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms"):
        unit = script.session("TRANSACTED", suspect_timeout_ms=45_000)
        unit.put("q", "one")
        script.wait(10)
        first.send(op.AlterQueueManager, **{name: 5_000})
        script.add(op.Tick(worker="w"))
        script.wait(6)
        unit.rollback()
        first.send(op.AlterQueueManager, **{name: 0})
        unit.put("q", "two")
        script.wait(6)
        unit.commit()
    return script


def committed_as_it_is_repeated() -> Script:
    """A put times out; the commit behind it consumes what the next one of that entry names too."""
    script = Script()
    script.blocking_ms = lambda: 1_000
    first, unit = script.session(), script.session("TRANSACTED")
    first.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 1}))
    first.put("q", "one")
    first.put("p", "two")
    unit.consumer("p", 1, credit=1)
    unit.put("q", "three")
    unit.commit(1, puts=0)
    script.wait(2)
    unit.commit(1, puts=0)
    return script


def taken_for_a_session() -> tuple[Script, int]:
    """A put waited in vain; an operation, of that position, is of a session that never was."""
    script = Script()
    script.blocking_ms = lambda: 1_000
    session = script.session()
    session.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 1}))
    session.put("q", "one")
    waited = session.put("q", "two")
    script.wait(2)
    for name in "rs":
        session.put(name, "three")
    numbers = {"session_sequence": 1, "answered_through": 0, "handed_through": 0}
    end = script.add(op.Alive(session=waited, **numbers))
    script.add(op.Tick(worker="w"))
    return script, end


def out_of_turn() -> Script:
    """A commit waits; when the put is let in it is not its deliveries' turn (§18)."""
    script = Script()
    script.blocking_ms = lambda: 5_000
    first, unit = script.session(), script.session("TRANSACTED")
    first.send(op.CreateQueue, queue="p", settings=given_settings({"fifo_mode": "PROTECTED"}))
    first.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 1}))
    first.put("p", "one", "two")
    first.put("q", "three")
    first.consumer("p", 1, credit=1)
    unit.consumer("p", 1, credit=1)
    unit.put("q", "four")
    unit.commit(1)
    first.consumer("q", 2, credit=1)
    first.acknowledge(2)
    unit.rollback(1)
    return script


def vanished_before_the_next() -> Script:
    """A put vanishes as it is let in, and the next one makes the queue forget what it repeated."""
    script = Script()
    script.blocking_ms = lambda: 5_000
    first, second = script.session(), script.session()
    window = {"deduplication_window_ms": 60_000, "deduplication_ids_max": 1}
    first.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 1}), **window)
    first.put("q", "one")
    for session, name in ((second, "x"), (first, "x"), (second, "y")):
        messages = [script.message("two")]
        session.send(op.Put, destination="queue:q", messages=messages, deduplication_id=name)
    first.consumer("q", 1, credit=2)
    first.acknowledge(1)
    first.acknowledge(2)
    return script


def put_while_time_stood() -> tuple[Script, int]:
    """Windows of ids that began while log time stood still, and where that was over."""
    script = Script()
    first, unit = script.session(), script.session("TRANSACTED")
    first.send(op.CreateQueue, queue="q", deduplication_window_ms=30_000, deduplication_ids_max=9)

    def put(session: ScriptSession, name: str) -> None:
        messages = [script.message(name)]
        session.send(op.Put, destination="queue:q", messages=messages, deduplication_id=name)

    script.wait(90)
    put(first, "x")
    put(unit, "y")
    unit.commit()
    unit.close()
    script.add(op.TimeAgreed(worker="w", writer_time=script.now_us))
    end = len(script.entries) - 1
    for seconds in (0, 20, 20):
        script.wait(seconds)
        for name in "xy":
            put(first, name)
    return script, end
