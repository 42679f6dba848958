"""When messages expire and when they may be delivered, by log time alone (INF-01, SES-66)."""

from __future__ import annotations

from ledgermq.core.limits import TIME_ROUNDING_US, TIMING_MS_MAX
from ledgermq.core.message import Message, Times
from ledgermq.core.operations import Header
from ledgermq.core.reasons import MESSAGE_INVALID, Refusal
from ledgermq.core.turn import Turn

__all__ = ["expire_due", "is_over", "rounded", "set_times"]

MILLISECOND_US = 1_000


def rounded(time: int) -> int:
    """A deadline in µs, rounded up to 50 ms (H7)."""
    return -(-time // TIME_ROUNDING_US) * TIME_ROUNDING_US


def set_times(message: Message, header: Header, time: int) -> Refusal | None:
    """Works out the times of a message from its send: the Put's time less its age (SES-66)."""
    life_ms, delay_ms, age_ms = (
        header["time_to_live_ms"],
        header["delivery_delay_ms"],
        header["age_ms"],
    )
    if not life_ms and not delay_ms and not age_ms:
        return None
    told = {"time_to_live_ms": life_ms, "delivery_delay_ms": delay_ms, "age_ms": age_ms}
    for name, milliseconds in told.items():
        if not 0 <= milliseconds <= TIMING_MS_MAX:
            return Refusal(
                MESSAGE_INVALID,
                f"message {message.put_index} has {name} {milliseconds}, "
                f"must be 0 to {TIMING_MS_MAX}",
            )
    sent_at = time - age_ms * MILLISECOND_US
    message.times = Times(
        rounded(sent_at + life_ms * MILLISECOND_US) if life_ms else -1,
        rounded(sent_at + delay_ms * MILLISECOND_US) if delay_ms else -1,
    )
    return None


def is_over(message: Message, time: int) -> bool:
    """Whether a message has expired by a time."""
    return message.times is not None and 0 <= message.times.expires_at <= time


def expire_due(turn: Turn) -> None:
    """Takes out what has expired and nobody holds; what is held expires when it comes back."""
    state = turn.state
    due = state.expiries.next()
    if due is None or due > state.time:
        return
    for message in state.expiries.take_due(state.time):
        if message.consumer is None:
            turn.ends_clash(message)
            message.queue.withdraw(message)
            message.queue.expire(message)
