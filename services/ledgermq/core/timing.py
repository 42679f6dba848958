"""When messages expire and when they may be delivered, by log time alone (INF-01, SES-66)."""

from __future__ import annotations

from ledgermq.core.limits import TIME_ROUNDING_US, TIMING_MS_MAX
from ledgermq.core.operations import Timing
from ledgermq.core.queue import Message
from ledgermq.core.reasons import MESSAGE_INVALID, Refusal
from ledgermq.core.state import QueueManager

__all__ = ["expire_due", "rounded", "set_times"]

MILLISECOND_US = 1_000


def rounded(time: int) -> int:
    """A deadline in µs, rounded up to 50 ms (H7)."""
    return -(-time // TIME_ROUNDING_US) * TIME_ROUNDING_US


def set_times(message: Message, timing: Timing, time: int) -> Refusal | None:
    """Works out the times of a message from its send: the Put's time less its age (SES-66)."""
    for name, milliseconds in timing.items():
        if not 0 <= milliseconds <= TIMING_MS_MAX:  # type: ignore[operator]
            return Refusal(
                MESSAGE_INVALID,
                f"message {message.put_index} has {name} {milliseconds}, "
                f"must be 0 to {TIMING_MS_MAX}",
            )
    sent_at = time - timing["age_ms"] * MILLISECOND_US
    if timing["time_to_live_ms"]:
        message.expires_at = rounded(sent_at + timing["time_to_live_ms"] * MILLISECOND_US)
    if timing["delivery_delay_ms"]:
        message.deliver_at = rounded(sent_at + timing["delivery_delay_ms"] * MILLISECOND_US)
    return None


def expire_due(state: QueueManager) -> None:
    """Takes out what has expired and nobody holds; what is held expires when it comes back."""
    due = state.expiries.next()
    if due is None or due > state.time:
        return
    for message in state.expiries.take_due(state.time):
        if message.consumer is None:
            message.queue.withdraw(message)
            message.queue.expire(message)
