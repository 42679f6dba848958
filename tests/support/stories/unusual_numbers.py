"""Stories of unusual numbers: properties that JSON does not know, and the last ones of a field."""

from __future__ import annotations

import math
from typing import Final

from ledgermq.protocol import operations as op
from ledgermq.protocol.limits import TIMING_MS_MAX
from support.brokers.log_writer import Range, Script, color_header

NUMBERS: Final = (math.nan, math.inf, -math.inf, 2.5)
LEAST, MOST = -(2**63), 2**63 - 1
SELECTORS: Final = ("NOT (x > 1)", "x > 1", "x = x", "x IS NULL", "x <> 'NaN'")


def told() -> Script:
    """They are selected or not, expire after a second, come back often enough to be given up."""
    script = Script()
    session = script.session("CLIENT")
    session.send(op.CreateQueue, queue="q")
    session.send(op.CreateTopic, topic="t")
    for number, selector in enumerate(SELECTORS, 1):
        shared = {"subscription": f"s{number}", "durable": True, "shared": True}
        session.subscribe("t", number, selector=selector, **shared)
    for lives, limit in ((1_000, -1), (0, 1)):
        for value in NUMBERS:
            header: op.Header = {**color_header("red"), "correlation_id": f"{value} {lives}"}
            header |= {"properties": {"x": value, "y": "b"}, "time_to_live_ms": lives}
            header["redelivery_limit"] = limit
            for destination in ("queue:q", "topic:t"):
                message = script.message("m", 4, header)
                session.send(op.Put, destination=destination, messages=[message])
    script.wait(2)
    for number, selector in enumerate(SELECTORS, 11):
        session.send(op.OpenConsumer, consumer=number, destination="queue:q", selector=selector)
    for _ in range(2):
        for number in (*range(1, 6), *range(11, 16)):
            session.get(2, number)
        session.recover(*script.in_flight(session))
    session.close()
    return script


def farthest() -> Script:
    """Clocks that are far from any, and ranges that no reader may take apart, as they are long."""
    script = Script()
    for clock in (LEAST, MOST):
        script.add(op.TimeAgreed(worker="w", writer_time=clock))
    session, other = script.session("TRANSACTED"), script.session()
    other.put("q", "a", "b")
    session.consumer("q", credit=2)
    # Over before 1970, and the second one before the first.
    aged: list[op.Header] = [
        {**color_header("red"), "time_to_live_ms": 1, "age_ms": TIMING_MS_MAX - less}
        for less in (1_000_000, 0)
    ]
    messages = [script.message("m", 4, one) for one in aged]
    other.send(op.Put, destination="queue:old", messages=messages)
    other.send(op.RollbackTransaction, target_session=session.handle, actor="a", reason="r")
    # What is said to be seen counts for nothing here, so nothing of it is refused.
    seen = [Range(LEAST, MOST), Range(MOST, LEAST), Range(0, MOST), Range(1, 2), Range(MOST, MOST)]
    session.send(op.Rollback, seen=[one.record() for one in seen])
    session.get(2)
    session.commit(3)
    return script
