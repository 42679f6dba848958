"""Lists that one record has no room for: told page by page, each entry once (PROTOCOL.md §9)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ledgermq.client.link.questions import Answer, whole_answer
from ledgermq.core.queries import paging
from ledgermq.core.queries import questions as query
from ledgermq.core.queries import work_status as work_query
from ledgermq.core.queries.destination_status import queue_statuses
from ledgermq.core.queries.paging import place_in
from ledgermq.core.queries.work_status import session_statuses
from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Enqueued
from support.checks.calls import calls_of
from support.messages.large_states import LargeState

COMMON = {"session": -1, "limit": 100, "after_sequence": -1, "queue": "q", "group_id": b""}


def pages(large: LargeState, kind: str, **more: Any) -> Iterator[query.Answer]:
    """The answers to a question that is asked until all is told; each names where to go on."""
    after = ""
    while True:
        told = query.answer(
            large.state, {**COMMON, "kind": kind, "after": after, **more}, "QM1", "w"
        )
        assert not told.reason
        yield told
        if not told.next:
            return
        assert told.next != after, "the cursor goes on"
        after = told.next


def whole(found: list[query.Answer]) -> Any:
    """All pages as a client joins them."""
    answers = [
        Answer(position=0, time=0, document=one.document, outcomes=[], messages=one.messages)
        for one in found
    ]
    return whole_answer(answers).document


@pytest.fixture(scope="module")
def large() -> LargeState:
    """Queues, topics and what is bound, subscriptions, sessions and their work, by the dozen."""
    large = LargeState()
    for number in range(40):
        session = large.open("TRANSACTED", client_id="")
        large.do(op.CreateTopic, session, topic=f"topic-{number % 7}-{number}")
        for name in ("a", "b"):
            more = {"subscription": f"{name}{number}", "durable": True, "shared": True}
            consumer = 1 + (name == "b")
            destination = f"topic:topic-{number % 7}-{number % 7}"
            large.do(op.OpenConsumer, session, consumer=consumer, destination=destination, **more)
        for destination in range(12):
            large.put(session, f"queue:queue-{number}-{destination}")
        bound = f"topic:topic-{number % 7}-{number % 7}"
        large.do(op.Bind, session, topics=f"bound-{number}.#", destination=bound, selector="")
        source = {"name": f"source {number % 3}", "partition": number, "first": 0, "last": 7}
        queue = f"queue:source-{number % 5}"
        taker = large.open("CLIENT", client_id="")
        message = {"message_id": bytes(16), "priority": 4, "persistent": True, "content": b"x"}
        large.do(op.Put, taker, destination=queue, messages=[message], source=source)
    return large


KINDS = {
    "QUEUES": queue_statuses,
    "SESSIONS": session_statuses,
    "TOPICS": lambda state: query.topic_entries(state, ""),
    "SUBSCRIPTIONS": lambda state: query.subscription_entries(state, ""),
    "TRANSACTIONS": lambda state: query.transaction_entries(state, ""),
    "BINDINGS": lambda state: query.binding_entries(state, ""),
    "SOURCES": lambda state: query.source_entries(state, ""),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("page_bytes", [0, 1_500, 3_000])
def test_a_list_is_told_page_by_page_each_entry_once(large, monkeypatch, kind, page_bytes):
    """Whatever a page has room for, at least one entry, all pages are the list in its order."""
    expected = [one[1] if isinstance(one, tuple) else one for one in KINDS[kind](large.state)]
    assert len(expected) >= 40
    monkeypatch.setattr(paging, "PAGE_BYTES", page_bytes)
    found = list(pages(large, kind))
    assert whole(found) == expected
    assert len(found) > 1
    for told in found:
        assert len(told.document) == 1 or len(json.dumps(told.document)) <= page_bytes + 1_000


def test_a_page_has_few_entries_so_that_it_holds_nobody_up():
    """1,200 queues come in three pages, though all of them had room in one."""
    large = LargeState()
    session = large.open()
    for number in range(1_200):
        large.do(op.CreateQueue, session, queue=f"q{number:04}")
    found = list(pages(large, "QUEUES"))
    assert [len(one.document) for one in found] == [500, 500, 200]
    assert [one["name"] for one in whole(found)] == [f"q{number:04}" for number in range(1_200)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", ["", "-1", "x", "²", "9" * 50, "1 2 3", " "])
def test_a_place_that_nobody_named_is_answered_too(large, kind, after):
    """A question's text is its asker's: the answer is some part of the list (H28)."""
    ask = {**COMMON, "kind": kind, "after": after}
    assert isinstance(query.answer(large.state, ask, "QM1", "w").document, list)


def test_a_number_that_is_none_is_no_place():
    """Digits that are not ASCII, and more of them than a number has, are none."""
    found = [place_in(text) for text in ("", "x", "²", "-1", "1" * 20, "7", "7 rest")]
    assert found == [-1, -1, -1, -1, -1, 7, 7]


def test_a_large_unit_of_work_is_told_page_by_page(monkeypatch):
    """SESSION, TRANSACTION and TRANSACTIONS tell every destination and every consumer once."""
    large = LargeState()
    session = large.open("TRANSACTED")
    for number in range(1, 31):
        large.do(op.OpenConsumer, session, consumer=number, destination=f"queue:get-{number}")
        large.put(session, f"queue:put-{number}")
    live = large.state.sessions[session]
    expected, _ = work_query.session_document(live)
    work, _ = work_query.transaction_document(live)
    assert (len(expected["consumer_list"]), len(work["puts"])) == (30, 30)
    for page_bytes in (0, 1_000, 3_000):
        monkeypatch.setattr(paging, "PAGE_BYTES", page_bytes)
        found = list(pages(large, "SESSION", session=session))
        assert len(found) > 2
        assert whole(found) == expected
        assert whole(list(pages(large, "TRANSACTION", session=session))) == work
        monkeypatch.setattr(work_query, "DESTINATIONS_MAX", 7)
        entries = whole(list(pages(large, "TRANSACTIONS")))
        assert [len(one["puts"]) for one in entries] == [7, 7, 7, 7, 2]
        assert [put for one in entries for put in one["puts"]] == work["puts"]


def test_units_of_work_are_those_that_hold_something():
    """Sessions that hold nothing are passed over, whatever place the list goes on from."""
    large = LargeState()
    idle, busy, _ = (large.open("TRANSACTED") for _ in range(3))
    large.put(busy, "queue:q")
    for after in ("", f"{idle}"):
        told = query.answer(
            large.state, {**COMMON, "kind": "TRANSACTIONS", "after": after}, "QM1", "w"
        )
        assert [one["session"] for one in told.document] == [busy]


def test_groups_come_as_far_as_a_page_has_room(monkeypatch):
    """GROUPS goes on behind the last group told, however few fitted."""
    large = LargeState()
    session = large.open()
    for number in range(1, 10):
        put = large.grouped(session, "queue:q", bytes(23) + bytes([number]), 2)
        assert isinstance(put, Enqueued), f"{put} is not expected"
    monkeypatch.setattr(paging, "PAGE_BYTES", 900)
    found: list[str] = []
    more = True
    while more:
        after = bytes.fromhex(found[-1]) if found else b""
        (told,) = pages(large, "GROUPS", group_id=after)
        more = told.document["more"]
        assert 1 <= len(told.document["groups"]) < 9
        found += [one["group_id"] for one in told.document["groups"]]
    assert [bytes.fromhex(one)[-1] for one in found] == list(range(1, 10))


def test_a_status_says_its_settings_without_a_copy_of_each_value():
    """30,000 queues are listed by the worker's loop: half of that was copying (§9)."""
    large = LargeState()
    session = large.open()
    for number in range(100):
        large.do(op.CreateQueue, session, queue=f"q{number}")
    assert calls_of(lambda: queue_statuses(large.state)) < 100 * 60
