"""Draws the depth of queues over time as one inline SVG."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape

WIDTH, HEIGHT = 1060, 260
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 30
COLOURS = (
    "#2b6cb0",
    "#c05621",
    "#2f855a",
    "#6b46c1",
    "#b83280",
    "#975a16",
    "#0f766e",
    "#4a5568",
)
GRID_LINES = 4

Points = list[tuple[int, int]]


def depth_chart(depth: dict[str, Points]) -> str:
    """Depth per queue as (time in µs, messages) points, drawn as steps; empty without any."""
    points = [point for line in depth.values() for point in line]
    if not points:
        return ""
    begin, end = min(at for at, _ in points), max(at for at, _ in points)
    highest = _round(max(count for _, count in points))
    span = max(1, end - begin)

    def across(at: int) -> float:
        return LEFT + (at - begin) / span * (WIDTH - LEFT - RIGHT)

    def up(count: int | float) -> float:
        return HEIGHT - BOTTOM - count / highest * (HEIGHT - TOP - BOTTOM)

    parts = [_grid(highest, up)]
    for at, text, anchor in _moments(begin, end):
        parts.append(
            f'<text x="{across(at):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}" font-size="12" '
            f'fill="#5c6675">{text}</text>'
        )
    legend = []
    for colour, (queue, line) in zip(COLOURS, depth.items(), strict=False):
        path = f"M{across(line[0][0]):.1f} {up(line[0][1]):.1f}" + "".join(
            f"H{across(at):.1f}V{up(count):.1f}" for at, count in line[1:]
        )
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        legend.append(f'<span><i style="background:{colour}"></i>{escape(queue)}</span>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Depth of queues over time">'
        f'{"".join(parts)}</svg><div class="legend">{"".join(legend)}</div>'
    )


def _grid(highest: int, up: object) -> str:
    assert callable(up)
    parts = []
    for line in range(GRID_LINES + 1):
        count = highest * line / GRID_LINES
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(count):.1f}" y2="{up(count):.1f}" '
            'stroke="#dde2ea"/>'
            f'<text x="{LEFT - 8}" y="{up(count) + 4:.1f}" text-anchor="end" font-size="12" '
            f'fill="#5c6675">{count:,.0f}</text>'
        )
    return "".join(parts)


def _round(count: int) -> int:
    """The next number that divides well into the lines of the grid."""
    step = 4
    while step * 10 < count:
        step *= 10
    return max(4, -(-count // step) * step)


def _moments(begin: int, end: int) -> list[tuple[int, str, str]]:
    def text(at: int) -> str:
        return datetime.fromtimestamp(at / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")

    if end == begin:
        return [(begin, text(begin), "start")]
    middle = (begin + end) // 2
    return [
        (begin, text(begin), "start"),
        (middle, text(middle)[11:], "middle"),
        (end, text(end), "end"),
    ]
