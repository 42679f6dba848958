"""Tests of what the audit makes of FIFO modes: who is out of turn, and what is first."""

from ledgermq_spark.derivation.directory import Directory, Subscription
from ledgermq_spark.derivation.fifo_turns import FifoTurns
from ledgermq_spark.derivation.settings import DEFAULTS
from ledgermq_spark.derivation.step import Step


def step(position, what, message=-1, selector="", *, priority=4, session=1, index=0, header=None):
    """A step of the message with that number, put at position 0."""
    place = (position, 2 if what == "delivered" else 1, index, message, what)
    told = {"selector": selector, "consumer": session, "header": header}
    return Step(*place, 0, message, bytes(16), priority, message, session, **told)


def findings(*steps):
    """What the steps show, as (kind, message, position)."""
    turns = FifoTurns()
    found = [one for each in steps for one in turns.take(each)] + list(turns.finish())
    return [(kind, shown.sequence, shown.position) for kind, shown, _ in found]


def test_what_is_settled_before_what_was_received_first_is_refused():
    """Message 1 before message 0; both together are in turn (DB-22)."""
    begin = [step(1, "mode", selector="PROTECTED"), step(2, "delivered", 0)]
    begin.append(step(3, "delivered", 1))
    early = step(4, "gone", 1, "acknowledged")
    assert findings(*begin, early) == [("refusal", 1, 4)]
    assert findings(*begin, early, step(4, "gone", 0, "acknowledged")) == []


def test_a_refusal_without_a_message_before_is_none():
    """What was asked in turn is told by nothing; what left gives up its turn."""
    begin = [step(1, "mode", selector="PROTECTED"), step(2, "delivered", 0)]
    begin.append(step(3, "delivered", 1))
    asked = step(5, "asked", 1)
    assert findings(*begin, asked) == [("refusal", 1, 5)]
    assert findings(*begin, step(4, "gone", 0, "removed"), asked) == []


def test_what_came_back_keeps_its_turn():
    """Message 0 went back and is with nobody."""
    begin = [step(1, "mode", selector="PROTECTED"), step(2, "delivered", 0)]
    back = [step(3, "delivered", 1), step(4, "returned", 0)]
    assert findings(*begin, *back, step(5, "gone", 1, "committed")) == [("refusal", 1, 5)]


def test_what_was_received_later_is_not_before():
    """A message of a higher priority that came later, or of another place in the order."""
    begin = [step(1, "mode", selector="PROTECTED"), step(2, "delivered", 0)]
    urgent = step(3, "delivered", 1, priority=9)
    assert findings(*begin, urgent, step(4, "gone", 0, "acknowledged")) == []
    assert findings(*begin, urgent, step(4, "gone", 1, "acknowledged", priority=9)) == []


def test_a_change_of_mode_finds_what_is_in_flight():
    """In delivery order; and CONCURRENT forgets it."""
    begin = [step(1, "delivered", 1), step(2, "delivered", 0)]
    begin.append(step(3, "mode", selector="PROTECTED"))
    early = step(5, "gone", 1, "acknowledged")
    assert findings(*begin, early) == [("refusal", 1, 5)]
    forgot = step(4, "mode", selector="CONCURRENT")
    assert findings(*begin, forgot, early) == []


def test_one_entry_gives_messages_in_their_order_to_several_consumers():
    """Outcomes stand by consumer: 0 and 2 went to one, 1 to another."""
    begin = [step(1, "mode", selector="PROTECTED")]
    given = [step(2, "delivered", 0), step(2, "delivered", 2)]
    given.append(step(2, "delivered", 1, session=2, index=1))
    settled = [step(3, "gone", 0, "acknowledged"), step(4, "gone", 2, "acknowledged")]
    assert findings(*begin, *given, *settled) == [("refusal", 2, 4)]


def test_one_message_is_out_at_a_time():
    """The next one is delivered where the one before is settled."""
    begin = [step(1, "mode", selector="SERIALIZED"), step(2, "delivered", 0)]
    assert findings(*begin, step(3, "delivered", 1)) == [("unexpected", 1, 3)]
    assert findings(*begin, step(3, "gone", 0, "committed"), step(3, "delivered", 1)) == []


def test_what_came_back_is_first():
    """Also before what has a higher priority, as long as it is there."""
    begin = [step(1, "mode", selector="SERIALIZED"), step(2, "delivered", 0)]
    begin.append(step(3, "returned", 0))
    urgent = step(4, "delivered", 1, priority=9)
    assert findings(*begin, urgent) == [("reordered", 1, 4)]
    assert findings(*begin, step(4, "delivered", 0)) == []
    assert findings(*begin, step(3, "gone", 0), urgent) == []


def test_what_waits_for_its_redelivery_delay_is_in_flight_no_longer():
    """It keeps its turn if it was received, and is none of those that another mode finds out."""
    begin = [step(1, "mode", selector="PROTECTED"), step(2, "delivered", 0)]
    begin += [step(2, "delivered", 1), step(3, "delayed", 0), step(3, "delayed", 1)]
    begin += [step(4, "mode", selector="SERIALIZED"), step(5, "returned", 0)]
    assert findings(*begin, step(6, "delivered", 0)) == []
    assert findings(*begin, step(6, "delivered", 1)) == [("reordered", 1, 6)]
    given = [step(1, "delivered", 0), step(2, "delayed", 0), step(3, "mode", selector="SERIALIZED")]
    assert findings(*given, step(4, "delivered", 1)) == []


def test_segments_of_one_logical_message_are_out_together():
    """Those that came in one outcome, as complete_message asks."""

    def numbered(message, group):
        header = '{"g":{"i":"' + group + '","n":1,"o":0,"l":1,"f":"s"}}'
        return step(1, "numbered", message, header=header)

    begin = [step(1, "mode", selector="SERIALIZED"), numbered(0, "aa"), numbered(1, "aa")]
    given = [step(2, "delivered", 0), step(2, "delivered", 1)]
    assert findings(*begin, *given) == []
    assert findings(*begin, given[0], step(3, "delivered", 1)) == [("unexpected", 1, 3)]
    other = [*begin[:2], numbered(1, "bb")]
    assert findings(*other, *given) == [("unexpected", 1, 2)]


def test_each_subscription_has_the_mode_of_its_topic():
    """From its own beginning, and as it changes; queues and topics of no mode are left out."""
    modes = [(1, "PROTECTED"), (5, "SERIALIZED")]
    settings = [
        ("topic:t", 1, at, DEFAULTS.changed(f'{{"fifo_mode":"{one}"}}')) for at, one in modes
    ]
    settings.append(("q", 2, 2, DEFAULTS.changed('{"puts_disabled":true}')))
    settings.append(("r", 3, 6, DEFAULTS.changed('{"fifo_mode":"SERIALIZED"}')))
    found = Directory(settings=settings)
    for created in (0, 3, 7):
        one = Subscription(created, "topic:t", 1, "shared", "s", "", True, "", False)
        found.subscriptions.append(one)
    assert found.fifo_modes() == [
        ("r", 3, -1, 6, "SERIALIZED"),
        ("topic:t", 1, 0, 1, "PROTECTED"),
        ("topic:t", 1, 0, 5, "SERIALIZED"),
        ("topic:t", 1, 3, 3, "PROTECTED"),
        ("topic:t", 1, 3, 5, "SERIALIZED"),
        ("topic:t", 1, 7, 7, "SERIALIZED"),
    ]
