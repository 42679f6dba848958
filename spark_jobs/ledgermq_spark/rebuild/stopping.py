"""Why a fold could not go on, and what to do about it."""

from __future__ import annotations

from typing import Any

from ledgermq.errors import LedgerMQError


class FoldStoppedError(LedgerMQError):
    """The fold may not go on: the log has a hole, or an entry of an unknown protocol version."""

    code = "fold-stopped"


def why_stopped(queue_manager: str, stopped: dict[str, Any]) -> str:
    """One sentence for people."""
    where = f"{queue_manager}@{stopped['position']}"
    if stopped["why"] == "version":
        return (
            f"the entries from {where} on need protocol version {stopped['version']}, which this "
            "program does not know: upgrade it"
        )
    return f"the log has a hole: {where} is missing: {hole_told(stopped)}"


def hole_told(stopped: dict[str, Any]) -> str:
    """What to do about a hole that stopped the fold."""
    position, found = stopped["position"], stopped["found"]
    through = f" --through {found - 1}" if found is not None and found - 1 > position else ""
    above = "no record stands above it" if found is None else f"the next record is {found}"
    return (
        f"{above}. The end of a Kafka transaction leaves holes, or records were lost. If none was "
        f"there, declare it skipped: `ledgermq log skip {position}{through}`"
    )
