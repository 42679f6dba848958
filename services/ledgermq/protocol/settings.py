"""Settings of queues and topics: names, defaults, what is in range (PROTOCOL.md §14)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypedDict

from ledgermq.protocol.limits import (
    QUOTA_MAX,
    REDELIVERY_LIMIT_MAX,
    REDELIVERY_MULTIPLIER_MAX,
    REDELIVERY_STEPS_MAX,
    TIMING_MS_MAX,
)

# No put passes an earlier one to the same destination (INF-18).
FIFO: Final = "FIFO"
POLICIES: Final = (FIFO, "PREEMPTIVE")
# Modes of `ledgermq.type.FifoMode`.
CONCURRENT: Final = "CONCURRENT"
PROTECTED: Final = "PROTECTED"
SERIALIZED: Final = "SERIALIZED"
FIFO_MODES: Final = (CONCURRENT, PROTECTED, SERIALIZED)


class RedeliveryStep(TypedDict):
    """After how many redeliveries that failed a message is redelivered how late (DB-21)."""

    retries: int
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a queue or topic, in the order of the schema `ledgermq.type.QueueSettings`.

    Times are in ms; a quota of 0 is none. A destination is `queue:NAME` or `topic:NAME`, or empty.
    """

    time_to_live_override_ms: int = -1
    delivery_delay_override_ms: int = -1
    expiry_destination: str = ""
    redelivery_delay_override_ms: int = -1
    redelivery_limit: int = -1
    redelivery_delay_multiplier_percent: int = 100
    redelivery_delay_max_ms: int = 0
    redelivery_steps: list[RedeliveryStep] = field(default_factory=list)
    error_destination: str = ""
    puts_disabled: bool = False
    messages_max: int = 0
    bytes_max: int = 0
    blocking_send_policy: str = FIFO
    fifo_mode: str = CONCURRENT
    keeps_group_order: bool = False


DEFAULTS: Final = Settings()
NAMES: Final = tuple(one.name for one in fields(Settings))
# Settings of queues and topics that are fields of an operation themselves; the last two also of
# that on the queue manager.
RESUME_MARKS: Final = ("messages_resume", "bytes_resume")
OPERATION_FIELDS: Final = (
    "inherits_redelivery",
    "single_active_consumer",
    "available_max",
    "last_value_key",
    "deduplication_window_ms",
    "deduplication_ids_max",
    *RESUME_MARKS,
)
# Those of topics alone.
TOPIC_FIELDS: Final = ("moves_unrouted",)
# How late what comes back is redelivered: said by a queue or topic as a whole, or not at all.
REDELIVERY_DELAY: Final = (
    "redelivery_delay_override_ms",
    "redelivery_delay_multiplier_percent",
    "redelivery_delay_max_ms",
    "redelivery_steps",
)
# Settings that are also those of the queue manager, for queues and topics that say none.
REDELIVERY_FIELDS: Final = (*REDELIVERY_DELAY, "redelivery_limit", "error_destination")
# Settings that name a destination.
TARGETS: Final = ("expiry_destination", "error_destination")

# What an entry of the log says of settings: a value by name; None: as it is.
Given = dict[str, Any]


def given_settings(named: Given) -> Given | None:
    """Settings as an entry of the log writes them; None: it changes none.

    Raises:
        KeyError: there is no setting of that name.
    """
    unknown = [name for name in named if name not in NAMES]
    if unknown:
        raise KeyError(unknown[0])
    return {name: named.get(name) for name in NAMES} if named else None


def redelivery_in(given: Given | None) -> Given | None:
    """The part of settings that are given which the queue manager has too; None: none are."""
    return given and {name: given[name] for name in REDELIVERY_FIELDS}


def changed(settings: Settings, given: Given | None) -> Settings:
    """Settings with those values that are given."""
    named = {name: value for name, value in (given or {}).items() if value is not None}
    return replace(settings, **named) if named else settings


def inherited(own: Settings, rule: Settings) -> Given:
    """What a queue or topic takes from the redelivery of the queue manager, by name (INF-16)."""
    says_when = any(getattr(own, name) != getattr(DEFAULTS, name) for name in REDELIVERY_DELAY)
    names = [] if says_when else [*REDELIVERY_DELAY]
    if own.redelivery_limit < 0:
        names.append("redelivery_limit")
    if not own.error_destination:
        names.append("error_destination")
    taken = {name: getattr(rule, name) for name in names}
    return {name: value for name, value in taken.items() if value != getattr(DEFAULTS, name)}


def redelivery_of(rule: Settings) -> Given:
    """The redelivery that the queue manager has, by name."""
    return {name: getattr(rule, name) for name in REDELIVERY_FIELDS}


def told_settings(settings: Settings) -> Given:
    """Settings by name; without the copies of copies that dataclasses make of each."""
    return {name: getattr(settings, name) for name in NAMES}


def settings_record(settings: Settings) -> Given | None:
    """As a checkpoint writes them; None: all have their defaults."""
    return None if settings == DEFAULTS else told_settings(settings)


def targets_of(settings: Settings) -> dict[str, str]:
    """The destinations that settings name, by setting; they must be there (INF-16)."""
    named = {name: getattr(settings, name) for name in TARGETS}
    return {name: destination for name, destination in named.items() if destination}


# Lowest and highest value of settings that are numbers.
RANGES: Final = {
    "time_to_live_override_ms": (-1, TIMING_MS_MAX),
    "delivery_delay_override_ms": (-1, TIMING_MS_MAX),
    "redelivery_delay_override_ms": (-1, TIMING_MS_MAX),
    "redelivery_limit": (-1, REDELIVERY_LIMIT_MAX),
    "redelivery_delay_multiplier_percent": (100, REDELIVERY_MULTIPLIER_MAX),
    "redelivery_delay_max_ms": (0, TIMING_MS_MAX),
    "messages_max": (0, QUOTA_MAX),
    "bytes_max": (0, QUOTA_MAX),
}


def wrong_in(settings: Settings) -> str | None:
    """What is out of range in settings, in words; None: nothing."""
    for name, (lowest, highest) in RANGES.items():
        value = getattr(settings, name)
        if not lowest <= value <= highest:
            return f"{name} is {value}, must be {lowest} to {highest}"
    if settings.fifo_mode not in FIFO_MODES:
        return f"fifo_mode is {settings.fifo_mode}, must be one of {', '.join(FIFO_MODES)}"
    if settings.blocking_send_policy not in POLICIES:
        return (
            f"blocking_send_policy is {settings.blocking_send_policy}, "
            f"must be one of {', '.join(POLICIES)}"
        )
    return _wrong_in_steps(settings.redelivery_steps)


def _wrong_in_steps(steps: list[RedeliveryStep]) -> str | None:
    if len(steps) > REDELIVERY_STEPS_MAX:
        return f"there are {len(steps)} redelivery_steps, at most {REDELIVERY_STEPS_MAX} fit"
    before = -1
    for step in steps:
        retries, delay_ms = step["retries"], step["delay_ms"]
        if not before < retries <= REDELIVERY_LIMIT_MAX:
            return (
                f"redelivery_steps: {retries} retries, must rise from 0 to {REDELIVERY_LIMIT_MAX}"
            )
        if not 0 <= delay_ms <= TIMING_MS_MAX:
            return f"redelivery_steps: delay_ms is {delay_ms}, must be 0 to {TIMING_MS_MAX}"
        before = retries
    return None
