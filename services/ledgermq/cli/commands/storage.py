"""`ledgermq storage`: the account of the room that messages take, and what pins it (DB-11)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click

from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Column, Output, count_of, size_text
from ledgermq.protocol.documents.storage import SegmentState, StorageStatus

BAR_CELLS: Final = 20
# What live messages take, what was released and is not free before all of it is, what is empty.
LIVE, RELEASED, EMPTY = "█", "░", "·"
COLUMNS: Final = [
    Column(key="number", heading="segment", whole=True),
    Column(key="state", heading="state", whole=True),
    Column(key="bytes", heading="bytes", number=True, whole=True),
    Column(key="live_bytes", heading="live bytes", number=True, whole=True),
    Column(key="live_messages", heading="messages", number=True, whole=True),
    Column(key="oldest", heading="oldest live message"),
]
FILLED: Final = Column(key="bar", heading="filled", whole=True)


@click.command(cls=OnceCommand)
@target_options
def storage(target: Target, output: Output) -> None:
    """Show the storage: its segments, what pins them, the cache of bodies, the log on disk.

    Messages live in the log; segments are the account of the room that live messages need. One
    live message pins its segment. Settings are those of `ledgermq manager alter`.
    """
    with target.connect() as connection:
        found = connection.admin.storage()
    columns = COLUMNS
    if output.for_people:
        output.fields(_summary(found))
        click.echo()
        columns = [*COLUMNS, FILLED]
    rows = [_row(one, found.segment_bytes) for one in found.segments]
    drawn = f"{LIVE} live, {RELEASED} released, {EMPTY} empty"
    caption = f"at {target.named(found.position)}: {drawn}; one live message pins its segment"
    output.table(columns, rows, caption=caption, document=asdict(found))


def _row(segment: SegmentState, segment_bytes: int) -> dict[str, Any]:
    oldest = segment.oldest
    named = ""
    if oldest is not None:
        number = "uncommitted" if oldest.sequence is None else oldest.sequence
        named = f"{oldest.destination} {number}"
    drawn = bar(segment.bytes, segment.live_bytes, segment_bytes)
    return {**asdict(segment), "oldest": named, "bar": drawn}


def bar(appended_bytes: int, live_bytes: int, segment_bytes: int) -> str:
    """A segment as a bar: what is live, what was released, what is empty; at least a cell each."""
    filled = _cells(appended_bytes, max(segment_bytes, appended_bytes))
    live = min(_cells(live_bytes, max(segment_bytes, appended_bytes)), filled)
    if live == filled > 1 and live_bytes < appended_bytes:
        live -= 1
    return LIVE * live + RELEASED * (filled - live) + EMPTY * (BAR_CELLS - filled)


def _cells(part: int, whole: int) -> int:
    cells = min(part * BAR_CELLS // whole, BAR_CELLS)
    return max(cells, 1) if part else 0


def _summary(found: StorageStatus) -> dict[str, str]:
    most = f"at most {found.segments_max}" if found.segments_max else "no limit"
    lines = {
        "segments": f"{found.allocated} of {size_text(found.segment_bytes)}, {found.free} free "
        f"(at least {found.segments_min}, {most})",
        "live": f"{count_of(found.live_messages, 'message')}, {size_text(found.live_bytes)}",
        "filled": size_text(found.bytes),
    }
    if found.cache is not None:
        cache = found.cache
        asked = cache.hits + cache.misses
        share = f", {100 * cache.hits // asked} % hits" if asked else ""
        lines["cache"] = (
            f"{size_text(cache.bytes)} of {size_text(cache.limit_bytes)}: "
            f"{cache.hits} hits, {cache.misses} misses{share}"
        )
    if found.log_bytes is not None:
        parts = ", ".join(f"{name} {size_text(size)}" for name, size in found.log_bytes.items())
        lines["log on disk"] = f"{size_text(sum(found.log_bytes.values()))}: {parts}"
    return lines
