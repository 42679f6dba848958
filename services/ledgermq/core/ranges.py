"""Ranges: a setting that an operation gives is within its limits, or is refused."""

from __future__ import annotations

from ledgermq.protocol.reasons import Reason, Refusal


def check_range(name: str, value: int | None, least: int, most: int) -> Refusal | None:
    """Refuses a value out of range, both ends included; None is not given and stays as it is."""
    if value is None or least <= value <= most:
        return None
    return Refusal(Reason.SETTING_INVALID, f"{name} is {value}, must be {least} to {most}")
