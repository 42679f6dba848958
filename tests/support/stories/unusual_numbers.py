"""A story of properties whose numbers JSON does not know: infinite ones, and what is no number."""

from __future__ import annotations

import math
from typing import Final

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script, color_header

NUMBERS: Final = (math.nan, math.inf, -math.inf, 2.5)
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
