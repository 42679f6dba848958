"""The pass of law F takes what happens together in one go, and finds what it finds one by one."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ledgermq_spark.laws.order import judging

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def happened(facts):
    """What happens to each store in lawful and in tampered logs, in order."""
    one = judging.JUDGED
    order = ", ".join(f"{name} NULLS FIRST" for name in (*one.keys, *one.order))
    return pa.Table.from_pylist(facts.rows(f"SELECT * FROM ({judging.EVENTS}) ORDER BY {order}"))


def found(happened, *, at_once):
    """What the pass finds in batches of so many rows."""
    batches = happened.combine_chunks().to_batches(max_chunksize=at_once)
    return [row for found in judging.JUDGED.take(iter(batches)) for row in found.to_pylist()]


def test_where_batches_end_changes_nothing(happened):
    """Runs of any length come to the same findings, those of one event too (D10)."""
    whole = found(happened, at_once=len(happened))
    assert whole
    for at_once in (1, 2, 7):
        assert found(happened, at_once=at_once) == whole


def test_what_is_not_there_cannot_move(happened):
    """A message that goes and never came contradicts what is stated, however it goes."""
    gone = happened.filter(pc.equal(happened["cause"], "consumed")).to_pylist()[0]
    of_one = {name: gone[name] for name in ("queue_manager", "store")}
    rows = [row for row in happened.to_pylist() if of_one.items() <= row.items()]
    mine = [row for row in rows if row["sequence"] == gone["sequence"] and row["step"] is not None]
    left = [row for row in rows if row not in mine or row == gone]
    (told,) = found(pa.Table.from_pylist(left, schema=happened.schema), at_once=len(left))
    assert (told["kind"], told["position"]) == ("state mismatch", gone["position"])
    assert told["found"] == f"LookupError: message {gone['sequence']} moves, which is not there"
