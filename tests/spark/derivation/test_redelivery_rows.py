"""Tests of what rows and the scan of sessions tell of redelivery, without Spark."""

import random

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Refused
from ledgermq.wire.framing.codec import decode_operation
from ledgermq_spark.derivation.acts import Event
from ledgermq_spark.derivation.conduct import ConnectionScan
from ledgermq_spark.derivation.directory import Directory
from ledgermq_spark.log.headers import header_text
from ledgermq_spark.log.rows import OPERATION_COLUMNS, arrow_batch, operation_row
from support.brokers.log_writer import Script, color_header
from support.random_logs.random_log import RandomLog

NAMES = [name for name, _ in OPERATION_COLUMNS]
CENTURY_MS = 100 * 366 * 86_400_000


def test_rows_tell_the_delays_of_sessions_and_consumers():
    """Of every other operation there is none."""
    script = Script(random=random.Random(1))
    RandomLog(script, redelivery=True).grow(200)
    operations = [decode_operation(one.value) for one in script.entries]
    rows = [operation_row(one, at, 0, True) for at, one in enumerate(operations)]
    batch = arrow_batch(OPERATION_COLUMNS, rows)
    told = batch.column(NAMES.index("redelivery_delay_ms")).to_pylist()
    for one, delay_ms in zip(operations, told, strict=True):
        asks = isinstance(one, op.Open | op.OpenConsumer)
        assert delay_ms == (one.redelivery_delay_ms if asks else None)
    assert len(set(told)) > 3


@pytest.mark.parametrize(("limit", "told"), [(-1, False), (0, True), (7, True)])
def test_a_header_tells_the_redelivery_limit_that_it_asks_for(limit, told):
    """None is not told, so that rows of older logs are as they were."""
    header = color_header("red") | {"redelivery_limit": limit}
    assert (f'"r":{limit}' in header_text(header)) == told


def opened(delay_ms):
    """What the scan makes of an Open with a redelivery delay."""
    nothing = dict.fromkeys(Event._fields, 0) | {"firsts": [], "lasts": [], "groups": []}
    texts = ("client_id", "selector", "subscription", "text", "target")
    event = Event(
        **nothing
        | dict.fromkeys(texts, "")
        | {"what": "operation", "kind": "Open", "acknowledge_mode": "CLIENT"}
        | {"suspect_timeout_ms": 1_000, "redelivery_delay_ms": delay_ms}
    )
    (act,) = [one for one in ConnectionScan(Directory(), b"c").take(event) if one.what == "act"]
    return act.reason


@pytest.mark.parametrize("delay_ms", [-1, 0, CENTURY_MS, CENTURY_MS + 1])
def test_the_scan_refuses_the_delays_of_sessions_that_the_fold_refuses(delay_ms):
    """From nothing to 100 years (PROTOCOL.md §3)."""
    script = Script()
    script.session(redelivery_delay_ms=delay_ms)
    outcome = script.outcomes[0][0].outcome
    assert opened(delay_ms) == (outcome.reason if isinstance(outcome, Refused) else None)
