"""Which queues, topics and subscriptions there were when: small facts that concern everybody.

The operations of one session depend on what others created, deleted, limited or subscribed to, and
those depend on what sessions did. Every decision rests on earlier positions only, so going round
(scan the sessions with a directory, read the directory off the scan) ends at the one directory that
agrees with itself. A log without limits, corrections, temporary destinations, takeovers, refused
subscriptions or a switch of automatic creation needs one round.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ledgermq_spark.derivation.destinations import is_temporary, is_topic
from ledgermq_spark.derivation.settings import (
    DEFAULTS,
    SEGMENT_BYTES_DEFAULT,
    Settings,
    fifo_mode,
    keeps_group_order,
)

T = TypeVar("T", int, str)


def after(moment: tuple[int | None, bool], position: int) -> bool:
    """Whether something that ended at (position, due there) stood for the entry at a position.

    What falls due ends before the entry is applied; what an entry ends still stood for it.
    """
    ended, due = moment
    return ended is None or ended > position or (ended == position and not due)


class Lifetime(NamedTuple):
    """A queue or topic from its creation to its deletion (None: it stands).

    `owner` is the connection (in hexadecimal) that a temporary one lives with; `deleted_due` says
    that this ended by a deadline, before the entry at that position.
    """

    queue: str
    created: int
    deleted: int | None = None
    description: str = ""
    message_bytes_max: int = 0
    gets_disabled: bool = False
    unacknowledged_max: int = 0
    owner: str = ""
    deleted_due: bool = False
    group_affinity: bool = False
    settings: Settings = DEFAULTS


class Subscription(NamedTuple):
    """A subscription from its creation to its end; `why` says how it ended.

    A shared one that is not durable has `stopped` with its last consumer (SES-43): from there on
    it has only what sessions held then, and ends with the last of that.
    """

    created: int
    topic: str
    topic_created: int
    kind: str
    name: str
    client_id: str
    shared: bool
    selector: str
    no_local: bool
    ended: int | None = None
    ended_due: bool = False
    why: str = ""
    stopped: int | None = None
    stopped_due: bool = False

    @property
    def has_ended_but_for_held(self) -> bool:
        """Whether only deliveries in flight are left of it."""
        return self.stopped is not None and self.ended is None


class Reception(NamedTuple):
    """A consumer of a subscription, while it was open."""

    subscription: int
    session: int
    consumer: int
    connection: str
    opened: int
    closed: int | None = None
    closed_due: bool = False


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
    """An operation in turn that concerns more than its session, or what such a one rests on.

    `Use` is a first use of `queue`. `Closed`, `Free` and `Ended` are no operations: a consumer of a
    topic closed, none of its deliveries is in flight any more, a session ended. `phase` orders what
    stands at one position: 0 fell due before the entry, 1 the entry, 2 what it brought about.
    """

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
    phase: int = 1
    session: int = -1
    consumer: int = 0
    connection: str = ""
    client_id: str = ""
    takeover: str = ""
    selector: str = ""
    no_local: bool = False
    subscription: str = ""
    durable: bool = False
    shared: bool = False
    unacknowledged_max: int | None = None
    group_affinity: bool | None = None
    settings: str | None = None
    maximum_lifetime_ms: int | None = None


class Situation(NamedTuple):
    """How things stood where a DeleteQueue, DeleteTopic or Correct was asked for.

    `in_use`: consumers, open puts and deliveries in flight of the queue or topic. `resident` and
    the holder (session, delivery) concern the message that a Correct names, `expires` the moment
    from which it is gone, were it not corrected; earlier corrections are left out of account.
    """

    in_use: int = 0
    resident: bool = False
    session: int = -1
    delivery: int = -1
    expires: int | None = None


@dataclass(slots=True)
class Directory:
    """What concerns more than one session over the whole log.

    `refusals` are those of operations that the scan of sessions lets pass. It is told those of
    Opens and consumers, the sessions that a takeover ended as (position, session), and the open
    puts that vanished with a temporary destination as (position, due, session, queue).
    `held_limits` are `unacknowledged_max` of queues and topics: (queue, created, position, limit),
    `affinities` their `group_affinity` and `settings` the settings of queues and topics likewise,
    `disabled` where puts are, by name. `maximum_lifetimes` and `segment_steps` are those of the
    queue manager, in ms and in bytes, from a position on. `room_refusals` are those of Puts for
    which no segment was free or a quota used up: all that is there decides them, and here the
    outcomes are believed; so they are of what was `waiting` for room.
    `queue_refusals` are those of Puts and Gets for the sake of groups, as far as they rest on what
    others put and got, and of Acknowledges and Commits that others' deliveries are before.
    `endings` are what administration asked to end, as (position, kind, session).
    """

    lifetimes: list[Lifetime] = field(default_factory=list)
    automatic: list[tuple[int, bool]] = field(default_factory=list)
    limits: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    corrections: list[Correction] = field(default_factory=list)
    refusals: dict[int, str] = field(default_factory=dict)
    purged: dict[int, int] = field(default_factory=dict)
    version_raised_at: int | None = None
    subscriptions: list[Subscription] = field(default_factory=list)
    receptions: list[Reception] = field(default_factory=list)
    open_refusals: dict[int, str] = field(default_factory=dict)
    consumer_refusals: dict[int, str] = field(default_factory=dict)
    takeovers: list[tuple[int, int]] = field(default_factory=list)
    vanished: list[tuple[int, bool, int, str]] = field(default_factory=list)
    held_limits: list[tuple[str, int, int, int]] = field(default_factory=list)
    affinities: list[tuple[str, int, int, bool]] = field(default_factory=list)
    settings: list[tuple[str, int, int, Settings]] = field(default_factory=list)
    disabled: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    maximum_lifetimes: list[tuple[int, int]] = field(default_factory=list)
    segment_steps: list[tuple[int, int]] = field(default_factory=list)
    queue_refusals: dict[int, str] = field(default_factory=dict)
    room_refusals: dict[int, str] = field(default_factory=dict)
    waiting: frozenset[int] = frozenset()
    endings: list[tuple[int, str, int]] = field(default_factory=list)
    by_queue: dict[str, list[Lifetime]] = field(default_factory=dict)

    def bearing(self) -> tuple[Any, ...]:
        """What of the directory the scan of sessions can see; equal bearings scan alike."""
        switched = any(not on for _, on in self.automatic)
        limited = {name: steps for name, steps in self.limits.items() if any(steps)}
        return (
            self.lifetimes if switched else [one for one in self.lifetimes if one.owner],
            self.automatic if switched else [],
            limited,
            [one for one in self.corrections if one.session >= 0],
            self.open_refusals,
            self.consumer_refusals,
            self.takeovers,
            self.vanished,
            self.endings,
            self.segment_steps,
            {name: steps for name, steps in self.disabled.items() if any(one[1] for one in steps)},
        )

    def whole(self) -> tuple[Any, ...]:
        """All that where messages are, and until when, may rest on."""
        return (
            self.bearing(),
            self.lifetimes,
            self.settings,
            self.maximum_lifetimes,
            self.corrections,
            self.subscriptions,
            self.receptions,
        )

    def fifo_modes(self) -> list[tuple[str, int, int, int, str]]:
        """FIFO modes of queues and subscriptions, from a position on, where not always the default.

        Each is (queue, created, subscription or -1, position, mode).
        """
        return self._setting(fifo_mode, "CONCURRENT")

    def group_orders(self) -> list[tuple[str, int, int, int, str]]:
        """Whether queues and subscriptions keep the order of groups: `yes` or `no`, likewise."""
        return self._setting(keeps_group_order, "no")

    def _setting(
        self, read: Callable[[Settings], str], default: str
    ) -> list[tuple[str, int, int, int, str]]:
        told = [(*step[:3], read(step[3])) for step in sorted(self.settings)]
        return self._by_holder(told, default)

    def limits_by_holder(self) -> list[tuple[str, int, int, int, int]]:
        """`held_limits` of queues, and those of topics for each of their subscriptions."""
        return self._by_holder(sorted(self.held_limits), 0)

    def _by_holder(
        self, told: list[tuple[str, int, int, T]], default: T
    ) -> list[tuple[str, int, int, int, T]]:
        """Steps of queues and topics as those of queues and subscriptions."""
        steps: dict[tuple[str, int], list[tuple[int, T]]] = {}
        for queue, created, position, mode in told:
            steps.setdefault((queue, created), []).append((position, mode))
        found: list[tuple[str, int, int, int, T]] = []
        for (queue, created), known in steps.items():
            if all(mode == default for _, mode in known):
                continue
            if not is_topic(queue):
                found.extend((queue, created, -1, at, mode) for at, mode in known)
                continue
            for one in self.subscriptions:
                if (one.topic, one.topic_created) == (queue, created):
                    before = [mode for at, mode in known if at < one.created][-1:]
                    found.extend((queue, created, one.created, one.created, was) for was in before)
                    after = [(at, mode) for at, mode in known if at > one.created]
                    found.extend((queue, created, one.created, at, mode) for at, mode in after)
        return found

    def segment_bytes_at(self, position: int) -> int:
        """How much a segment takes, for an entry at a position."""
        found = bisect_left(self.segment_steps, (position,))
        return self.segment_steps[found - 1][1] if found else SEGMENT_BYTES_DEFAULT

    def automatic_at(self, position: int) -> bool:
        """Whether a first use at a position creates a queue."""
        found = bisect_left(self.automatic, (position,))
        return self.automatic[found - 1][1] if found else True

    def lifetime_at(self, queue: str, position: int) -> Lifetime | None:
        """The queue or topic of that name that stood before the entry at a position."""
        if not self.by_queue:
            for one in self.lifetimes:
                self.by_queue.setdefault(one.queue, []).append(one)
        for one in reversed(self.by_queue.get(queue, [])):
            if one.created < position:
                return one if after((one.deleted, one.deleted_due), position) else None
        return None

    def use_refusal(self, queue: str, position: int) -> str | None:
        """Why a Put or OpenConsumer at a position does not find its queue or topic, or None."""
        temporary = is_temporary(queue)
        if not temporary and self.automatic_at(position):
            return None
        if self.lifetime_at(queue, position) is not None:
            return None
        if temporary:
            return "destination-unknown"
        return "topic-unknown" if is_topic(queue) else "queue-unknown"

    def puts_disabled(self, queue: str, position: int) -> bool:
        """Whether a queue or topic takes no Put at a position."""
        steps = self.disabled.get(queue)
        found = bisect_left(steps, (position,)) if steps else 0
        return bool(steps and found and steps[found - 1][1])

    def message_bytes_max(self, queue: str, position: int) -> int:
        """The queue's limit for a content's size at a position; 0: none of its own."""
        steps = self.limits.get(queue)
        if not steps:
            return 0
        found = bisect_left(steps, (position,))
        return steps[found - 1][1] if found else 0
