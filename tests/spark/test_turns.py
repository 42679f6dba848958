"""Tests of the check that claimed deliveries were available, in turn and not held."""

from ledgermq_spark.turns import QueueTurns, Step


def step(position, what, message, *, priority=4, index=0, phase=None, session=1):
    """A step of the message with that number, put at position 0."""
    chosen = phase if phase is not None else (2 if what == "delivered" else 1)
    identity = (0, message, bytes([message]) * 16)
    return Step(position, chosen, index, 0, what, *identity, priority, message, session)


def findings(*steps):
    """What the steps show, as (kind, message)."""
    turns = QueueTurns()
    found = [one for each in steps for one in turns.take(each)] + list(turns.finish())
    return [(kind, shown.sequence) for kind, shown, _ in found]


def test_deliveries_in_turn_show_nothing():
    """Higher priority first, then sequence number."""
    numbered = [step(1, "numbered", n, priority=9 if n == 2 else 4) for n in range(3)]
    delivered = [step(2, "delivered", 2, priority=9), step(3, "delivered", 0)]
    assert findings(*numbered, *delivered, step(4, "delivered", 1)) == []


def test_a_message_that_came_back_may_be_delivered_again():
    """A return makes it available; that is no duplicate and no reordering."""
    numbered = [step(1, "numbered", n) for n in range(2)]
    again = [step(2, "delivered", 0), step(3, "returned", 0), step(3, "delivered", 0)]
    assert findings(*numbered, *again, step(4, "delivered", 1)) == []


def test_one_entry_may_serve_several_consumers_out_of_order_of_messages():
    """Outcomes stand consumer by consumer, so messages 0, 2 then 1, 3 are in turn."""
    numbered = [step(1, "numbered", n) for n in range(4)]
    first = [step(2, "delivered", n, index=1) for n in (0, 2)]
    second = [step(2, "delivered", n, index=2, session=2) for n in (1, 3)]
    assert findings(*numbered, *first, *second) == []


def test_a_held_message_delivered_again_is_duplicated():
    """Nobody gave it back in between."""
    steps = [step(1, "numbered", 0), step(2, "delivered", 0), step(3, "delivered", 0, session=2)]
    assert findings(*steps) == [("duplicated", 0)]


def test_a_message_passed_over_is_told_once():
    """Two later messages overtake it: one finding, at the first."""
    numbered = [step(1, "numbered", n) for n in range(3)]
    assert findings(*numbered, step(2, "delivered", 1), step(3, "delivered", 2)) == [
        ("reordered", 1)
    ]


def test_what_was_not_available_is_told():
    """A message that was never numbered, or that is gone, is not there to be delivered."""
    gone = [step(1, "numbered", 0), step(2, "gone", 0), step(3, "delivered", 0)]
    assert findings(*gone, step(4, "delivered", 5)) == [("unavailable", 0), ("unavailable", 5)]


def test_what_a_lost_session_gives_back_is_there_for_what_follows_its_end():
    """Due before the entry of the same position: end, then deliveries, then the entry."""
    numbered = [step(1, "numbered", n) for n in range(2)]
    ended = step(3, "returned", 0, phase=0, index=0)
    after = step(3, "delivered", 0, phase=0, index=1, session=2)
    assert findings(*numbered, step(2, "delivered", 0), ended, after) == []
