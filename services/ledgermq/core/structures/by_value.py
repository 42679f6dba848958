"""Items by the value that each asks for, so that what comes is offered to few of many.

A thousand selectors that each ask for another customer cost a message one look at its customer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
Item = TypeVar("Item")
M = TypeVar("M")
# Numbers are left out: as keys of a mapping 1, 1.0 and True are the same.
Value = str | bool


class ByValue(Generic[K, Item, M]):
    """Items under keys of their own, each with what it asks for: a name and a value, or nothing."""

    __slots__ = ("_asking", "_others")

    def __init__(self) -> None:
        self._others: dict[K, Item] = {}
        # For each name how to find a value of that name, and who asks for which.
        self._asking: dict[str, tuple[Callable[[M], object], dict[Value, dict[K, Item]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._others or self._asking)

    def __iter__(self) -> Iterator[Item]:
        yield from self._others.values()
        for _, by_value in self._asking.values():
            for found in by_value.values():
                yield from found.values()

    @property
    def asked(self) -> list[tuple[str, list[Value]]]:
        """The names that somebody asks for, each with the values."""
        return [(name, list(by_value)) for name, (_, by_value) in self._asking.items()]

    def add(
        self,
        key: K,
        item: Item,
        asked: tuple[str, Value] | None,
        value_in: Callable[[M, str], object],
    ) -> None:
        if asked is None:
            self._others[key] = item
            return
        name, value = asked
        if name not in self._asking:
            self._asking[name] = (lambda one: value_in(one, name), {})
        self._asking[name][1].setdefault(value, {})[key] = item

    def remove(self, key: K, asked: tuple[str, Value] | None) -> None:
        if asked is None:
            del self._others[key]
            return
        name, value = asked
        by_value = self._asking[name][1]
        del by_value[value][key]
        if not by_value[value]:
            del by_value[value]
        if not by_value:
            del self._asking[name]

    def candidates(self, one: M) -> Iterator[Item]:
        """Those that may want one: whoever asks for nothing, and for values that it has."""
        yield from self._others.values()
        for value_of, by_value in self._asking.values():
            value = value_of(one)
            if isinstance(value, (str, bool)) and (found := by_value.get(value)):
                yield from found.values()
