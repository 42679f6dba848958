"""Statuses, browsing and re-emission: what the state tells without changing (PROTOCOL.md §9)."""

import copy

import pytest

from ledgermq.core.queries import browsing
from ledgermq.core.queries import questions as query
from ledgermq.core.queries.browsing import Cursor, browse
from ledgermq.core.queries.destination_status import destination_status, queue_statuses
from ledgermq.core.queries.manager_status import manager_status
from ledgermq.core.queries.resync import resync
from ledgermq.core.queries.storage_status import storage_status
from ledgermq.core.queries.work_status import session_statuses
from ledgermq.protocol import operations
from ledgermq.protocol.get_options import Options
from ledgermq.protocol.outcomes import Accepted, Delivered, Enqueued, Opened, Refused
from ledgermq.selector import parse_selector
from support.brokers.log_writer import Script, color_header
from support.checks import checks
from support.scripts.play import START_US, play_lines
from support.scripts.verbs import identifier

# The nine fields of the status screen (SEQ-13) and the names that a status gives them.
SCREEN = {
    "Queue Name": "name",
    "First enqueue time": "first_enqueued_at",
    "Last enqueue time": "last_enqueued_at",
    "Number of current receivers": "receivers",
    "Message count": "message_count",
    "Messages sent and committed": "sent_and_committed",
    "Min sequence number": "min_sequence",
    "Max sequence number": "max_sequence",
    "Suspended": "gets_disabled",
}


def played(*lines: str):
    """The state after lines of a script."""
    return play_lines(*lines).state


def status(*lines: str, queue: str = "q"):
    """The status of a queue after lines of a script."""
    found = destination_status(played(*lines), "queue:" + queue)
    assert found is not None
    return found


BEFORE = ("open", "put q A B -> enqueued 0..1", "consumer 1 r", "consumer 2 r")
CHANGES = {
    "Queue Name": (),
    "First enqueue time": (
        "consumer 3 q",
        "put q C +1s -> enqueued 2..2",
        "get 2 consumer=3 -> accepted; delivered consumer=3 A@0 B@1",
        "ack 1..2",
    ),
    "Last enqueue time": ("put q C +1s -> enqueued 2..2",),
    "Number of current receivers": ("consumer 3 q",),
    "Message count": ("put q C -> enqueued 2..2",),
    "Messages sent and committed": (
        "consumer 3 q",
        "get 1 consumer=3 -> accepted; delivered consumer=3 A@0",
        "ack 1",
    ),
    "Min sequence number": (
        "consumer 3 q",
        "get 1 consumer=3 -> accepted; delivered consumer=3 A@0",
        "ack 1",
    ),
    "Max sequence number": ("put q C -> enqueued 2..2",),
    "Suspended": ("alter q gets_disabled=yes",),
}


@pytest.mark.parametrize("field", SCREEN)
def test_each_field_of_the_status_screen_changes(field):
    """Each of the nine fields of the status screen follows what happens to the queue (SEQ-13)."""
    before = status(*BEFORE)
    after = status(*BEFORE, *CHANGES[field], queue="r" if field == "Queue Name" else "q")
    assert after[SCREEN[field]] != before[SCREEN[field]]


def test_status_has_the_values_of_the_sample_screen():
    """The sample of the sources: PTP, 2 receivers, 4 messages, 245 sent, 245 to 248, not suspended
    (SEQ-12, SEQ-13).
    """
    found = status(
        "open",
        "put PTP M*245 -> enqueued 0..244",
        "put PTP N*2 +1s -> enqueued 245..246",
        "put PTP O*2 +1s -> enqueued 247..248",
        "consumer 1 PTP",
        "consumer 2 PTP",
        "get 245 -> accepted; delivered M0..244@0",
        "ack 1..245",
        queue="PTP",
    )
    assert {name: found[SCREEN[name]] for name in SCREEN} == {
        "Queue Name": "PTP",
        "First enqueue time": START_US + 1_000_000,
        "Last enqueue time": START_US + 2_000_000,
        "Number of current receivers": 2,
        "Message count": 4,
        "Messages sent and committed": 245,
        "Min sequence number": 245,
        "Max sequence number": 248,
        "Suspended": False,
    }


def test_current_and_pending_add_up():
    """Current + pending = message count + uncommitted puts, each kind shown apart (INF-02, INF-05,
    INF-19).
    """
    found = status(
        "open CLIENT",
        "put q A B C D -> enqueued 0..3",
        "consumer 1 q",
        "get 1 -> accepted; delivered A@0",
        "T: open TRANSACTED",
        "T: consumer 1 q",
        "T: get 2 -> accepted; delivered B@1 C@2",
        "T: put q E F G",
    )
    assert found["current"] == 1
    assert (found["unacknowledged"], found["uncommitted_gets"]) == (1, 2)
    assert (found["uncommitted_puts"], found["pending"]) == (3, 6)
    total = found["message_count"] + found["uncommitted_puts"]
    assert found["current"] + found["pending"] == total == 7


def test_unknown_queue_has_no_status_and_no_page():
    """A question about a queue that is not there finds nothing."""
    state = played("open")
    assert destination_status(state, "queue:q") is None


@pytest.mark.parametrize(("kind", "what"), [("QUEUE", "queue"), ("TOPIC", "topic")])
def test_the_status_of_a_destination_is_asked_by_its_kind(kind, what):
    """A queue and a topic may have one name: the kind of the question says which is meant."""
    state = played("open", "create q", "create-topic q")
    found = query.answer(state, {"kind": kind, "queue": "q"}, "QM1", "w")
    assert found.document == destination_status(state, f"{what}:q")
    assert found.document is not None


def test_the_storage_is_asked_page_by_page():
    """As many segments as are asked for, behind the one given (DB-11)."""
    ask = {"kind": "STORAGE", "after_sequence": -1, "limit": 2}
    state = played("open", "put q A -> enqueued 0..0")
    found = query.answer(state, ask, "QM1", "w").document
    assert found == storage_status(state, -1, 2)
    assert len(found["segments"]) == 2


@pytest.mark.parametrize(("kind", "what"), [("QUEUE", "queue"), ("TOPIC", "topic")])
def test_what_is_not_there_is_named(kind, what):
    """A question is refused with what was asked for, and where."""
    found = query.answer(played("open"), {"kind": kind, "queue": "q"}, "QM1", "w")
    assert found.detail.startswith(f"there is no {what} 'q' on QM1")


def test_queues_are_listed_by_name():
    """The list of statuses is sorted by name, whatever the order of creation."""
    state = played("open", "create b", "create A", "create c", "create 0")
    assert [one["name"] for one in queue_statuses(state)] == ["0", "A", "b", "c"]


def test_questions_change_nothing():
    """No question leaves a trace in the state."""
    state = played("open", "put q A B -> enqueued 0..1", "consumer 1 q")
    before = checks.freeze(state)
    queue_statuses(state)
    manager_status(state, "QM1", "w")
    session_statuses(state)
    browse(state.queues["q"], Cursor(9, -1), 1)
    resync(state, identifier("S"))
    assert checks.freeze(state) == before


def names(page):
    """The names of a page's messages."""
    return [one["message_id"].rstrip(b"\0").decode() for one in page[0]]


def test_browse_pages_in_delivery_order_and_says_whether_there_is_more():
    """The cursor is (priority, sequence) of the last message; pages neither repeat nor skip."""
    state = played("open", "put q A/1 B/9 C/1 D/9 E/5 -> enqueued 0..4")
    first = browse(state.queues["q"], Cursor(9, -1), 2)
    assert (names(first), first[1]) == (["B", "D"], True)
    second = browse(state.queues["q"], Cursor(9, 3), 2)
    assert (names(second), second[1]) == (["E", "A"], True)
    third = browse(state.queues["q"], Cursor(1, 0), 2)
    assert (names(third), third[1]) == (["C"], False)
    assert browse(state.queues["q"], Cursor(1, 2), 2)[:2] == ([], False)
    assert browse(state.queues["q"], Cursor(-1, -1), 2)[:2] == ([], False)
    assert names(browse(state.queues["q"], Cursor(99, -1), 9)) == ["B", "D", "E", "A", "C"]


def test_browse_shows_what_a_message_is_and_leaves_the_content_to_the_shell():
    """A page's entry has all that a Delivered has."""
    state = played("open", "put r X -> enqueued 0..0", "put q A! B/7 +1s -> enqueued 0..1")
    page, more, *_ = browse(state.queues["q"], Cursor(9, -1), 9)
    assert not more
    assert page[1] == {
        "sequence": 0,
        "put_position": 2,
        "put_index": 0,
        "message_id": identifier("A"),
        "priority": 4,
        "persistent": False,
        "backout_count": 0,
        "enqueued_at": START_US + 1_000_000,
        "content": b"",
    }
    assert (page[0]["put_index"], page[0]["priority"]) == (1, 7)


def test_browse_skips_what_is_in_flight_and_shows_queues_with_gets_disabled():
    """Only available messages are shown, whether or not the queue delivers."""
    state = played(
        "open",
        "put q A B C -> enqueued 0..2",
        "consumer 1 q",
        "get 1 -> accepted; delivered A@0",
        "alter q gets_disabled=yes",
    )
    assert names(browse(state.queues["q"], Cursor(9, -1), 9)) == ["B", "C"]


@pytest.mark.parametrize(
    ("limit", "expected"), [(0, 1), (-5, 1), (1, 1), (1000, 1000), (9999, 1000)]
)
def test_browse_limit_is_held_within_1_and_1000(limit, expected):
    """A page has at least one and at most 1,000 messages."""
    state = played("open", "put q M*1001 -> enqueued 0..1000")
    page, more, *_ = browse(state.queues["q"], Cursor(9, -1), limit)
    assert (len(page), more) == (expected, True)


def test_browse_page_holds_at_most_1_mib_of_content():
    """A page is cut before 1 MiB is exceeded, one message at least."""
    state = played("open", "put q A:1048576 B:1 C:1048575 D:1 -> enqueued 0..3")
    assert names(browse(state.queues["q"], Cursor(9, -1), 9)) == ["A"]
    assert names(browse(state.queues["q"], Cursor(4, 0), 9)) == ["B", "C"]
    assert names(browse(state.queues["q"], Cursor(4, 2), 9)) == ["D"]


def test_a_page_that_shows_a_group_ends_where_enough_was_looked_at(monkeypatch):
    """The items of a shown group count among what is looked at, also where they are one too many:
    behind them the page ends, with more to come, and the next one goes on there (GRP-04).
    """
    state = played(
        "open",
        "put q A{g=Y.2} B{g=Y.3} -> enqueued 0..1",
        "put q C{g=X.1} D{g=X.2} E{g=X.3!} -> enqueued 2..4",
        "put q F{g=Y.4} G{g=Y.5} H{g=Y.6} I{g=Y.7} J -> enqueued 5..9",
    )
    monkeypatch.setattr(browsing, "BROWSE_EXAMINED_MAX", 4)
    logical = Options(logical_order=True)
    first = browse(state.queues["q"], Cursor(9, -1), 9, options=logical)
    assert (names(first), first.more) == (["C", "D", "E"], True)
    second = browse(state.queues["q"], first.cursor, 9, options=logical)
    assert (names(second), second.more) == ([], True)
    third = browse(state.queues["q"], second.cursor, 9, options=logical)
    assert (names(third), third.more) == (["J"], False)


def test_manager_status_counts_what_there_is():
    """The status of the queue manager holds position, time, settings and counts."""
    state = played("open", "B: open on=S", "create q", "B: alter-manager automatic=no +2s")
    assert manager_status(state, "QM1", "w1") == {
        "name": "QM1",
        "position": 3,
        "time": START_US + 2_000_000,
        "time_reference": None,
        "version": 1,
        "automatic_creation": False,
        "maximum_lifetime_ms": 2_592_000_000,
        "messages_max": 0,
        "messages_resume": 0,
        "bytes_resume": 0,
        "bytes_max": 0,
        "messages": 0,
        "bytes": 0,
        "unit_of_work_time_limit_ms": 0,
        "unit_of_work_idle_limit_ms": 0,
        "redelivery": {
            "redelivery_delay_override_ms": -1,
            "redelivery_delay_multiplier_percent": 100,
            "redelivery_delay_max_ms": 0,
            "redelivery_steps": [],
            "redelivery_limit": -1,
            "error_destination": "",
        },
        "journaling": False,
        "journal_lifetime_ms": 604_800_000,
        "journal_from": None,
        "journal_needed_from": None,
        "journal_backup": None,
        "queues": 1,
        "topics": 0,
        "subscriptions": 0,
        "connections": 1,
        "sessions": 2,
        "worker": "w1",
        "digest": None,
    }


def test_resync_gives_replies_and_deliveries_in_flight_of_the_connection():
    """After a hole a client learns all that it may have missed (H2, H17)."""
    state = played(
        "open key=K",
        "put q A B C D -> enqueued 0..3",
        "consumer 1 q",
        "consumer 2 q",
        "get 2 -> accepted; delivered A@0 B@1",
        "get 2 consumer=2 -> accepted; delivered consumer=2 #3 C@2 D@3",
        "get 7 answered=4",
        "ack 1 4 -> accepted",
        "ack 99 -> refused delivery-unknown",
        "B: open",
        "B: put q Z -> enqueued 4..4; S: delivered #5 Z@4",
    )
    document, outcomes = resync(state, identifier("S"))
    assert (document["last_position"], document["last_index"]) == (10, 1)
    (session,) = document["sessions"]
    assert (session["session"], session["last_sequence"]) == (0, 8)
    assert session["session_key"] == identifier("K").hex()
    assert session["consumers"] == [{"consumer": 1, "credit": 6}, {"consumer": 2, "credit": 0}]
    assert session["suspected"] is False
    assert [type(one) for one in outcomes] == [
        Opened,
        *[Accepted] * 3,
        Refused,
        Delivered,
        Delivered,
        Delivered,
    ]
    opened = outcomes[0]
    assert (opened.position, opened.index, opened.session) == (0, 0, 0)
    assert opened.session_key == identifier("K")
    deliveries = [
        (one.consumer, one.destination, one.first_delivery, [m["sequence"] for m in one.messages])
        for one in outcomes[-3:]
    ]
    assert deliveries == [
        (1, "queue:q", 2, [1]),
        (2, "queue:q", 3, [2]),
        (1, "queue:q", 5, [4]),
    ]
    assert {(one.position, one.index, one.session) for one in outcomes[-3:]} == {(10, -1, 0)}


def test_resync_is_asked_for_a_connection():
    """A question of that kind is answered with what the connection is told, whatever its size."""
    state = played(
        "open", "put q A -> enqueued 0..0", "consumer 1 q", "get 1 -> accepted; delivered A@0"
    )
    ask = {"kind": "RESYNC", "connection": identifier("S")}
    found = query.answer(state, ask, "QM1", "w")
    assert (found.document, found.outcomes) == resync(state, identifier("S"))
    assert found.is_large
    assert [type(one) for one in found.outcomes][-1] is Delivered


def test_resync_joins_runs_of_one_consumer_up_to_1000_messages():
    """Deliveries in flight come as few outcomes, none above the limit."""
    state = played(
        "open",
        "put q M*1500 -> enqueued 0..1499",
        "consumer 1 q",
        "get 1500 -> accepted; delivered M0..999@0; delivered M1000..1499@1000",
        "ack 3",
    )
    found = [one for one in resync(state, identifier("S"))[1] if isinstance(one, Delivered)]
    assert [(one.first_delivery, len(one.messages)) for one in found] == [
        (1, 2),
        (4, 1000),
        (1004, 497),
    ]


def test_resync_tells_the_message_in_doubt_by_itself():
    """What was not handed over yet says so again; what was does not (H2, H20)."""
    state = played(
        "A: open timeout=1000",
        "A: consumer 1 q",
        "A: put q M N O -> enqueued 0..2",
        "A: get 3 -> accepted; delivered M@0 N@1 O@2",
        "suspect A -> A: suspected",
        "tick +1s -> A: ended LOST returned=3",
        "open",
        "put q L/9 -> enqueued 3..3",
        "consumer 1 q",
        "get 9 -> accepted; delivered L@3; delivered in-doubt M@0+1",
        "alive handing=2 -> accepted; delivered in-doubt N@1+1",
    )
    told = resync(state, identifier("S"))[1]
    found = [one for one in told if isinstance(one, Delivered)]
    assert [(one.first_delivery, len(one.messages), one.in_doubt) for one in found] == [
        (1, 2, False),
        (3, 1, True),
    ]


def test_resync_of_an_unknown_connection_names_no_session():
    """A connection whose sessions are gone begins anew."""
    state = played("open", "close -> ended CLOSED")
    assert resync(state, identifier("S")) == (
        {"last_position": -1, "last_index": -1, "sessions": []},
        [],
    )


def test_resync_keeps_the_replies_as_they_were_given():
    """A kept reply comes with its own identity."""
    state = played("open", "put q A -> enqueued 0..0")
    outcomes = resync(state, identifier("S"))[1]
    expected = Enqueued(
        position=1, index=0, session=0, session_sequence=1, first_sequence=0, count=1
    )
    assert outcomes[1:] == [expected]
    assert copy.copy(outcomes[1]) == expected


def test_a_page_looks_at_no_more_than_20_000_numbers_and_goes_on_from_there():
    """However deep the queue and however rare a match, one question costs little (H28, SES-40)."""
    script = Script()
    session = script.session()
    for _ in range(4):
        messages = [script.message("m") for _ in range(10_000)]
        session.send(operations.Put, destination="queue:q", messages=messages)
    last = script.message("m", header=color_header("red"))
    session.send(operations.Put, destination="queue:q", messages=[last])
    selector = parse_selector("color = 'red'")
    queue = script.state.queues["q"]
    cursor = Cursor()
    pages = []
    while not pages or pages[-1].more:
        pages.append(browse(queue, cursor, 500, selector))
        cursor = pages[-1].cursor
    assert [len(page.messages) for page in pages] == [0, 0, 1]
    assert [page.cursor[:2] for page in pages] == [(4, 19_999), (4, 39_999), (4, 40_000)]
