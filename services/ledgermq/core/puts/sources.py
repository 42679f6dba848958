"""Sources of puts: a destination takes each of their positions once, in order (PROTOCOL.md §5)."""

from __future__ import annotations

from ledgermq.core.quoting import quoted
from ledgermq.core.state.records import Queue, Session
from ledgermq.protocol.limits import (
    SOURCE_CHARACTERS_MAX,
    SOURCE_PARTITION_MAX,
    SOURCE_POSITION_MAX,
    SOURCES_MAX,
)
from ledgermq.protocol.operations import Put, Source
from ledgermq.protocol.reasons import Reason, Refusal


def check_source(session: Session, queue: Queue, operation: Put) -> Refusal | None:
    """Refuses what was taken, and what would leave something out."""
    source = operation.source
    if source is None:
        return None
    wrong = _wrong(session, operation, source)
    if wrong:
        return Refusal(Reason.SOURCE_INVALID, wrong)
    first, last = source["first"], source["last"]
    taken = queue.sources.get((source["name"], source["partition"]))
    if taken is None:
        if len(queue.sources) < SOURCES_MAX:
            return None
        return Refusal(
            Reason.SOURCES_FULL,
            f"{queue.destination} remembers {SOURCES_MAX} partitions of sources and takes no "
            "other; put to another destination",
        )
    if first == taken + 1:
        return None
    told = f"{first}..{last} of partition {source['partition']} of {quoted(source['name'])}"
    if first <= taken:
        detail = f"{queue.destination} has taken all up to {taken}: {told} would come twice"
        return Refusal(Reason.SOURCE_TAKEN, detail)
    detail = f"{queue.destination} has taken all up to {taken}: {told} leaves something out"
    return Refusal(Reason.SOURCE_GAP, detail)


def _wrong(session: Session, operation: Put, source: Source) -> str:
    """What no source can be like; empty: nothing."""
    name, partition = source["name"], source["partition"]
    first, last = source["first"], source["last"]
    if session.transacted:
        return "a put of a transacted session has no source: its unit of work may be rolled back"
    if operation.blocking_ms:
        return f"a put with a source does not wait for a quota, not {operation.blocking_ms} ms"
    if not 1 <= len(name) <= SOURCE_CHARACTERS_MAX:
        return f"the name of a source has 1 to {SOURCE_CHARACTERS_MAX} characters, not {len(name)}"
    if not 0 <= partition <= SOURCE_PARTITION_MAX:
        return f"partition {partition} of a source must be 0 to {SOURCE_PARTITION_MAX}"
    if not 0 <= first <= last <= SOURCE_POSITION_MAX:
        return f"positions {first} to {last} do not rise from 0 to {SOURCE_POSITION_MAX} at most"
    return ""


def note_taken(queue: Queue, operation: Put) -> None:
    source = operation.source
    if source is not None:
        queue.sources[source["name"], source["partition"]] = source["last"]
