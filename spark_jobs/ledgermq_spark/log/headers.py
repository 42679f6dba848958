"""What rows tell of headers, groups and get options: short JSON texts that Spark can look into."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import Relocate
from ledgermq.protocol.get_options import Options
from ledgermq.protocol.settings import OPERATION_FIELDS, RESUME_MARKS, TOPIC_FIELDS

_GROUP = re.compile(r',"g":\{[^}]*\}(,"k":true)?')
_TIMES = {"time_to_live_ms": "l", "delivery_delay_ms": "d", "age_ms": "a"}
_IDS = ("message_id", "group_id")
_FLAGS = {"in_group": "g", "last_in_group": "m", "segment": "s", "last_segment": "e"}


def compact(told: Any) -> str:
    """What is told as JSON without blanks."""
    return json.dumps(told, separators=(",", ":"))


def content_digest(content: bytes, header: Any) -> int:
    """64 bits that tell one content with its header from another, as a signed integer.

    A header that says nothing is as none: a delivery has one where the queue manager gives a time
    or an origin to a message whose sender gave nothing. Its place in a group is told apart, because
    it is lost on the way to a topic.
    """
    hashed = blake2b(content, digest_size=8)
    if header is not None:
        told = (header["correlation_id"], header["type"], sorted(header["properties"].items()))
        if told != (None, None, []):
            hashed.update(repr(told).encode())
    return int.from_bytes(hashed.digest(), "big", signed=True)


def group_text(group: Mapping[str, Any] | None) -> str | None:
    """A place in a group as JSON; whether its writer kept logical order is left out.

    Group id `i` in hexadecimal, group sequence `n`, offset `o`, length `l`, and as `f` the letters
    of what it is: in a group `g`, the last of it `m`, a segment `s`, the last one `e`.
    """
    if group is None:
        return None
    told = {
        "i": group["group_id"].hex(),
        "n": group["group_sequence"],
        "o": group["offset"],
        "l": group["length"],
        "f": "".join(letter for name, letter in _FLAGS.items() if group[name]),
    }
    return compact(told)


def header_text(header: op.Header | None) -> str | None:
    """A header as JSON: properties `p`, correlation id `c`, type `t`, times in ms `l`, `d`, `a`.

    A redelivery limit that was asked for is `r`. A place in a group is `g`, as `group_text` tells
    it; `k` says that logical order was asked for. `x` names properties that are texts here, since
    they are numbers that JSON does not know: with those Spark would find nothing in all of it.
    Tables take properties out as they stand here: they come first, and the correlation id next.
    """
    if header is None:
        return None
    unknown = _unknown(header["properties"])
    told: dict[str, Any] = {
        "p": {**header["properties"], **unknown},
        "c": header["correlation_id"],
        "t": header["type"],
    }
    if unknown:
        told["x"] = list(unknown)
    times: dict[str, Any] = dict(header)
    told |= {short: times[name] for name, short in _TIMES.items() if times[name]}
    if header.get("redelivery_limit", -1) != -1:
        told["r"] = header["redelivery_limit"]
    group = header.get("group")
    if group is not None:
        told["g"] = json.loads(group_text(group) or "")
        if group["logical_order"]:
            told["k"] = True
    # Whoever looks at properties finds the letters that were put.
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def properties_text(properties: Mapping[str, Any]) -> str:
    """Properties as JSON; numbers that it does not know are texts."""
    return json.dumps({**properties, **_unknown(properties)})


def _unknown(properties: Mapping[str, Any]) -> dict[str, str]:
    """Those that are infinite or no number, as Python and Spark write them."""
    return {
        name: json.dumps(value)
        for name, value in properties.items()
        if isinstance(value, float) and not math.isfinite(value)
    }


def header_of(text: str | None) -> dict[str, Any]:
    """What `header_text` tells, its properties as they were put; empty if there was no header."""
    told: dict[str, Any] = json.loads(text) if text else {}
    for name in told.pop("x", ()):
        told["p"][name] = float(told["p"][name])
    return told


def origin_text(origin: Mapping[str, Any] | None) -> str | None:
    """Where a message was before it was moved, as JSON."""
    return None if origin is None else compact(dict(origin))


# Settings of the queue manager and of sessions: how long a unit of work may last.
UNIT_LIMITS: Final = ("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms")
# What an AlterQueueManager gives besides its redelivery.
MANAGER_SETTINGS: Final = (
    *("segment_bytes", "segments_min", "segments_max", "messages_max", "bytes_max", *RESUME_MARKS),
    *("journaling", "journal_lifetime_ms", *UNIT_LIMITS),
)


def manager_settings_text(operation: op.AlterQueueManager) -> str | None:
    """The settings that it gives, as JSON; None: none."""
    told = {name: getattr(operation, name) for name in MANAGER_SETTINGS}
    return _given(told | (operation.redelivery or {}))


def place_settings_text(
    operation: op.CreateQueue | op.AlterQueue | op.CreateTopic | op.AlterTopic,
) -> str | None:
    """The settings that a queue or topic is given, as JSON; None: none."""
    fields = {name: getattr(operation, name, None) for name in (*OPERATION_FIELDS, *TOPIC_FIELDS)}
    return _given((operation.settings or {}) | fields)


def _given(told: Mapping[str, Any]) -> str | None:
    given = {name: value for name, value in told.items() if value is not None}
    return compact(given) if given else None


def relocated(operation: Relocate) -> dict[str, Any]:
    """Which messages are written again: by their Puts, and by the places that have them."""
    copies = operation.messages
    return {
        "put_positions": [one["put_position"] for one in copies],
        "put_indexes": [one["put_index"] for one in copies],
        "places": [
            [[place["created_position"], place["sequence"]] for place in one["places"]]
            for one in copies
        ],
        "headers_max": max((len(one["header"]) for one in copies), default=0),
    }


def options_told(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a Get for JSON, ids in hexadecimal."""
    return {**options, **{name: options[name].hex() for name in _IDS}}


def options_of(told: Mapping[str, Any]) -> Options:
    """What `options_told` tells."""
    return Options(**{**told, **{name: bytes.fromhex(told[name]) for name in _IDS}})


def without_group(header: str | None) -> str | None:
    """A header, as rows tell it, of a message that is in no group any longer."""
    return None if header is None else _GROUP.sub("", header)
