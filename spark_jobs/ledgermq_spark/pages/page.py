"""The parts of a page: its frame, sections and tables; what they are given is HTML already."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
# A table with more rows is folded, and can be searched.
ROWS_OPEN_MAX: Final = 12
NO_NUMBERS: Final[frozenset[int]] = frozenset()


def page(title: str, parts: list[str]) -> str:
    """A whole page; the title is text."""
    style, script = (HERE / "page.css").read_text("utf-8"), (HERE / "page.js").read_text("utf-8")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        '</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body><main>{''.join(parts)}</main>"
        f"<script>{script}</script></body></html>"
    )


def section(title: str, body: str, note: str = "") -> str:
    """A part of the page with its heading; nothing, if it has nothing to say."""
    told = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{title}</h2>{told}{body}</section>" if body else ""


def table(
    head: list[str],
    rows: list[list[str]],
    numbers: frozenset[int] = NO_NUMBERS,
    *,
    what: str = "rows",
    in_all: int = 0,
    summary: str = "",
) -> str:
    """A table; the columns in `numbers` are set flush right.

    One that is long is folded, and says how many rows it has of `what`, and of how many `in_all` if
    these are more; one with a `summary` is folded and says that.
    """
    if not rows:
        return ""

    def cells(tag: str, values: list[str]) -> str:
        return "".join(
            f"<{tag}{' class=number' if at in numbers else ''}>{value}</{tag}>"
            for at, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    is_long = len(rows) > ROWS_OPEN_MAX
    searched = ' data-search="tbody tr"' if is_long else ""
    whole = (
        f'<div class="wide"{searched}>'
        f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    if not is_long and not summary:
        return whole
    of_all = f" of {in_all:,}" if in_all > len(rows) else ""
    told = summary or f"{len(rows):,}{of_all} {what}"
    return f"<details><summary>{told}</summary>{whole}</details>"


def listed(texts: list[str]) -> str:
    """Texts one below the other; nothing without any."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def number(value: Any) -> str:
    """A number with its thousands set apart, or what stands in its place."""
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def counted(count: int, plural: str) -> str:
    """How many of what, whose plural is given: `1 delivery`, `1,200 deliveries`."""
    one = f"{plural[:-3]}y" if plural.endswith("ies") else plural.removesuffix("s")
    return f"{count:,} {one if count == 1 else plural}"


def moment(micros: int | None) -> str:
    """A time in µs since 1970 for people, in UTC."""
    if micros is None or micros < 0:
        return "no time yet"
    return clock_time(micros) + " UTC"


def clock_time(micros: int) -> str:
    """The same where its column says that it is UTC."""
    told = datetime.fromtimestamp(micros / 1_000_000, UTC)
    return told.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
