"""Puts that come twice: a destination remembers their ids for a while (PROTOCOL.md §5)."""

from __future__ import annotations

from ledgermq.core.entry import Entry
from ledgermq.core.quoting import quoted
from ledgermq.core.ranges import check_range
from ledgermq.core.state.known_ids import Deduplication, KnownId, OpenId
from ledgermq.core.state.records import Queue, Session
from ledgermq.protocol.limits import (
    DEDUPLICATION_ID_CHARACTERS_MAX,
    DEDUPLICATION_IDS_MAX,
    TIMING_MS_MAX,
)
from ledgermq.protocol.outcomes import Enqueued
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.rounding import MILLISECOND_US


def check_id(queue: Queue, deduplication_id: str | None) -> Refusal | None:
    """Refuses an id that none can be, and one that nobody would look for."""
    if deduplication_id is None:
        return None
    length = len(deduplication_id)
    if not 1 <= length <= DEDUPLICATION_ID_CHARACTERS_MAX:
        return Refusal(
            Reason.DEDUPLICATION_INVALID,
            f"a deduplication id has 1 to {DEDUPLICATION_ID_CHARACTERS_MAX} characters, "
            f"not {length}",
        )
    if queue.deduplication is None:
        return Refusal(
            Reason.DEDUPLICATION_OFF,
            f"{queue.destination} remembers no deduplication ids; give it a deduplication window, "
            "or put without an id",
        )
    return None


def duplicate(
    entry: Entry, session: Session, queue: Queue, deduplication_id: str | None, sequence: int
) -> Enqueued | None:
    """The reply to a put that was put before: it vanishes. None: it was not, or a commit decides.

    `sequence` is that of the put in its session.
    """
    if deduplication_id is None or session.transacted:
        return None
    known = _known(queue, deduplication_id, entry.state.time)
    if known is None:
        return None
    return Enqueued(
        position=entry.position,
        index=entry.take_index(),
        session=session.handle,
        session_sequence=sequence,
        first_sequence=known.first_sequence,
        count=0,
    )


def check_open_ids(session: Session, time: int) -> Refusal | None:
    """Refuses the commit of a unit of work with a put that was put before, or is in it twice."""
    seen: set[tuple[str, str]] = set()
    for destination, deduplication_id, _ in session.open_ids:
        queue = session.open_puts[destination][0].queue
        if queue.deduplication is None:
            continue
        told = f"{quoted(deduplication_id)} was put to {destination}"
        known = _known(queue, deduplication_id, time)
        if known is not None:
            before = f"{told} before, as number {known.first_sequence}"
            return Refusal(Reason.DUPLICATE_PUT, f"{before}; roll back, and leave it out")
        if (destination, deduplication_id) in seen:
            twice = f"{told} twice in the unit of work"
            return Refusal(Reason.DUPLICATE_PUT, f"{twice}; roll back, and put it once")
        seen.add((destination, deduplication_id))
    return None


def note_open_id(
    session: Session, queue: Queue, deduplication_id: str | None, first_put: int
) -> None:
    """`first_put` is the index of its first message among the open puts to its destination."""
    if deduplication_id is not None:
        session.open_ids.append(OpenId(queue.destination, deduplication_id, first_put))


def remember(entry: Entry, queue: Queue, deduplication_id: str | None, first_sequence: int) -> None:
    """Remembers what is numbered now, and forgets the oldest if that is too much.

    Like a deadline, its window counts from when it came, be it that time stands still.
    """
    found = queue.deduplication
    if found is None or deduplication_id is None:
        return
    # One that is older than the window may still be there.
    found.ids.pop(deduplication_id, None)
    found.ids[deduplication_id] = KnownId(entry.begins, first_sequence)
    _forget(found, entry.state.time)


def _known(queue: Queue, deduplication_id: str, time: int) -> KnownId | None:
    found = queue.deduplication
    known = None if found is None else found.ids.get(deduplication_id)
    if found is None or known is None or known.since <= _oldest(found, time):
        return None
    return known


def _oldest(found: Deduplication, time: int) -> int:
    return time - found.window_ms * MILLISECOND_US


def _forget(found: Deduplication, time: int) -> None:
    """Forgets what is too much, and what is older than the window and first in order."""
    oldest = _oldest(found, time)
    while found.ids:
        known = next(iter(found.ids.values()))
        if known.since > oldest and len(found.ids) <= found.ids_max:
            return
        found.ids.popitem(last=False)


def checked_deduplication(
    queue: Queue, window_ms: int | None, ids_max: int | None
) -> tuple[int, int] | Refusal:
    """Window and number of ids as a queue or topic would have them; None: as it has."""
    refusal = check_range("deduplication_window_ms", window_ms, 0, TIMING_MS_MAX) or check_range(
        "deduplication_ids_max", ids_max, 0, DEDUPLICATION_IDS_MAX
    )
    if refusal is not None:
        return refusal
    has = queue.deduplication or Deduplication(0, 0)
    window_ms = has.window_ms if window_ms is None else window_ms
    ids_max = has.ids_max if ids_max is None else ids_max
    if bool(window_ms) != bool(ids_max):
        return Refusal(
            Reason.SETTING_INVALID,
            f"deduplication_window_ms {window_ms} and deduplication_ids_max {ids_max}: "
            "give both to look for puts that come twice, none to look for none",
        )
    return window_ms, ids_max


def set_deduplication(queue: Queue, window_ms: int, ids_max: int, time: int) -> None:
    """Sets what was checked; a window that grows brings nothing back."""
    if not window_ms:
        queue.deduplication = None
        return
    found = queue.deduplication
    if found is None:
        queue.deduplication = Deduplication(window_ms, ids_max)
        return
    # All of them: behind one that came while time stood still there may be older ones.
    oldest = _oldest(found, time)
    for name in [name for name, known in found.ids.items() if known.since <= oldest]:
        del found.ids[name]
    found.window_ms, found.ids_max = window_ms, ids_max
    _forget(found, time)
