"""Why messages of a queue stay, and why its consumers get none: asked of the state, in words."""

import pytest

from ledgermq.core.order import orders
from ledgermq.core.queries import questions as query
from ledgermq.protocol.documents.fields import status_of
from ledgermq.protocol.documents.obstacles import QueueObstacles
from support.scripts.play import play_lines


def obstacles(*lines: str) -> QueueObstacles:
    """The answer to OBSTACLES about queue q after lines of a script."""
    state = play_lines(*lines).state
    found = query.answer(state, {"kind": "OBSTACLES", "queue": "q"}, "QM1", "w")
    assert not found.reason
    return status_of(QueueObstacles, found.document, position=state.position)


def causes(found: QueueObstacles) -> list[tuple[str, int | None, int | None, int | None]]:
    """Cause, messages, session and consumer of each obstacle."""
    return [(one.cause, one.messages, one.session, one.consumer) for one in found.obstacles]


def test_a_queue_that_is_not_there_is_refused():
    """As every question about a queue is."""
    state = play_lines("open").state
    found = query.answer(state, {"kind": "OBSTACLES", "queue": "q"}, "QM1", "w")
    assert found.reason == "queue-unknown"


def test_an_empty_queue_with_nobody_has_no_obstacles():
    """There is nothing to hold up."""
    found = obstacles("open", "create q")
    assert found.obstacles == ()
    assert found.summary == "queue q holds no message"


def test_messages_without_a_consumer_say_so():
    """All that is available waits for somebody to come."""
    found = obstacles("open", "put q A B -> enqueued 0..1")
    assert causes(found) == [("no-consumer", 2, None, None)]
    assert found.summary == (
        "2 of the 2 messages of queue q can be delivered, and nobody may have them now"
    )
    assert found.obstacles[0].text == (
        "2 messages are available, and no session has a consumer of this queue"
    )


def test_disabled_gets_hold_up_all_and_name_the_remedy():
    """A consumer with credit is there, and gets nothing all the same."""
    found = obstacles(
        "open",
        "create q",
        "alter q gets_disabled=yes",
        "put q A -> enqueued 0..0",
        "consumer 1 q",
        "get 5",
    )
    assert causes(found)[0] == ("gets-disabled", 1, None, None)
    assert "ledgermq queue resume" in found.obstacles[0].text


def test_a_consumer_that_asks_for_nothing_is_named_with_what_it_holds():
    """One message is in flight to it; the other one waits for credit."""
    found = obstacles(
        "open",
        "put q A B -> enqueued 0..1",
        "consumer 1 q",
        "get 1 -> accepted; delivered consumer=1 A@0",
    )
    assert causes(found) == [("in-flight", 1, 0, 1), ("no-credit", None, 0, 1)]
    assert found.obstacles[1].text.endswith("what it prefetched (1 in flight)")
    assert found.obstacles[0].text.startswith("1 message is delivered to consumer 1 of session 0")


def test_a_selector_that_matches_nothing_is_quoted():
    """The message is available, and this consumer will never have it."""
    found = obstacles(
        "open",
        "put q A{priority=4} -> enqueued 0..0",
        "consumer 1 q selector=JMSPriority>8",
        "get 1",
    )
    assert causes(found) == [("nothing-selected", None, 0, 1)]
    assert "JMSPriority>8" in found.obstacles[0].text


@pytest.mark.parametrize(
    ("selector", "told"),
    [("", "its get options"), (" selector=JMSPriority>1", "selector 'JMSPriority>1' with its get")],
)
def test_options_that_match_nothing_are_told(selector, told):
    """Alone, and beside a selector that would take the message (GRP-34)."""
    found = obstacles(
        "open",
        "put q A{priority=4} -> enqueued 0..0",
        f"consumer 1 q{selector}",
        "get 1 correlation=b",
    )
    assert causes(found) == [("nothing-selected", None, 0, 1)]
    assert told in found.obstacles[0].text


def test_what_is_not_due_yet_says_until_when():
    """Unborn messages, and delayed ones that came back; nothing is available."""
    found = obstacles(
        "open CLIENT redelivery=5s",
        "put q A -> enqueued 0..0",
        "put q B{delay=60s} C{delay=90s} -> enqueued 1..2",
        "consumer 1 q",
        "get 1 -> accepted; delivered A@0",
        "recover 1 -> returned 1",
        "get 1",
    )
    unborn, delayed, consumer = found.obstacles
    assert (unborn.cause, unborn.messages) == ("unborn", 2)
    assert (delayed.cause, delayed.messages) == ("delayed", 1)
    assert unborn.until > delayed.until
    assert consumer.cause == "nothing-available"
    assert found.summary == "none of the 3 messages of queue q can be delivered now"


def test_uncommitted_and_blocked_puts_name_their_sessions():
    """They are in no count of messages, and somebody waits for them all the same."""
    found = obstacles(
        "A: open TRANSACTED",
        "A: create q messages_max=2",
        "A: put q X -> accepted",
        "B: open",
        "B: put q C -> enqueued 0..0",
        "B: put q D E block=9s -> nothing",
    )
    assert causes(found) == [
        ("blocked-put", 2, 3, None),
        ("no-consumer", 1, None, None),
        ("uncommitted-put", 1, 0, None),
    ]
    assert all(one.since is not None for one in found.obstacles if one.session is not None)


def test_a_serialized_queue_names_the_unit_of_work_that_it_waits_for():
    """The second consumer has credit, and may have nothing before that ends (DB-22)."""
    found = obstacles(
        "A: open TRANSACTED",
        "A: create q fifo_mode=SERIALIZED",
        "A: consumer 1 q",
        "B: open",
        "B: put q C D -> enqueued 0..1",
        "A: get 1 -> accepted; delivered consumer=1 C@0",
        "B: consumer 1 q",
        "B: get 1",
    )
    assert causes(found) == [
        ("in-flight", 1, 0, 1),
        ("no-credit", None, 0, 1),
        ("fifo-mode", None, 3, 1),
    ]
    assert "the unit of work of session 0 is to end first" in found.obstacles[2].text


def test_what_a_closed_consumer_holds_is_in_flight():
    """Its session can still settle it, and nobody else gets it until then."""
    found = obstacles(
        "open",
        "put q A -> enqueued 0..0",
        "consumer 1 q",
        "get 1 -> accepted; delivered A@0",
        "close-consumer 1",
    )
    assert causes(found) == [("in-flight", 1, 0, 1)]


def test_a_serialized_queue_names_the_closed_consumer_that_it_waits_for():
    """What that one holds has not come back."""
    found = obstacles(
        "open",
        "create q fifo_mode=SERIALIZED",
        "put q A B -> enqueued 0..1",
        "consumer 1 q",
        "get 1 -> accepted; delivered A@0",
        "close-consumer 1",
        "consumer 2 q",
        "get 1 consumer=2",
    )
    assert found.obstacles[-1].text.endswith("a delivery of session 0 is to end first")


def test_nobody_stands_by_where_nobody_is_active_and_nothing_in_flight():
    """Who selects nothing of what is there would be active as soon as something came for it."""
    found = obstacles(
        "open",
        "create q single_active=yes",
        "put q A -> enqueued 0..0",
        "consumer 1 q selector=JMSPriority>8",
        "get 1",
    )
    assert causes(found) == [("nothing-selected", None, 0, 1)]


# Who alone is given messages holds the first.
ACTIVE = (
    "open CLIENT",
    "create q single_active=yes",
    "put q A B -> enqueued 0..1",
    "consumer 1 q",
    "get 1 -> accepted; delivered A@0",
)


def test_who_stands_by_is_told_for_whom():
    """The one that is active, by its number and session (PROTOCOL.md §18)."""
    found = obstacles(
        *ACTIVE,
        "consumer 2 q",
        "get 1 consumer=2",
    )
    assert [one.cause for one in found.obstacles] == ["in-flight", "no-credit", "stand-by"]
    assert "consumer 1 of session 0 is active" in found.obstacles[2].text


def test_who_stands_by_for_what_a_closed_consumer_holds_is_told_so():
    """Nobody is active until that is settled (PROTOCOL.md §18)."""
    found = obstacles(
        *ACTIVE,
        "close-consumer 1",
        "consumer 2 q",
        "get 1 consumer=2",
    )
    assert [one.cause for one in found.obstacles] == ["in-flight", "stand-by"]
    assert "what is in flight is to be settled first" in found.obstacles[1].text


def test_who_is_inside_of_a_group_is_named_where_it_waits_and_where_others_wait_for_it():
    """The next item is not there; what is there of the group is for nobody else (GRP-17)."""
    found = obstacles(
        "P: open",
        "P: put q M1{g=G.1} M3{g=G.3!} -> enqueued 0..1",
        "G: open TRANSACTED",
        "G: consumer 1 q",
        "G: get 5 logical -> accepted; delivered M1@0",
        "H: open",
        "H: consumer 1 q",
        "H: get 5",
    )
    assert causes(found) == [
        ("group-reserved", 1, 2, 1),
        ("in-flight", 1, 2, 1),
        ("next-in-group", None, 2, 1),
        ("nothing-available", None, 5, 1),
    ]
    reserved, _, inside, _ = found.obstacles
    assert reserved.group_id == inside.group_id
    assert "which is inside of it" in reserved.text
    assert inside.text.endswith("and waits for message 2")


@pytest.mark.parametrize(
    ("items", "piece"),
    [
        ("M2{g=G.2!}", "message 1 is missing"),
        ("M1{g=G.1} M3{g=G.3!}", "message 2 is missing"),
        ("M1{g=G.1} M2{g=G.2}", "what comes after message 2 is missing"),
    ],
)
def test_whole_groups_name_the_first_piece_that_is_missing(items, piece):
    """Of the first group that the consumer would get (GRP-20)."""
    found = obstacles(
        "open", f"put q {items} -> enqueued 0..{items.count(' ')}", "consumer 1 q", "get 5 all"
    )
    (consumer,) = found.obstacles
    assert consumer.cause == "group-incomplete"
    assert consumer.group_id is not None
    assert consumer.text.endswith(piece)


def test_what_waits_behind_a_delayed_one_of_its_group_names_the_group():
    """Other groups go on meanwhile (INF-12)."""
    found = obstacles(
        "open CLIENT redelivery=5s",
        "create q keeps_group_order=yes",
        "put q A{JMSXGroupID=x} B{JMSXGroupID=x} C{JMSXGroupID=x} -> enqueued 0..2",
        "consumer 1 q",
        "get 1 -> accepted; delivered A@0",
        "recover 1 -> returned 1",
        "get 5",
    )
    behind, delayed, consumer = found.obstacles
    assert (behind.cause, behind.messages) == ("behind-delayed", 2)
    assert "x" in behind.detail
    assert (delayed.cause, delayed.messages) == ("delayed", 1)
    assert consumer.cause == "nothing-available"


def test_a_session_at_its_limit_says_how_much_it_holds():
    """The queue's unacknowledged_max pauses it, whatever credit it has left (SES-07)."""
    found = obstacles(
        "open CLIENT",
        "create q unacked_max=1",
        "put q A B -> enqueued 0..1",
        "consumer 1 q",
        "get 5 -> accepted; delivered A@0",
    )
    assert causes(found) == [("in-flight", 1, 0, 1), ("unacknowledged-max", None, 0, 1)]
    assert "holds 1 unsettled" in found.obstacles[1].text


def test_a_suspected_session_says_when_it_ends():
    """It gets nothing until its client is heard of again (H23)."""
    found = obstacles(
        "A: open",
        "A: consumer 1 q",
        "A: get 5",
        "suspect A -> A: suspected",
        "B: open",
        "B: put q X -> enqueued 0..0",
    )
    (consumer,) = found.obstacles
    assert consumer.cause == "suspected"
    assert consumer.until is not None


@pytest.mark.parametrize("consumers", [9, 10, 11])
def test_of_many_obstacles_the_first_are_told(consumers, monkeypatch):
    """The answer says whether there are more."""
    monkeypatch.setattr("ledgermq.core.queries.obstacles.OBSTACLES_MAX", 10)
    found = obstacles("open", *(f"consumer {number} q" for number in range(1, consumers + 1)))
    assert len(found.obstacles) == min(consumers, 10)
    assert found.more == (consumers > 10)


def test_consumers_that_select_alike_are_asked_about_each_message_once(monkeypatch):
    """However many there are: the worker stands still meanwhile."""
    asked: list[str] = []
    real = orders.matches

    def counted(selector, message):
        asked.append(selector.text)
        return real(selector, message)

    lines = ["open", "put q M*100 -> enqueued 0..99"]
    for number in range(1, 101):
        lines += [f"consumer {number} q selector=JMSPriority>8", f"get 1 consumer={number}"]
    state = play_lines(*lines).state
    monkeypatch.setattr(orders, "matches", counted)
    found = query.answer(state, {"kind": "OBSTACLES", "queue": "q"}, "QM1", "w").document
    assert [one["cause"] for one in found["obstacles"]] == ["nothing-selected"] * 100
    assert len(asked) == 100
