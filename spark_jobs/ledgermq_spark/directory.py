"""Which queues there were when, and what administration did: small facts that concern everybody.

The operations of one session depend on queues that others created, deleted or limited, and those
depend on what sessions did. Every decision rests on earlier positions only, so going round (scan
the sessions with a directory, read the directory off the scan) ends at the one directory that
agrees with itself; a log without limits, corrections or a switch of automatic creation needs one
round.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = [
    "AdministrationRow",
    "Correction",
    "Directory",
    "Lifetime",
    "Situation",
    "read_directory",
]

NAME = re.compile(r"[A-Za-z0-9._/%-]{1,128}")
CONTENT_BYTES_MAX = 8 * 1024 * 1024 - 4096
DESCRIPTION_MAX = 1024


class Lifetime(NamedTuple):
    """A queue from its creation to its deletion (None: it stands); `kept` messages went with it."""

    queue: str
    created: int
    deleted: int | None = None
    description: str = ""
    message_bytes_max: int = 0
    suspended: bool = False


class Correction(NamedTuple):
    """A correction that was applied; session and delivery are -1 where nobody held the message."""

    position: int
    queue: str
    created: int
    sequence: int
    action: str
    actor: str
    reason: str
    session: int
    delivery: int


class AdministrationRow(NamedTuple):
    """An operation in turn that concerns a queue or the queue manager; `Use` is a first use."""

    position: int
    kind: str
    queue: str
    number: int | None = None
    description: str | None = None
    message_bytes_max: int | None = None
    flag: bool | None = None
    action: str = ""
    actor: str = ""
    why: str = ""


class Situation(NamedTuple):
    """How things stood where a DeleteQueue or a Correct was asked for.

    `in_use`: consumers, open puts and deliveries in flight of the queue. `unconsumed`: messages
    numbered so far under its name, less those consumed. `resident` and the holder (session,
    delivery) concern the message that a Correct names; earlier corrections are left out of account.
    """

    in_use: int = 0
    unconsumed: int = 0
    resident: bool = False
    session: int = -1
    delivery: int = -1


@dataclass(slots=True)
class Directory:
    """Queues and settings over the whole log, and what became of administrative operations."""

    lifetimes: list[Lifetime] = field(default_factory=list)
    automatic: list[tuple[int, bool]] = field(default_factory=list)
    limits: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    corrections: list[Correction] = field(default_factory=list)
    refusals: dict[int, str] = field(default_factory=dict)
    purged: dict[int, int] = field(default_factory=dict)
    version_raised_at: int | None = None

    def bearing(self) -> tuple[Any, ...]:
        """What of the directory the scan of sessions can see; equal bearings scan alike."""
        switched = any(not on for _, on in self.automatic)
        limited = {name: steps for name, steps in self.limits.items() if any(steps)}
        return (
            self.lifetimes if switched else [],
            self.automatic if switched else [],
            limited,
            [one for one in self.corrections if one.session >= 0],
        )

    def automatic_at(self, position: int) -> bool:
        """Whether a first use at a position creates a queue."""
        found = bisect_left(self.automatic, (position,))
        return self.automatic[found - 1][1] if found else True

    def lifetime_at(self, queue: str, position: int) -> Lifetime | None:
        """The queue of that name that stood before the entry at a position."""
        for one in self.lifetimes:
            begun = one.queue == queue and one.created < position
            if begun and (one.deleted is None or one.deleted >= position):
                return one
        return None

    def use_refusal(self, queue: str, position: int) -> str | None:
        """Why a Put or OpenConsumer at a position does not find its queue, or None."""
        if self.automatic_at(position) or self.lifetime_at(queue, position) is not None:
            return None
        return "queue-unknown"

    def message_bytes_max(self, queue: str, position: int) -> int:
        """The queue's limit for a content's size at a position; 0: none of its own."""
        steps = self.limits.get(queue)
        if not steps:
            return 0
        found = bisect_left(steps, (position,))
        return steps[found - 1][1] if found else 0


def read_directory(
    rows: Iterable[AdministrationRow], situations: dict[int, Situation]
) -> Directory:
    """Read the directory off the administrative operations that were in turn, and first uses."""
    return _Reader(situations).read(rows)


class _Reader:
    """Goes through administrative operations in order and decides each (PROTOCOL.md §5)."""

    def __init__(self, situations: dict[int, Situation]) -> None:
        self._situations = situations
        self._found = Directory()
        self._standing: dict[str, int] = {}
        # Messages removed by hand, and those that went with earlier queues of the same name.
        self._gone: dict[str, int] = {}
        self._removed: set[tuple[str, int, int]] = set()
        self._version = 1

    def read(self, rows: Iterable[AdministrationRow]) -> Directory:
        for row in sorted(rows, key=lambda one: one.position):
            reason = getattr(self, "_" + row.kind)(row)
            if reason is not None:
                self._found.refusals[row.position] = reason
        return self._found

    def _create(self, name: str, position: int, description: str, limit: int) -> None:
        self._standing[name] = len(self._found.lifetimes)
        self._found.lifetimes.append(
            Lifetime(name, position, description=description, message_bytes_max=limit)
        )
        steps = self._found.limits.setdefault(name, [])
        if limit or steps:
            steps.append((position, limit))

    def _standing_queue(self, name: str) -> Lifetime | None:
        place = self._standing.get(name)
        return None if place is None else self._found.lifetimes[place]

    def _Use(self, row: AdministrationRow) -> None:  # noqa: N802 (named as the kind it reads)
        if row.queue not in self._standing:
            self._create(row.queue, row.position, "", 0)

    def _CreateQueue(self, row: AdministrationRow) -> str | None:  # noqa: N802
        if NAME.fullmatch(row.queue) is None:
            return "name-invalid"
        if row.queue in self._standing:
            return "queue-exists"
        if _settings_wrong(row):
            return "setting-invalid"
        self._create(row.queue, row.position, row.description or "", row.message_bytes_max or 0)
        return None

    def _AlterQueue(self, row: AdministrationRow) -> str | None:  # noqa: N802
        queue = self._standing_queue(row.queue)
        if queue is None:
            return "queue-unknown"
        if _settings_wrong(row):
            return "setting-invalid"
        changes = {
            "description": row.description,
            "message_bytes_max": row.message_bytes_max,
            "suspended": row.flag,
        }
        given: dict[str, Any] = {
            name: value for name, value in changes.items() if value is not None
        }
        self._found.lifetimes[self._standing[row.queue]] = queue._replace(**given)
        if row.message_bytes_max is not None:
            self._found.limits[row.queue].append((row.position, row.message_bytes_max))
        return None

    def _DeleteQueue(self, row: AdministrationRow) -> str | None:  # noqa: N802
        queue = self._standing_queue(row.queue)
        if queue is None:
            return "queue-unknown"
        situation = self._situations.get(row.position, Situation())
        if situation.in_use:
            return "queue-in-use"
        resident = situation.unconsumed - self._gone.get(row.queue, 0)
        if resident and not row.flag:
            return "queue-not-empty"
        self._gone[row.queue] = situation.unconsumed
        if self._found.limits[row.queue]:
            self._found.limits[row.queue].append((row.position, 0))
        self._found.purged[row.position] = resident
        place = self._standing.pop(row.queue)
        self._found.lifetimes[place] = queue._replace(deleted=row.position)
        return None

    def _AlterQueueManager(self, row: AdministrationRow) -> None:  # noqa: N802
        if row.flag is not None:
            self._found.automatic.append((row.position, row.flag))

    def _Upgrade(self, row: AdministrationRow) -> str | None:  # noqa: N802
        if row.number is None or not self._version < row.number < 2**31:
            return "version-invalid"
        self._version = row.number
        self._found.version_raised_at = row.position
        return None

    def _Correct(self, row: AdministrationRow) -> str | None:  # noqa: N802
        queue = self._standing_queue(row.queue)
        if queue is None:
            return "queue-unknown"
        situation = self._situations.get(row.position, Situation())
        message = (row.queue, queue.created, row.number or 0)
        if not situation.resident or message in self._removed:
            return "sequence-unknown"
        held = situation.session >= 0
        if row.action not in ("REMOVE", "RELEASE") or (row.action == "RELEASE" and not held):
            return "correction-invalid"
        if row.action == "REMOVE":
            self._removed.add(message)
            self._gone[row.queue] = self._gone.get(row.queue, 0) + 1
        self._found.corrections.append(
            Correction(
                row.position,
                row.queue,
                queue.created,
                row.number or 0,
                row.action,
                row.actor,
                row.why,
                situation.session,
                situation.delivery,
            )
        )
        return None


def _settings_wrong(row: AdministrationRow) -> bool:
    limit = row.message_bytes_max
    return len(row.description or "") > DESCRIPTION_MAX or (
        limit is not None and not 0 <= limit <= CONTENT_BYTES_MAX
    )
