"""Faults to be planted in the fold: what a destination remembers of the sources of its puts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ledgermq.core.puts import putting, sources
from support.generators.source_generators import source_histories
from support.planted.planted_faults import Family, Fault, does_nothing, drawn


def _told(original: Any, **other: int) -> Any:
    """The source of a Put is taken for another one."""

    def note_taken(queue, operation):
        part = operation.source
        if part is not None:
            changed = {key: part[key] + by for key, by in other.items()}
            original(queue, replace(operation, source={**part, **changed}))

    return note_taken


def _one_short(original: Any) -> Any:
    return _told(original, last=-1)


def _other_partition(original: Any) -> Any:
    return _told(original, partition=1)


def _notes_refused(original: Any) -> Any:
    def check_source(session, queue, operation):
        found = original(session, queue, operation)
        if found is None:
            sources.note_taken(queue, operation)
        return found

    return check_source


def _gaps_pass(original: Any) -> Any:
    def check_source(session, queue, operation):
        found = original(session, queue, operation)
        return None if found is not None and found.reason == "source-gap" else found

    return check_source


SOURCES = Family(
    "sources",
    (
        Fault("what was taken is taken again", putting, "check_source", does_nothing),
        Fault("nothing that was taken is noted", putting, "note_taken", does_nothing),
        Fault("the last position taken is forgotten", putting, "note_taken", _one_short),
        Fault("partitions are mixed up", putting, "note_taken", _other_partition),
        Fault("a refused put has taken its source", putting, "check_source", _notes_refused),
        Fault("positions may be left out", putting, "check_source", _gaps_pass, seed=2),
        Fault("any source will do", sources, "_wrong", does_nothing),
    ),
    drawn(source_histories()),
)
