"""What texts decide by themselves: selectors, settings, headers, options and selections."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from pyspark.sql import SparkSession

from ledgermq.protocol import get_options, limits
from ledgermq.protocol.settings import DEFAULTS, changed, wrong_in
from ledgermq.selector import SelectorError, parse_selector
from ledgermq_spark.journal.backups import Backups
from ledgermq_spark.log.headers import header_of, options_of, without_group
from ledgermq_spark.log.matching import Selected, matches

Headers = list[str | None] | None


def selector_is_wrong(text: str | None) -> bool:
    """Whether a text is no selector (§12)."""
    try:
        parse_selector(text or "")
    except SelectorError:
        return True
    return False


def suits(text: str, message: Any, keeps_group: bool) -> bool:
    """Whether a selector is true of a message, which may have lost its group; empty it always is.

    The message is null where there is nothing to ask.
    """
    if message is None:
        return True
    header = message["header"]
    told = header if keeps_group else without_group(header)
    selected = Selected(
        message["message_id"], message["priority"], message["persistent"], message["time_us"], told
    )
    return matches(_parsed(text), selected)


_parsed = lru_cache(maxsize=1024)(parse_selector)


def settings_are_wrong(text: str | None) -> bool:
    """Whether a setting that is given is out of range; the others were checked when given."""
    told = json.loads(text or "{}")
    given = {name: value for name, value in told.items() if hasattr(DEFAULTS, name)}
    return wrong_in(changed(DEFAULTS, given)) is not None


def kind_of_options(text: str | None) -> str:
    """`none`, or of get options that are given: `wrong`, `logical`, `plain` or `other`."""
    if text is None:
        return "none"
    options = options_of(json.loads(text))
    if get_options.check(options) is not None:
        return "wrong"
    if options.logical_order:
        return "logical"
    return "plain" if options == get_options.PLAIN else "other"


def times_are_wrong(headers: Headers) -> bool:
    """Whether a message has a time or redelivery limit out of range; what is not told is right."""
    for told in _each(headers):
        if not all(0 <= told.get(name, 0) <= limits.TIMING_MS_MAX for name in ("l", "d", "a")):
            return True
        if not -1 <= told.get("r", -1) <= limits.REDELIVERY_LIMIT_MAX:
            return True
    return False


def groups_are_wrong(headers: Headers) -> bool:
    """Whether no message can have the place in a group that one has (§13)."""
    return any(_is_wrong_group(told["g"]) for told in _each(headers) if "g" in told)


def selection_is_wrong(text: str | None) -> bool:
    """Whether what an operation by hand asks for selects no messages (§17)."""
    asked = json.loads(text or "{}")
    selection = asked["selection"]
    ranges = selection["sequences"]
    if selection["limit"] < 0 or selection["after_sequence"] < -1:
        return True
    places = [-1]
    for one in ranges:
        if not places[-1] < one["first"] <= one["last"]:
            return True
        places.append(one["last"])
    if len(ranges) > limits.SELECTED_RANGES_MAX:
        return True
    names_none = not ranges and not selection["selector"].strip(" \t\f\r\n")
    return asked["kind"] == "DeleteMessages" and names_none


def backup_reasons(entries: list[Any]) -> list[dict[str, Any]]:
    """Why each BackUpJournal is refused, among the changes of settings that came between (§21)."""
    backups = Backups()
    judged = []
    for entry in entries:
        position, text = entry["position"], entry["settings"]
        if entry["is_asked"]:
            judged.append({"position": position, "reason": backups.refusal(position, text)})
        if entry["is_done"] and entry["kind"] == "BackUpJournal":
            backups.backed_up(text)
        elif entry["is_done"]:
            backups.altered(position, text)
    return judged


def _each(headers: Headers) -> list[dict[str, Any]]:
    return [header_of(one) for one in headers or () if one is not None]


def _is_wrong_group(told: dict[str, Any]) -> bool:
    number, flags, group_id = told["n"], told["f"], told["i"]
    if len(group_id) != 2 * limits.GROUP_ID_BYTES or not group_id.strip("0"):
        return True
    if not 1 <= number <= limits.GROUP_SEQUENCE_MAX:
        return True
    if "s" in flags:
        in_range = 0 <= told["o"] <= limits.OFFSET_MAX and 1 <= told["l"] <= limits.OFFSET_MAX
    else:
        in_range = not told["o"] and not told["l"] and "e" not in flags and "g" in flags
    return not in_range or ("g" not in flags and ("m" in flags or number != 1))


MESSAGE: Final = (
    "STRUCT<message_id: BINARY, priority: BIGINT, persistent: BOOLEAN, time_us: BIGINT, "
    "header: STRING>"
)
ENTRIES: Final = (
    "ARRAY<STRUCT<position: BIGINT, kind: STRING, settings: STRING, is_asked: BOOLEAN, "
    "is_done: BOOLEAN>>"
)
REASONS: Final = "ARRAY<STRUCT<position: BIGINT, reason: STRING>>"
# What queries ask by name: the types of what each is given, and of what it tells.
CHECKS: Final[dict[str, tuple[Callable[..., Any], tuple[str, ...], str]]] = {
    "selector_is_wrong": (selector_is_wrong, ("STRING",), "BOOLEAN"),
    "suits": (suits, ("STRING", MESSAGE, "BOOLEAN"), "BOOLEAN"),
    "settings_are_wrong": (settings_are_wrong, ("STRING",), "BOOLEAN"),
    "kind_of_options": (kind_of_options, ("STRING",), "STRING"),
    "times_are_wrong": (times_are_wrong, ("ARRAY<STRING>",), "BOOLEAN"),
    "groups_are_wrong": (groups_are_wrong, ("ARRAY<STRING>",), "BOOLEAN"),
    "selection_is_wrong": (selection_is_wrong, ("STRING",), "BOOLEAN"),
    "backup_reasons": (backup_reasons, (ENTRIES,), REASONS),
}


def register(spark: SparkSession, text: str) -> None:
    """Lets a query ask those of these that it names."""
    for name, (check, _, kind) in CHECKS.items():
        if f"{name}(" in text:
            spark.udf.register(name, check, kind)
