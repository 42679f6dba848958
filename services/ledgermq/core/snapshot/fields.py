"""Fields of checkpoints that are attributes of the state as they are, listed once for both ways."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

Record = dict[str, Any]
# Makes a part of a record of what was taken, whatever the state is by then.
Make = Callable[[], Record]


class Fields:
    """Fields of a record by name; those of `attributes` are in the state under another name."""

    def __init__(self, *names: str, **attributes: str) -> None:
        self._attributes = {**{name: name for name in names}, **attributes}
        self.taken: Final[Callable[[object], tuple[Any, ...]]] = attrgetter(
            *self._attributes.values()
        )

    def of(self, source: object) -> Record:
        return self.record(self.taken(source))

    def record(self, taken: tuple[Any, ...]) -> Record:
        """The record of what was taken, whatever its source is by now."""
        return dict(zip(self._attributes, taken, strict=True))

    def restore(self, target: object, record: Record) -> None:
        for name, attribute in self._attributes.items():
            setattr(target, attribute, record[name])
