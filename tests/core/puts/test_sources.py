"""Sources of puts: random histories, faults, how many are remembered, and how they are listed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from ledgermq.core.apply import apply, new_state
from ledgermq.core.destinations.by_name import add_store
from ledgermq.core.queries import questions
from ledgermq.core.queries.paging import PAGE_BYTES
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Queue
from ledgermq.protocol import operations as op
from ledgermq.protocol.limits import SOURCES_MAX
from ledgermq.protocol.operations import Source
from ledgermq.protocol.outcomes import Enqueued, Refused
from ledgermq.wire.framing.checkpoint_chunks import root_parts
from ledgermq.wire.framing.codec import encode_operation
from support.checks import checks
from support.checks.checked_histories import check_every_split, check_new_history, examples
from support.generators.naive_operations import START_US, sample_message
from support.generators.source_generators import source_histories
from support.messages.opening import opening
from support.planted.planted_faults import expect_found_by, named
from support.planted.source_faults import SOURCES
from support.scripts.verbs import identifier


@examples(100)
@given(source_histories())
def test_histories_of_sources_leave_a_sound_state_that_the_model_agrees_with(history):
    """Parts put again, too early and to several destinations, with the checks of every history."""
    check_new_history(history)


@examples(15)
@given(source_histories())
def test_what_was_taken_is_in_every_checkpoint(history):
    """A state that is written and read refuses what it had taken (D5)."""
    check_every_split(history)


@pytest.mark.parametrize("planted", named(SOURCES))
def test_fault_planted_in_sources_is_found(planted):
    """Histories of sources are not blind to what is wrong with them."""
    expect_found_by(SOURCES, planted)


def opened() -> QueueManager:
    """A state with one session, whose handle is 0."""
    state = new_state()
    apply(state, opening("AUTO", connection=identifier("c")), 0, START_US)
    return state


def put(state: QueueManager, source: Source | None, **fields: Any) -> Any:
    """The reply to a put of one message to the queue q."""
    last = state.sessions[0].last_sequence
    position = state.position + 1
    operation = op.Put(
        session=0,
        session_sequence=last + 1,
        answered_through=last,
        destination="queue:q",
        messages=[sample_message(position, 4, 1)],
        source=source,
    )
    (answer,) = apply(state, operation, position, START_US)
    return answer.outcome


def part(name: str, partition: int = 0, first: int = 0) -> Source:
    """One position of a source."""
    return {"name": name, "partition": partition, "first": first, "last": first}


def full_state() -> QueueManager:
    """A queue that remembers as many sources as it may, all but one with the longest names."""
    state = opened()
    assert isinstance(put(state, part("k")), Enqueued)
    queue = state.queues["q"]
    for number in range(SOURCES_MAX - 1):
        queue.sources["\U0001f600" * 512, number] = number
    return state


def test_a_destination_remembers_a_thousand_sources_and_refuses_another():
    """What it remembers goes on; one more is refused (sources-full), and none is forgotten."""
    state = full_state()
    refused = put(state, part("k", 1))
    assert isinstance(refused, Refused)
    assert refused.reason == "sources-full"
    assert isinstance(put(state, part("k", 0, 1)), Enqueued)
    assert isinstance(put(state, None), Enqueued)
    assert len(state.queues["q"].sources) == SOURCES_MAX


def test_a_checkpoint_holds_all_sources_in_parts_that_fit_a_record():
    """The Root is cut, whatever destinations remember (D19)."""
    state = full_state()
    for number in range(100, 103):
        add_store(state, Queue(f"q{number}", number))
        state.queues[f"q{number}"] = state.stores[number]
        state.stores[number].sources.update(state.queues["q"].sources)
    frozen = checks.freeze(state)
    parts = root_parts(frozen.root)
    assert len(parts) > 1
    assert max(map(len, parts)) <= 4 * 1024 * 1024
    thawed = checks.thaw(frozen)
    for name, queue in state.queues.items():
        assert thawed.queues[name].sources == queue.sources


def test_sources_are_listed_page_by_page_each_once():
    """No page is larger than an answer may be; together they list all, in order."""
    state = full_state()
    state.queues["r"] = Queue("r", 99)
    state.queues["r"].sources["a b", 7] = 3
    found: list[Any] = []
    after, pages = "", 0
    while True:
        answer = questions.answer(state, {"kind": "SOURCES", "after": after}, "QM1", "w")
        assert sum(len(str(one)) for one in answer.document) <= PAGE_BYTES
        found += answer.document
        pages += 1
        after = answer.next
        if not after:
            break
    keys = [(one["destination"], one["partition"], one["name"]) for one in found]
    assert keys == sorted(set(keys))
    assert len(found) == SOURCES_MAX + 1
    assert pages > 2
    last = {"destination": "queue:r", "name": "a b", "partition": 7, "taken": 3}
    assert found[-1] == last


def test_a_put_without_a_source_has_the_bytes_that_it_had_before_there_were_sources():
    """Old logs and new ones are one: the field is written only where it says something."""
    plain = op.Put(
        session=0, session_sequence=1, answered_through=0, destination="queue:q", messages=[]
    )
    assert encode_operation(plain).hex() == "c301a9993a6b4994265c000200000e71756575653a71000000"
