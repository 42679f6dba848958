"""Deduplication: random histories, faults, and how much a destination remembers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from ledgermq.core.apply import apply, new_state
from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol import operations as op
from ledgermq.protocol.limits import DEDUPLICATION_IDS_MAX
from ledgermq.protocol.outcomes import Enqueued
from ledgermq.wire.framing.checkpoint_chunks import root_parts
from ledgermq.wire.framing.codec import encode_operation
from support.checks import checks
from support.checks.checked_histories import check_every_split, check_new_history, examples
from support.generators.deduplication_generators import deduplication_histories
from support.generators.naive_operations import START_US, sample_message
from support.messages.opening import opening
from support.planted.deduplication_faults import DEDUPLICATION, DEDUPLICATION_SCRIPTS
from support.planted.planted_faults import expect_found_by, named
from support.scripts.verbs import identifier


@examples(60)
@given(deduplication_histories())
def test_histories_of_ids_leave_a_sound_state_that_the_model_agrees_with(history):
    """Puts that come twice in every way, with the checks of every history."""
    check_new_history(history)


@examples(10)
@given(deduplication_histories())
def test_what_is_remembered_is_in_every_checkpoint(history):
    """A state that is written and read knows what it knew (D5)."""
    check_every_split(history)


@pytest.mark.parametrize("planted", named(DEDUPLICATION))
def test_fault_planted_in_deduplication_is_found(planted):
    """Histories of ids are not blind to what is wrong with them."""
    expect_found_by(DEDUPLICATION, planted)


@pytest.mark.parametrize("planted", named(DEDUPLICATION_SCRIPTS))
def test_fault_planted_in_deduplication_is_found_by_scripts(planted):
    """What must happen at one moment is scripted."""
    expect_found_by(DEDUPLICATION_SCRIPTS, planted)


def looking_queue(ids_max: int) -> QueueManager:
    """A state with one session, whose handle is 0, and a queue that remembers for an hour."""
    state = new_state()
    apply(state, opening("AUTO", connection=identifier("c")), 0, START_US)
    make(
        state,
        op.CreateQueue,
        queue="q",
        deduplication_window_ms=3_600_000,
        deduplication_ids_max=ids_max,
    )
    return state


def make(state: QueueManager, kind: type[op.SessionOperation], **fields: Any) -> Any:
    """The reply to the session's next operation."""
    last = state.sessions[0].last_sequence
    common = {"session": 0, "session_sequence": last + 1, "answered_through": last}
    operation = kind(**common, **fields)
    (answer,) = apply(state, operation, state.position + 1, START_US)
    return answer.outcome


def put(state: QueueManager, deduplication_id: str) -> Any:
    """The reply to a put of one message."""
    message = sample_message(state.position, 4, 1)
    fields = {"destination": "queue:q", "messages": [message]}
    return make(state, op.Put, **fields, deduplication_id=deduplication_id)


def test_a_destination_remembers_as_many_ids_as_it_may_and_a_checkpoint_holds_them():
    """The longest ids, as many as may be: the Root is cut into parts that fit a record (D19)."""
    state = looking_queue(DEDUPLICATION_IDS_MAX)
    kept = state.queues["q"].deduplication
    assert kept is not None
    assert isinstance(put(state, "first"), Enqueued)
    known = kept.ids["first"]
    for number in range(DEDUPLICATION_IDS_MAX):
        kept.ids["\U0001f600" * 122 + f"{number:06}"] = known
    assert put(state, "last").count == 1
    assert len(kept.ids) == DEDUPLICATION_IDS_MAX
    assert put(state, "last").count == 0
    assert put(state, "first").count == 1
    frozen = checks.freeze(state)
    assert max(map(len, root_parts(frozen.root))) <= 4 * 1024 * 1024
    thawed = checks.thaw(frozen).queues["q"].deduplication
    assert thawed is not None
    assert list(thawed.ids.items()) == list(kept.ids.items())


def test_a_put_without_an_id_has_the_bytes_that_it_had_before_there_were_ids():
    """Old logs and new ones are one, whether a put has a source or not."""
    plain = op.Put(
        session=0, session_sequence=1, answered_through=0, destination="queue:q", messages=[]
    )
    assert encode_operation(plain).hex() == "c301a9993a6b4994265c000200000e71756575653a71000000"
    source: op.Source = {"name": "k", "partition": 0, "first": 0, "last": 0}
    sourced = op.Put(
        session=0,
        session_sequence=1,
        answered_through=0,
        destination="queue:q",
        messages=[],
        source=source,
    )
    assert encode_operation(sourced).hex().startswith("c301581ed34abf385771")
