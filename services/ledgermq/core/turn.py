"""A turn: the application of one log entry, gathering its outcomes in order."""

from __future__ import annotations

from ledgermq.core.quoting import cut
from ledgermq.core.state import Connection, Message, Queue, QueueManager
from ledgermq.protocol.outcomes import Addressed, Outcome, Refused
from ledgermq.protocol.reasons import Refusal

__all__ = ["Turn"]


class Turn:
    """What the handlers of one entry share: state, position, outcomes so far, queues touched.

    `begins` is when deadlines begin that the entry sets, in µs: state time, or its own where that
    is later and did not count, so that the TimeAgreed that follows does not end what has only
    begun.
    `left` are queues that lost a receiver or a delivery: those that nothing keeps retire.
    """

    __slots__ = ("begins", "left", "next_index", "outcomes", "position", "state", "touched_queues")

    def __init__(self, state: QueueManager, position: int) -> None:
        self.state = state
        self.position = position
        self.begins = state.time
        self.next_index = 0
        self.outcomes: list[Addressed] = []
        self.touched_queues: dict[int, Queue] = {}
        self.left: dict[int, Queue] = {}

    def take_index(self) -> int:
        """The index of the outcome about to be made."""
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
        """The outcome of a refusal."""
        return Refused(
            position=self.position,
            index=self.take_index(),
            session=session,
            session_sequence=sequence,
            reason=refusal.reason,
            detail=cut(refusal.detail),
            expected_sequence=expected,
        )

    def touch(self, queue: Queue) -> None:
        """Marks a queue whose waiting consumers may now be served."""
        self.touched_queues[queue.created_position] = queue

    def ends_clash(self, message: Message) -> None:
        """Marks the queue of a message about to leave it if others may come for that.

        Those that items of its group clash with, and those that were not in turn (DB-22).
        """
        clashed = message.group is not None and bool(message.group.clashing)
        if clashed or message.queue.received is not None:
            self.touch(message.queue)

    def withdraw(self, message: Message) -> None:
        """Takes a message that nobody holds from those that wait, before it leaves its queue."""
        self.ends_clash(message)
        if message.queue.group_order is not None and message.is_delayed:
            self.touch(message.queue)
        message.queue.withdraw(message)

    def leave(self, queue: Queue) -> None:
        """Marks a queue that nothing may keep any longer."""
        self.left[queue.created_position] = queue
