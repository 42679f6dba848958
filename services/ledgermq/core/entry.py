"""An entry of the log while it is applied: it gathers its outcomes in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ledgermq.core.quoting import cut
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Connection, Message, Queue
from ledgermq.protocol.outcomes import Addressed, Outcome, Refused
from ledgermq.protocol.reasons import Refusal


class Moves(NamedTuple):
    """Messages of one store that make one move together, as a listener gets it.

    What is plural has one value for each message. Steps count the moves of an entry, from
    `first_step` on. `store` is the position at which the queue, subscription or topic was made;
    `is_topic` tells a topic from a subscription, as one entry can make both. A sequence is -1 as
    long as its message has no number. `session` puts them, gets or had them, `consumer` and
    `deliveries` are those of a move into or out of flight; -1 and 0: none. `untils` are in µs, -1:
    it does not wait. `uncounted` of the `backouts` do not count. `segments` have their room, and
    their bodies stand at `body_positions` and `body_indexes`.
    """

    position: int
    first_step: int
    store: int
    is_topic: bool
    before: str
    after: str
    cause: str
    session: int
    consumer: int
    sequences: Sequence[int]
    put_positions: Sequence[int]
    put_indexes: Sequence[int]
    deliveries: Sequence[int]
    untils: Sequence[int]
    backouts: Sequence[int]
    uncounted: Sequence[int]
    segments: Sequence[int]
    body_positions: Sequence[int]
    body_indexes: Sequence[int]


Listener = Callable[[Moves], object]
# Gets messages of one store that make one move together: from, to, and why they are gone. It must
# not keep them.
Counter = Callable[[Queue, Sequence[Message], int, int, str], object]


class Entry:
    """What the handlers of one entry share: state, position, outcomes so far, queues touched.

    `begins` is when deadlines begin that the entry sets, in µs: state time, or its own where that
    is later and did not count, so that the TimeAgreed that follows does not end what has only
    begun.
    `left` are queues that lost a receiver or a delivery: those that nothing keeps retire.
    """

    __slots__ = (
        "begins",
        "counter",
        "left",
        "listener",
        "next_index",
        "next_step",
        "outcomes",
        "position",
        "state",
        "touched_queues",
    )

    def __init__(
        self,
        state: QueueManager,
        position: int,
        listener: Listener | None = None,
        counter: Counter | None = None,
    ) -> None:
        self.state = state
        self.position = position
        self.listener = listener
        self.counter = counter
        self.begins = state.time
        self.next_index = 0
        self.next_step = 0
        self.outcomes: list[Addressed] = []
        self.touched_queues: dict[int, Queue] = {}
        self.left: dict[int, Queue] = {}

    def take_index(self) -> int:
        index = self.next_index
        self.next_index = index + 1
        return index

    def emit(self, connection: Connection, outcome: Outcome) -> None:
        """Appends an outcome to its connection's chain (H2)."""
        self.outcomes.append(
            Addressed(
                connection.identity,
                connection.lane,
                connection.last_position,
                connection.last_index,
                outcome,
            )
        )
        connection.last_position = outcome.position
        connection.last_index = outcome.index

    def emit_unaddressed(self, outcome: Outcome) -> None:
        """Appends an outcome that belongs to no known session; the shell finds its reader."""
        self.outcomes.append(Addressed(None, -1, -1, -2, outcome))

    def refused(self, refusal: Refusal, session: int, sequence: int, expected: int = 0) -> Refused:
        return Refused(
            position=self.position,
            index=self.take_index(),
            session=session,
            session_sequence=sequence,
            reason=str(refusal.reason),
            detail=cut(refusal.detail),
            expected_sequence=expected,
        )

    def touch(self, queue: Queue) -> None:
        """Marks a queue whose waiting consumers may now be served."""
        self.touched_queues[queue.created_position] = queue

    def leave(self, queue: Queue) -> None:
        """Marks a queue that nothing may keep any longer."""
        self.left[queue.created_position] = queue
