"""How late and how often messages are redelivered that were backed out (PROTOCOL.md §15)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ledgermq_spark.derivation.settings import TIMING_MS_MAX

if TYPE_CHECKING:
    from ledgermq_spark.derivation.stay import Stay


def limit_of(header: str | None, given: int) -> int:
    """The redelivery limit of a message: what its destination gives, else what its header asks."""
    if given >= 0 or header is None or '"r":' not in header:
        return given
    limit: int = json.loads(header).get("r", -1)
    return limit


def delay_us(stay: Stay, asked_ms: int) -> int:
    """How long a message is delayed that was backed out just now; consumer or session ask."""
    settings, counted = stay.store.in_force, stay.backouts - stay.uncounted
    # The backout that the delay is for as it stands; each further one makes it longer.
    first, delay_ms = 1, settings.redelivery_delay_override_ms
    if delay_ms < 0:
        delay_ms = asked_ms
    for retries, step_ms in settings.redelivery_steps:
        if retries < counted:
            first, delay_ms = retries + 1, step_ms
    longest_ms = min(settings.redelivery_delay_max_ms or TIMING_MS_MAX, TIMING_MS_MAX)
    percent = settings.redelivery_delay_multiplier_percent
    for _ in range(first, counted):
        longer_ms = delay_ms * percent // 100
        if longer_ms == delay_ms or delay_ms >= longest_ms:
            break
        delay_ms = longer_ms
    return min(delay_ms, longest_ms) * 1000
