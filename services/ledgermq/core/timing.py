"""When messages expire and when they may be delivered, by log time alone (INF-01, SES-66)."""

from __future__ import annotations

from ledgermq.core.message import Message, Times
from ledgermq.core.parking import follow
from ledgermq.core.transfer import EXPIRED, redelivery_limit, transfer
from ledgermq.core.turn import Turn
from ledgermq.protocol.limits import REDELIVERY_LIMIT_MAX, TIMING_MS_MAX
from ledgermq.protocol.operations import Header
from ledgermq.protocol.reasons import MESSAGE_INVALID, Refusal
from ledgermq.protocol.rounding import rounded
from ledgermq.protocol.settings import Settings

__all__ = ["check_times", "expire", "expire_due", "is_over", "set_times"]

MILLISECOND_US = 1_000


def check_times(message: Message, header: Header) -> Refusal | None:
    """Refuses times and a redelivery limit of a header that are out of range."""
    for name in ("time_to_live_ms", "delivery_delay_ms", "age_ms"):
        milliseconds = header[name]
        if not 0 <= milliseconds <= TIMING_MS_MAX:
            return Refusal(
                MESSAGE_INVALID,
                f"message {message.put_index} has {name} {milliseconds}, "
                f"must be 0 to {TIMING_MS_MAX}",
            )
    limit = header.get("redelivery_limit", -1)
    if not -1 <= limit <= REDELIVERY_LIMIT_MAX:
        return Refusal(
            MESSAGE_INVALID,
            f"message {message.put_index} has redelivery_limit {limit}, "
            f"must be -1 to {REDELIVERY_LIMIT_MAX}",
        )
    return None


def set_times(message: Message, header: Header | None, settings: Settings, time: int) -> None:
    """Works out the times of a message from its send: the Put's time less its age (SES-66).

    A destination may override what the sender asked for; so with the redelivery limit (INF-16).
    """
    life_ms = delay_ms = age_ms = 0
    if header is not None:
        life_ms, delay_ms = header["time_to_live_ms"], header["delivery_delay_ms"]
        age_ms = header["age_ms"]
    if settings.time_to_live_override_ms >= 0:
        life_ms = settings.time_to_live_override_ms
    if settings.delivery_delay_override_ms >= 0:
        delay_ms = settings.delivery_delay_override_ms
    limit = redelivery_limit(header, settings)
    if life_ms or delay_ms or limit >= 0:
        sent_at = time - age_ms * MILLISECOND_US
        message.times = Times(
            rounded(sent_at + life_ms * MILLISECOND_US) if life_ms else -1,
            rounded(sent_at + delay_ms * MILLISECOND_US) if delay_ms else -1,
            limit,
        )


def is_over(turn: Turn, message: Message) -> bool:
    """Whether a message has expired: its own time is over, or the maximum lifetime."""
    state = turn.state
    if message.times is not None and 0 <= message.times.expires_at <= state.time:
        return True
    return state.lifetimes.is_over(message, state.time)


def expire(turn: Turn, message: Message) -> None:
    """Takes out for good what has expired and neither waits nor is held; it may go elsewhere."""
    queue = message.queue
    queue.expire(message)
    if queue.settings.expiry_destination:
        transfer(turn, message, queue.settings.expiry_destination, EXPIRED)


def expire_due(turn: Turn) -> None:
    """Takes out what has expired and nobody holds; what is held expires when it comes back.

    Before that, and after it, what is in parked groups follows what went before (§15).
    """
    follow(turn)
    state = turn.state
    due = state.expiries.next()
    if due is not None and due <= state.time:
        _expire_all(turn, state.expiries.take_due(state.time))
    if state.lifetimes.may_be_due(state.time):
        _expire_all(turn, state.lifetimes.take_due(state.stores, state.time))
    follow(turn)


def _expire_all(turn: Turn, over: list[Message]) -> None:
    for message in over:
        if message.consumer is None:
            turn.withdraw(message)
            expire(turn, message)
