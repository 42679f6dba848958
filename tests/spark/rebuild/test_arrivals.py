"""Tests that the fold states which messages came in from outside: held against a witness."""

import pyarrow as pa
from hypothesis import given

from ledgermq.core.apply import apply, new_state
from ledgermq.wire.framing.codec import decode_operation
from ledgermq_spark.journal import arrivals
from ledgermq_spark.rebuild import testimony as stated
from support.audits.testimonies import told_moves
from support.brokers.log_writer import LOG_APPEND_TIME, Script
from support.checks import checks
from support.checks.checked_histories import examples
from support.checks.witness import Witness
from support.generators.generators import informed_histories
from support.generators.quota_generators import quota_histories
from support.generators.relocation_generators import relocation_histories

HISTORIES = informed_histories(steps=25) | quota_histories(steps=25) | relocation_histories(25)
FEW = examples(60)


def came_in(history, *, restored=False, witness=None):
    """Number and entry of each message by its place, as the journal's condition chooses them."""
    state = new_state()
    testimony = stated.Testimony(state)
    found = {}
    for position, entry in enumerate(history):
        if restored:
            state = checks.thaw(checks.freeze(state))
            testimony = stated.Testimony(state)
        operation = decode_operation(entry.value, state.active_version)
        outcomes = apply(state, operation, position, entry.time, testimony.hear)
        if witness is not None:
            witness.observe(operation, position, outcomes)
        for row in told_moves(testimony):
            move = dict(zip([name for name, _ in stated.MOVE_COLUMNS], row, strict=True))
            is_put = move["before"] in ("new", "uncommitted put") and move["session"] >= 0
            if not is_put or move["sequence"] < 0 or move["kind"] == "subscription":
                continue
            assert move["position"] == position
            assert move["time_us"] == state.time
            place = (move["put_position"], move["put_index"])
            assert place not in found, f"{place} came in twice"
            found[place] = (move["destination"], move["sequence"], position)
    return found


@FEW
@given(HISTORIES)
def test_every_message_that_got_a_number_of_its_own_came_in_once(history):
    """Retries, blocked puts, units of work that end in any way; what is moved did not (DB-19)."""
    witness = Witness()
    found = came_in(history, witness=witness)
    numbers = {place: number for place, (_, number, _) in found.items()}
    assert numbers == {
        place: number for place, number in witness.number.items() if isinstance(place[0], int)
    }


@FEW
@given(HISTORIES)
def test_it_goes_on_from_any_state(history):
    """A backup's state is begun with where the log before it is gone."""
    assert came_in(history, restored=True) == came_in(history)


def test_a_put_without_messages_hides_no_other():
    """It was refused, and is on the log all the same: who reads what was put passes over it."""
    script = Script()
    session = script.session()
    session.put("q")
    session.put("q", "a", "b")
    values = [one.value for one in script.entries]
    columns = [list(range(len(values))), [LOG_APPEND_TIME] * len(values), values]
    names = ("offset", "timestamp_type", "value")
    batch = pa.RecordBatch.from_arrays([*map(pa.array, columns)], names)
    (found,) = arrivals._decode_puts([batch])
    assert found.column("put_position").to_pylist() == [2]
