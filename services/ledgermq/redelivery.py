"""The redelivery string of Java CAPS: `5:1000; 10:5000; 50:move(queue:mydlq)` (DB-21).

Each entry says what happens once so many redeliveries have failed: `retries:delay`, a delay in ms
from then on, at most 5000; `retries:move(DESTINATION)`, the message goes there, and
`retries:delete`, it is dropped, at the end. A destination is `queue:NAME`, `topic:NAME`, or
`same:NAME` for one of the kind of the message's own, in whose name `$` stands for that one's name.
Before the first entry there is no delay.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ledgermq.digits import is_whole
from ledgermq.errors import IllegalStateError
from ledgermq.errors.shown import shown
from ledgermq.protocol.limits import (
    REDELIVERY_LIMIT_MAX,
    REDELIVERY_STEPS_MAX,
    TIMING_MS_MAX,
    is_name,
)
from ledgermq.protocol.settings import DEFAULTS, RedeliveryStep, redelivery_of

DELAY_MS_MAX: Final = 5_000
_ENTRY: Final = re.compile(r"(\d+) *: *(.*)", re.ASCII)
_MOVE: Final = re.compile(r"move\( *(queue|topic|same) *: *([^() ]+) *\)", re.ASCII)
FORMS: Final = "retries:delay, retries:move(queue:NAME) or retries:delete"


def parse_redelivery(text: str, destination: str = "") -> dict[str, Any]:
    """The settings that a redelivery string stands for, by name; an empty one: their defaults.

    Args:
        text: The string.
        destination: Whom it is for, as `queue:NAME`; what `$` and `same` are about.

    Raises:
        IllegalStateError: an entry cannot be read or is out of range; the text names it.
    """
    told: dict[str, Any] = redelivery_of(DEFAULTS)
    if not text.strip():
        return told
    told["redelivery_delay_override_ms"] = 0
    *entries, last = _entries(text)
    retries, action = _split(last)
    if action == "delete" or action.startswith("move"):
        told["redelivery_limit"] = retries
        if action != "delete":
            told["error_destination"] = _target(last, action, destination)
    else:
        entries.append(last)
    steps = _steps(entries, DELAY_MS_MAX)
    if entries and entries[-1] is not last and steps[-1]["retries"] >= retries:
        raise _wrong(last, f"its retries must be above those of {shown(entries[-1])}")
    return told | {"redelivery_steps": steps}


def parse_steps(text: str) -> list[RedeliveryStep]:
    """Delays alone, as `5:1000; 10:60000`: `retries:delay` in ms, of a hundred years at most.

    Raises:
        IllegalStateError: an entry cannot be read; the text names it.
    """
    return _steps(_entries(text), TIMING_MS_MAX)


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.strip().removesuffix(";").split(";")]


def _steps(entries: list[str], delay_ms_max: int) -> list[RedeliveryStep]:
    if len(entries) > REDELIVERY_STEPS_MAX:
        raise IllegalStateError(f"{len(entries)} delays, at most {REDELIVERY_STEPS_MAX} fit")
    steps: list[RedeliveryStep] = []
    for entry in entries:
        retries, action = _split(entry)
        if not is_whole(action):
            ends = action == "delete" or action.startswith("move")
            raise _wrong(entry, "must be the last entry" if ends else f"is not {FORMS}")
        if int(action) > delay_ms_max:
            raise _wrong(entry, f"a delay is at most {delay_ms_max} ms")
        if steps and steps[-1]["retries"] >= retries:
            raise _wrong(entry, "its retries must be above those of the entry before")
        steps.append({"retries": retries, "delay_ms": int(action)})
    return steps


def _split(entry: str) -> tuple[int, str]:
    """Retries and action of an entry."""
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise _wrong(entry, f"is not {FORMS}")
    retries = int(found[1])
    if retries > REDELIVERY_LIMIT_MAX:
        raise _wrong(entry, f"retries are at most {REDELIVERY_LIMIT_MAX}")
    return retries, found[2]


def _target(entry: str, action: str, destination: str) -> str:
    """The destination that a move names."""
    found = _MOVE.fullmatch(action)
    if found is None:
        raise _wrong(entry, "it is move(queue:NAME), move(topic:NAME) or move(same:NAME)")
    kind, _, own = destination.partition(":")
    named_kind, name = found[1], found[2]
    if not own and (named_kind == "same" or "$" in name):
        raise _wrong(entry, "it asks for the message's own destination, and none is given")
    name = name.replace("$", own)
    if not is_name(name):
        raise _wrong(
            entry,
            f"{shown(name)} is no name of a queue or topic: it has 1 to 128 of "
            "A-Z a-z 0-9 . _ / % -",
        )
    return f"{kind if named_kind == 'same' else named_kind}:{name}"


def _wrong(entry: str, what: str) -> IllegalStateError:
    return IllegalStateError(f"redelivery entry {shown(entry)}: {what}")
