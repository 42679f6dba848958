"""What waits for a delayed message of its group: PROTOCOL.md §15, read without the fold."""

from __future__ import annotations

from ledgermq_spark.derivation.parked import group_key
from ledgermq_spark.derivation.step import MessageKey, Step

# The step that says whether a place keeps the order of groups, in `selector`.
KEEPS = "keeps"
Place = tuple[int, int]


class HeldBack:
    """The groups of one queue or subscription, and which of their messages are delayed."""

    def __init__(self) -> None:
        self._keeps = False
        self._keys: dict[MessageKey, tuple[str, Place]] = {}
        self._delayed: dict[str, dict[MessageKey, Place]] = {}

    def take(self, step: Step) -> list[str]:
        """Takes a step; returns the names of what may be given now, as `waits_for` told them."""
        if step.what == KEEPS:
            self._keeps = step.selector == "yes"
            return [] if self._keeps else [self._name(key) for key in self._delayed]
        message = step.message
        if step.what in ("numbered", "joined"):
            key = group_key(step.header)
            if key:
                self._keys[message] = (key, (-step.priority, step.sequence))
        if message not in self._keys:
            return []
        key, place = self._keys[message]
        if step.what == "delayed":
            self._delayed.setdefault(key, {})[message] = place
            return []
        waiting = self._delayed.get(key)
        if step.what == "gone":
            del self._keys[message]
        if waiting is None or waiting.pop(message, None) is None:
            return []
        if not waiting:
            del self._delayed[key]
        return [self._name(key)]

    def waits_for(self, message: MessageKey) -> str | None:
        """The name of the group of a message that comes after a delayed one of it; else None."""
        key, place = self._keys.get(message, ("", (0, 0)))
        delayed = self._delayed.get(key)
        if not self._keeps or not delayed or min(delayed.values()) >= place:
            return None
        return self._name(key)

    @staticmethod
    def _name(key: str) -> str:
        return f"held back {key}"
