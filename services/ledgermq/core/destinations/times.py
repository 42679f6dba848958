"""When a message expires, may be delivered, and how often: by its sender, or the destination."""

from __future__ import annotations

from typing import Final

from ledgermq.core.state.held_header import NOTHING_SAID, HeldHeader
from ledgermq.core.state.records import Message, Times
from ledgermq.protocol.limits import REDELIVERY_LIMIT_MAX, TIMING_MS_MAX
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.rounding import MILLISECOND_US, rounded
from ledgermq.protocol.settings import Settings

# Lowest and highest value of what a header says of times and redeliveries.
RANGES: Final = (
    ("time_to_live_ms", 0, TIMING_MS_MAX),
    ("delivery_delay_ms", 0, TIMING_MS_MAX),
    ("age_ms", 0, TIMING_MS_MAX),
    ("redelivery_limit", -1, REDELIVERY_LIMIT_MAX),
)

# What a header says of them comes last in it.
_NO_TIMES: Final = NOTHING_SAID[3:]


def check_times(message: Message) -> Refusal | None:
    if message.header is None or message.header[3:] == _NO_TIMES:
        return None
    for name, least, most in RANGES:
        value = getattr(message.header, name)
        if not least <= value <= most:
            return Refusal(
                Reason.MESSAGE_INVALID,
                f"message {message.put_index} has {name} {value}, must be {least} to {most}",
            )
    return None


def set_times(message: Message, settings: Settings, time: int) -> None:
    """Works out the times of a message from its send: the Put's time less its age (SES-66).

    That is when it was appended, also where time stands still: what it leaps over, once it is
    agreed on, was before the send. A destination may override what the sender asked for; so with
    the redelivery limit (INF-16).
    """
    header = message.header or NOTHING_SAID
    life_ms, delay_ms, age_ms = header.time_to_live_ms, header.delivery_delay_ms, header.age_ms
    if settings.time_to_live_override_ms >= 0:
        life_ms = settings.time_to_live_override_ms
    if settings.delivery_delay_override_ms >= 0:
        delay_ms = settings.delivery_delay_override_ms
    limit = redelivery_limit(header, settings)
    if life_ms or delay_ms or limit >= 0:
        sent_at = time - age_ms * MILLISECOND_US
        # What was over before 1970 was so then: below 0 there is no time.
        message.times = Times(
            max(rounded(sent_at + life_ms * MILLISECOND_US), 0) if life_ms else -1,
            max(rounded(sent_at + delay_ms * MILLISECOND_US), 0) if delay_ms else -1,
            limit,
        )


def redelivery_limit(header: HeldHeader, settings: Settings) -> int:
    """How often a message that comes in is redelivered at most; -1: no limit (INF-16)."""
    ours = settings.redelivery_limit
    return ours if ours >= 0 else header.redelivery_limit
