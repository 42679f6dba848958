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
from ledgermq.errors import LedgerMQError
from ledgermq.protocol.administration import Relocate, RelocatedMessage
from ledgermq.protocol.documents.pins import LogPins, Pin
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.limits import RELOCATED_MESSAGES_MAX, RELOCATED_PLACES_MAX
from ledgermq.protocol.operations import Put
from ledgermq.wire.framing.codec import decode_operation

PINS_AT_A_TIME: Final = 1_000
# Of bodies in one entry; one message at least.
ENTRY_BYTES: Final = 1024 * 1024
ReadValue = Callable[[int], bytes | None]


class BodyMissingError(LedgerMQError):
    """The body of a live message is not where the worker says."""

    code = "body-missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocated:
    """What was written again, or in a dry run would be.

    Attributes:
        messages: How many live messages have their body at the end of the log now.
        skipped: How many others went before the entry came.
        bytes: Size of the bodies that were written.
        entries: How many entries of the log that took.
        more: Whether there may be more behind the 1,000 messages that were looked at last: in a dry
            run, or where all of these stay.
        staying: What needs the log below and cannot be written again: uncommitted and blocked puts.
        position: Log position of the last outcome, or that a dry run is true at.
        dry_run: Whether nothing was written.
    """

    messages: int
    skipped: int
    bytes: int
    entries: int
    more: bool
    staying: tuple[Pin, ...]
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

        Args:
            read: Gives the value of the record at a position of the operations log.
            before: The log position; if the log is shorter, all that stands on it now.
            reason: Why; it stands on the log.
            actor: Who asks for it; the user of the operating system if it is left out.
            dry_run: Whether only to look at the first 1,000, and to read them.

        Raises:
            BodyMissingError: what stands on the log is not what the worker says.
            RefusedError: reason or actor are empty or too long, or the log was altered.
            WorkerUnavailableError: nobody answered within the time-out.
            OutcomeUnknownError: no outcome within the time-out.
        """
        who = who_asks(actor)
        messages = skipped = written = entries = 0
        live = self.log_pins(PINS_AT_A_TIME)
        # What is written from now on stands behind that, and is not written again.
        before = min(before, live.position + 1)
        while True:
            below = [one for one in live.pins if one.body_position < before]
            movable = [one for one in below if one.sequence >= 0]
            more = len(below) == PINS_AT_A_TIME
            position = live.position
            if dry_run:
                # They are read as in earnest: a body that is not there is refused now, too.
                deque(_copies(movable, read), maxlen=0)
                messages = len(movable)
                written = sum({one.body_place: one.size_bytes for one in movable}.values())
            if dry_run or not movable:
                break
            for copies, size in _entries(_copies(movable, read)):
                reply = self._administer(Relocate, messages=copies, actor=who, reason=reason)
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
            position=position,
            dry_run=dry_run,
        )


def _copies(pins: Iterable[Pin], read: ReadValue) -> Iterator[RelocatedMessage]:
    """What stands on the log for pins, by where it stands; a body that several have once."""
    places: dict[tuple[int, int], list[Pin]] = {}
    for one in pins:
        places.setdefault(one.body_place, []).append(one)
    position, messages = -1, dict[int, RelocatedMessage]()
    for (found_at, index), having in sorted(places.items()):
        if found_at != position:
            try:
                position, messages = found_at, _messages_at(found_at, read)
            except LedgerMQError as error:
                error.add_note(
                    f"there stood the content of {having[0].named}: get the message or delete it, "
                    "and call this again"
                )
                raise
        copy = messages.get(index)
        first = having[0]
        if copy is None or (copy["put_position"], copy["put_index"]) != first.put_place:
            raise BodyMissingError(
                f"position {found_at} of the log does not hold {first.named}: the log is not the "
                "one that the worker reads, or was altered; audit it"
            )
        copy["places"] = [
            {"created_position": one.created_position, "sequence": one.sequence} for one in having
        ]
        yield copy


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
        size = len(copy["message"]["content"]) + header_bytes(next(iter(copy["header"]), None))
        count = len(copy["places"])
        full = taken + size > ENTRY_BYTES or len(found) == RELOCATED_MESSAGES_MAX
        if found and (full or places + count > RELOCATED_PLACES_MAX):
            yield found, taken
            found, taken, places = [], 0, 0
        found.append(copy)
        taken, places = taken + size, places + count
    if found:
        yield found, taken
