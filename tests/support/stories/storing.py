"""Stories of the storage: how many segments there may be becomes less or more."""

from __future__ import annotations

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script


def fewer_than_there_are() -> Script:
    """Two segments are pinned when two is all there may be; the active one, empty, is filled."""
    script = Script()
    session = script.session()
    size = len(script.message("a", 4)["content"])
    session.send(op.AlterQueueManager, segment_bytes=size)
    session.put("q", "a", "b")
    session.put("r", "c")
    session.consumer("r", 1, credit=1)
    session.acknowledge(1)
    session.send(op.AlterQueueManager, segments_min=1, segments_max=2)
    session.put("q", "d")
    session.put("q", "e")
    return script


def more_as_a_put_is_let_in() -> Script:
    """One operation lets a put in that waits, and allows the segment that the put begins."""
    script = Script()
    script.blocking_ms = lambda: 5_000
    session = script.session()
    size = len(script.message("a", 4)["content"])
    session.send(op.AlterQueueManager, segment_bytes=size, segments_min=1, messages_max=1)
    session.put("q", "a")
    session.put("q", "b")
    session.send(op.AlterQueueManager, segments_max=1)
    session.send(op.AlterQueueManager, segments_max=2, messages_max=0)
    return script
