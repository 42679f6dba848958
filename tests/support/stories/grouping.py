"""A story of groups that come in their time, in segments, in part, with clashes."""

from __future__ import annotations

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script
from support.random_logs.random_groups import options, place, put_group


def complete_and_not() -> Script:
    """Of four groups one is got complete, with a message in segments: three of two kinds wait."""
    script = Script()
    producer, consumer = script.session(), script.session("TRANSACTED")
    put_group(producer, "q", place("Y"), place("Y", 3, last_in_group=True))
    script.wait(2)
    put_group(producer, "q", place("Y", 2))
    for number, offsets in ((2, (10, 30)), (4, (0, 10)), (7, (-1,))):
        put_group(producer, "q", *(place("Z", number, offset) for offset in offsets))
    first = place("S", 1, 0, in_group=False)
    put_group(producer, "q", first, place("S", 1, 10, in_group=False, last_segment=True))
    one, other = script.session("TRANSACTED"), script.session("TRANSACTED")
    put_group(one, "q", place("X"))
    put_group(other, "q", place("X"))
    one.commit()
    other.commit()
    consumer.consumer("q")
    asked = options(logical_order=True, all_messages_available=True, complete_message=True)
    consumer.send(op.Get, consumer=1, credit=5, options=asked)
    consumer.commit(1, 2, 3)
    return script
