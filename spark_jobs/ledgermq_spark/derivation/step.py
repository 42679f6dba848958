"""A step in what happened at a queue or subscription, as `turns` takes it."""

from __future__ import annotations

from typing import NamedTuple

# Put position, put index, stay.
MessageKey = tuple[int, int, int]


class Step(NamedTuple):
    """What happened to a message: numbered, delivered, returned, delayed or gone.

    `selector` is that of the consumer of a delivery; `persistent`, `enqueued_at` and `header` tell
    of a numbered message what selectors read. A step `limit` sets what a session may hold of a
    queue (0: no limit); `sequence` says how much.

    Where there are groups there is more: a message has `joined` that is numbered and not born yet;
    a session has `put`, its `unit` of work is over, or all that it held is `back`; a consumer has
    asked for `options` or is `closed`; group `affinity` is on (sequence 1) or off. `header` has
    what a `put` brings or which `options` are asked for, `selector` the session's acknowledge mode
    or how what is `gone` was settled. `unit` is the unit of work that a message was put in, or -1.
    `moment` is when a message was born that an entry found due, in µs, else 0.

    A place has another FIFO `mode`, which `selector` tells; or an operation that was refused for
    the sake of it had `asked` to settle a message. It `keeps` the order of groups, or no longer.
    """

    position: int
    phase: int
    index: int  # type: ignore[assignment]
    offset: int
    what: str
    put_position: int
    put_index: int
    message_id: bytes | None
    priority: int
    sequence: int
    session: int
    selector: str = ""
    persistent: bool | None = None
    enqueued_at: int = 0
    header: str | None = None
    consumer: int = 0
    unit: int = -1
    moment: int = 0
    stay: int = 0

    @property
    def message(self) -> MessageKey:
        """Which message it is of: its Put and the stay."""
        return (self.put_position, self.put_index, self.stay)


# Kind, step, detail.
Finding = tuple[str, Step, str]
