"""A story of the storage: there may be fewer segments than there are."""

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
