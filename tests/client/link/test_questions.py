"""Questions by hand: how they are asked, answered, refused and given up (PROTOCOL.md §9)."""

import pytest

import ledgermq
from ledgermq.client.link import questions as module
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.outcomes import Delivered
from ledgermq.wire.framing.answers import encode_answer
from ledgermq.wire.framing.codec import decode_record
from support.brokers.hand_made import IDENTITY, delivered


def answering(desk, **fields):
    """Lets each question be answered while it is asked."""
    desk.log.on_ask = lambda ask: desk.answer(ask["question"], 42, **fields)


def test_a_question_says_who_asks_and_what(desk):
    """What is not told is left to the worker: any position, the first page, no selector."""
    assert desk.questions.put("QUEUES") == 1
    assert desk.questions.put("QUEUE", not_before=7, wait_ms=50, queue="a", limit=3) == 2
    common = {"connection": IDENTITY, "lane": 2, "after_priority": 9, "after_sequence": -1}
    first, second = desk.log.asks
    assert first == common | {
        "question": 1,
        "kind": "QUEUES",
        "not_before": -1,
        "wait_ms": 0,
        "queue": "",
        "limit": 100,
        "selector": "",
        "group_id": b"",
        "group_sequence": 0,
        "offset": 0,
        "options": None,
        "selection": None,
        "to_origin": False,
        "session": -1,
        "after": "",
    }
    assert second == first | {
        "question": 2,
        "kind": "QUEUE",
        "not_before": 7,
        "wait_ms": 50,
        "queue": "a",
        "limit": 3,
    }


def test_an_answer_tells_its_position_its_document_and_its_messages(desk):
    """Outcomes and messages come with it where the kind has them."""
    told = delivered(7, 5, 1, 2)
    answering(desk, document={"a": [1]}, outcomes=[told], messages=told.messages)
    answer = desk.questions.ask("BROWSE", queue="a")
    assert (answer.position, answer.time, answer.document) == (42, 0, {"a": [1]})
    (outcome,) = answer.outcomes
    assert isinstance(outcome, Delivered)
    assert [one["sequence"] for one in answer.messages] == [1, 2]
    assert "headers" not in answer.messages[0]


def test_an_answer_without_a_document_has_none(desk):
    """Whether nothing was written for it, or the word for nothing."""
    answering(desk)
    assert desk.questions.ask("QUEUES").document is None

    def bare(ask):
        _, datum = decode_record(encode_answer(ask["question"], 3, 4, Answer()))
        desk.questions.take(datum | {"document": None})

    desk.log.on_ask = bare
    answer = desk.questions.ask("QUEUES")
    assert (answer.document, answer.position, answer.time) == (None, 3, 4)


@pytest.mark.parametrize(("not_before", "wait_ms"), [(-1, 0), (0, 2500), (9, 2500)])
def test_a_question_for_a_position_lets_the_worker_wait_for_it(desk, not_before, wait_ms):
    """As long as the caller does, in milliseconds; position 0 is one."""
    answering(desk)
    desk.questions.timeout_seconds = 2.5
    desk.questions.ask("QUEUES", not_before)
    (ask,) = desk.log.asks
    assert (ask["not_before"], ask["wait_ms"]) == (not_before, wait_ms)


def test_a_question_is_asked_again_until_it_is_answered(desk, monkeypatch):
    """The same one, so that either answer will do."""
    monkeypatch.setattr(module, "ASK_AGAIN_SECONDS", 0.001)

    def third(ask):
        if len(desk.log.asks) == 3:
            desk.answer(ask["question"], 42)

    desk.log.on_ask = third
    assert desk.questions.ask("QUEUES").position == 42
    assert desk.log.asks == [desk.log.asks[0]] * 3


def test_a_question_that_nobody_answers_is_given_up(desk, monkeypatch):
    """With the name of the queue manager and of what was asked; a late answer is nobody's."""
    monkeypatch.setattr(module, "ASK_AGAIN_SECONDS", 0.001)
    desk.log.on_ask = lambda ask: desk.answer(ask["question"] + 1, 42)
    desk.questions.timeout_seconds = 0.05
    with pytest.raises(ledgermq.WorkerUnavailableError, match=r"QM1 .*\(QUEUES\) within 0.05 s"):
        desk.questions.ask("QUEUES")
    assert desk.log.asks
    desk.questions.timeout_seconds = 20
    desk.answer(1, 42)
    desk.log.on_ask = lambda ask: desk.answer(ask["question"], 43)
    assert desk.questions.ask("QUEUES").position == 43
    assert desk.questions._open == {}


def test_without_any_time_nothing_is_asked(desk):
    """A time-out below 0 has passed already."""
    desk.questions.timeout_seconds = -1
    with pytest.raises(ledgermq.WorkerUnavailableError):
        desk.questions.ask("QUEUES")
    assert desk.log.asks == []


@pytest.mark.parametrize(
    ("kind", "name", "destination"),
    [("QUEUE", "a", "queue:a"), ("TOPIC", "b", "topic:b"), ("QUEUES", None, None)],
)
def test_a_refused_question_raises_with_what_it_was_about(desk, kind, name, destination):
    """Reason, position and destination stand in the error."""
    answering(desk, reason="queue-unknown", detail="there is none")
    more = {} if name is None else {"queue": name}
    with pytest.raises(ledgermq.QueueNotFoundError, match=r"QM1@42.*there is none") as caught:
        desk.questions.ask(kind, **more)
    assert (caught.value.destination, caught.value.position) == (destination, 42)
    assert caught.value.code == "queue-unknown"


def paged(desk, pages):
    """Lets each question be answered by the page that it names, or be refused."""

    def answer(ask):
        page = pages.get(ask["after"])
        if page is None:
            desk.answer(ask["question"], 42, reason="answer-expired", detail="it is gone")
        else:
            desk.answer(ask["question"], 42, **page)

    desk.log.on_ask = answer


def test_an_answer_in_pages_is_asked_for_to_its_end_and_joined(desk):
    """What is listed in each page is joined, all else is the first page's; nothing is refused for
    its size.
    """
    told = delivered(7, 5, 1, 2)
    first = {"a": [1], "b": {"c": [1], "d": 1}, "e": 5}
    rest = {"a": [2, 3], "b": {"c": [2], "d": 2}, "e": 6}
    pages = {
        "": {"document": first, "outcomes": [told], "next": "x:1"},
        "x:1": {"document": rest, "outcomes": [told], "next": "x:2"},
        "x:2": {"document": {"a": [4]}, "messages": told.messages},
    }
    paged(desk, pages)
    answer = desk.questions.ask("SESSION", session=7)
    assert answer.document == {"a": [1, 2, 3, 4], "b": {"c": [1, 2], "d": 1}, "e": 5}
    assert (answer.outcomes, answer.messages) == ([told, told], told.messages)
    assert [(one["after"], one["session"]) for one in desk.log.asks] == [
        ("", 7),
        ("x:1", 7),
        ("x:2", 7),
    ]


def test_an_answer_whose_rest_is_gone_is_asked_for_anew(desk):
    """The worker that began it ended: pages of two answers are never mixed (H28)."""
    pages = {"": {"document": [1], "next": "x:1"}}
    paged(desk, pages)
    before = desk.log.on_ask

    def answer(ask):
        before(ask)
        pages[""] = {"document": [5], "next": "y:1"}
        pages["y:1"] = {"document": [6]}

    desk.log.on_ask = answer
    assert desk.questions.ask("BROWSE", queue="a").document == [5, 6]
    assert [one["after"] for one in desk.log.asks] == ["", "x:1", "", "y:1"]


def test_an_answer_whose_rest_is_always_gone_ends_with_the_time_out(desk):
    """A worker that forgets each answer at once is as one that is not there."""
    paged(desk, {"": {"document": [1], "next": "x:1"}})
    desk.questions.timeout_seconds = 0.05
    with pytest.raises(ledgermq.WorkerUnavailableError, match="it is gone"):
        desk.questions.ask("BROWSE", queue="a")
