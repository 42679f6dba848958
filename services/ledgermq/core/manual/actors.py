"""Who asks for an operation by hand, and why: both stand on the log (PROTOCOL.md §3)."""

from __future__ import annotations

from ledgermq.protocol.limits import ACTOR_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX
from ledgermq.protocol.reasons import Reason, Refusal


def check_actor(actor: str, reason: str) -> Refusal | None:
    if not 0 < len(actor) <= ACTOR_CHARACTERS_MAX:
        return Refusal(
            Reason.REASON_INVALID,
            f"the actor has {len(actor)} characters, must be 1 to {ACTOR_CHARACTERS_MAX}",
        )
    if not 0 < len(reason) <= DESCRIPTION_CHARACTERS_MAX:
        return Refusal(
            Reason.REASON_INVALID,
            f"the reason has {len(reason)} characters, must be 1 to {DESCRIPTION_CHARACTERS_MAX}",
        )
    return None
