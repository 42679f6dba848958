"""The fold inside Spark at holes and at entries that bring versions, without Spark (§8; H3, H9)."""

import hashlib
import json

import pyarrow as pa

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import PositionsSkipped, VersionOffered
from ledgermq.wire.framing.codec import encode_operation
from ledgermq_spark.rebuild.checkpoints import state_digest
from ledgermq_spark.rebuild.fold import FoldPlan, fold_task

NAMES = ["partition", "offset", "append_time_ms", "timestamp_type", "value"]
TICK = encode_operation(op.Tick(worker="w"))
RECORDS = [
    (0, 0, 1000, 1, TICK),
    (0, 1, 1001, 1, encode_operation(VersionOffered(worker="w", version=3))),
    (0, 3, 1002, 1, TICK),
    (0, 6, 1003, 1, encode_operation(PositionsSkipped(first=2, last=2, actor="a", reason="r"))),
]


def folded(**plan):
    """What the fold of the records tells, by part."""
    columns = [pa.array(list(column)) for column in zip(*RECORDS, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, names=NAMES)
    task = fold_task({0: FoldPlan(partition=0, tells=("outcome", "links"), **plan)})
    told = {}
    for found in task([batch]):
        for row in found.to_pylist():
            told.setdefault(row["part"], []).append(row)
    return told


def payload(told, part):
    """The one payload of a part."""
    (row,) = told[part]
    return json.loads(row["payload"])


def test_the_fold_asks_before_it_takes_an_entry_that_brings_a_version():
    """Whether it was declared skipped stands above: nobody has looked there yet (§8)."""
    told = folded()
    assert payload(told, "stopped") == {"why": "look ahead", "position": 1}
    assert payload(told, "end")["position"] == 0


def test_the_fold_stops_at_a_hole_that_nobody_declared():
    """A declared hole is passed over, the next one is not (H9)."""
    told = folded(looked_ahead=True, skips=((2, 2),))
    assert payload(told, "skipped") == [2, 2, True]
    assert payload(told, "stopped") == {"why": "hole", "position": 4, "found": 6}
    assert payload(told, "end")["position"] == 3


def test_what_was_declared_is_refused_and_counts_in_the_chain():
    """A hole has time 0 and no value, an entry its own; both are position-skipped (§10)."""
    told = folded(looked_ahead=True, skips=((1, 2), (4, 5)))
    assert [json.loads(one["payload"]) for one in told["skipped"]] == [
        [1, 1, False],
        [2, 2, True],
        [4, 5, True],
    ]
    reasons = {row["outcome"]["position"]: row["outcome"]["reason"] for row in told["outcome"]}
    assert reasons == dict.fromkeys((1, 2, 4, 5), "position-skipped")
    chain, values = bytes(32), {offset: (time, value) for _, offset, time, _, value in RECORDS}
    for position in range(7):
        time_ms, value = values.get(position, (0, b""))
        head = position.to_bytes(8, "big") + time_ms.to_bytes(8, "big")
        chain = hashlib.sha256(chain + head + value).digest()
    (row,) = told["chain"]
    assert row["payload"] == chain
    (links,) = told["links"]
    assert (links["block"], len(links["payload"])) == (0, 7 * 32)


def test_digests_on_the_way_are_those_of_a_fold_that_ends_there():
    """Checkpoints below the end are judged by them; a hole has one as any other position."""
    plan = {"looked_ahead": True, "skips": ((2, 2), (4, 5))}
    told = folded(digests_at=frozenset({1, 4, 6, 99}), **plan)
    digests = [json.loads(row["payload"]) for row in told["digest"]]
    assert [position for position, *_ in digests] == [1, 4, 6]
    assert digests[-1][2] == told["chain"][0]["payload"].hex()
    assert digests[-1][1] == state_digest([told["root"][0]["payload"]])
    assert len({digest for _, digest, _ in digests}) == 3
    assert "digest" not in folded(**plan)
