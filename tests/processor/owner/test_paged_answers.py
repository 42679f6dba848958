"""Answers that are too large for one record: page by page, all of one position (PROTOCOL.md §9)."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from ledgermq.processor.owner import answers as answers_module
from ledgermq.processor.owner import paged_answers
from ledgermq.processor.owner.answers import Answerer
from ledgermq.protocol import operations as op
from ledgermq.protocol.get_options import Options
from ledgermq.protocol.outcomes import Committed, Delivered
from ledgermq.wire.framing.codec import decode_record, join_delivered, outcome_from_union
from ledgermq.wire.topics.reading import BodyLostError
from support.messages.large_states import CONNECTION, LargeState

MIB = 1024 * 1024


class Bodies:
    """Contents of as many bytes each; none is in memory at first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.lost = False
        self.filled = 0

    def fill(self, messages: list[Any]) -> int:
        """Has nothing."""
        return -1

    async def fill_cold(
        self, messages: list[Any], where: str = "", *, refuse_cut: bool = False
    ) -> int:
        """Reads all, or finds that they are gone."""
        if self.lost and refuse_cut:
            raise BodyLostError("gone", is_cut=True)
        for message in messages:
            message["content"] = message["put_position"].to_bytes(8, "big") * (self.size // 8)
        self.filled += len(messages)
        return self.size * len(messages)


class Desk:
    """Answers questions about a state; the answers are noted."""

    def __init__(self, state: Any, size: int) -> None:
        self.state = state
        self.sent: list[bytes] = []
        self.bodies = Bodies(size)
        lanes = SimpleNamespace(send_answer=lambda *told: self.sent.append(told[2]))
        self.answerer = Answerer("QM1", "w", lanes, self.bodies, None)

    def ask(self, kind: str = "RESYNC", after: str = "", **more: Any) -> dict[str, Any]:
        """The answer to a question."""
        ask = {"connection": CONNECTION, "lane": 0, "question": 1, "kind": kind, "after": after}
        ask |= {"not_before": -1, "wait_ms": 0, **more}
        self.answerer.take(ask, 0)
        assert asyncio.run(self.answerer.answer_due(self.state)) == []
        value = self.sent.pop()
        assert len(value) < 9 * MIB
        _, answer = decode_record(value)
        join_delivered(answer)
        answer["outcomes"] = [outcome_from_union(one) for one in answer["outcomes"]]
        return answer

    def pages(self, kind: str = "RESYNC", **more: Any) -> list[dict[str, Any]]:
        """All pages of an answer."""
        found = [self.ask(kind, **more)]
        while found[-1]["next"]:
            found.append(self.ask(kind, found[-1]["next"], **more))
        return found


def in_flight(count: int, size: int, mode: str = "CLIENT") -> LargeState:
    """A session that holds messages of that size."""
    large = LargeState()
    session = large.open(mode)
    large.do(op.OpenConsumer, session, consumer=1, destination="queue:q")
    large.do(op.Get, session, consumer=1, credit=count)
    other = large.open()
    for _ in range(count):
        large.put(other, "queue:q", size=size)
    return large


def deliveries(pages: list[dict[str, Any]]) -> list[int]:
    """The numbers of the deliveries that pages tell."""
    found = [one for page in pages for one in page["outcomes"] if isinstance(one, Delivered)]
    return [
        number
        for one in found
        for number in range(one.first_delivery, one.first_delivery + len(one.messages))
    ]


@pytest.mark.parametrize(
    ("count", "size", "pages"),
    [(60, 200_000, 13), (3, 8 * MIB - 8192, 5), (2_500, 8, 2), (300, 8, 1)],
)
def test_what_is_in_flight_is_told_in_pages_that_fit(count, size, pages):
    """H2: more than 9 MiB in flight was refused for its size; each delivery is told once."""
    desk = Desk(in_flight(count, size).state, size)
    found = desk.pages()
    assert deliveries(found) == list(range(1, count + 1))
    assert len(found) == pages
    contents = [
        message["content"]
        for page in found
        for one in page["outcomes"]
        if isinstance(one, Delivered)
        for message in one.messages
    ]
    assert {len(one) for one in contents} == {size}
    assert len(set(contents)) == count


def test_all_pages_are_of_the_position_of_the_first():
    """H28: what happens between the pages changes none of them."""
    large = in_flight(60, 200_000)
    desk = Desk(large.state, 200_000)
    position, time_us = large.state.position, large.state.time
    first = desk.ask()
    session = next(iter(large.state.sessions))
    large.do(op.Acknowledge, session, deliveries=[{"first": 50, "last": 60}])
    large.do(op.Recover, session, seen=[])
    rest = []
    behind = first["next"]
    while behind:
        rest.append(desk.ask(after=behind))
        behind = rest[-1]["next"]
    assert deliveries([first, *rest]) == list(range(1, 61))
    assert {(one["position"], one["time"]) for one in (first, *rest)} == {(position, time_us)}
    assert deliveries(desk.pages()) == []


def test_a_page_may_be_asked_for_again():
    """A question or its answer may be lost: the same page comes again, contents too."""
    desk = Desk(in_flight(60, 200_000).state, 200_000)
    first = desk.ask()
    second = desk.ask(after=first["next"])
    assert desk.ask(after=first["next"]) == second


def test_sessions_and_consumers_come_in_pages_too(monkeypatch):
    """The document that names sessions is as long as there are sessions and consumers."""
    monkeypatch.setattr(paged_answers, "PAGE_BYTES", 20_000)
    monkeypatch.setattr(paged_answers, "FIRST_PAGE_BYTES", 20_000)
    large = LargeState()
    handles = [large.open() for _ in range(50)]
    for number in range(1, 1_501):
        large.do(op.OpenConsumer, handles[7], consumer=number, destination="queue:q")
    found = Desk(large.state, 8).pages()
    assert len(found) > 2
    told = [one for page in found for one in json.loads(page["document"])["sessions"]]
    assert list(dict.fromkeys(one["session"] for one in told)) == handles
    consumers = [two["consumer"] for one in told for two in one["consumers"]]
    assert consumers == list(range(1, 1_501))


def test_the_first_page_is_small_so_that_it_costs_nothing_to_have_missed_nothing():
    """A slow link would carry what is in flight for long, before what the client waits for."""
    found = Desk(in_flight(60, 2_000).state, 2_000).pages()
    assert [len(deliveries([page])) for page in found] == [0, 60]


def test_a_page_has_few_sessions_so_that_it_holds_nobody_up():
    """1,600 sessions and what opened them come in pages of 1,000, though they had room in one."""
    large = LargeState()
    handles = [large.open() for _ in range(1_600)]
    found = Desk(large.state, 8).pages()
    assert [len(json.loads(page["document"])["sessions"]) for page in found] == [482, 1_000, 118, 0]
    assert [len(page["outcomes"]) for page in found] == [0, 0, 882, 718]
    told = [one for page in found for one in json.loads(page["document"])["sessions"]]
    assert [one["session"] for one in told] == handles


@pytest.mark.parametrize(
    "after", ["x", "x:0", ":", "0:²", "{token}:", "{token}:99999", "{token}:-1", "{token}:1e3"]
)
def test_a_place_that_is_none_is_refused(after):
    """Whoever names what is not kept is told to begin again, whatever the text."""
    desk = Desk(in_flight(60, 200_000).state, 200_000)
    token = desk.ask()["next"].partition(":")[0]
    assert desk.ask(after=after.format(token=token))["reason"] == "answer-expired"


def test_an_answer_is_kept_for_30_s_after_it_was_asked_for(monkeypatch):
    """Nobody can fill the worker's memory with answers that are not read."""
    now = [1_000.0]
    monkeypatch.setattr(paged_answers.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(answers_module.time, "monotonic", lambda: now[0])
    desk = Desk(in_flight(60, 200_000).state, 200_000)
    behind = desk.ask()["next"]
    now[0] += 29.0
    behind = desk.ask(after=behind)["next"]
    now[0] += 29.0
    assert desk.ask(after=behind)["reason"] == ""
    now[0] += 31.0
    assert desk.ask(after=behind)["reason"] == "answer-expired"


def test_a_connection_has_two_answers_kept_at_most():
    """Whoever asks from the beginning again and again keeps the newest two."""
    desk = Desk(in_flight(60, 200_000).state, 200_000)
    places = [desk.ask()["next"] for _ in range(3)]
    reasons = [desk.ask(after=place)["reason"] for place in places]
    assert reasons == ["answer-expired", "", ""]


def test_nobody_reads_what_was_kept_for_another_connection():
    """What is in flight is its connection's."""
    desk = Desk(in_flight(60, 200_000).state, 200_000)
    behind = desk.ask()["next"]
    assert desk.ask(after=behind, connection=bytes(16))["reason"] == "answer-expired"


def test_a_content_that_went_meanwhile_ends_the_answer_and_not_the_worker():
    """The log may be trimmed while a slow client reads: nobody needs the message any more."""
    desk = Desk(in_flight(60, 200_000).state, 200_000)
    behind = desk.ask()["next"]
    desk.bodies.lost = True
    assert desk.ask(after=behind)["reason"] == "answer-expired"
    assert desk.ask()["reason"] == ""


def test_a_logical_message_larger_than_a_page_is_browsed_in_pages():
    """complete_message shows all segments together, however much they are (GRP-38)."""
    large = LargeState()
    session = large.open()
    for number in range(20):
        large.segment(session, "queue:q", number, 20, size=700_000)
    options = Options(complete_message=True).record()
    ask = {"queue": "q", "limit": 10, "selector": "", "options": options, "group_id": b""}
    ask |= {"after_priority": 9, "after_sequence": -1}
    found = Desk(large.state, 700_000).pages("BROWSE", **ask)
    assert len(found) > 2
    assert [one["sequence"] for page in found for one in page["messages"]] == list(range(20))


def test_a_reply_of_a_commit_over_10000_queues_is_told_again():
    """A kept reply is told by RESYNC whatever it counts up, beside others of the session."""
    large = LargeState()
    session = large.open("TRANSACTED")
    for number in range(10_000):
        large.put(session, f"queue:{'n' * 100}-{number}")
    large.keeps_replies = True
    large.do(op.Commit, session, deliveries=[], puts=10_000)
    found = Desk(large.state, 8).pages()
    replies = [one for page in found for one in page["outcomes"] if isinstance(one, Committed)]
    assert [len(one.enqueued) for one in replies] == [10_000]


@pytest.mark.slow
def test_20000_queues_are_told_in_pages_that_fit():
    """A list of as many queues was refused for its size; each is told once, by name."""
    large = LargeState()
    session = large.open()
    for number in range(20_000):
        large.do(op.CreateQueue, session, queue=f"queue-{number:05}")
    found = Desk(large.state, 8).pages("QUEUES")
    names = [one["name"] for page in found for one in json.loads(page["document"])]
    assert names == [f"queue-{number:05}" for number in range(20_000)]
    assert len(found) == 40
