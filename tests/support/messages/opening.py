"""The Open of a session, where it matters little what it says."""

from __future__ import annotations

from typing import Any

from ledgermq.protocol.operations import Open


def opening(mode: str = "CLIENT", **more: Any) -> Open:
    """That of a session which has to be heard of within a second."""
    plain = {"connection": bytes(16), "lane": 0, "session_key": bytes(16)}
    return Open(**{**plain, "acknowledge_mode": mode, "suspect_timeout_ms": 1_000, **more})
