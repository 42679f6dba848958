"""Tests of browsing in both orders: cursors, groups, and what must not mix (GRP-07..16)."""

import pytest

import ledgermq
from ledgermq import GetMatch, InconsistentBrowseError, MatchOptionsError, Order
from support.messages.group_puts import fill, group_id, put

E1 = (
    *("A", "Y1{g=Y.1}", "Z2{g=Z.2!}", "Y2{g=Y.2}", "Y3a{g=Y.3!@0+3}", "Y3b{g=Y.3!@3+3!}"),
    *("Z1{g=Z.1}", "B"),
)
PHYSICAL = ["A", "Y1", "Z2", "Y2", "Y3a", "Y3b", "Z1", "B"]
LOGICAL = ["A", "Y1", "Y2", "Y3a", "Y3b", "Z1", "Z2", "B"]
BOTH = pytest.mark.parametrize(
    ("order", "expected"), [(Order.PHYSICAL, PHYSICAL), (Order.LOGICAL, LOGICAL)]
)


def name_of(message):
    """What was sent, if there is a message."""
    return None if message is None else message.body


def shown(browser, **options):
    """The bodies of a whole browse, call by call."""
    found = [browser.first(**options)]
    while found[-1] is not None:
        found.append(browser.next(**options))
    return [one.body for one in found[:-1]]


def matching(group, number=None):
    """What matches a group, and a number in it."""
    return GetMatch(group_id=None if group is None else group_id(group), group_sequence=number)


@BOTH
def test_e1_a_browse_shows_the_order_that_it_was_asked_for(connection, queue, order, expected):
    """E1: as an iteration, and as first and next with the order in each call (GRP-03, GRP-06)."""
    fill(connection, queue, *E1)
    assert [one.body for one in connection.browser(queue, order=order)] == expected
    assert shown(connection.browser(queue), order=order) == expected
    with connection.session() as session:
        browser = session.browser(queue, order=order)
        assert shown(browser) == expected
        assert shown(browser) == expected


def test_e1_pages_go_on_inside_of_a_group(connection, queue, monkeypatch):
    """Wherever a page ends, the next one begins with what comes next in logical order."""
    fill(connection, queue, *E1)
    for limit in range(1, 9):
        monkeypatch.setattr("ledgermq.client.receiving.browser.PAGE_MESSAGES", limit)
        browser = connection.browser(queue, order=Order.LOGICAL)
        assert [one.body for one in browser] == LOGICAL


@BOTH
def test_the_order_of_a_browse_stays_that_of_its_first_call(connection, queue, order, expected):
    """GRP-07, GRP-08: next in the other order is refused, first begins again in any."""
    fill(connection, queue, *E1)
    other = Order.LOGICAL if order is Order.PHYSICAL else Order.PHYSICAL
    browser = connection.browser(queue)
    assert browser.first(order=order).body == "A"
    with pytest.raises(InconsistentBrowseError) as raised:
        browser.next(order=other)
    assert raised.value.code == "inconsistent-browse"
    assert browser.next(order=order).body == expected[1]
    assert browser.first(order=other).body == "A"
    with pytest.raises(InconsistentBrowseError):
        browser.next(order=order)
    fresh = connection.browser(queue)
    assert fresh.next(order=order).body == "A"
    with pytest.raises(InconsistentBrowseError):
        fresh.next(order=other)


def test_positions_of_browsing_and_of_getting_are_separate(connection, queue):
    """GRP-09: a get inside one group leaves the cursor in another, and the other way."""
    fill(connection, queue, "Y1{g=Y.1}", "Z1{g=Z.1}", "Y2{g=Y.2!}", "Z2{g=Z.2!}")
    with connection.session() as session:
        browser = session.browser(queue, order=Order.LOGICAL)
        consumer = session.consumer(queue, order=Order.LOGICAL, prefetch=0)
        assert consumer.receive(20).body == "Y1"
        assert browser.first().body == "Z1"
        assert consumer.receive(20).body == "Y2"
        assert browser.next().body == "Z2"
        assert consumer.receive(20).body == "Z1"


def test_first_begins_again_wherever_the_cursor_was(connection, queue):
    """GRP-10: no current group and no current logical message count for it."""
    fill(connection, queue, *E1)
    browser = connection.browser(queue, order=Order.LOGICAL)
    assert [name_of(browser.first()), name_of(browser.next()), name_of(browser.next())] == (
        LOGICAL[:3]
    )
    assert browser.first().body == "A"
    assert browser.first(match=matching("Z", 1)).body == "Z1"
    assert browser.next().body == "Z2"


# -- E7 --------------------------------------------------------------------------------------------


def test_e7_without_logical_order_the_first_message_of_a_group_is_shown_again(connection, queue):
    """E7: the last message stands before the first, so that looking on finds it anew (GRP-11)."""
    fill(connection, queue, "Z2{g=Z.2!}", "Z1{g=Z.1}")
    browser = connection.browser(queue)
    assert browser.first(match=matching("Z", 1)).body == "Z1"
    assert browser.first(match=matching("Z", 2)).body == "Z2"
    assert browser.next(match=matching(None, 1)).body == "Z1"


def test_e7_it_is_shown_again_a_number_of_calls_later(connection, queue):
    """E7: with a group in between, that one comes first (GRP-11)."""
    fill(connection, queue, "Z2{g=Z.2!}", "W1{g=W.1}", "Z1{g=Z.1}")
    browser = connection.browser(queue)
    assert browser.first(match=matching("Z", 1)).body == "Z1"
    assert browser.first(match=matching("Z", 2)).body == "Z2"
    assert browser.next(match=matching(None, 1)).body == "W1"
    assert browser.next(match=matching(None, 1)).body == "Z1"


@pytest.mark.parametrize("between", [(), ("W1{g=W.1}", "W2{g=W.2!}")])
def test_two_browsers_show_every_group_once(connection, queue, between):
    """GRP-12: one looks for first messages only, the other looks only inside of a group."""
    fill(connection, queue, "Z2{g=Z.2!}", *between, "Z1{g=Z.1}")
    groups, inside = connection.browser(queue), connection.browser(queue)
    found = []
    first = groups.first(match=matching(None, 1))
    while first is not None:
        assert len(found) < 5, "an endless loop"
        group = [first.body]
        number = 2
        while True:
            match = GetMatch(group_id=first.group_id, group_sequence=number)
            message = inside.first(match=match)
            if message is None:
                break
            group.append(message.body)
            number += 1
        found.append(group)
        first = groups.next(match=matching(None, 1))
    assert found == [*([["W1", "W2"]] if between else []), ["Z1", "Z2"]]


# -- E8, and a queue that changes ------------------------------------------------------------------


def test_e8_a_browse_enters_no_group_whose_first_item_is_not_there(connection, queue):
    """E8: [Y2, Y3(last), B] shows B alone (GRP-14, GRP-16)."""
    fill(connection, queue, "Y2{g=Y.2}", "Y3{g=Y.3!}", "B")
    assert shown(connection.browser(queue, order=Order.LOGICAL)) == ["B"]
    assert [one.body for one in connection.browser(queue, order=Order.LOGICAL)] == ["B"]
    assert shown(connection.browser(queue)) == ["Y2", "Y3", "B"]


def test_e8_a_browse_goes_on_in_a_group_whose_first_message_is_gone(connection, queue):
    """E8: Y1 was shown, then another consumer gets it; Y2 and Y3 come still (GRP-15)."""
    fill(connection, queue, "Y1{g=Y.1}", "Y2{g=Y.2}", "Y3{g=Y.3!}")
    browser = connection.browser(queue, order=Order.LOGICAL)
    assert browser.first().body == "Y1"
    with connection.session() as session:
        assert session.consumer(queue, prefetch=0).receive(20).body == "Y1"
    assert [name_of(browser.next()) for _ in range(3)] == ["Y2", "Y3", None]
    assert browser.first() is None


def test_the_position_is_established_by_the_first_browse_in_logical_order(connection, queue):
    """GRP-13: a browse that begins in logical order enters groups at their first items only."""
    fill(connection, queue, "Y2{g=Y.2}", "B", "Y1{g=Y.1}", "Y3{g=Y.3!}")
    browser = connection.browser(queue)
    assert browser.first().body == "Y2"
    assert [name_of(browser.first(order="LOGICAL")), name_of(browser.next(order="LOGICAL"))] == (
        ["B", "Y1"]
    )
    with connection.session() as session:
        assert session.consumer(queue, match=matching("Y", 1)).receive(20).body == "Y1"
    assert browser.next(order="LOGICAL").body == "Y2"
    assert [name_of(browser.first(order="LOGICAL")), browser.next(order="LOGICAL")] == ["B", None]


@BOTH
def test_after_the_end_a_later_call_finds_what_came(connection, queue, order, expected):
    """Nothing to show is no end: the cursor stays where it is."""
    del expected
    fill(connection, queue, "A")
    browser = connection.browser(queue, order=order)
    assert [name_of(browser.first()), browser.next(), browser.next()] == ["A", None, None]
    fill(connection, queue, "B")
    assert [name_of(browser.next()), browser.next()] == ["B", None]


def test_a_browse_inside_a_group_waits_for_what_comes_next_in_it(connection, queue):
    """Other messages behind are not shown before, as a get would not bring them."""
    fill(connection, queue, "Y1{g=Y.1}", "B")
    browser = connection.browser(queue, order=Order.LOGICAL)
    assert [name_of(browser.first()), browser.next()] == ["Y1", None]
    fill(connection, queue, "Y2{g=Y.2!}")
    assert [name_of(browser.next()), name_of(browser.next()), browser.next()] == ["Y2", "B", None]


def test_a_browse_of_whole_groups_passes_over_one_that_is_incomplete(connection, queue):
    """GRP-47: when it becomes complete behind the cursor, next does not notice."""
    fill(connection, queue, "Y1{g=Y.1}", "B", "Z1{g=Z.1}", "Z2{g=Z.2!}")
    browser = connection.browser(queue, order=Order.LOGICAL, all_messages_available=True)
    assert browser.first().body == "B"
    fill(connection, queue, "Y2{g=Y.2!}")
    assert [name_of(browser.next()) for _ in range(3)] == ["Z1", "Z2", None]
    assert shown(browser) == ["Y1", "Y2", "B", "Z1", "Z2"]


def test_a_browse_shows_messages_complete(connection, queue):
    """Page by page and one by one, all segments of a message are shown as one."""
    fill(connection, queue, "A", "S1{g=-S.1@0+2}", "S2{g=-S.1@2+2!}", "T1{g=-T.1@0+2}")
    browser = connection.browser(queue, complete_message=True)
    assert [one.body for one in browser] == ["A", "S1S2"]
    assert shown(browser) == ["A", "S1S2"]
    assert shown(browser, complete_message=False) == ["A", "S1", "S2", "T1"]
    assert shown(browser, complete_message=False, all_segments_available=True) == ["A", "S1", "S2"]


def test_what_is_to_match_must_be_what_comes_next_in_the_group(connection, queue):
    """GRP-44, for a browse: the cursor stays, and goes on."""
    fill(connection, queue, *E1)
    browser = connection.browser(queue, order=Order.LOGICAL)
    assert browser.first(match=matching("Y")).body == "Y1"
    with pytest.raises(MatchOptionsError) as raised:
        browser.next(match=matching("Y", 3))
    assert raised.value.code == "match-options-invalid"
    assert browser.next(match=matching("Y", 2)).body == "Y2"


def test_a_closed_browser_shows_nothing_by_calls_either(connection, queue):
    """As by iteration."""
    fill(connection, queue, "A")
    browser = connection.browser(queue)
    browser.close()
    for show in (browser.first, browser.next):
        with pytest.raises(ledgermq.IllegalStateError):
            show()


# -- a status queue of segments --------------------------------------------------------------------


def test_a_status_kept_in_segments_is_found_by_browsing_to_the_last_one(connection, queue):
    """GRP-36, GRP-37: each unit of work left a segment; the end clears all with one get."""
    with connection.session(transacted=True) as session:
        for number, (place, last) in enumerate([(0, ""), (3, ""), (6, "")], 1):
            put(session, queue, f"S{number:02}{{g=-S.1@{place}+3{last}}}")
            session.commit()
    with connection.session(transacted=True) as session:
        browser = session.browser(queue, order=Order.LOGICAL)
        found = [browser.first()]
        while found[-1] is not None:
            found.append(browser.next())
        status = found[-2]
        assert (status.body, status.offset) == ("S03", 6)
        # Restarted: the offset is told explicitly, and the last segment ends it.
        put(session, queue, f"S04{{g=-S.1@{status.offset + 3}+3}}")
        session.commit()
        put(session, queue, "S05{g=-S.1@12+3!}")
        session.commit()
        cleared = session.consumer(queue, complete_message=True).receive(20)
        session.commit()
    assert cleared.body == "S01S02S03S04S05"
    assert connection.admin.queue_status(queue.partition(":")[2]).message_count == 0
