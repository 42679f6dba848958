"""Messages and consumers of a store as the pass over it knows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ledgermq.protocol.get_options import PLAIN, GroupPosition, Options
from ledgermq.selector import Selector
from ledgermq_spark.log.headers import header_of, without_group
from ledgermq_spark.log.matching import Selected, matches, values_of

AVAILABLE: Final = "available"
DELAYED: Final = "delayed"
IN_FLIGHT: Final = ("unacknowledged", "uncommitted get")
# Priority (9 first), then sequence number: the order of delivery.
Rank = tuple[int, int]


class GroupPlace(NamedTuple):
    """Where a message is in a group (PROTOCOL.md §13); data of a segment are from start to end."""

    group_id: bytes
    number: int
    start: int
    end: int
    in_group: bool
    is_last: bool
    is_segment: bool
    is_last_segment: bool


@dataclass(slots=True, eq=False, kw_only=True)
class Message:
    """A live numbered message of a store; `header` is the JSON text of `log.headers`."""

    sequence: int
    rank: Rank
    message_id: bytes
    is_persistent: bool
    enqueued_at_us: int
    header: str | None
    group: GroupPlace | None = None
    # It was put in a unit of work; its writer keeps the order of its group.
    is_in_unit: bool = False
    keeps_order: bool = False
    # What its group goes by for group affinity and the order of groups.
    key: bytes | None = None
    state: str = ""
    holder: Consumer | None = None
    delivery: int = 0
    is_in_doubt: bool = False
    # Which one it was of those received, in a FIFO mode; 0: it was not.
    received: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether it has nothing to do with groups."""
        return self.key is None and self.group is None

    @property
    def number(self) -> int:
        """Its group sequence, 1 outside of groups."""
        return self.group.number if self.group else 1

    @property
    def start(self) -> int:
        """Where its data begin in its logical message."""
        return self.group.start if self.group else 0

    @property
    def is_segment(self) -> bool:
        return self.group is not None and self.group.is_segment

    def given_header(self) -> dict[str, Any]:
        """Properties `p`, correlation id `c`, type `t`, as far as its sender gave them."""
        return header_of(self.header)

    @property
    def _selected(self) -> Selected:
        return Selected(
            message_id=self.message_id,
            priority=-self.rank[0],
            persistent=self.is_persistent,
            enqueued_at=self.enqueued_at_us,
            header=self.header if self.group else without_group(self.header),
        )

    def is_selected(self, selector: Selector | None) -> bool:
        """Whether a selector is true of it (PROTOCOL.md §12)."""
        return matches(selector, self._selected)

    def value(self, key: str) -> str | None:
        """What tells its value of a key from others (PROTOCOL.md §23); None: it has none."""
        value = values_of(self._selected)(key) if key else None
        return None if value is None else repr(value)

    def has_values(self, options: Options) -> bool:
        """Whether it has the values that match options ask for."""
        group_id = self.group.group_id if self.group else None
        return (
            options.message_id in (b"", self.message_id)
            and options.group_id in (b"", group_id)
            and options.group_sequence in (0, self.number)
            and options.offset in (-1, self.start)
            and options.sequence in (-1, self.sequence)
            and options.correlation_id in (None, self.given_header().get("c"))
        )

    @property
    def position(self) -> GroupPosition | None:
        """The group position of who is given it in logical order."""
        place = (self.number, self.start)
        return None if self.group is None or place == (1, 0) else (self.group.group_id, *place)

    def position_after(self) -> GroupPosition | None:
        """The group position of who was given it last."""
        group = self.group
        if group is None:
            return None
        if group.is_segment and not group.is_last_segment:
            return (group.group_id, group.number, group.end)
        if group.in_group and not group.is_last:
            return (group.group_id, group.number + 1, 0)
        return None


def message_of(
    sequence: int,
    priority: int,
    message_id: bytes | None,
    is_persistent: bool | None,
    time_us: int,
    text: str | None,
    flag: bool | None,
    *,
    is_in_unit: bool,
) -> Message:
    """A message, of what is told of it; `text` is its header, `flag`: it may be in a group."""
    header = header_of(text) if text else {}
    group = group_place(header) if header and flag else None
    return Message(
        sequence=sequence,
        rank=(-priority, sequence),
        message_id=message_id or b"",
        is_persistent=bool(is_persistent),
        enqueued_at_us=time_us,
        header=text,
        group=group,
        is_in_unit=is_in_unit,
        keeps_order=bool(header.get("k")),
        key=group_key(header, group) if header else None,
    )


@dataclass(slots=True, eq=False, kw_only=True)
class Consumer:
    """A consumer, and what it holds; what it holds outlives it."""

    session: int
    number: int
    selector: Selector | None
    priority: int = 0
    options: Options = PLAIN
    credit: int = 0
    # Since when it waits, by a counter: the lowest waits longest.
    waiting_since: int = 0
    is_open: bool = True
    is_suspected: bool = False
    # Administration ended its unit of work, and its session has not rolled back since.
    is_work_ended: bool = False
    held: dict[int, Message] = field(default_factory=dict)
    # Its delivery in doubt of which it has not said that it hands it over; 0: none.
    doubt: int = 0
    # Where it is in a group, and where it was behind what it consumed last.
    position: GroupPosition | None = None
    settled_position: GroupPosition | None = None

    def settle_place(self) -> None:
        """Notes where it goes on in logical order when the rest that it holds comes back."""
        first = self.held.get(min(self.held, default=0))
        self.settled_position = self.position if first is None else first.position

    @property
    def is_waiting(self) -> bool:
        """Whether it would take something."""
        return self.credit > 0 and not (self.is_suspected or self.is_work_ended or self.doubt)

    def wants(self, message: Message) -> bool:
        """Whether it would ever be given a message that has no part in a group it is in."""
        options = self.options
        is_later = message.group is not None and (message.number, message.start) != (1, 0)
        if options.logical_order and is_later:
            return False
        if options.complete_message and message.is_segment and message.start > 0:
            return False
        return message.is_selected(self.selector) and message.has_values(options)

    def __str__(self) -> str:
        return f"consumer {self.number} of session {self.session}"


def group_place(header: dict[str, Any]) -> GroupPlace | None:
    """The place in a group that a header tells."""
    told = header.get("g")
    if told is None:
        return None
    letters = told["f"]
    return GroupPlace(
        group_id=bytes.fromhex(told["i"]),
        number=told["n"],
        start=told["o"],
        end=told["o"] + told["l"],
        in_group="g" in letters,
        is_last="m" in letters,
        is_segment="s" in letters,
        is_last_segment="e" in letters,
    )


def group_key(header: dict[str, Any], group: GroupPlace | None) -> bytes | None:
    """The property JMSXGroupID if that is text, else the group id."""
    named = header.get("p", {}).get("JMSXGroupID")
    if isinstance(named, str):
        return named.encode()
    return group.group_id if group else None
