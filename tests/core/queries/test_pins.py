"""Which live messages keep the log from being cut: asked of the state, never kept (D6, H24)."""

import pytest

from ledgermq.core.delivery.delivered_messages import delivered_message
from ledgermq.core.queries import pins as asked
from ledgermq.core.queries import questions as query
from ledgermq.protocol.documents.pins import Pin
from support.scripts.play import play_lines


def pins(*lines: str, limit: int = 20):
    """The answer to PINS after lines of a script."""
    state = play_lines(*lines).state
    return query.answer(state, {"kind": "PINS", "limit": limit}, "QM1", "w").document


def told(document):
    """Destination, sequence number, place of the body and state of each pin."""
    names = ("destination", "sequence", "put_position", "put_index", "state")
    return [tuple(one[name] for name in names) for one in document["pins"]]


def test_a_queue_manager_without_messages_needs_nothing_of_its_log():
    """Sessions and queues stand in the state, not in the log."""
    nothing = {"needed_position": None, "journal_position": None, "pins": []}
    assert pins("open", "consumer 1 q") == nothing


def test_the_oldest_messages_come_first_whatever_their_state():
    """Available, held and uncommitted messages need their bodies all alike, unborn ones too."""
    document = pins(
        "A: open TRANSACTED",
        "A: put r X -> accepted",
        "B: open",
        "B: put q C D -> enqueued 0..1",
        "B: consumer 1 q",
        "B: get 1 -> accepted; delivered consumer=1 C@0",
        "B: put s E{delay=60s} -> enqueued 0..0",
    )
    assert told(document) == [
        ("queue:r", -1, 1, 0, "uncommitted put"),
        ("queue:q", 0, 3, 0, "unacknowledged"),
        ("queue:q", 1, 3, 1, "available"),
        ("queue:s", 0, 6, 0, "unborn"),
    ]
    assert document["needed_position"] == 1
    first, second, third, _ = document["pins"]
    assert (first["session"], second["session"], third["session"]) == (0, 2, -1)
    assert first["enqueued_at"] is None
    assert second["enqueued_at"] > 0


def test_what_waits_needs_its_body_in_the_log():
    """Delayed messages (INF-10), and those of a blocked put, which have no number yet (INF-03)."""
    document = pins(
        "open CLIENT redelivery=5s",
        "create q messages_max=1",
        "put q A -> enqueued 0..0",
        "consumer 1 q",
        "get 1 -> accepted; delivered A@0",
        "recover 1 -> returned 1",
        "put q B block=9s -> nothing",
    )
    assert told(document) == [
        ("queue:q", 0, 2, 0, "delayed"),
        ("queue:q", -1, 6, 0, "blocked put"),
    ]
    assert [one["session"] for one in document["pins"]] == [-1, 0]
    assert document["pins"][1]["enqueued_at"] is None


def test_no_more_pins_are_told_than_asked_for():
    """The lowest ones, and what is needed at all."""
    document = pins(
        "open",
        "put q A B C -> enqueued 0..2",
        "put r D -> enqueued 0..0",
        limit=2,
    )
    assert told(document) == [
        ("queue:q", 0, 1, 0, "available"),
        ("queue:q", 1, 1, 1, "available"),
    ]
    assert document["needed_position"] == 1


def test_pins_are_made_of_those_messages_only_that_are_told(monkeypatch):
    """Of 20 queues with two messages each, 2 are told: not the first two of every queue."""
    made, real = [], asked.document_of

    def counted(kind, source, **given):
        made.append(kind)
        return real(kind, source, **given)

    monkeypatch.setattr(asked, "document_of", counted)
    pins("open", *(f"put q{number} A B -> enqueued 0..1" for number in range(20)), limit=2)
    assert made.count(Pin) == 2


def test_no_more_than_1_000_pins_are_told():
    """Whatever is asked for: who cuts the log needs the oldest ones."""
    found = pins("open", "put q M*1001 -> enqueued 0..1000", limit=5_000)
    assert len(found["pins"]) == 1_000


@pytest.mark.parametrize("limit", [-1, 0, 1])
def test_one_pin_at_least_is_told(limit):
    """Of each kind the lowest is looked for: messages with a number, open and blocked puts."""
    lines = (
        "open",
        "create q messages_max=2",
        "put q A B -> enqueued 0..1",
        "put q C D block=9s -> nothing",
        "T: open TRANSACTED",
        "T: put r E F -> accepted",
    )
    assert told(pins(*lines, limit=limit)) == [("queue:q", 0, 2, 0, "available")]


def test_a_topic_message_is_needed_while_a_subscription_has_it():
    """Each subscription that holds a copy is told by its name."""
    lines = (
        "open CLIENT client=c",
        "consumer 1 topic:t durable=one",
        "consumer 2 topic:t durable=two",
        "put topic:t A -> enqueued 0..0",
    )
    document = pins(*lines)
    assert [one["subscription"] for one in document["pins"]] == ["one", "two"]
    assert {one["put_position"] for one in document["pins"]} == {3}


def test_what_was_consumed_needs_nothing_any_more():
    """The next message is the oldest then."""
    document = pins(
        "open",
        "put q A -> enqueued 0..0",
        "put q B -> enqueued 1..1",
        "consumer 1 q",
        "get 1 -> accepted; delivered consumer=1 A@0",
        "ack 1",
    )
    assert told(document) == [("queue:q", 1, 2, 0, "available")]


def test_a_message_that_was_written_again_is_needed_where_it_stands_now():
    """The others stay where they are; it goes further up each time (H24)."""
    lines = (
        "open",
        "put q A -> enqueued 0..0",
        "put q B -> enqueued 1..1",
        "put q C D -> enqueued 2..3",
        "relocate q#2 q#0 -> administered 2",
    )
    document = pins(*lines)
    assert told(document) == [
        ("queue:q", 1, 2, 0, "available"),
        ("queue:q", 3, 3, 1, "available"),
        ("queue:q", 2, 3, 0, "available"),
        ("queue:q", 0, 1, 0, "available"),
    ]
    bodies = [(one["body_position"], one["body_index"]) for one in document["pins"]]
    assert bodies == [(2, 0), (3, 1), (4, 0), (4, 1)]
    assert document["needed_position"] == 2
    assert {one["created_position"] for one in document["pins"]} == {1}
    again = pins(*lines, "relocate q#1 q#3 q#2 -> administered 3")
    assert again["needed_position"] == 4
    bodies = [(one["body_position"], one["body_index"]) for one in again["pins"]]
    assert bodies == [(4, 1), (5, 0), (5, 1), (5, 2)]


def test_a_delivery_says_where_a_body_stands_that_was_written_again():
    """The place goes along where the message goes, and into a checkpoint (H24)."""
    script = """
        open CLIENT
        create r
        put q A B -> enqueued 0..1
        relocate q#0 -> administered 1
        move q r 0 -> administered 1
        consumer 1 r
    """
    player = play_lines(script, restarts=True)
    (moved,) = player.state.queues["r"].messages.values()
    assert moved.body_position == (3, 0)
    assert (moved.put_position, moved.put_index) == (2, 0)
    assert delivered_message(moved)["body"] == (3, 0)
    (left,) = player.state.queues["q"].messages.values()
    assert left.body_position == (2, 1)
    assert "body" not in delivered_message(left)
