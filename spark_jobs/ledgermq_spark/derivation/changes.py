"""What of a directory begins and ends at which entry, for the pass over a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledgermq_spark.derivation.directory import Directory


Begins = dict[int, list[Any]]
# By position and whether it fell due before the entry.
Ends = dict[tuple[int, bool], list[Any]]


def changes_of(directory: Directory) -> tuple[Begins, Ends]:
    """What begins at an entry, and what ends at it, due before it or by it."""
    begins: Begins = {}
    ends: Ends = {}

    def begin(position: int, what: Any) -> None:
        begins.setdefault(position, []).append(what)

    def end(position: int | None, due: bool, what: Any) -> None:
        if position is not None:
            ends.setdefault((position, due), []).append(what)

    for one in directory.lifetimes:
        begin(one.created, one)
        end(one.deleted, one.deleted_due, one)
    for subscription in directory.subscriptions:
        begin(subscription.created, subscription)
        if subscription.stopped is None:
            end(subscription.ended, subscription.ended_due, subscription)
        else:
            end(subscription.stopped, subscription.stopped_due, subscription)
    for name, _, position, settings in directory.settings:
        begin(position, (name, settings))
    for position, lifetime_ms in directory.maximum_lifetimes:
        begin(position, lifetime_ms)
    for correction in directory.corrections:
        if correction.action == "REMOVE":
            end(correction.position, False, correction)
    return begins, ends
