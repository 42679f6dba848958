"""Folding: records to operations, through the fold, to outcomes; the digest chain beside it.

Nothing here waits. A record that is no operation is folded as `Unreadable` with its reason, so
that it is refused with its position and never skipped (H29); a record out of turn is never folded
(H9); an active version that this code does not know stops the worker before the entry (H3). A
position without a record, and an entry that brings a version, are folded as nothing if an operator
declared them skipped.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any, NamedTuple

from ledgermq.core.apply import apply
from ledgermq.core.entry import Counter
from ledgermq.core.versions import SKIPPED, may_be_skipped, time_of_hole
from ledgermq.errors import LedgerMQError
from ledgermq.processor.checkpoints.digests import chain_next
from ledgermq.processor.checkpoints.loading import Loaded, VersionUnknownError
from ledgermq.processor.lanes.anchors import check_chain
from ledgermq.processor.lanes.bodies import BodyStore
from ledgermq.processor.lanes.lanes import Folded
from ledgermq.processor.metrics.tally import Tally
from ledgermq.processor.owner.silence import Silence
from ledgermq.processor.worker.logs import ManagerLog
from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.protocol.administration import VersionOffered
from ledgermq.protocol.limits import PROTOCOL_VERSION
from ledgermq.protocol.operations import Operation, Put, SessionOperation, Upgrade
from ledgermq.protocol.outcomes import Delivered
from ledgermq.wire.framing.codec import NOT_STAMPED, decode_operation
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.skipping import Hole, LookAhead, skip_command

log = logging.getLogger(__name__)

LOG_APPEND_TIME = 1
DELIVERED_MESSAGES_MAX = 5_000
BRING_VERSIONS = (Upgrade, VersionOffered)


class FoldFaultError(LedgerMQError):
    """The fold met what cannot be; nothing after that position is folded."""

    code = "fold-fault"


class NoRecord(NamedTuple):
    """Takes the place of a record at a hole; without headers, so that nobody gets a refusal."""

    offset: int
    headers: tuple[()] = ()
    timestamp: int = 0


class Folder:
    def __init__(
        self,
        ledger: Ledger,
        loaded: Loaded,
        bodies: BodyStore,
        silence: Silence,
        tally: Tally,
    ) -> None:
        self._ledger = ledger
        self._name = ledger.claim.queue_manager
        # The log above; whether it is to be read before the next entry, and before which it was.
        self.ahead = LookAhead(ledger.bootstrap, *ledger.operations, ledger.timeout_seconds)
        self.look_wanted = False
        self.looked_at = -1
        self.state = loaded.state
        self.chain = loaded.chain
        self._bodies = bodies
        self._silence = silence
        self._tally = tally
        self._backlog: deque[Any] = deque()
        self._backlog_bytes = 0
        self.last_record: Any = None
        # Digest chains that were told of the log, by position.
        self.anchors = loaded.anchors
        # When what was folded last was appended; below 0: not known yet.
        self.appended_ms: int = loaded.manifest["append_time_ms"] if loaded.manifest else -1
        self.operations = 0

    def __len__(self) -> int:
        return len(self._backlog)

    @property
    def expected(self) -> int:
        return self.state.position + 1

    @property
    def next_offset(self) -> int | None:
        backlog, expected = self._backlog, self.state.position + 1
        while backlog and backlog[0].offset < expected:
            self._backlog_bytes -= len(backlog.popleft().value or b"")
        return backlog[0].offset if backlog else None

    @property
    def waiting_since_ms(self) -> int | None:
        """The append time of the next record that waits; None: none waits."""
        expected = self.expected
        return next((one.timestamp for one in self._backlog if one.offset >= expected), None)

    def add(self, records: list[Any]) -> None:
        self._backlog.extend(records)
        self._backlog_bytes += sum([len(record.value or b"") for record in records])

    def crowded(self, settings: WorkerSettings, share: float = 1.0) -> bool:
        records_max, bytes_max = settings.backlog_records, settings.backlog_bytes
        return len(self._backlog) > records_max * share or self._backlog_bytes > bytes_max * share

    def drop_backlog(self) -> None:
        """Forgets what waits; the log has it."""
        self._backlog.clear()
        self._backlog_bytes = 0

    def fold_slice(self, records_max: int, bytes_max: int) -> list[Folded]:
        """Folds waiting records, until enough was done or the time of the log stood still.

        Raises:
            VersionUnknownError: The next entry is of a version that this code does not know.
            FoldFaultError: The fold raised.
            LogCutError: Clients were told outcomes of another log.
        """
        state, backlog = self.state, self._backlog
        folded: list[Folded] = []
        now = time.monotonic()
        size = delivered = count = 0
        chain = self.chain
        while backlog and count < records_max:
            record = backlog[0]
            offset = record.offset
            if offset != state.position + 1:
                break
            if state.active_version > PROTOCOL_VERSION:
                raise VersionUnknownError(
                    f"{self._name}: from position {offset} on protocol version "
                    f"{state.active_version} is active, this worker knows {PROTOCOL_VERSION}; "
                    f"install a LedgerMQ that knows it. If the Upgrade was a mistake and no worker "
                    f"ever ran with that version, declare it skipped and start the worker again: "
                    f"`{skip_command(self._ledger, Hole(state.position, state.position))}`"
                )
            value = record.value
            operation = self._read(record, value)
            if operation is None:
                self.look_wanted = True
                break
            backlog.popleft()
            try:
                found = apply(
                    state, operation, offset, record.timestamp * 1000, None, self._counter(offset)
                )
            except Exception as error:
                raise self._fault(offset, operation, error) from error
            chain = chain_next(chain, offset, record.timestamp, value)
            if offset in self.anchors:
                check_chain(self._name, self.anchors, offset, chain)
            last_record = record
            count += 1
            size += len(value or b"")
            if isinstance(operation, SessionOperation):
                self._silence.acted(operation.session, now)
            if found:
                folded.append((record, found, chain))
                last = found[-1].outcome
                if isinstance(last, Delivered):
                    delivered += len(last.messages) * len(found)
            if state.time_stood_still or size > bytes_max or delivered > DELIVERED_MESSAGES_MAX:
                break
        if count:
            self.last_record = last_record
            self.appended_ms = last_record.timestamp
        self.chain = chain
        self._backlog_bytes -= size
        self.operations += count
        if self._tally.crowded:
            self._tally.settle()
        return folded

    def fold_hole(self, last: int, count_max: int) -> list[Folded]:
        """Folds positions that have no record, and were declared skipped; from the next one on."""
        state, found = self.state, []
        for position in range(state.position + 1, min(last, state.position + count_max) + 1):
            counter = self._counter(position)
            outcomes = apply(state, SKIPPED, position, time_of_hole(state), None, counter)
            self.chain = chain_next(self.chain, position, 0, None)
            found.append((NoRecord(position), outcomes, self.chain))
        # A checkpoint names the record that it was taken at, so none is taken here.
        self.last_record = None
        return found

    def _counter(self, position: int) -> Counter | None:
        return self._tally.count if position >= self._tally.live_from else None

    def _read(self, record: Any, value: bytes | None) -> Operation | None:
        """The operation in a record; its bodies stay in memory. None: look ahead first."""
        if record.timestamp_type != LOG_APPEND_TIME:
            return NOT_STAMPED
        operation = decode_operation(value, self.state.active_version)
        if type(operation) is Put:
            self._bodies.add(record.offset, operation.messages, len(value or b""))
        elif type(operation) in BRING_VERSIONS and may_be_skipped(self.state, operation):
            if self.looked_at != record.offset:
                return None
            if self.ahead.skipped(record.offset):
                return SKIPPED
        return operation

    def _fault(self, offset: int, operation: Operation, error: Exception) -> FoldFaultError:
        ManagerLog(log, self._name).critical(
            "the fold failed at position %d on a %s; nothing was skipped",
            offset,
            type(operation).__name__,
            exc_info=error,
            position=offset,
            session=operation.session if isinstance(operation, SessionOperation) else None,
        )
        return FoldFaultError(
            f"{self._name}: the fold failed at position {offset} on a "
            f"{type(operation).__name__}: {error!r}"
        )
