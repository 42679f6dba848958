"""Faults to be planted in the fold: what a destination remembers of the ids of its puts."""

from __future__ import annotations

from typing import Any

from ledgermq.core import unblocking
from ledgermq.core.destinations import deduplication
from ledgermq.core.puts import putting
from ledgermq.core.sessions import sessions
from ledgermq.core.state.known_ids import KnownId
from support.generators.deduplication_generators import deduplication_histories
from support.planted.planted_faults import Family, Fault, does_nothing, drawn, played_in


def _one_more(original: Any) -> Any:
    def remember(entry, queue, deduplication_id, first_sequence):
        original(entry, queue, deduplication_id, first_sequence + 1)

    return remember


def _renewed(original: Any) -> Any:
    """A put that comes twice makes the window begin anew."""

    def duplicate(entry, session, queue, deduplication_id, sequence):
        found = original(entry, session, queue, deduplication_id, sequence)
        if found is not None:
            ids = queue.deduplication.ids
            ids[deduplication_id] = ids[deduplication_id]._replace(since=entry.state.time)
        return found

    return duplicate


def _where_time_stands(original: Any) -> Any:
    """The window of what came while time stood still counts from long before."""

    def remember(entry, queue, deduplication_id, first_sequence):
        begins, entry.begins = entry.begins, entry.state.time
        original(entry, queue, deduplication_id, first_sequence)
        entry.begins = begins

    return remember


def _in_units_too(original: Any) -> Any:
    """A put of a unit of work vanishes like others."""

    def duplicate(entry, session, queue, deduplication_id, sequence):
        transacted, session.transacted = session.transacted, False
        try:
            return original(entry, session, queue, deduplication_id, sequence)
        finally:
            session.transacted = transacted

    return duplicate


def _too_long(original: Any) -> Any:
    def oldest(found, time):
        return original(found, time) - 1

    return oldest


def _known_when_put(original: Any) -> Any:
    """An id of a unit of work is known before its commit."""

    def note_open_id(session, queue, deduplication_id, first_put):
        original(session, queue, deduplication_id, first_put)
        if queue.deduplication is not None and deduplication_id is not None:
            since = queue.last_consumed_enqueued_at
            queue.deduplication.ids[deduplication_id] = KnownId(since, 0)

    return note_open_id


def _first_of_all(original: Any) -> Any:
    """Every put of a unit of work is said to be its first."""

    def note_open_id(session, queue, deduplication_id, first_put):
        original(session, queue, deduplication_id, 0)

    return note_open_id


def _brought_back(original: Any) -> Any:
    """An alteration forgets nothing by the settings that were."""

    def set_deduplication(queue, window_ms, ids_max, time):
        found = queue.deduplication
        if found is None or not window_ms:
            original(queue, window_ms, ids_max, time)
        else:
            found.window_ms, found.ids_max = window_ms, ids_max

    return set_deduplication


DEDUPLICATION = Family(
    "deduplication",
    (
        Fault("what was put is put again", putting, "duplicate", does_nothing),
        Fault("what waited is put again", unblocking, "duplicate", does_nothing, seed=10),
        Fault("units of work put again", sessions, "check_open_ids", does_nothing, seed=2),
        Fault("units of work are not remembered", sessions, "remember", does_nothing, seed=3),
        Fault("puts are not remembered", putting, "remember", does_nothing),
        Fault("another first number is told", putting, "remember", _one_more),
        Fault("a put vanishes from its unit of work", putting, "duplicate", _in_units_too),
        Fault("nothing is forgotten", deduplication, "_forget", does_nothing, seed=3),
        Fault("an id counts before its commit", putting, "note_open_id", _known_when_put, seed=4),
        Fault("any id will do", putting, "check_id", does_nothing),
    ),
    drawn(deduplication_histories()),
)
# Scripts show them: random histories seldom come at the right moment.
DEDUPLICATION_SCRIPTS = Family(
    "deduplication in scripts",
    (
        Fault("the window is a moment too long", deduplication, "_oldest", _too_long),
        Fault("the window begins anew", putting, "duplicate", _renewed),
        Fault("the window begins where time stands", putting, "remember", _where_time_stands),
        Fault("units of work begin theirs there", sessions, "remember", _where_time_stands),
        Fault("all puts of a unit are its first", putting, "note_open_id", _first_of_all),
    ),
    played_in("deduplication"),
)
