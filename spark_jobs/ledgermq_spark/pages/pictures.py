"""Charts and timelines as the pages of LedgerMQ have them, each as a picture of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import accumulate
from typing import Final

from ledgermq_spark.pages.chart import Marks, Points, chart, line_class
from ledgermq_spark.pages.page import HERE
from ledgermq_spark.pages.timeline import timeline_page
from ledgermq_spark.tables.life import Life

DRAWN: Final = re.compile(r'<svg viewBox="0 0 (\d+) (\d+)"[^>]*>(.*?)</svg>', re.DOTALL)
# What a browser shows of a part that somebody points at, which nobody can in a picture.
POINTED_AT: Final = re.compile(r"<title>.*?</title>", re.DOTALL)
NAMES_WIDTH, MARGIN, LINE_HEIGHT = 150, 8, 16


def timeline_picture(lives: Sequence[Life]) -> str:
    """Lanes of messages on one axis of time, each with its correlation id and what became of it."""
    axis, *lanes = DRAWN.findall(POINTED_AT.sub("", timeline_page(lives)))
    tops = list(accumulate((int(height) for _, height, _ in (axis, *lanes)), initial=MARGIN))
    parts = [
        f'<svg x="{NAMES_WIDTH}" y="{top}" width="{width}" height="{height}">{drawn}</svg>'
        for top, (width, height, drawn) in zip(tops, (axis, *lanes), strict=False)
    ]
    for top, life in zip(tops[1:], lives, strict=False):
        told = (life.correlation_id or life.message_id, f"{life.queue}: {life.fate}")
        for at, text in enumerate(map(escape, told), 1):
            weight = "" if at > 1 else ' font-weight="600"'
            parts.append(f'<text x="{MARGIN}" y="{top + 15 * at}"{weight}>{text}</text>')
    return _picture(NAMES_WIDTH + int(axis[0]) + MARGIN, tops[-1] + MARGIN, parts)


def chart_picture(
    title: str, lines: Mapping[str, Points], *, steps: bool = True, marks: Marks | None = None
) -> str:
    """Lines over time or `marks` with their names; with `steps` a value holds until the next."""
    drawn = chart(title, "", lines, len(lines), unit="messages", steps=steps, marks=marks)
    ((width, height, body),) = DRAWN.findall(POINTED_AT.sub("", drawn))
    parts = [
        f'<text x="{MARGIN}" y="{LINE_HEIGHT}" font-weight="600">{escape(title)}</text>',
        f'<svg y="{2 * LINE_HEIGHT}" width="{width}" height="{height}">{body}</svg>',
    ]
    for at, name in enumerate(lines):
        x, y = int(width) - 90 * (len(lines) - at), LINE_HEIGHT
        parts.append(
            f'<path class="{line_class(at)}" d="M{x} {y - 4}h18"/>'
            f'<text x="{x + 24}" y="{y}">{escape(name)}</text>'
        )
    return _picture(int(width), int(height) + 2 * LINE_HEIGHT, parts)


def _picture(width: int, height: int, parts: Sequence[str]) -> str:
    """Parts on the paper of the pages, with their colours."""
    style = (HERE / "page.css").read_text("utf-8")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif"><style>{style}</style>'
        f'<rect width="{width}" height="{height}" fill="var(--paper)"/>\n{chr(10).join(parts)}\n'
        "</svg>\n"
    )
