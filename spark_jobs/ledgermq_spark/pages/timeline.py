"""Draws the lives of messages as a page: lanes beneath each other on one axis of time.

A life has a row for each place that the message was in: its states there as bars, and a numbered
mark for each event, or for several that are too near to each other. The table below the lane has
all of them in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from ledgermq_spark.pages.axis import across, ticks
from ledgermq_spark.pages.page import clock_time, counted, moment, page, section, table

if TYPE_CHECKING:
    from ledgermq_spark.pages.axis import Across
    from ledgermq_spark.tables.life import Life, LifeStep

WIDTH, LEFT, RIGHT = 920, 12, 14
ROW, BAR_TOP, BAR_HEIGHT, NAME_HEIGHT = 34, 21, 9, 14
BAR_WIDTH_MIN = 1.5
# More lives than these are folded: their lanes are shown, their tables when somebody asks.
OPEN_MAX: Final = 2
# States, with how they are drawn and what they are called.
STATES: Final = {
    "uncommitted put": ("uncommitted", "uncommitted put"),
    "unborn": ("unborn", "unborn"),
    "available": ("available", "available"),
    "unacknowledged": ("flight", "in flight"),
    "uncommitted get": ("flight", "in flight"),
    "delayed": ("delayed", "delayed"),
    "blocked": ("blocked", "blocked"),
    "published": ("published", "published"),
}
BACK: Final = {"returned", "blocked"}
LOST: Final = {
    "vanished",
    "expired",
    "displaced",
    "moved",
    "parked",
    "dropped",
    "removed",
    "purged",
    "rolled back",
}
KINDS: Final = (
    ("back", "came back or had to wait"),
    ("done", "consumed"),
    ("lost", "left in another way"),
    ("", "another event"),
)
COLUMNS: Final = (
    "",
    "Time (UTC)",
    "Position",
    "What",
    "Where and why",
    "Session",
    "Consumer",
    "Delivery",
    "Unit of work",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A message is in a state from one time to another, in µs; `until` is None if it still is."""

    state: str
    since: int
    until: int | None


def timeline_page(lives: Sequence[Life], *, more: bool = False) -> str:
    """The page of one life or more, with the first one's queue manager in its heading.

    `more`: these are the first ones of those that are meant.

    Raises:
        ValueError: there is no life to show.
    """
    if not lives:
        raise ValueError("a timeline needs a life to show")
    times = [step.time for life in lives for step in life.steps]
    begin, end = min(times), max(times)
    x = across(begin, end, LEFT, WIDTH - RIGHT)
    marks = [(x(at), text) for at, text in ticks(begin, end, 9)]
    lanes = "".join(_life(life, x, marks, is_open=len(lives) <= OPEN_MAX) for life in lives)
    searched = ' data-search=".life"' if len(lives) > OPEN_MAX else ""
    body = f'{_legend(lives)}<div class="lives"{searched}>{_axis(marks)}{lanes}</div>'
    title = (
        f"Life of message {lives[0].message_id}"
        if len(lives) == 1
        else f"Lives of {len(lives):,} messages"
    )
    events = counted(sum(len(life.steps) for life in lives), "events")
    first = ", the first of those that are meant" if more else ""
    head = (
        f'<header><p class="kicker">LedgerMQ trace</p><h1>{escape(title)}</h1>'
        f'<p class="where">Queue manager <b>{escape(lives[0].queue_manager)}</b>, '
        f"{events} from <b>{moment(begin)}</b> to <b>{moment(end)}</b>{first}</p></header>"
    )
    return page(title, [head, section("Timeline <small>times in UTC</small>", body)])


def _legend(lives: Sequence[Life]) -> str:
    shown = {
        STATES[span.state] for life in lives for spans in _rows(life).values() for span in spans
    }
    states = dict.fromkeys(one for one in STATES.values() if one in shown)
    bubbles = "".join(f'<span><i class="disc {style}"></i>{name}</span>' for style, name in KINDS)
    boxes = "".join(f'<span><i class="box {style}"></i>{name}</span>' for style, name in states)
    return f'<div class="legend">{boxes}{bubbles}</div>'


def _axis(marks: list[tuple[float, str]]) -> str:
    texts = "".join(
        f'<text x="{min(max(x, 30), WIDTH - 32):.1f}" y="14" text-anchor="middle">{text}</text>'
        for x, text in marks
    )
    return (
        '<div class="axis"><span>Message, where it is now</span>'
        f'<svg viewBox="0 0 {WIDTH} 20" aria-hidden="true">{texts}</svg></div>'
    )


def _life(life: Life, x: Across, marks: list[tuple[float, str]], *, is_open: bool) -> str:
    lane = _lane(life, x, marks)
    opened = " open" if is_open else ""
    return (
        f'<details class="life"{opened}><summary><span class="who">{_who(life)}</span>{lane}'
        f"</summary>{_events(life)}</details>"
    )


def _who(life: Life) -> str:
    """The message, where it is, and what ties it to others."""
    told = [f"<code>{escape(life.message_id)}</code>"]
    number = "" if life.sequence is None else f" {life.sequence}"
    told.append(f"<small>{escape(life.queue)}{number}: <b>{escape(life.fate)}</b></small>")
    ties = {"group": life.group_id, "correlation": life.correlation_id}
    for name, one in ties.items():
        if one:
            told.append(f'<small class="tie" title="{escape(one)}">{name} {escape(one)}</small>')
    return "".join(told)


def _events(life: Life) -> str:
    rows = [
        [
            f"<b>{at}</b>",
            f'<span class="whole">{clock_time(step.time)}</span>',
            f"<code>{escape(life.queue_manager)}@{step.position}</code>",
            escape(step.what),
            escape(step.reason),
            *(
                "" if value is None else str(value)
                for value in (step.session, step.consumer, step.delivery, step.unit_of_work)
            ),
        ]
        for at, step in enumerate(life.steps, 1)
    ]
    return table([*COLUMNS], rows, frozenset({5, 6, 7, 8}), what="events")


def _rows(life: Life) -> dict[str, list[Span]]:
    """The states of a message in each place that it was in, in the order in which it came there."""
    rows: dict[str, list[Span]] = {}
    for place in dict.fromkeys(step.place for step in life.steps if step.place is not None):
        steps = [step for step in life.steps if step.place == place]
        rows[place] = [
            Span(state=str(one.after), since=one.time, until=None if next_ is None else next_.time)
            for one, next_ in zip(steps, [*steps[1:], None], strict=True)
            if one.after in STATES
        ]
    return rows


def _lane(life: Life, x: Across, marks: list[tuple[float, str]]) -> str:
    """The rows of a life; an event that is of no place is marked in the first."""
    rows = _rows(life)
    row_height = ROW + (NAME_HEIGHT if len(rows) > 1 else 0)
    height = row_height * len(rows)
    grid = "".join(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{height}"/>' for at, _ in marks)
    parts = [f'<g class="grid">{grid}</g>']
    numbered = list(enumerate(life.steps, 1))
    for at, (place, spans) in enumerate(rows.items()):
        top = at * row_height
        homes = (place, None) if at == 0 else (place,)
        own = [(number, one) for number, one in numbered if one.place in homes]
        parts += [_bar(span, x, top) for span in spans]
        parts.append(_marks(own, x, top))
        if len(rows) > 1:
            parts.append(_name(place, x(own[0][1].time), top))
    label = counted(len(life.steps), "events")
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _name(place: str, left: float, top: int) -> str:
    is_late = left > WIDTH * 2 / 3
    return (
        f'<text x="{left:.1f}" y="{top + BAR_TOP + BAR_HEIGHT + 12}" '
        f'text-anchor="{"end" if is_late else "start"}">{escape(place)}</text>'
    )


def _bar(span: Span, x: Across, top: int) -> str:
    style, name = STATES[span.state]
    left = x(span.since)
    right = WIDTH if span.until is None else x(span.until)
    end = "until now" if span.until is None else f"until {clock_time(span.until)}"
    open_end = " until-now" if span.until is None else ""
    return (
        f'<rect class="{style}{open_end}" x="{left:.1f}" y="{top + BAR_TOP}" '
        f'width="{max(BAR_WIDTH_MIN, right - left):.1f}" height="{BAR_HEIGHT}">'
        f"<title>{name} from {clock_time(span.since)} {end}</title></rect>"
    )


Numbered = list[tuple[int, "LifeStep"]]


def _marks(steps: Numbered, x: Across, top: int) -> str:
    """A bubble for each event, or for those whose bubbles would lie upon each other."""
    clusters: list[Numbered] = []
    for one in steps:
        clusters.append([one])
        while len(clusters) > 1 and _left(clusters[-1], x) < _left(clusters[-2], x) + (
            _width(clusters[-2]) + 1
        ):
            last = clusters.pop()
            clusters[-1] += last
    return "".join(_bubble(cluster, x, top) for cluster in clusters)


def _label(cluster: Numbered) -> str:
    """The numbers of events: one, a range, or the ends of what has gaps."""
    first, last = cluster[0][0], cluster[-1][0]
    if first == last:
        return str(first)
    between = "–" if last - first == len(cluster) - 1 else "…"
    return f"{first}{between}{last}"


def _width(cluster: Numbered) -> float:
    return 9 + 6.2 * len(_label(cluster))


def _left(cluster: Numbered, x: Across) -> float:
    width = _width(cluster)
    middle = (x(cluster[0][1].time) + x(cluster[-1][1].time)) / 2
    return min(max(0.0, middle - width / 2), WIDTH - width)


def _bubble(cluster: Numbered, x: Across, top: int) -> str:
    """The numbers of events above their moments; what happened is told to who points at them."""
    left, width = _left(cluster, x), _width(cluster)
    told = "\n".join(
        f"{number} {one.what}, {clock_time(one.time)} UTC, position {one.position}: {one.reason}"
        for number, one in cluster
    )
    bottom = top + BAR_TOP + BAR_HEIGHT
    lines = "".join(
        f'<line class="tick" x1="{at}" x2="{at}" y1="{top + 17}" y2="{bottom}"/>'
        for at in dict.fromkeys(f"{x(one.time):.1f}" for _, one in cluster)
    )
    return (
        f'{lines}<g class="bubble {_sort_of(cluster)}"><title>{escape(told)}</title>'
        f'<rect x="{left:.1f}" y="{top + 2}" width="{width:.1f}" height="15" rx="7"/>'
        f'<text x="{left + width / 2:.1f}" y="{top + 13.2}">{_label(cluster)}</text></g>'
    )


def _sort_of(cluster: Numbered) -> str:
    """How what happened is drawn: by what most wants to be seen of several events."""
    whats = {one.what for _, one in cluster}
    if whats & LOST:
        return "lost"
    if whats & BACK:
        return "back"
    return "done" if "consumed" in whats else ""
