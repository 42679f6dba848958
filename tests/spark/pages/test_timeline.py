"""Tests of timelines: a lane for each life, states as bars, events as marks, words below."""

from itertools import pairwise

import pytest

from ledgermq_spark.pages.timeline import timeline_page
from support.pages.reading import HOSTILE, Page
from support.pages.reports import life_of, step_of

PLAIN = (
    step_of(0, "put", "new -> uncommitted put", session=2, unit_of_work=1),
    step_of(3, "numbered", "uncommitted put -> unborn"),
    step_of(5, "born", "unborn -> available"),
)


def bars(page):
    """Return the class and title of each bar, in the order of the page."""
    return [one["class"].split()[0] for one in page.all("rect") if one.get("class")]


def test_a_life_of_three_events_shows_its_states_and_tells_its_events():
    """One lane with three bars, open to the end, and a table with reasons and places."""
    page = Page(timeline_page([life_of(*PLAIN, fate="available")]))
    assert bars(page) == ["uncommitted", "unborn", "available"]
    assert len(page.all("rect", "until-now")) == 1
    assert [one for one in page.all("details") if "open" in one] == page.all("details", "life")
    for told in ("Life of message", "QM1@30", "queue q: numbered", "2025-10-09 08:53:20.000"):
        assert told in page.text
    assert page.text.count("UTC") >= 3


def test_in_a_narrow_window_lives_are_scrolled_not_shrunk():
    """All of them with their axis, whose times nobody could read otherwise."""
    page = timeline_page([life_of(*PLAIN)])
    assert '<div class="lives"><div class="axis">' in page
    narrow = page.partition("max-width: 640px")[2].partition("@media")[0]
    assert ".lives { overflow-x: auto; }" in narrow


def test_a_bar_is_as_wide_as_its_state_was_long():
    """Two seconds of five, beside three."""
    page = Page(timeline_page([life_of(*PLAIN)]))
    first, second, _ = [float(one["width"]) for one in page.all("rect") if one.get("class")]
    assert first / second == pytest.approx(3 / 2, rel=0.01)


def test_a_life_in_several_places_has_a_row_for_each():
    """A message that was moved, and a topic's with its copies, each under the place's name."""
    page = Page(
        timeline_page(
            [
                life_of(
                    step_of(0, "put", "new -> available"),
                    step_of(2, "moved", "available -> gone"),
                    step_of(2, "arrived", "new -> available", place="queue dead"),
                )
            ]
        )
    )
    tops = [float(one["y"]) for one in page.all("rect", "available")]
    assert tops[0] < tops[1]
    assert {"queue q", "queue dead"} <= set(page.texts)


def test_events_that_lie_upon_each_other_share_a_mark():
    """It has their numbers, and what happened is told of each."""
    steps = [step_of(0, "put", "new -> available")]
    steps += [step_of(9 + at / 1000, f"event {at}", "available -> delayed") for at in range(4)]
    page = Page(timeline_page([life_of(*steps)]))
    assert len(page.all("g", "bubble")) == 2
    assert "2–5" in page.texts
    (told,) = [text for text in page.texts if text.startswith("2 event 0")]
    assert told.count("\n") == 3


def test_marks_of_a_long_life_do_not_lie_upon_each_other():
    """Five hundred events of fifty messages, however they are spread."""
    lives = []
    for number in range(50):
        steps = [
            step_of(number + at**2 / 9, "returned", "unacknowledged -> available")
            for at in range(10)
        ]
        lives.append(life_of(*steps, message_id=f"{number:032x}"))
    html = timeline_page(lives)
    page = Page(html)
    assert len(page.all("details", "life")) == 50
    assert not any("open" in one for one in page.all("details", "life"))
    assert "500 events" in page.text
    for lane in html.split('<details class="life">')[1:]:
        rects = [one for one in Page(f"<svg>{_marks_of(lane)}</svg>").all("rect") if one.get("rx")]
        edges = sorted((float(one["x"]), float(one["x"]) + float(one["width"])) for one in rects)
        assert all(one[1] <= other[0] for one, other in pairwise(edges))


def _marks_of(lane):
    """Return the drawing of a lane."""
    return lane.partition("aria-label")[2].partition(">")[2].partition("</svg>")[0]


def test_all_at_one_time_is_drawn_all_the_same():
    """A log whose clock stood still, and one event alone."""
    for steps in (PLAIN[:1], [step_of(1, "put", "new -> available")] * 3):
        assert len(Page(timeline_page([life_of(*steps)])).all("g", "bubble")) == 1


def test_a_message_that_was_never_in_any_state_has_a_mark():
    """A topic's that nobody wanted."""
    page = Page(timeline_page([life_of(step_of(0, "dropped", "new -> gone"), fate="dropped")]))
    assert bars(page) == []
    assert len(page.all("g", "lost")) == 1


def test_what_is_written_again_is_marked_though_it_is_no_move():
    """It has no place of its own."""
    again = step_of(7, "written again", "a -> b", place=None, before=None, after=None)
    page = Page(timeline_page([life_of(*PLAIN, again)]))
    assert len(page.all("g", "bubble")) == 4


def test_what_users_name_is_text_on_a_timeline():
    """Ids, places and reasons bring no element, no attribute and no code."""
    step = step_of(0, HOSTILE, "new -> available", place=HOSTILE, reason=HOSTILE)
    other = step_of(1, HOSTILE, "new -> available", place="queue q", reason=HOSTILE)
    names = ("queue_manager", "message_id", "queue", "fate", "group_id", "correlation_id")
    page = Page(timeline_page([life_of(step, other, **dict.fromkeys(names, HOSTILE))]))
    assert page.is_harmless()
    assert page.text.count(HOSTILE) > 12


def test_a_timeline_of_nothing_is_refused():
    """Rather than a page that shows nothing."""
    with pytest.raises(ValueError, match="needs a life"):
        timeline_page([])


def test_a_page_of_the_first_lives_says_that_more_are_meant():
    """It is kept and passed on without the remark of the command."""
    lives = [life_of(*PLAIN), life_of(*PLAIN)]
    told = "the first of those that are meant"
    assert told in Page(timeline_page(lives, more=True)).text
    assert told not in Page(timeline_page(lives)).text
