"""Messages handled by an administrator: purged, deleted, moved, copied, sent back (§17).

One operation on the log does bounded work, so a call may write several; it means the messages that
were there when the first of them was applied. A dry run asks instead, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Unpack

from ledgermq.client.admin.part import AdminPart, who_asks
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import wrong_type
from ledgermq.client.destinations import QUEUE, TOPIC, checked_destination
from ledgermq.client.messages.message import Message
from ledgermq.client.options import HandlingOptions, Numbers, PurgeOptions, SelectionOptions
from ledgermq.errors import IllegalStateError
from ledgermq.errors.shown import shown
from ledgermq.protocol.administration import (
    CopyMessages,
    DeleteMessages,
    HandlingOperation,
    MessageSelection,
    MoveMessages,
    PurgeQueue,
    SequenceRange,
)
from ledgermq.protocol.limits import HANDLED_MESSAGES_MAX, SELECTED_RANGES_MAX
from ledgermq.wire.content.objects import LONG_MAX, LONG_MIN

SHOWN_DEFAULT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginCount:
    """How many messages came from one destination for one reason."""

    destination: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """What was touched, or in a dry run would be.

    Attributes:
        affected: How many messages.
        skipped: How many others were meant and left as they are: somebody holds them, or they have
            no destination to go back to.
        position: Log position of the last outcome, or that a dry run is true at.
        dry_run: Whether nothing was done.
        messages: In a dry run, the first of the messages.
        origins: In a dry run, where the messages had come from before, by destination and reason.
    """

    affected: int
    skipped: int
    position: int
    dry_run: bool
    messages: tuple[Message, ...] = ()
    origins: tuple[OriginCount, ...] = ()


@typed
class ManualOperations(AdminPart):
    """What an administrator does to messages; only to those that nobody holds.

    A source is a queue, or a topic with the name (and client id) of a subscription. `selector` and
    `sequences` (numbers and ranges) say which messages, `limit` how many at most (0: all). `actor`
    is who asks for it (the user of the operating system if it is left out), `reason` says why.
    """

    def purge_queue(self, source: str, *, reason: str, **how: Unpack[PurgeOptions]) -> Handled:
        """Removes what a queue or subscription has; it counts as removed by administration.

        Raises:
            QueueNotFoundError: there is no such queue.
            SubscriptionNotFoundError: there is no such subscription.
            InvalidSelectorError: the selector cannot be read.
            RefusedError: reason or actor are empty or too long.
            OutcomeUnknownError: no outcome within the time-out.
        """
        return self._handle(PurgeQueue, source, reason, how)

    def delete_messages(
        self, source: str, *, reason: str, **how: Unpack[HandlingOptions]
    ) -> Handled:
        """Removes messages that selector or numbers name; raises as `purge_queue`."""
        return self._handle(DeleteMessages, source, reason, how)

    def move_messages(
        self, source: str, target: str, *, reason: str, **how: Unpack[HandlingOptions]
    ) -> Handled:
        """Moves messages to another destination, where they get new numbers.

        Raises as `purge_queue`, and:
            InvalidDestinationError: the target is not there, or is the source.
        """
        return self._handle(MoveMessages, source, reason, how, target=_destination(target))

    def copy_messages(
        self, source: str, target: str, *, reason: str, **how: Unpack[HandlingOptions]
    ) -> Handled:
        """Puts copies of messages to another destination; raises as `move_messages`."""
        return self._handle(CopyMessages, source, reason, how, target=_destination(target))

    def retry_messages(
        self, source: str, *, reason: str, **how: Unpack[HandlingOptions]
    ) -> Handled:
        """Sends each message back to the destination that it came from; raises as `purge_queue`.

        Messages that came from nowhere or by a binding, from what is no longer there, or from a
        topic without subscriptions, which would drop them, are skipped.
        """
        return self._handle(MoveMessages, source, reason, how, to_origin=True)

    def select_messages(
        self,
        source: str,
        *,
        to_origin: bool = False,
        shown: int = SHOWN_DEFAULT,
        **which: Unpack[SelectionOptions],
    ) -> Handled:
        """What the other calls would touch, and the first `shown` of it; changes nothing."""
        return self._look(_selection(source, **which), to_origin=to_origin, shown=shown)

    def _handle(
        self,
        kind: type[HandlingOperation],
        source: str,
        reason: str,
        how: PurgeOptions | HandlingOptions,
        **more: Any,
    ) -> Handled:
        which: dict[str, Any] = {**how}
        who, dry_run = who_asks(which.pop("actor", None)), which.pop("dry_run", False)
        selection = _selection(source, **which)
        if dry_run:
            to_origin = more.get("to_origin", False)
            return self._look(selection, to_origin=to_origin, shown=SHOWN_DEFAULT)
        affected = skipped = position = 0
        paging = _Paging(selection)
        while (page := paging.page()) is not None:
            reply = self._administer(
                kind, about=page["source"], selection=page, actor=who, reason=reason, **more
            )
            affected, skipped = affected + reply.affected, skipped + reply.skipped
            position = reply.position
            paging.went(reply.affected, reply.more, reply.last_sequence, reply.next_sequence)
        return Handled(affected=affected, skipped=skipped, position=position, dry_run=False)

    def _look(self, selection: MessageSelection, *, to_origin: bool, shown: int) -> Handled:
        affected = skipped = 0
        position = -1
        messages: list[Message] = []
        origins: dict[tuple[str, str], int] = {}
        paging = _Paging(selection)
        while (page := paging.page()) is not None:
            answer = self._ask(
                "SELECT_MESSAGES",
                selection=page,
                to_origin=to_origin,
                limit=max(0, shown - len(messages)),
            )
            document, position = answer.document, answer.position
            affected, skipped = affected + document["affected"], skipped + document["skipped"]
            messages += [Message(raw, selection["source"]) for raw in answer.messages]
            for one in document["origins"]:
                key = (one["destination"], one["reason"])
                origins[key] = origins.get(key, 0) + one["count"]
            names = ("affected", "more", "last_sequence", "next_sequence")
            paging.went(*(document[name] for name in names))
        return Handled(
            affected=affected,
            skipped=skipped,
            position=position,
            dry_run=True,
            messages=tuple(messages),
            origins=tuple(
                OriginCount(destination=destination, reason=reason, count=count)
                for (destination, reason), count in sorted(origins.items())
            ),
        )


class _Paging:
    """The operations or questions of one call, one after the other.

    The first answer says which number comes next; what has that one or a higher one was put later,
    and is not meant.
    """

    def __init__(self, selection: MessageSelection) -> None:
        ranges, limit = selection["sequences"], selection["limit"]
        self._selection = selection
        self._named = bool(ranges)
        self._parts = [
            ranges[at : at + SELECTED_RANGES_MAX]
            for at in range(0, max(1, len(ranges)), SELECTED_RANGES_MAX)
        ]
        self._limit = limit
        self._left = limit
        self._after = -1
        self._end = -1

    def page(self) -> MessageSelection | None:
        """What the next one is for; None: all was gone through."""
        if not self._parts:
            return None
        ranges = self._parts[0]
        if not self._named and self._end > 0:
            ranges = [{"first": 0, "last": self._end - 1}]
        return {
            **self._selection,
            "sequences": ranges,
            "after_sequence": self._after,
            "limit": min(self._left, HANDLED_MESSAGES_MAX),
        }

    def went(self, affected: int, more: bool, last_sequence: int, next_sequence: int) -> None:
        """Takes in how far the last one came."""
        self._end = next_sequence if self._end < 0 else self._end
        self._left -= affected if self._limit else 0
        self._after = last_sequence
        if self._limit and not self._left:
            self._parts = []
        elif not more or last_sequence >= self._end - 1:
            self._parts = self._parts[1:]
            self._after = -1


def _selection(
    source: str,
    *,
    selector: str = "",
    sequences: Numbers | None = None,
    limit: int = 0,
    subscription: str = "",
    client_id: str = "",
    durable: bool = True,
) -> MessageSelection:
    if isinstance(sequences, str | bytes) or not isinstance(sequences, Iterable | None):
        raise wrong_type("sequences", sequences, "an iterable of numbers and ranges")
    ranges = [] if sequences is None else _ranges(sequences)
    if sequences is not None and not ranges:
        raise IllegalStateError("no sequence numbers are given; leave them out to mean all")
    return {
        "source": _destination(source),
        "subscription": subscription,
        "client_id": client_id,
        "durable": durable,
        "selector": selector,
        "sequences": ranges,
        "after_sequence": -1,
        "limit": limit,
    }


def _destination(text: str) -> str:
    """`queue:NAME`, `topic:NAME`, or a bare `NAME` of a queue, as a destination."""
    is_whole = text.startswith((QUEUE, TOPIC))
    return checked_destination(text if is_whole else QUEUE + text)


def _pairs(one: object) -> Iterable[tuple[int, int]]:
    """First and last number of what is said as one: a number, or a range, which may have gaps."""
    if isinstance(one, range):
        if one.step in (1, -1):
            return [(min(one[0], one[-1]), max(one[0], one[-1]))] if one else []
        return [(number, number) for number in one]
    if isinstance(one, int) and not isinstance(one, bool):
        return [(one, one)]
    raise wrong_type("sequences", one, "numbers and ranges")


def _ranges(sequences: Numbers) -> list[SequenceRange]:
    """Numbers and ranges as ranges that rise and do not touch each other."""
    given = [sequences] if isinstance(sequences, range) else sequences
    found: list[SequenceRange] = []
    for first, last in sorted(pair for one in given for pair in _pairs(one)):
        for one in (first, last):
            if not LONG_MIN <= one <= LONG_MAX:
                raise IllegalStateError(
                    f"sequences has {shown(one)}: sequence numbers are 0 to {LONG_MAX}"
                )
        if found and first <= found[-1]["last"] + 1:
            found[-1]["last"] = max(found[-1]["last"], last)
        else:
            found.append({"first": first, "last": last})
    return found
