"""Draws lines over time as inline SVG, one for each name, of which the first are shown.

Lines are drawn in the units of their values and scaled as a group, so that the page's script can
show others and scale them anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle
from typing import Final

from ledgermq_spark.pages.axis import Across, across, ticks

WIDTH, HEIGHT = 600, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 8, 22
GRID_LINES = 4
TEXT_WIDTH = 68
COLOURS: Final = 8
# From how many seconds on an axis has which unit.
UNITS: Final = ((172_800, 86_400, " d"), (7_200, 3_600, " h"), (120, 60, " min"), (0, 1, " s"))
# The same of messages: millions, where the highest text would be wider than its place.
COUNTS: Final = ((800_001, 1_000_000, " M"), (0, 1, ""))
# Which units have parts of one.
PARTED: Final = (" s", " M")

Points = Sequence[tuple[int, float]]
Marks = Sequence[tuple[int, str]]


def chart(
    title: str,
    note: str,
    lines: Mapping[str, Points],
    shown: int,
    *,
    unit: str,
    steps: bool,
    marks: Marks | None = None,
) -> str:
    """Lines of (time in µs, value) points in `unit`, `seconds` or messages; empty without any.

    `marks` are texts below the lines in place of times, each at its point. With `steps` a value
    holds until the next point, else the line goes straight to it.
    """
    points = [point for line in lines.values() for point in line]
    if not points:
        return ""
    begin, end = min(at for at, _ in points), max(at for at, _ in points)
    highs = [max(value for _, value in line) for line in lines.values()]
    top, labels = _scale(max(highs[:shown]), unit)
    x = across(begin, end, LEFT, WIDTH - RIGHT)
    base, height = HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM
    paths = "".join(
        f'<path class="{line_class(at)}" data-line="{at}" data-high="{high:g}" '
        f'vector-effect="non-scaling-stroke" d="{_path(line, x, steps=steps)}"'
        f"{'' if at < shown else ' hidden'}><title>{escape(name)}</title></path>"
        for at, ((name, line), high) in enumerate(zip(lines.items(), highs, strict=True))
    )
    return (
        f'<figure class="chart" data-unit="{unit}"><figcaption>{title} <small>{note}</small>'
        f'</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
        f"{_grid(labels, base, height)}{_marks(marks or _moments(begin, end, x), x)}"
        f'<g class="lines" data-base="{base}" data-height="{height}" '
        f'transform="translate(0 {base}) scale(1 {-height / top:.9g})">{paths}</g></svg></figure>'
    )


def line_class(at: int) -> str:
    """How the line at a place among all is drawn: eight colours, then dashed."""
    return f"line l{at % COLOURS}" + (" dashed" if at // COLOURS % 2 else "")


def duration(seconds: float) -> str:
    """A duration for people, in the unit that suits it."""
    _, size, name = next(one for one in UNITS if seconds >= one[0])
    return _plain(seconds / size) + name


def lasted(seconds: float) -> str:
    """A duration in a table, whose column is sorted by seconds."""
    return f'<data value="{seconds}">{duration(seconds)}</data>'


def _plain(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def _scale(highest: float, unit: str) -> tuple[float, list[str]]:
    """A round value that is high enough, and the texts from 0 up to it."""
    units = UNITS if unit == "seconds" else COUNTS
    _, size, name = next(one for one in units if highest >= one[0])
    step = 0.001 if name in PARTED else 1.0
    for factor in cycle((2, 2.5, 2)):
        if step * GRID_LINES * size >= highest:
            break
        step *= factor
    labels = ["0", *(_plain(step * line) + name for line in range(1, GRID_LINES + 1))]
    return step * GRID_LINES * size, labels


def _grid(labels: list[str], base: float, height: float) -> str:
    parts = []
    for at, text in enumerate(labels):
        y = base - height * at / GRID_LINES
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
    return f'<g class="grid">{"".join(parts)}</g>'


def _moments(begin: int, end: int, x: Across) -> Marks:
    return [one for one in ticks(begin, end, 6) if x(one[0]) < WIDTH - TEXT_WIDTH / 2]


def _marks(marks: Marks, x: Across) -> str:
    """Texts below their points; the last one where it can be read whole."""
    return "".join(
        f'<text x="{min(x(at), WIDTH - TEXT_WIDTH / 2):.1f}" y="{HEIGHT - 6}" '
        f'text-anchor="middle">{text}</text>'
        for at, text in marks
    )


def _path(line: Points, x: Across, *, steps: bool) -> str:
    start, *rest = line
    to = "H{:.1f}V{:g}" if steps else "L{:.1f} {:g}"
    first = f"M{x(start[0]):.1f} {start[1]:g}"
    return first + "".join(to.format(x(at), value) for at, value in rest)
