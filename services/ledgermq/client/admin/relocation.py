"""Messages written again by an administrator, so that the log below can be trimmed (§22, H24).

The bodies are taken from the log as they stand there, by a reader that the caller has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ledgermq.client.admin.part import AdminPart, who_asks
from ledgermq.client.argument_types import typed
from ledgermq.protocol.administration import Relocate, RelocatedMessage
from ledgermq.protocol.documents.pins import LogPins, Pin
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.limits import RELOCATED_MESSAGES_MAX, RELOCATED_PLACES_MAX
from ledgermq.protocol.operations import Put
from ledgermq.wire.framing.codec import decode_operation
from ledgermq.wire.topics.reading import BodyLostError

PINS_AT_A_TIME: Final = 1_000
# Of bodies in one entry; one message at least.
ENTRY_BYTES: Final = 1024 * 1024
ReadValue = Callable[[int], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LostBody:
    """A live message whose body the log does not have as it was put, and why."""

    pin: Pin
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocated:
    """What was written again, or in a dry run would be.

    Attributes:
        messages: How many live messages have their body at the end of the log now.
        skipped: How many others went before the entry came.
        bytes: Size of the bodies that were written.
        entries: How many entries of the log that took.
        more: Whether there may be more behind the 1,000 messages that were looked at last: in a dry
            run, or where all of these stay or are lost.
        staying: What needs the log below and cannot be written again: uncommitted and blocked puts.
        lost: What could not be written again because its body is lost. It needs the log below until
            the message is got or deleted.
        position: Log position of the last outcome, or that a dry run is true at.
        dry_run: Whether nothing was written.
    """

    messages: int
    skipped: int
    bytes: int
    entries: int
    more: bool
    staying: tuple[Pin, ...]
    lost: tuple[LostBody, ...]
    position: int
    dry_run: bool


@typed
class Relocation(AdminPart):
    """Writes old live messages again."""

    def log_pins(self, limit: int = 20, *, not_before: int = -1) -> LogPins:
        """The live messages whose bodies stand lowest on the log, oldest first; at most `limit`.

        The worker looks at every live message for it.

        Raises:
            WorkerUnavailableError: nobody answered within the time-out.
        """
        return self._one(LogPins, "PINS", not_before, limit=limit)

    def relocate_messages(
        self,
        read: ReadValue,
        *,
        before: int,
        reason: str,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> Relocated:
        """Writes the live messages again whose bodies stand below a log position (H24).

        They stay what and where they are; only the log below is needed no more. Each entry has at
        most 1,000 messages and 1 MiB of bodies, or one message.

        A message whose body is lost is passed over, and told.

        Args:
            read: Gives the value of the record at a position of the operations log; BodyLostError:
                there is none any more, or it is damaged.
            before: The log position; if the log is shorter, all that stands on it now.
            reason: Why; it stands on the log.
            actor: Who asks for it; the user of the operating system if it is left out.
            dry_run: Whether only to look at the first 1,000, and to read them.

        Raises:
            RefusedError: reason or actor are empty or too long, or the log was altered.
            WorkerUnavailableError: nobody answered within the time-out.
            OutcomeUnknownError: no outcome within the time-out.
        """
        who = who_asks(actor)
        messages = skipped = written = entries = 0
        lost: dict[tuple[int, int], list[LostBody]] = {}
        live = self.log_pins(PINS_AT_A_TIME)
        # What is written from now on stands behind that, and is not written again.
        before = min(before, live.position + 1)
        while True:
            below = [one for one in live.pins if one.body_position < before]
            movable = [one for one in below if one.sequence >= 0 and one.body_place not in lost]
            more = len(below) == PINS_AT_A_TIME
            position = live.position
            copies = _copies(movable, read, lost)
            if dry_run:
                # They are read as in earnest: a body that is lost is told now, too.
                deque(copies, maxlen=0)
                found = [one for one in movable if one.body_place not in lost]
                messages = len(found)
                written = sum({one.body_place: one.size_bytes for one in found}.values())
            if dry_run or not movable:
                break
            for some, size in _entries(copies):
                reply = self._administer(Relocate, messages=some, actor=who, reason=reason)
                messages, skipped = messages + reply.affected, skipped + reply.skipped
                written, entries = written + size, entries + 1
            live = self.log_pins(PINS_AT_A_TIME)
        return Relocated(
            messages=messages,
            skipped=skipped,
            bytes=written,
            entries=entries,
            more=more,
            staying=tuple(one for one in below if one.sequence < 0),
            lost=tuple(one for place in sorted(lost) for one in lost[place]),
            position=position,
            dry_run=dry_run,
        )


def _copies(
    pins: Iterable[Pin], read: ReadValue, lost: dict[tuple[int, int], list[LostBody]]
) -> Iterator[RelocatedMessage]:
    """What stands on the log for pins, by where it stands; a body that several have once.

    What is not there is added to what is `lost`.
    """
    places: dict[tuple[int, int], list[Pin]] = {}
    for one in pins:
        places.setdefault(one.body_place, []).append(one)
    position, messages, why = -1, dict[int, RelocatedMessage](), ""
    for (found_at, index), having in sorted(places.items()):
        if found_at != position:
            position, messages, why = found_at, {}, ""
            try:
                messages = _messages_at(found_at, read)
            except BodyLostError as error:
                why = str(error)
        copy = messages.get(index)
        first = having[0]
        if copy is None or not _is_copy_of(copy, first):
            why_lost = why or (
                f"position {found_at} of the log does not hold it: the log is not the one that the "
                "worker reads, or was altered; audit it"
            )
            lost[found_at, index] = [LostBody(pin=one, why=why_lost) for one in having]
            continue
        copy["places"] = [
            {"created_position": one.created_position, "sequence": one.sequence} for one in having
        ]
        yield copy


def _is_copy_of(copy: RelocatedMessage, pin: Pin) -> bool:
    """Whether it is the message that the worker means, as far as that tells."""
    message = copy["message"]
    return (
        (copy["put_position"], copy["put_index"]) == pin.put_place
        and message["message_id"].hex() == pin.message_id
        and _size_bytes(copy) == pin.size_bytes
    )


def _size_bytes(copy: RelocatedMessage) -> int:
    return len(copy["message"]["content"]) + header_bytes(next(iter(copy["header"]), None))


def _messages_at(position: int, read: ReadValue) -> dict[int, RelocatedMessage]:
    """The messages in an entry of the log, by index, as they are written again."""
    operation = decode_operation(read(position))
    if isinstance(operation, Relocate):
        return dict(enumerate(operation.messages))
    if not isinstance(operation, Put):
        return {}
    found: dict[int, RelocatedMessage] = {}
    for index, one in enumerate(operation.messages):
        header = one.get("header")
        found[index] = {
            "put_position": position,
            "put_index": index,
            "places": [],
            "message": {
                "message_id": one["message_id"],
                "priority": one["priority"],
                "persistent": one["persistent"],
                "content": one["content"],
            },
            "header": [] if header is None else [header],
        }
    return found


def _entries(
    copies: Iterable[RelocatedMessage],
) -> Iterator[tuple[list[RelocatedMessage], int]]:
    """Copies as one entry takes them, and the size of their bodies."""
    found: list[RelocatedMessage] = []
    taken = places = 0
    for copy in copies:
        size = _size_bytes(copy)
        count = len(copy["places"])
        full = taken + size > ENTRY_BYTES or len(found) == RELOCATED_MESSAGES_MAX
        if found and (full or places + count > RELOCATED_PLACES_MAX):
            yield found, taken
            found, taken, places = [], 0, 0
        found.append(copy)
        taken, places = taken + size, places + count
    if found:
        yield found, taken
