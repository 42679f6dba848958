"""Whatever the state is, what is cut into records is the same when it is joined (D5, H2, H28)."""

import asyncio
from typing import Any
from unittest.mock import patch

from hypothesis import given

from ledgermq.client.link.questions import Answer, whole_answer
from ledgermq.core.apply import apply, new_state
from ledgermq.core.queries import paging
from ledgermq.core.queries import questions as query
from ledgermq.core.queries.resync import resync
from ledgermq.core.snapshot.state_records import blocks
from ledgermq.core.state.manager import QueueManager
from ledgermq.processor.owner import paged_answers
from ledgermq.processor.owner.paged_answers import PagedAnswers
from ledgermq.wire.framing import checkpoint_chunks
from ledgermq.wire.framing.checkpoint_chunks import encode_block_record, root_parts
from ledgermq.wire.framing.codec import decode_operation, decode_record
from support.checks import checks
from support.checks.checked_histories import examples
from support.generators.generators import informed_histories
from support.generators.group_generators import group_histories
from support.generators.quota_generators import quota_histories

SMALL = 300
# More than one message and the head of a block take in these histories.
ONE = 2_000
COMMON = {"session": -1, "limit": 100, "after_sequence": -1, "queue": "", "group_id": b""}


def folded(history: list[Any]) -> QueueManager:
    """The state after a history."""
    state = new_state()
    for entry in history:
        operation = decode_operation(entry.value, state.active_version)
        apply(state, operation, state.position + 1, entry.time)
    return state


class NoBodies:
    """Leaves contents empty."""

    def fill(self, messages: list[Any]) -> int:
        """Has all of them."""
        return 0


@examples(40)
@given(informed_histories(steps=25) | group_histories(steps=25) | quota_histories(steps=25))
def test_a_checkpoint_cut_small_is_the_same_state(history):
    """Each part fits, blocks come back message by message, and the digest stays the same."""
    state = folded(history)
    before = [dict(block) for block in blocks(state)]
    with patch.object(checkpoint_chunks, "CHUNK_BYTES_MAX", SMALL):
        frozen = checks.freeze(state)
        parts = root_parts(frozen.root)
        assert max(map(len, parts)) <= SMALL
        assert b"".join(parts) == frozen.root
        for block in before:
            values = encode_block_record(block)
            assert max(map(len, values)) < SMALL + ONE
            found = [decode_record(one)[1] for one in values]
            assert all(one["block"] == block["block"] for one in found)
            assert [one for part in found for one in part["messages"]] == block["messages"]
        restored = checks.thaw(frozen)
        assert checks.digest(restored) == checks.digest(state)
    assert checks.digest(restored) == checks.digest(state)


@examples(40)
@given(informed_histories(steps=25) | group_histories(steps=25) | quota_histories(steps=25))
def test_an_answer_cut_small_is_the_same_answer(history):
    """Lists, sessions and what is in flight: every page joined is what one page told."""
    state = folded(history)
    for kind in query.LISTINGS:
        if kind != "TRANSACTIONS":
            assert told(state, SMALL, kind=kind) == told(state, 10**9, kind=kind)
    for handle, session in state.sessions.items():
        kinds = ["SESSION", *(["TRANSACTION"] if session.has_unit_of_work else [])]
        for kind in kinds:
            whole = told(state, 10**9, kind=kind, session=handle)
            assert told(state, SMALL, kind=kind, session=handle) == whole
    for identity in state.connections:
        document, outcomes = resync(state, identity)
        assert caught_up(state, identity) == (document["sessions"], outcomes)


def told(state: QueueManager, page_bytes: int, **asked: Any) -> Any:
    """The document of an answer, all its pages joined."""
    answers: list[Answer] = []
    after = ""
    with patch.object(paging, "PAGE_BYTES", page_bytes):
        while not answers or after:
            found = query.answer(state, {**COMMON, **asked, "after": after}, "QM1", "w")
            assert found.next != after or not after
            answers.append(
                Answer(position=0, time=0, document=found.document, outcomes=[], messages=[])
            )
            after = found.next
    return whole_answer(answers).document


def caught_up(state: QueueManager, identity: bytes) -> tuple[list[Any], list[Any]]:
    """The sessions and outcomes that all pages of an answer to RESYNC tell."""
    kept = PagedAnswers()
    asked = {**COMMON, "kind": "RESYNC", "connection": identity, "after": ""}
    place = kept.start(identity, state, query.answer(state, asked, "QM1", "w"))
    sessions: list[Any] = []
    outcomes: list[Any] = []
    with patch.multiple(paged_answers, PAGE_BYTES=SMALL, FIRST_PAGE_BYTES=SMALL):
        while place:
            found = kept.find(identity, place)
            assert found is not None
            page = asyncio.run(found.page(place, NoBodies()))  # type: ignore[arg-type]
            assert page is not None
            sessions += page.document["sessions"]
            outcomes += page.outcomes
            place = page.next
    return sessions, outcomes
