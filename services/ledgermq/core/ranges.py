"""Ranges: what an operation gives is within its limits, or is refused (PROTOCOL.md §3)."""

from __future__ import annotations

from ledgermq.protocol.limits import ACTOR_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX
from ledgermq.protocol.reasons import Reason, Refusal


def check_range(name: str, value: int | None, least: int, most: int) -> Refusal | None:
    """Refuses a value out of range, both ends included; None is not given and stays as it is."""
    if value is None or least <= value <= most:
        return None
    return Refusal(Reason.SETTING_INVALID, f"{name} is {value}, must be {least} to {most}")


def check_actor(actor: str, reason: str) -> Refusal | None:
    """Refuses an operation by hand that does not say who asks for it, or why."""
    if not 0 < len(actor) <= ACTOR_CHARACTERS_MAX:
        return Refusal(
            Reason.REASON_INVALID,
            f"the actor has {len(actor)} characters, must be 1 to {ACTOR_CHARACTERS_MAX}",
        )
    return check_reason(reason, 1)


def check_reason(reason: str, least: int) -> Refusal | None:
    """Refuses a reason that is too long, or shorter than its operation needs."""
    if least <= len(reason) <= DESCRIPTION_CHARACTERS_MAX:
        return None
    return Refusal(
        Reason.REASON_INVALID,
        f"the reason has {len(reason)} characters, must be {least} to {DESCRIPTION_CHARACTERS_MAX}",
    )
