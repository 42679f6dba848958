"""The queue status screen of the Java CAPS JMS Reference, word for word (SEQ-13), and its keys.

Times are UTC in the form MMDDYYYY:HH:MM:SS; both are blank on a queue that never held a message
(SEQ-19). The fold decides every value; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

from ledgermq.cli.printing.output import Column, count_of, headed
from ledgermq.protocol.documents.destinations import QueueStatus, SubscriptionStatus, TopicStatus
from ledgermq.protocol.instants import EPOCH, datetime_from, iso_time

# Label on the screen, key in the status document.
_LINES: Final = (
    ("Queue Name", "name"),
    ("First enqueue time", "first_enqueued_at"),
    ("Last enqueue time", "last_enqueued_at"),
    ("Number of current receivers", "receivers"),
    ("Message count", "message_count"),
    ("Messages sent and committed", "sent_and_committed"),
    ("Min sequence number", "min_sequence"),
    ("Max sequence number", "max_sequence"),
    ("Suspended", "gets_disabled"),
)

# Every state in flight under the sum that it belongs to (INF-01..10).
_STATES: Final = (
    ("current", "current"),
    ("pending", "pending"),
    ("  unborn", "unborn"),
    ("  uncommitted puts", "uncommitted_puts"),
    ("  unacknowledged", "unacknowledged"),
    ("  uncommitted gets", "uncommitted_gets"),
    ("  waiting for redelivery", "delayed"),
)

# How the figures of a queue add up.
ADDS_UP: Final = "current + pending = message count + uncommitted puts"

LIST_COLUMNS: Final = (
    *headed("name", "state"),
    *headed("current", "pending", number=True),
    Column(key="current_bytes", heading="CUR BYTES", number=True, detail=True),
    Column(key="pending_bytes", heading="PEND BYTES", number=True, detail=True),
    *headed("unborn", "delayed", number=True, detail=True),
    Column(key="unacknowledged", heading="UNACKED", number=True, detail=True),
    Column(key="uncommitted_puts", heading="UNCOM PUT", number=True, detail=True),
    Column(key="uncommitted_gets", heading="UNCOM GET", number=True, detail=True),
    Column(key="groups", heading="GROUPS", number=True, detail=True),
    Column(key="group_affinity", heading="AFFINITY", detail=True),
    Column(key="receivers", heading="RECEIVERS", number=True, detail=True),
    Column(key="sent_and_committed", heading="SENT", number=True),
    Column(key="min_sequence", heading="MIN SEQ", number=True),
    Column(key="max_sequence", heading="MAX SEQ", number=True),
)


def status_document(status: QueueStatus | TopicStatus | SubscriptionStatus) -> dict[str, Any]:
    """A live status as PROTOCOL.md §9 defines it: times in microseconds."""
    return {
        name: _microseconds(value)
        for name, value in asdict(status).items()
        if name != "blocked" or value is not None
    }


def _microseconds(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, dict):
        return {name: _microseconds(one) for name, one in value.items()}
    return value


def with_iso_times(status: Mapping[str, Any]) -> dict[str, Any]:
    """A status document for programs: times ISO 8601 or null."""
    told: dict[str, Any] = {
        key: iso_time(value) if key.endswith("_enqueued_at") else value
        for key, value in status.items()
    }
    if "blocked" in told:
        told["blocked"] = {**told["blocked"], "since": iso_time(told["blocked"]["since"])}
    return told


def caps_time(time_us: int | None) -> str:
    """A time as the screen shows it; blank for none."""
    if time_us is None:
        return ""
    return datetime_from(time_us).strftime("%m%d%Y:%H:%M:%S")


def blocked_text(blocked: Mapping[str, Any]) -> str:
    """What a quota holds up, in words; `since` is ISO 8601 already (INF-05)."""
    if not blocked["puts"]:
        return "none"
    messages = count_of(blocked["messages"], "message")
    sends = count_of(blocked["puts"], "send")
    return f"{sends} of {messages}, {blocked['bytes']} bytes, since {blocked['since']}"


def state_rows(status: Mapping[str, Any], *, indented: bool = True) -> list[dict[str, Any]]:
    """Messages and bytes of a queue or subscription by state; the states of a sum follow it."""
    return [
        {
            "state": label if indented else label.strip(),
            "messages": status[key],
            "bytes": status[f"{key}_bytes"],
        }
        for label, key in _STATES
        if key in status
    ]


def screen(status: Mapping[str, Any]) -> str:
    return "\n".join(f"{label}: {_shown(key, status[key])}" for label, key in _LINES)


def _shown(key: str, value: Any) -> str:
    if key.endswith("_at"):
        return caps_time(value)
    if key == "gets_disabled":
        return "Yes" if value else "No"
    return str(value)


def screen_document(status: Mapping[str, Any]) -> dict[str, Any]:
    """The nine values for programs: labels in snake case, times ISO 8601 or null, a boolean."""
    return {
        label.lower().replace(" ", "_"): iso_time(status[key])
        if key.endswith("_at")
        else status[key]
        for label, key in _LINES
    }


def list_row(status: Mapping[str, Any]) -> dict[str, Any]:
    return {**status, "state": "gets disabled" if status["gets_disabled"] else "running"}
