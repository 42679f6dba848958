"""Settings of queues and topics beyond those of version 1's first day (PROTOCOL.md §14)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from ledgermq.core.limits import QUOTA_MAX, TIMING_MS_MAX

__all__ = [
    "DEFAULTS",
    "FIFO",
    "Settings",
    "changed",
    "given_settings",
    "settings_record",
    "targets_of",
    "wrong_in",
]

# No put passes an earlier one to the same destination (INF-18).
FIFO: Final = "FIFO"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a queue or topic, in the order of the schema `ledgermq.type.QueueSettings`.

    Times are in ms; a quota of 0 is none. A destination is `queue:NAME` or `topic:NAME`, or empty.
    """

    time_to_live_override_ms: int = -1
    delivery_delay_override_ms: int = -1
    expiry_destination: str = ""
    puts_disabled: bool = False
    messages_max: int = 0
    bytes_max: int = 0
    blocking_send_policy: str = FIFO


DEFAULTS: Final = Settings()

POLICIES: Final = (FIFO, "PREEMPTIVE")

# What an entry of the log says of settings: a value by name; None: as it is.
Given = dict[str, Any]


def given_settings(told: Given) -> Given | None:
    """Settings as an entry of the log writes them; None: it changes none.

    Raises:
        KeyError: there is no setting of that name.
    """
    names = [field.name for field in fields(Settings)]
    unknown = [name for name in told if name not in names]
    if unknown:
        raise KeyError(unknown[0])
    return {name: told.get(name) for name in names} if told else None


def changed(settings: Settings, given: Given | None) -> Settings:
    """Settings with those values that are given."""
    told = {name: value for name, value in (given or {}).items() if value is not None}
    return replace(settings, **told) if told else settings


def settings_record(settings: Settings) -> Given | None:
    """As a checkpoint writes them; None: all have their defaults."""
    return None if settings == DEFAULTS else asdict(settings)


def targets_of(settings: Settings) -> dict[str, str]:
    """The destinations that settings name, by setting; they must be there (INF-16)."""
    named = {"expiry_destination": settings.expiry_destination}
    return {name: destination for name, destination in named.items() if destination}


def wrong_in(settings: Settings) -> str | None:
    """What is out of range in settings, in words; None: nothing."""
    for name in ("time_to_live_override_ms", "delivery_delay_override_ms"):
        value = getattr(settings, name)
        if not -1 <= value <= TIMING_MS_MAX:
            return f"{name} is {value}, must be -1 to {TIMING_MS_MAX}"
    for name in ("messages_max", "bytes_max"):
        value = getattr(settings, name)
        if not 0 <= value <= QUOTA_MAX:
            return f"{name} is {value}, must be 0 to {QUOTA_MAX}"
    if settings.blocking_send_policy not in POLICIES:
        return (
            f"blocking_send_policy is {settings.blocking_send_policy}, must be FIFO or PREEMPTIVE"
        )
    return None
