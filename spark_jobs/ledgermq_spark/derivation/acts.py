"""What goes into the scan of a connection's operations, and what comes out, as rows for Spark."""

from __future__ import annotations

from typing import NamedTuple

from ledgermq_spark.log.rows import FLAG, LONG, LONGS, TEXT, TEXTS

# More outcomes than one entry has.
LATE_MAX = 2**30


class Event(NamedTuple):
    """What the scan is fed, ordered by position and phase (0 due before, 1 entry, 2 deliveries).

    `text` are the options of a Get; `groups` tells of each message of a claim its place in a
    group, as `headers.group_text` does. `whole_high` and `whole_sum` are the largest and the sum of
    the sizes of a Put's messages, each with its header; `actor` and `why` say who asks for what is
    done to another session, and why.
    """

    position: int
    phase: int
    state_time: int
    append_time_us: int
    what: str
    kind: str
    session: int
    session_sequence: int
    answered_through: int
    handed_through: int
    acknowledge_mode: str
    suspect_timeout_ms: int
    lane: int
    consumer: int
    target: str
    number: int
    firsts: list[int]
    lasts: list[int]
    count: int  # type: ignore[assignment]
    priority_low: int
    priority_high: int
    size_low: int
    size_high: int
    header_high: int
    client_id: str
    selector: str
    subscription: str
    no_local: int
    durable: int
    shared: int
    in_doubt: int
    text: str
    grouped: int
    groups: list[str | None]
    whole_high: int = 0
    whole_sum: int = 0
    redelivery_delay_ms: int = 0
    actor: str = ""
    why: str = ""


class Act(NamedTuple):
    """What the scan tells; `what` is one of these.

    act, late, settled, unit, vanished, ended, consumer, alive, stray; or together: delivery `last`
    brings a segment that came with delivery `first`, which brought the beginning of its message.

    `position` is None where the session ended by a deadline whose position is found later. What had
    to wait was `applied` elsewhere; `late` tells the place there: below 0 before the entry itself
    was applied, above 0 behind it, 0 the entry itself. `queue` is a queue's name, or `topic:NAME`.
    `text` of what a lost session held: `counted`, `uncounted`.
    """

    what: str
    session: int
    position: int | None
    deadline: int | None = None
    kind: str | None = None
    reason: str | None = None
    unit: int | None = None
    consumer: int | None = None
    queue: str | None = None
    first: int | None = None
    last: int | None = None
    count: int | None = None  # type: ignore[assignment]
    flag: bool | None = None
    text: str | None = None
    applied: int | None = None
    late: int = 0


EVENT_TEXTS = (
    *("what", "kind", "acknowledge_mode", "target"),
    *("client_id", "selector", "subscription", "text", "actor", "why"),
)
EVENT_COLUMNS = tuple(
    (
        name,
        LONGS
        if name in ("firsts", "lasts")
        else TEXTS
        if name == "groups"
        else TEXT
        if name in EVENT_TEXTS
        else LONG,
    )
    for name in Event._fields
)
ACT_COLUMNS = tuple(
    (
        name,
        TEXT
        if name in ("what", "kind", "reason", "queue", "text")
        else FLAG
        if name == "flag"
        else LONG,
    )
    for name in Act._fields
)
