"""Messages handled by an administrator: purged, deleted, moved, copied, sent back (§17).

One operation on the log does bounded work, so a call may write several; it means the messages that
were there when the first of them was applied. A dry run asks instead, and changes nothing.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ledgermq.client.argument_types import typed
from ledgermq.client.changing import Changes
from ledgermq.client.destinations import checked_destination
from ledgermq.client.message import Message
from ledgermq.client.questions import Answer
from ledgermq.errors import IllegalStateError
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
from ledgermq.protocol.outcomes import Administered

__all__ = ["Handled", "Handling", "OriginCount"]

Numbers = Iterable[int | range]
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
class Handling(Changes):
    """The part of `connection.admin` that touches messages; only those that nobody holds.

    A source is a queue, or a topic with the name (and client id) of a subscription. `selector` and
    `sequences` (numbers and ranges) say which messages, `limit` how many at most. `actor` is who
    asks for it (the user of the operating system if it is left out), `reason` says why.
    """

    def _ask(self, kind: str, not_before: int, **more: Any) -> Answer:
        raise NotImplementedError

    def purge_queue(
        self,
        source: str,
        *,
        reason: str,
        actor: str | None = None,
        selector: str = "",
        limit: int = 0,
        subscription: str = "",
        client_id: str = "",
        durable: bool = True,
        dry_run: bool = False,
    ) -> Handled:
        """Removes what a queue or subscription has; it counts as removed by administration.

        Raises:
            QueueNotFoundError: there is no such queue.
            SubscriptionNotFoundError: there is no such subscription.
            InvalidSelectorError: the selector cannot be read.
            RefusedError: reason or actor are empty or too long.
            OutcomeUnknownError: no outcome within the time-out.
        """
        selection = _selection(source, selector, None, subscription, client_id, durable)
        return self._handle(PurgeQueue, selection, limit, dry_run, reason, actor)

    def delete_messages(
        self,
        source: str,
        *,
        reason: str,
        actor: str | None = None,
        selector: str = "",
        sequences: Numbers | None = None,
        limit: int = 0,
        subscription: str = "",
        client_id: str = "",
        durable: bool = True,
        dry_run: bool = False,
    ) -> Handled:
        """Removes messages that selector or numbers name; raises as `purge_queue`."""
        selection = _selection(source, selector, sequences, subscription, client_id, durable)
        return self._handle(DeleteMessages, selection, limit, dry_run, reason, actor)

    def move_messages(
        self,
        source: str,
        target: str,
        *,
        reason: str,
        actor: str | None = None,
        selector: str = "",
        sequences: Numbers | None = None,
        limit: int = 0,
        subscription: str = "",
        client_id: str = "",
        durable: bool = True,
        dry_run: bool = False,
    ) -> Handled:
        """Moves messages to another destination, where they get new numbers.

        Raises as `purge_queue`, and:
            InvalidDestinationError: the target is not there, or is the source.
        """
        selection = _selection(source, selector, sequences, subscription, client_id, durable)
        wanted = {"target": _destination(target)}
        return self._handle(MoveMessages, selection, limit, dry_run, reason, actor, **wanted)

    def copy_messages(
        self,
        source: str,
        target: str,
        *,
        reason: str,
        actor: str | None = None,
        selector: str = "",
        sequences: Numbers | None = None,
        limit: int = 0,
        subscription: str = "",
        client_id: str = "",
        durable: bool = True,
        dry_run: bool = False,
    ) -> Handled:
        """Puts copies of messages to another destination; raises as `move_messages`."""
        selection = _selection(source, selector, sequences, subscription, client_id, durable)
        wanted = {"target": _destination(target)}
        return self._handle(CopyMessages, selection, limit, dry_run, reason, actor, **wanted)

    def retry_messages(
        self,
        source: str,
        *,
        reason: str,
        actor: str | None = None,
        selector: str = "",
        sequences: Numbers | None = None,
        limit: int = 0,
        subscription: str = "",
        client_id: str = "",
        durable: bool = True,
        dry_run: bool = False,
    ) -> Handled:
        """Sends each message back to the destination that it came from; raises as `purge_queue`.

        Messages that came from nowhere, or from what is no longer there, are skipped.
        """
        selection = _selection(source, selector, sequences, subscription, client_id, durable)
        wanted = {"to_origin": True}
        return self._handle(MoveMessages, selection, limit, dry_run, reason, actor, **wanted)

    def select_messages(
        self,
        source: str,
        *,
        selector: str = "",
        sequences: Numbers | None = None,
        limit: int = 0,
        subscription: str = "",
        client_id: str = "",
        durable: bool = True,
        to_origin: bool = False,
        shown: int = SHOWN_DEFAULT,
    ) -> Handled:
        """What the other calls would touch, and the first `shown` of it; changes nothing."""
        selection = _selection(source, selector, sequences, subscription, client_id, durable)
        return self._look(selection, limit, to_origin=to_origin, shown=shown)

    def _handle(
        self,
        kind: type[HandlingOperation],
        selection: MessageSelection,
        limit: int,
        dry_run: bool,
        reason: str,
        actor: str | None,
        **more: Any,
    ) -> Handled:
        if dry_run:
            to_origin = more.get("to_origin", False)
            return self._look(selection, limit, to_origin=to_origin, shown=SHOWN_DEFAULT)
        who = getpass.getuser() if actor is None else actor
        affected = skipped = position = 0
        paging = _Paging(selection, limit)
        while (page := paging.page()) is not None:
            reply = self._administer(kind, selection=page, actor=who, reason=reason, **more)
            affected, skipped = affected + reply.affected, skipped + reply.skipped
            position = reply.position
            paging.went(reply.affected, reply.more, reply.last_sequence, reply.next_sequence)
        return Handled(affected=affected, skipped=skipped, position=position, dry_run=False)

    def _administer(self, kind: type[HandlingOperation], **fields: Any) -> Administered:
        reply = self._write(kind, fields["selection"]["source"], fields)
        assert isinstance(reply, Administered), "operations by hand are answered by Administered"
        return reply

    def _look(
        self, selection: MessageSelection, limit: int, *, to_origin: bool, shown: int
    ) -> Handled:
        affected = skipped = 0
        position = -1
        messages: list[Message] = []
        origins: dict[tuple[str, str], int] = {}
        paging = _Paging(selection, limit)
        while (page := paging.page()) is not None:
            answer = self._ask(
                "SELECT_MESSAGES",
                -1,
                selection=page,
                to_origin=to_origin,
                limit=max(0, shown - len(messages)),
            )
            told, position = answer.document, answer.position
            affected, skipped = affected + told["affected"], skipped + told["skipped"]
            messages += [Message(raw, selection["source"]) for raw in answer.messages]
            for one in told["origins"]:
                key = (one["destination"], one["reason"])
                origins[key] = origins.get(key, 0) + one["count"]
            names = ("affected", "more", "last_sequence", "next_sequence")
            paging.went(*(told[name] for name in names))
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

    def __init__(self, selection: MessageSelection, limit: int) -> None:
        ranges = selection["sequences"]
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
    selector: str,
    sequences: Numbers | None,
    subscription: str,
    client_id: str,
    durable: bool,
) -> MessageSelection:
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
        "limit": 0,
    }


def _destination(text: str) -> str:
    """`queue:NAME`, `topic:NAME`, or a bare `NAME` of a queue, as a destination."""
    is_bare = isinstance(text, str) and not text.startswith(("queue:", "topic:"))
    return checked_destination(f"queue:{text}" if is_bare else text)


def _ranges(sequences: Numbers) -> list[SequenceRange]:
    """Numbers and ranges as ranges that rise and do not touch each other."""
    pairs = [
        (one, one) if isinstance(one, int) else (one[0], one[-1])
        for one in sequences
        if isinstance(one, int) or one
    ]
    found: list[SequenceRange] = []
    for first, last in sorted(pairs):
        if found and first <= found[-1]["last"] + 1:
            found[-1]["last"] = max(found[-1]["last"], last)
        else:
            found.append({"first": first, "last": last})
    return found
