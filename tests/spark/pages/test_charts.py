"""Tests of charts and of their axis: round moments, scales that hold every value."""

import re
from itertools import pairwise

import pytest

from ledgermq_spark.pages.axis import DAY, HOUR, SECOND, ticks
from ledgermq_spark.pages.chart import chart, duration
from support.pages.reading import HOSTILE, Page
from support.pages.reports import START_US


@pytest.mark.parametrize(
    "span",
    [0, 1, 7, 950, 12_345, SECOND, 59 * SECOND, 47 * 60 * SECOND, 25 * HOUR, 40 * DAY, 9_000 * DAY],
)
@pytest.mark.parametrize("most", [2, 6, 9])
def test_an_axis_has_few_marks_all_within_it(span, most):
    """However short or long the time is; none says the same as its neighbour."""
    found = ticks(START_US, START_US + span, most)
    assert len(found) <= most
    assert all(START_US <= at <= START_US + span for at, _ in found)
    assert all(one[1] != other[1] for one, other in pairwise(found))


def test_marks_are_round_moments_in_utc():
    """A day begins with its date."""
    midnight = START_US // DAY * DAY
    assert [text for _, text in ticks(midnight - 6 * HOUR, midnight + 7 * HOUR, 6)] == [
        "18:00",
        "21:00",
        "2025-10-09",
        "03:00",
        "06:00",
    ]


@pytest.mark.parametrize("unit", ["messages", "seconds"])
@pytest.mark.parametrize("highest", [0, 0.004, 1, 4, 5, 119, 121, 7_300, 99_999, 1_000_001])
def test_the_scale_reaches_as_high_as_what_is_shown(unit, highest):
    """The highest point is within the drawing, and uses a fifth of it at least."""
    drawn = chart("t", "", {"a": [(0, 0), (5, highest)]}, 8, unit=unit, steps=unit == "messages")
    (scale,) = re.findall(r"scale\(1 (-[0-9.e-]+)\)", drawn)
    (height,) = re.findall(r'data-height="(\d+)"', drawn)
    part = highest * -float(scale) / float(height)
    assert part <= 1.000001
    assert part >= 0.2 or highest < 1


@pytest.mark.parametrize(
    ("highest", "told"),
    [
        (800_000, ["800,000", "600,000", "400,000", "200,000"]),
        (800_001, ["2 M", "1.5 M", "1 M", "0.5 M"]),
        (12_345_678, ["20 M", "15 M", "10 M", "5 M"]),
    ],
)
def test_a_number_of_messages_is_not_cut_at_the_edge(highest, told):
    """Of 10,000,000 messages the page showed ",000,000": millions are told as such."""
    lines = {"a": [(0, 0), (5, highest)]}
    texts = Page(chart("t", "", lines, 1, unit="messages", steps=True)).texts
    assert [one for one in reversed(texts) if one in told] == told


def test_what_is_not_shown_does_not_stretch_the_scale():
    """A quiet queue is drawn beside others as quiet as itself."""
    lines = {"a": [(0, 0), (5, 4)], "b": [(0, 0), (5, 4_000)]}
    drawn = chart("t", "", lines, 1, unit="messages", steps=True)
    assert Page(drawn).texts[:6].count("4,000") == 0
    assert [("hidden" in one) for one in Page(drawn).all("path")] == [False, True]


def test_a_chart_of_nothing_is_nothing():
    """There is no empty frame."""
    assert chart("t", "", {}, 8, unit="messages", steps=True) == ""


def test_names_of_lines_are_text():
    """Whatever queues are called."""
    drawn = Page(chart("t", "", {HOSTILE: [(0, 1)]}, 8, unit="messages", steps=True))
    assert drawn.all("script") == []
    assert HOSTILE in drawn.text


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 s"), (0.0042, "0.004 s"), (90, "90 s"), (150, "2.5 min"), (9_000, "2.5 h")],
)
def test_a_duration_is_told_in_the_unit_that_suits_it(seconds, told):
    """Nobody counts hours in seconds."""
    assert duration(seconds) == told


def test_an_axis_of_something_else_than_time_has_the_marks_it_is_given():
    """Each stands at its point, the last one where it can be read whole, and no time with them."""
    marks = [(0, "1"), (1_000, "10"), (2_000, "1,000,000")]
    line = [(0, 5), (2_000, 4)]
    drawn = chart("t", "", {"a": line}, 1, unit="messages", steps=False, marks=marks)
    written = re.findall(r'x="([0-9.]+)" y="184" text-anchor="middle">([^<]+)<', drawn)
    assert written == [("52.0", "1"), ("322.0", "10"), ("566.0", "1,000,000")]
