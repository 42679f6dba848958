"""Choosing: which messages an operation by hand means, looked for with bounded work (§17, H28)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ledgermq.core.destinations.by_name import find_destination, find_given
from ledgermq.core.destinations.numbering import BOUND
from ledgermq.core.entry import Entry
from ledgermq.core.order.selecting import matches, selector_of
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Message, Queue, Topic
from ledgermq.core.state.topics import SubscriptionKey
from ledgermq.protocol.administration import HandlingOperation, MessageSelection, Relocate
from ledgermq.protocol.limits import HANDLED_MESSAGES_MAX, NUMBERS_EXAMINED_MAX, SELECTED_RANGES_MAX
from ledgermq.protocol.outcomes import Administered
from ledgermq.protocol.reasons import Reason, Refusal


class Chosen(NamedTuple):
    """Messages that may be touched, and how far the search for them came.

    `skipped` counts others that are meant but held, or have no place to go back to;
    `next_sequence` is the next number of their queue or subscription.
    """

    messages: list[Message]
    skipped: int
    more: bool
    last_sequence: int
    next_sequence: int


def choose(
    state: QueueManager, selection: MessageSelection, *, to_origin: bool
) -> tuple[Queue, Chosen] | Refusal:
    """The source of a selection, and what an operation may touch of it; each in rising order.

    With `to_origin` those that came from a queue, or a topic with subscriptions, that is there and
    is not the source.
    """
    queue = _source(state, selection)
    if isinstance(queue, Refusal):
        return queue
    selector = selector_of(selection["selector"])
    if isinstance(selector, Refusal):
        return selector
    wrong = _wrong_in(selection)
    if wrong is not None:
        return Refusal(Reason.SELECTION_INVALID, wrong)
    messages: list[Message] = []
    skipped = examined = 0
    last, following = selection["after_sequence"], queue.next_sequence
    touched_max = min(selection["limit"] or HANDLED_MESSAGES_MAX, HANDLED_MESSAGES_MAX)
    for sequence in _numbers(queue, selection):
        if examined == NUMBERS_EXAMINED_MAX or len(messages) == touched_max:
            return queue, Chosen(messages, skipped, True, last, following)
        examined += 1
        last = sequence
        message = queue.messages.get(sequence)
        if message is None or (selector is not None and not matches(selector, message)):
            continue
        if message.consumer is None and (not to_origin or _has_way_back(state, message)):
            messages.append(message)
        else:
            skipped += 1
    return queue, Chosen(messages, skipped, False, last, following)


def _source(state: QueueManager, selection: MessageSelection) -> Queue | Refusal:
    found = find_given(state, selection["source"])
    if isinstance(found, Refusal):
        return found
    name, client_id = selection["subscription"], selection["client_id"]
    if not isinstance(found, Topic):
        if name:
            return Refusal(Reason.SUBSCRIPTION_INVALID, f"{found.destination} has no subscriptions")
        return found
    if not name:
        detail = f"{found.destination} keeps no messages; name one of its subscriptions"
        return Refusal(Reason.SUBSCRIPTION_INVALID, detail)
    kind = "durable" if selection["durable"] else "shared"
    subscription = state.subscriptions.get(SubscriptionKey(kind, name, client_id))
    if subscription is None or subscription.topic is not found:
        return Refusal(
            Reason.SUBSCRIPTION_UNKNOWN,
            f"{found.destination} has no {kind} subscription {quoted(name)} of client id "
            f"{quoted(client_id)}",
        )
    return subscription


def _wrong_in(selection: MessageSelection) -> str | None:
    limit, after = selection["limit"], selection["after_sequence"]
    if limit < 0 or after < -1:
        return f"limit is {limit}, must be 0 or more; after_sequence is {after}, must be -1 or more"
    ranges = selection["sequences"]
    if len(ranges) > SELECTED_RANGES_MAX:
        return f"there are {len(ranges)} ranges of numbers, at most {SELECTED_RANGES_MAX} fit"
    before = -1
    for one in ranges:
        if not before < one["first"] <= one["last"]:
            return f"numbers {one['first']}..{one['last']} do not rise above {before}"
        before = one["last"]
    return None


def _numbers(queue: Queue, selection: MessageSelection) -> Iterator[int]:
    lowest = max(selection["after_sequence"] + 1, queue.min_sequence)
    end = queue.next_sequence
    for one in selection["sequences"] or ({"first": 0, "last": end},):
        yield from range(max(one["first"], lowest), min(one["last"] + 1, end))


def _has_way_back(state: QueueManager, message: Message) -> bool:
    origin = message.origin
    if origin is None or origin["destination"] == message.queue.destination:
        return False
    if origin["reason"] == BOUND:
        # It is where it belongs.
        return False
    found = find_destination(state, origin["destination"])
    # A topic without subscriptions would drop it.
    return found is not None and not (isinstance(found, Topic) and not found.subscriptions)


def administered(
    entry: Entry, operation: HandlingOperation | Relocate, chosen: Chosen
) -> Administered:
    return Administered(
        position=entry.position,
        index=entry.take_index(),
        session=operation.session,
        session_sequence=operation.session_sequence,
        affected=len(chosen.messages),
        skipped=chosen.skipped,
        more=chosen.more,
        last_sequence=chosen.last_sequence,
        next_sequence=chosen.next_sequence,
    )
