"""Settings of queues and topics, and which of them may be given (PROTOCOL.md §14)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ledgermq_spark.derivation.destinations import is_temporary, store_of

TIMING_MS_MAX = 100 * 366 * 24 * 3600 * 1000
# Of the queue manager, until told otherwise.
LIFETIME_MS_DEFAULT = 30 * 24 * 3600 * 1000
SEGMENT_BYTES_DEFAULT = 16 * 1024 * 1024
SEGMENT_BYTES_MAX = 2**40
SEGMENTS_MAX = 99_999
RANGES = {
    "time_to_live_override_ms": (-1, TIMING_MS_MAX),
    "delivery_delay_override_ms": (-1, TIMING_MS_MAX),
    "redelivery_delay_override_ms": (-1, TIMING_MS_MAX),
    "redelivery_limit": (-1, 2**31 - 1),
    "redelivery_delay_multiplier_percent": (100, 10_000),
    "redelivery_delay_max_ms": (0, TIMING_MS_MAX),
    "messages_max": (0, 2**53),
    "bytes_max": (0, 2**53),
    "journal_lifetime_ms": (0, TIMING_MS_MAX),
}
STEPS_MAX, RETRIES_MAX = 100, 2**31 - 1
# Those that name where messages go.
DESTINATIONS = ("expiry_destination", "error_destination")


@dataclass(frozen=True, slots=True, order=True)
class Settings:
    """The settings of a queue or topic; what nothing here asks for is in `others`, as JSON."""

    time_to_live_override_ms: int = -1
    delivery_delay_override_ms: int = -1
    expiry_destination: str = ""
    puts_disabled: bool = False
    redelivery_delay_override_ms: int = -1
    redelivery_limit: int = -1
    redelivery_delay_multiplier_percent: int = 100
    redelivery_delay_max_ms: int = 0
    # Retries and delay in ms.
    redelivery_steps: tuple[tuple[int, int], ...] = ()
    error_destination: str = ""
    others: str = "{}"

    def changed(self, text: str | None) -> Settings:
        """With those that an operation gives, as JSON; null gives none."""
        told = (json.loads(text) if text else None) or {}
        known = {name: told.pop(name) for name in list(told) if name in self.__slots__}
        if "redelivery_steps" in known:
            steps = known["redelivery_steps"]
            known["redelivery_steps"] = tuple((one["retries"], one["delay_ms"]) for one in steps)
        others = json.loads(self.others) | told
        return replace(self, **known, others=json.dumps(others, sort_keys=True))

    @property
    def destinations(self) -> list[str]:
        """The destinations that are named, as the log writes them."""
        told = self.as_dict()
        return [told[name] for name in DESTINATIONS if told.get(name)]

    def as_dict(self) -> dict[str, Any]:
        """The settings by name."""
        told = asdict(self)
        others = json.loads(told.pop("others"))
        steps = [{"retries": one, "delay_ms": late} for one, late in self.redelivery_steps]
        told["redelivery_steps"] = steps
        return {**told, **others}


DEFAULTS = Settings()


def fifo_mode(settings: Settings) -> str:
    """The FIFO mode that settings give."""
    return str(settings.as_dict().get("fifo_mode", "CONCURRENT"))


def keeps_group_order(settings: Settings) -> str:
    """Whether settings keep the order of groups: `yes` or `no`."""
    return "yes" if settings.as_dict().get("keeps_group_order") else "no"


@dataclass(frozen=True, slots=True)
class Storage:
    """The queue manager's segments: how large, how many at least and at most (0: any number)."""

    segment_bytes: int = SEGMENT_BYTES_DEFAULT
    segments_min: int = 4
    segments_max: int = 0

    def changed(self, text: str | None) -> Storage:
        """With those that an operation gives, as JSON."""
        told = json.loads(text) if text else {}
        known = {name: value for name, value in told.items() if name in self.__slots__}
        return replace(self, **known)

    @property
    def is_valid(self) -> bool:
        """Whether all are in range (§19)."""
        return (
            1 <= self.segment_bytes <= SEGMENT_BYTES_MAX
            and 1 <= self.segments_min <= SEGMENTS_MAX
            and (self.segments_max == 0 or self.segments_min <= self.segments_max <= SEGMENTS_MAX)
        )


def _rising(steps: list[dict[str, int]]) -> bool:
    """Whether steps of redelivery are in range (§15)."""
    retries = [one["retries"] for one in steps]
    return (
        len(steps) <= STEPS_MAX
        and retries == sorted(set(retries))
        and all(0 <= one <= RETRIES_MAX for one in retries)
        and all(0 <= one["delay_ms"] <= TIMING_MS_MAX for one in steps)
    )


def manager_settings_valid(text: str | None) -> bool:
    """Whether quotas and lifetime that the queue manager is given are in range (§16, §21)."""
    told = json.loads(text) if text else {}
    names = ("messages_max", "bytes_max", "journal_lifetime_ms")
    ranges = ((name, *RANGES[name]) for name in names if name in told)
    return all(low <= told[name] <= high for name, low, high in ranges)


def settings_refusal(settings: Settings, store: str, is_there: Callable[[str], bool]) -> str | None:
    """Why settings of a queue or topic are refused, or None; `is_there` knows what stands."""
    told = settings.as_dict()
    for name, (low, high) in RANGES.items():
        value = told.get(name)
        if isinstance(value, int) and not low <= value <= high:
            return "setting-invalid"
    if not _rising(told.get("redelivery_steps") or []):
        return "setting-invalid"
    for destination in settings.destinations:
        named = store_of(destination)
        if named == store and destination.partition(":")[0] in ("queue", "topic"):
            return "setting-invalid"
        if not destination.startswith(("queue:", "topic:")):
            return "destination-invalid"
        if is_temporary(named):
            return "setting-invalid"
        if not is_there(named):
            return "destination-unknown"
    return None
