"""The queue manager as answers report it, its journal, and a checkpoint (PROTOCOL.md §9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalBackup:
    """A backup of the journal, as an operation on the log reports it.

    Attributes:
        position: Log position of that operation.
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
    """A queue manager at one log position; quotas are of all queues and topics together.

    Attributes:
        position: Log position that this is true at.
        time: Log time there; None before the first entry.
        time_reference: The append time that log time goes on from, at 7/8 of the clock's pace,
            while it is ahead of the clock because that was set back; None: it is not ahead.
        version: Version of the protocol that holds.
        automatic_creation: Whether a queue or topic is created on first use.
        maximum_lifetime_ms: After how long a message expires at the latest (DB-18); 0: never.
        messages_max: Quota of messages; 0: none.
        bytes_max: Quota of bytes; 0: none.
        messages_resume: Puts that wait for the quota of messages go on when no more than so many
            count against it; 0: when there is room.
        bytes_resume: The same for the quota of bytes.
        messages: Messages that count against the quota, current and pending (INF-04).
        bytes: Bytes of those.
        unit_of_work_time_limit_ms: How long a unit of work may be open; 0: no limit.
        unit_of_work_idle_limit_ms: How long one may be open without a put or get; 0: no limit.
        redelivery: Settings of redelivery, by name, for queues and topics that have none of
            their own.
        journaling: Whether messages put now go into the journal (DB-17).
        journal_lifetime_ms: How long they are in the journal; 0: for ever.
        journal_from: Log position at which the journal begins; None: it is empty.
        journal_needed_from: From which position on it needs the log; None: it is empty.
        journal_backup: Its last backup (DB-19); None: there was none.
        queues: How many queues there are; likewise `topics`, `subscriptions`, `connections` and
            `sessions`.
        worker: The worker that answered.
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
