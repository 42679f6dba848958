"""Which messages an operation by hand means, and why one is refused (PROTOCOL.md §17)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ledgermq.selector import SelectorError, parse_selector
from ledgermq_spark.derivation.destinations import is_topic, store_of
from ledgermq_spark.derivation.matching import Selected, matches

if TYPE_CHECKING:
    from ledgermq_spark.derivation.directory import Subscription
    from ledgermq_spark.derivation.stay import Stay, Store


HANDLED = ("PurgeQueue", "DeleteMessages", "MoveMessages", "CopyMessages")
ACTOR_MAX, REASON_MAX, RANGES_MAX = 128, 1_024, 1_000
EXAMINED_MAX, TOUCHED_MAX = 20_000, 10_000
Standing = dict[str, "Store"]


def _given(destination: str, standing: Standing) -> Store | str:
    """The queue or topic that is named, or why not."""
    kind, colon, _ = destination.partition(":")
    if not colon or kind not in ("queue", "topic"):
        return "destination-invalid"
    return standing.get(store_of(destination), f"{kind}-unknown")


def source_of(
    selection: dict[str, Any],
    standing: Standing,
    subscriptions: dict[int, tuple[Store, Subscription]],
) -> Store | str:
    """The queue or subscription that is looked at, or why it is none."""
    found = _given(selection["source"], standing)
    if isinstance(found, str):
        return found
    name = selection["subscription"]
    if is_topic(found.name) != bool(name):
        return "subscription-invalid"
    if not name:
        return found
    wanted = ("durable" if selection["durable"] else "shared", name, selection["client_id"])
    for store, one in subscriptions.values():
        if store.topic is found and (one.kind, one.name, one.client_id) == wanted:
            return store
    return "subscription-unknown"


def refusal_of(asked: dict[str, Any], source: Store, standing: Standing) -> str | None:
    """Why an operation with a good source is refused, or None."""
    selection = asked["selection"]
    try:
        selector = parse_selector(selection["selector"])
    except SelectorError:
        return "selector-invalid"
    before, ranges = -1, selection["sequences"]
    wrong = selection["limit"] < 0 or selection["after_sequence"] < -1 or len(ranges) > RANGES_MAX
    for one in ranges:
        wrong = wrong or not before < one["first"] <= one["last"]
        before = one["last"]
    if wrong or (asked["kind"] == "DeleteMessages" and selector is None and not ranges):
        return "selection-invalid"
    if not 0 < len(asked["actor"]) <= ACTOR_MAX or not 0 < len(asked["reason"]) <= REASON_MAX:
        return "reason-invalid"
    if asked.get("to_origin"):
        return "destination-invalid" if asked["target"] else None
    if "target" not in asked:
        return None
    target = _given(asked["target"], standing)
    if isinstance(target, str):
        return target
    return "destination-invalid" if target.name == source.name else None


def _numbers(selection: dict[str, Any], source: Store) -> Iterator[int]:
    lowest = max(selection["after_sequence"] + 1, min(source.messages, default=0))
    end = max(source.messages, default=-1) + 1
    for one in selection["sequences"] or ({"first": 0, "last": end},):
        yield from range(max(one["first"], lowest), min(one["last"] + 1, end))


def chosen(asked: dict[str, Any], source: Store, standing: Standing) -> list[Stay]:
    """The messages that are touched, in order of their numbers: those that nobody holds."""
    selection = asked["selection"]
    found: list[Stay] = []
    most = min(selection["limit"] or TOUCHED_MAX, TOUCHED_MAX)
    for examined, number in enumerate(_numbers(selection, source)):
        if examined == EXAMINED_MAX or len(found) == most:
            break
        stay = source.messages.get(number)
        if stay is None or stay.held or not _is_meant(stay, selection["selector"]):
            continue
        if not asked.get("to_origin") or _has_way_back(stay, source, standing):
            found.append(stay)
    return found


def _is_meant(stay: Stay, selector: str) -> bool:
    told = stay.message
    return not selector.strip() or matches(
        selector,
        Selected(told.message_id, told.priority, told.persistent, stay.enqueued_at, told.header),
    )


def _has_way_back(stay: Stay, source: Store, standing: Standing) -> bool:
    """Whether it came from a destination that is there, and another one."""
    if stay.origin is None:
        return False
    store = store_of(stay.origin["destination"])
    return store in standing and store != source.name
