"""What a browser asks for, page by page, by hand."""

import pytest

import ledgermq
from ledgermq.protocol.answers import Answer
from ledgermq.wire.framing.answers import encode_answer
from support.brokers.hand_made import delivered


def paging(route, pages):
    """Answers questions by pages of a queue: numbers of messages, and the cursor behind them.

    The first one comes twice: a browser looks at the queue when it is made (SES-40).
    """
    left = iter([pages[0], *pages])

    def answer(ask):
        first, count, document = next(left)
        messages = delivered(0, 0, first, count).messages
        page = Answer(document=document, messages=messages)
        route.lane.put(encode_answer(ask["question"], 40 + first, 0, page))

    route.log.on_ask = answer


def page(more, priority, sequence, place=("", 0, 0)):
    """The document of a page."""
    names = ("more", "after_priority", "after_sequence", "group_id", "group_sequence", "offset")
    return dict(zip(names, (more, priority, sequence, *place), strict=True))


def test_a_browser_asks_page_by_page_from_the_front(route, by_hand):
    """From priority 9 before number 0 on; then behind the cursor that the last page told."""
    pages = [(1, 2, page(True, 7, 2)), (3, 0, page(True, 4, 9)), (4, 1, page(False, 4, 20))]
    paging(route, pages)
    browser = by_hand.browser("queue:a", selector="x = 1")
    assert (browser.position, browser.selector) == (-1, "x = 1")
    (look,) = route.log.asks
    assert (look["kind"], look["queue"], look["selector"], look["limit"]) == (
        *("BROWSE", "a", "x = 1"),
        1,
    )
    route.log.asks.clear()
    assert [one.sequence for one in browser] == [1, 2, 4]
    assert browser.position == 44
    told = [(ask["after_priority"], ask["after_sequence"]) for ask in route.log.asks]
    assert told == [(9, -1), (7, 2), (4, 9)]
    assert {(ask["kind"], ask["queue"], ask["limit"]) for ask in route.log.asks} == {
        ("BROWSE", "a", 500)
    }
    assert {ask["selector"] for ask in route.log.asks} == {"x = 1"}
    assert {ask["options"] for ask in route.log.asks} == {None}


def test_a_browser_in_logical_order_asks_from_where_it_is_in_a_group(route, by_hand):
    """The cursor in the group goes with the other one, by pages and call by call."""
    place, asked = ("6d" * 24, 7, 3), []
    for show in (list, lambda browser: [browser.first(), browser.next(), browser.next()]):
        paging(
            route,
            [(1, 1, page(True, 7, 2, place)), (2, 1, page(False, 4, 9)), (3, 0, page(False, 4, 9))],
        )
        browser = by_hand.browser("queue:a", order="LOGICAL")
        route.log.asks.clear()
        show(browser)
        names = ("after_sequence", "group_id", "group_sequence", "offset", "limit")
        asked.append([tuple(ask[name] for name in names) for ask in route.log.asks])
        assert all(ask["options"]["logical_order"] for ask in route.log.asks)
        route.log.asks.clear()
    front, inside = (-1, b"", 0, 0), (2, b"m" * 24, 7, 3)
    assert asked[0] == [(*front, 500), (*inside, 500)]
    assert asked[1] == [(*front, 1), (*inside, 1), (9, b"", 0, 0, 1)]


def test_a_browser_that_was_closed_shows_no_further_page(route, by_hand):
    """Its block closes it, and an iterator with it, in the middle of a page too (decision 27)."""
    paging(route, [(1, 2, page(True, 7, 2))])
    with by_hand.browser("queue:a") as browser:
        found = iter(browser)
        assert next(found).sequence == 1
    for call in (lambda: next(found), lambda: iter(browser), browser.first, browser.next):
        with pytest.raises(ledgermq.IllegalStateError, match="browser is closed"):
            call()
    assert len(route.log.asks) == 2


def test_a_session_that_is_closed_makes_no_browser(route, by_hand):
    """Nor anything else; the connection still does."""
    session = by_hand.session()
    session.close()
    with pytest.raises(ledgermq.IllegalStateError, match="session is closed"):
        session.browser("queue:a")
    paging(route, [(1, 1, page(False, 4, 1))])
    by_hand.browser("queue:a").close()
