"""Tampering for the plain worker, and what it saw."""

from support.brokers.plain_worker import PlainWorker, Written


class Losing:
    """Loses the first chunks that hold an outcome of a kind, then lets everything pass."""

    def __init__(self, kind, count=1):
        self.kind = kind
        self.left = count
        self.lost = 0

    def __call__(self, written: Written) -> list[Written]:
        """Nothing in place of a chunk to lose, else the chunk."""
        if self.left and any(isinstance(one, self.kind) for one in written.outcomes):
            self.left -= 1
            self.lost += 1
            return []
        return [written]


def sent(worker: PlainWorker, kind: type) -> list[tuple[int, int]]:
    """The operations of a kind that reached the log, as (session, number)."""
    return [
        (one.session, one.session_sequence) for one in worker.operations if isinstance(one, kind)
    ]
