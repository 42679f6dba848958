"""The slow model's bindings: which topics they take in, and what they hand on."""

from __future__ import annotations

import re
from typing import Any

from ledgermq.selector import SelectorError, parse_selector, text_of
from support.model.base import ModelBase

Row = dict[str, Any]


def _parts(text: str) -> list[str]:
    """Words, and between them what separates them."""
    return re.split("([./])", text)


def _alike(parts: list[str], pattern: list[str]) -> bool:
    """Whether each word is the one asked for, or any."""
    return len(parts) == len(pattern) and all(
        part == asked or (asked == "*" and part not in ("", ".", "/"))
        for part, asked in zip(parts, pattern, strict=True)
    )


def takes_in(pattern: str, name: str) -> bool:
    """Whether a topic is among those that a pattern stands for."""
    parts, asked = _parts(name), _parts(pattern)
    if name.startswith("temporary/"):
        return False
    if "#" not in asked:
        return _alike(parts, asked)
    at = asked.index("#")
    before, behind = asked[:at], asked[at + 1 :]
    if _alike(parts, before[:-1] + behind if before else behind[1:]):
        return True
    between = len(parts) - len(before) - len(behind)
    starts = _alike(parts[: len(before)], before)
    return between >= 1 and starts and _alike(parts[len(parts) - len(behind) :], behind)


class ModelBindings(ModelBase):
    """What is put to topics, and goes on from there."""

    def selects(self, text: str, message: Row) -> bool:
        """Whether a selector is true of a message."""
        raise NotImplementedError

    def check_target(self, of: str, target: str) -> str | None:
        """Why messages of something cannot go there."""
        if target == of:
            return "setting-invalid"
        if target[:6] not in ("queue:", "topic:"):
            return "destination-invalid"
        if target[6:].startswith("temporary/"):
            return "setting-invalid"
        return "destination-unknown" if self.place(target) is None else None

    def do_bind(self, session: Row, entry: Any) -> str | None:
        """A binding is there, or has another selector."""
        words = _parts(entry.topics)[::2]
        if not self.good_name(entry.topics.replace("*", "a").replace("#", "a")):
            return "name-invalid"
        wrong = [one for one in words if ("*" in one or "#" in one) and len(one) > 1]
        if wrong or words.count("#") > 1 or entry.topics.startswith("temporary/"):
            return "name-invalid"
        reason = self.check_target("topic:" + entry.topics, entry.destination)
        if reason is not None:
            return reason
        try:
            selector = parse_selector(entry.selector)
        except SelectorError:
            return "selector-invalid"
        told = {"topics": entry.topics, "destination": entry.destination}
        text = text_of(selector)
        standing = self._binding(told)
        if standing is not None:
            standing["selector"] = text
        else:
            self.bindings.append(told | {"selector": text, "created_position": self.position})
        return None

    def do_unbind(self, session: Row, entry: Any) -> str | None:
        """A binding is there no longer."""
        standing = self._binding({"topics": entry.topics, "destination": entry.destination})
        if standing is None:
            return "binding-unknown"
        self.bindings = [one for one in self.bindings if one is not standing]
        return None

    def _binding(self, told: Row) -> Row | None:
        return next((one for one in self.bindings if told.items() <= one.items()), None)

    def bound_to(self, topic: Row, message: Row) -> list[str]:
        """Where what a session put to a topic goes on to, each place once."""
        found: list[str] = []
        for one in self.bindings:
            if one["destination"] in (topic["id"], *found):
                continue
            if takes_in(one["topics"], topic["name"]) and self.selects(one["selector"], message):
                found.append(one["destination"])
        return found
