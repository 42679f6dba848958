"""Parked groups of a queue or subscription: PROTOCOL.md §15, read without the fold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ledgermq_spark.derivation.settings import keeps_group_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgermq_spark.derivation.settings import Settings
    from ledgermq_spark.derivation.stay import Stay, Store


GROUP_PARKED = "group-parked"
GROUPS_MAX = 10_000
ENDING = ("moved", "copied", "retried", GROUP_PARKED)


def group_key(header: str | None) -> str:
    """What the group of a message goes by: JMSXGroupID if it is text, else the group id."""
    told = json.loads(header) if header else {}
    named = told.get("p", {}).get("JMSXGroupID")
    if isinstance(named, str):
        return named.encode().hex()
    return str(told["g"]["i"]) if "g" in told else ""


def _is_last(header: str | None) -> bool:
    told = json.loads(header) if header else {}
    return "m" in told.get("g", {}).get("f", "")


class ParkedGroups:
    """The groups that are parked in one place, by key, and the numbers that they are behind."""

    __slots__ = ("_behind",)

    def __init__(self) -> None:
        self._behind: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._behind)

    def park(self, stay: Stay) -> None:
        """A message goes to the error destination for its limit."""
        key = group_key(stay.message.header)
        if not key or keeps_group_order(stay.store.in_force) == "no":
            return
        if _is_last(stay.message.header):
            self._behind.pop(key, None)
            return
        behind = self._behind.get(key)
        if behind is None and len(self._behind) == GROUPS_MAX:
            self._behind.pop(next(iter(self._behind)))
        if behind is None or stay.sequence < behind:
            self._behind[key] = stay.sequence

    def come(self, stay: Stay) -> None:
        """A message is about to get its number here."""
        if self._behind and stay.origin is not None and stay.origin["reason"] in ENDING:
            self._behind.pop(group_key(stay.message.header), None)

    def change(self, settings: Settings) -> None:
        """Other settings are in force here."""
        if keeps_group_order(settings) == "no" or not settings.error_destination:
            self._behind.clear()

    def has(self, stay: Stay) -> bool:
        """Whether a message is to follow what its group is parked behind."""
        if not self._behind:
            return False
        behind = self._behind.get(group_key(stay.message.header))
        return behind is not None and stay.sequence > behind

    def all_that_follow(self, stays: list[Stay]) -> list[Stay]:
        """What nobody holds and is to follow, by number."""
        if not self._behind:
            return []
        found = [one for one in stays if not one.held and self.has(one)]
        return sorted(found, key=lambda one: one.sequence)

    def followed(self, stay: Stay) -> None:
        """A message follows now; the last of a group ends that it is parked."""
        if _is_last(stay.message.header):
            self._behind.pop(group_key(stay.message.header), None)


def following(stores: list[Store]) -> Iterator[Stay]:
    """What follows of places with parked groups, one after the other, as they go."""
    for store in sorted(stores, key=lambda one: one.order):
        for stay in store.parked.all_that_follow(list(store.messages.values())):
            # Others that followed may have ended it.
            if store.parked.has(stay):
                store.parked.followed(stay)
                yield stay
