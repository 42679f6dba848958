"""Tests of the check that claimed deliveries were available, in turn and not held."""

from ledgermq_spark.derivation.turns import QueueTurns, Step


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


def colored(number, color):
    """A numbered message with a property color."""
    return step(1, "numbered", number)._replace(header='{"p":{"color":"' + color + '"}}')


def chosen(position, number, selector="color = 'red'", session=1):
    """A delivery to a consumer with a selector."""
    return step(position, "delivered", number, session=session)._replace(selector=selector)


def test_what_a_selector_does_not_match_is_not_passed_over():
    """A consumer of red messages goes past the blue one; one of all messages does not."""
    numbered = [colored(0, "blue"), colored(1, "red"), colored(2, "red")]
    assert findings(*numbered, chosen(2, 1)) == []
    assert findings(*numbered, chosen(2, 1, "")) == [("reordered", 1)]
    assert findings(*numbered, chosen(2, 2)) == [("reordered", 2)]


def test_what_came_back_is_before_what_came_later_for_a_selector_too():
    """The selector's order knows what was returned and what was taken otherwise."""
    numbered = [colored(0, "red"), colored(1, "red"), colored(2, "red")]
    steps = [chosen(2, 0), step(3, "delivered", 1), step(4, "returned", 0), chosen(5, 2)]
    assert findings(*numbered, *steps) == [("reordered", 2)]


def test_a_delivery_that_its_selector_does_not_match_is_unexpected():
    """False and unknown do not match."""
    assert findings(colored(0, "blue"), chosen(2, 0)) == [("unexpected", 0)]
    assert findings(step(1, "numbered", 0), chosen(2, 0)) == [("unexpected", 0)]


def test_a_session_holds_no_more_of_a_queue_than_its_limit():
    """A returned message makes room; a higher limit does."""
    numbered = [step(1, "numbered", n) for n in range(4)]
    limit = step(0, "limit", 1)
    first = [step(2, "delivered", 0), step(3, "returned", 0), step(4, "delivered", 0)]
    assert findings(limit, *numbered, *first) == []
    assert findings(limit, *numbered, *first, step(5, "delivered", 1)) == [("unexpected", 1)]
    assert findings(limit, *numbered, *first, step(5, "delivered", 1, session=2)) == []
    raised = step(5, "limit", 2)
    assert findings(limit, *numbered, *first, raised, step(6, "delivered", 1)) == []


def test_what_one_entry_finds_born_later_is_not_passed_over():
    """The births of one moment are served before the next ones; what was there before was first."""
    early = step(2, "numbered", 1, phase=0)._replace(moment=100)
    late = step(2, "numbered", 0, phase=0)._replace(moment=200)
    given = step(2, "delivered", 1, phase=0)
    assert findings(early, late, given) == []
    assert findings(early, late._replace(moment=50), given) == [("reordered", 1)]
    assert findings(early, late, step(3, "delivered", 1)) == [("reordered", 1)]
    there = step(1, "numbered", 0)
    assert findings(there, early, given) == [("reordered", 1)]
