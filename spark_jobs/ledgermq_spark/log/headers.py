"""What rows tell of headers, groups and get options: short JSON texts that Spark can look into."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import blake2b
from typing import Any, Final

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import BackUpJournal, HandlingOperation, Relocate
from ledgermq.protocol.settings import OPERATION_FIELDS, RESUME_MARKS

_GROUP = re.compile(r',"g":\{[^}]*\}(,"k":true)?')
_TIMES = {"time_to_live_ms": "l", "delivery_delay_ms": "d", "age_ms": "a"}
_FLAGS = {"in_group": "g", "last_in_group": "m", "segment": "s", "last_segment": "e"}


def _compact(told: Any) -> str:
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
    return _compact(told)


def header_text(header: op.Header | None) -> str | None:
    """A header as JSON: properties `p`, correlation id `c`, type `t`, times in ms `l`, `d`, `a`.

    A redelivery limit that was asked for is `r`. A place in a group is `g`, as `group_text` tells
    it; `k` says that logical order was asked for. `x` names properties that are texts here, since
    they are numbers that JSON does not know: with those Spark would find nothing in all of it.
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
    return _compact(told)


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
    return None if origin is None else _compact(dict(origin))


# Settings of the queue manager and of sessions: how long a unit of work may last.
UNIT_LIMITS: Final = ("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms")


def settings_columns(operation: op.Operation) -> tuple[str | None, int | None]:
    """The settings that an operation gives, as JSON, and a maximum lifetime.

    Of an operation by hand it is all that it asks for, of a Relocate which messages it is about.
    """
    if isinstance(operation, op.AlterQueueManager):
        storage = ("segment_bytes", "segments_min", "segments_max")
        quotas = ("messages_max", "bytes_max", *RESUME_MARKS)
        names = (*storage, *quotas, "journaling", "journal_lifetime_ms", *UNIT_LIMITS)
        given = {name: getattr(operation, name) for name in names} | (operation.redelivery or {})
        given = {name: value for name, value in given.items() if value is not None}
        return (_compact(given) if given else None, operation.maximum_lifetime_ms)
    if isinstance(operation, op.Open):
        given = {name: getattr(operation, name) for name in UNIT_LIMITS}
        return (_compact(given) if any(given.values()) else None, None)
    if isinstance(operation, HandlingOperation | BackUpJournal):
        given = asdict(operation)
        return (_compact(given | {"kind": type(operation).__name__}), None)
    if isinstance(operation, Relocate):
        return (_compact(_relocated(operation)), None)
    told = dict(getattr(operation, "settings", None) or {})
    if isinstance(operation, op.CreateQueue | op.AlterQueue | op.CreateTopic | op.AlterTopic):
        told |= {name: getattr(operation, name) for name in OPERATION_FIELDS}
    given = {name: value for name, value in told.items() if value is not None}
    return (_compact(given) if given else None, None)


def _relocated(operation: Relocate) -> dict[str, Any]:
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


def _options_text(options: op.GetOptions | None) -> str | None:
    """The options of a Get as JSON, ids in hexadecimal."""
    if options is None:
        return None
    told: dict[str, Any] = dict(options)
    for name in ("message_id", "group_id"):
        told[name] = told[name].hex()
    return _compact(told)


def _is_plain(options: op.GetOptions | None) -> bool:
    """Whether the options of a Get leave everything as it is without any."""
    if options is None:
        return True
    return options == {
        "logical_order": False,
        "all_messages_available": False,
        "all_segments_available": False,
        "complete_message": False,
        "message_id": b"",
        "correlation_id": None,
        "group_id": b"",
        "group_sequence": 0,
        "offset": -1,
        "sequence": -1,
    }


def grouping(operation: op.Operation) -> tuple[Any, ...]:
    """The columns from `options` on: what groups and logical order need."""
    if isinstance(operation, op.Put):
        headers = (message.get("header") for message in operation.messages)
        return (None, None, any(one is not None and one.get("group") for one in headers))
    if isinstance(operation, op.Get):
        return (_options_text(operation.options), None, not _is_plain(operation.options))
    if isinstance(operation, op.CreateQueue | op.AlterQueue):
        return (None, operation.group_affinity, bool(operation.group_affinity))
    return (None, None, False)


def group_columns(messages: Iterable[Mapping[str, Any]]) -> tuple[Any, ...]:
    """Where the messages stand in groups, the offsets of segments, and where each was before.

    Null where there is nothing of the kind.
    """
    headers = [one.get("header") for one in messages]
    groups = [None if one is None else one.get("group") for one in headers]
    origins = [None if one is None else origin_text(one.get("origin")) for one in headers]
    came = None if all(one is None for one in origins) else origins
    if all(one is None for one in groups):
        return (None, None, came)
    return (
        [group_text(one) for one in groups],
        [0 if one is None else one["offset"] for one in groups],
        came,
    )


def without_group(header: str | None) -> str | None:
    """A header, as rows tell it, of a message that is in no group any longer."""
    return None if header is None else _GROUP.sub("", header)
