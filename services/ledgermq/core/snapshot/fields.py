"""Fields of checkpoints that are attributes of the state as they are, listed once for both ways."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

Record = dict[str, Any]


class Fields:
    """Fields of a record by name; those of `attributes` are in the state under another name."""

    def __init__(self, *names: str, **attributes: str) -> None:
        self._attributes = {**{name: name for name in names}, **attributes}
        self._values = attrgetter(*self._attributes.values())

    def of(self, source: object) -> Record:
        return dict(zip(self._attributes, self._values(source), strict=True))

    def restore(self, target: object, record: Record) -> None:
        for name, attribute in self._attributes.items():
            setattr(target, attribute, record[name])
