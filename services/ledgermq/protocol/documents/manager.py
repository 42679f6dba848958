"""The queue manager as answers tell it, its journal, and a checkpoint (PROTOCOL.md §9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalBackup:
    """A backup of the journal, as the log tells it.

    Attributes:
        position: Log position of the operation that told of it.
        time: Log time there.
        through: It archived everything that came into the journal below this position.
        kept_from: What came in below this position left the journal, expired.
        needed_from: From where on the journal needs the log since.
    """

    position: int
    time: datetime
    through: int
    kept_from: int
    needed_from: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueManagerStatus:
    """A queue manager as a whole; `time` is log time, None before the first entry.

    `time_reference` is the append time that log time goes on from, at 7/8 of the clock's pace,
    while it is ahead of the clock because that was set back; None while it is not. `queues`,
    `topics`, `subscriptions`, `connections` and `sessions` are how many there are;
    `maximum_lifetime_ms` is how long a message stays at most, 0: for ever. `messages_max` and
    `bytes_max` are the quotas of all queues and topics together, 0: none; `messages` and `bytes`
    are what counts against them, current and pending (INF-04); puts that wait for them go on when
    that is no more than `messages_resume` and `bytes_resume`, 0: when there is room.
    `unit_of_work_time_limit_ms` is how long a unit of work may be open,
    `unit_of_work_idle_limit_ms` how long without a put or get, 0: no limit. `redelivery` are the
    settings of redelivery that queues and topics take which say none. `journaling` says whether
    messages put now are journaled (DB-17), `journal_lifetime_ms` how long, 0: for ever;
    `journal_from` where on the log the journal begins, `journal_needed_from` from where on it needs
    the log, None where it is empty; `journal_backup` what its last backup told, None: there was
    none (DB-19).
    """

    name: str
    position: int
    time: datetime | None = field(metadata={"none": -1})
    time_reference: datetime | None
    version: int
    automatic_creation: bool
    maximum_lifetime_ms: int
    messages_max: int
    bytes_max: int
    messages_resume: int
    bytes_resume: int
    messages: int
    bytes: int
    unit_of_work_time_limit_ms: int
    unit_of_work_idle_limit_ms: int
    redelivery: dict[str, Any]
    journaling: bool
    journal_lifetime_ms: int
    journal_from: int | None
    journal_needed_from: int | None
    journal_backup: JournalBackup | None
    queues: int
    topics: int
    subscriptions: int
    connections: int
    sessions: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStatus:
    """A durable checkpoint: the live state, named by its digest."""

    position: int
    digest: str
    manifest: Any
