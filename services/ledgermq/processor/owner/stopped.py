"""Queue managers that are stopped: a worker cannot go on with them, and says why to whoever asks.

Theory of operation. That a log was cut, or that checkpoints belong to another one, is no reason to
stop anybody else. So the worker lets go of that queue manager alone, answers questions to it with
the reason, and loads it anew after a pause, which finds what somebody has mended meanwhile. It
counts as stopped until it has folded again what was on its log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from confluent_kafka import KafkaException

from ledgermq.errors import LedgerMQError
from ledgermq.processor.lanes.producer import LaneBook
from ledgermq.processor.owner.answers import DETAIL_CHARACTERS_MAX
from ledgermq.processor.owner.owner import Surroundings
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.answers import encode_answer
from ledgermq.wire.framing.schemas import ANSWER
from ledgermq.wire.topics.registry import Claim

log = logging.getLogger(__name__)

AGAIN_SECONDS_MIN = 5.0
AGAIN_SECONDS_MAX = 60.0
# What no error of ours has: a fault, of which the worker's log has more.
FAULT = "fault"


class Stopped:
    """One queue manager that is stopped; hears its questions."""

    def __init__(self, claim: Claim, around: Surroundings) -> None:
        self.claim = claim
        self.code = FAULT
        self.again_at = 0.0
        self._around = around
        self._why = ""
        self._pause_seconds = AGAIN_SECONDS_MIN
        self._book = LaneBook(claim)

    def note(self, error: BaseException) -> None:
        """Says why it is stopped, and when it is tried again: ever later, as long as it fails."""
        name, known = self.claim.queue_manager, isinstance(error, LedgerMQError)
        self.code = error.code if isinstance(error, LedgerMQError) else FAULT
        self._why = str(error) if known else repr(error)
        log.critical(
            "%s is stopped [%s]: %s",
            name,
            self.code,
            self._why,
            exc_info=None if known else error,
            extra={"queue_manager": name},
        )
        log.warning(
            "%s is tried again in %.0f s, and goes on once that is mended; the other queue "
            "managers of this worker go on meanwhile",
            name,
            self._pause_seconds,
            extra={"queue_manager": name},
        )
        self.again_at = time.monotonic() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, AGAIN_SECONDS_MAX)

    async def listen(self) -> None:
        try:
            await self._around.side_topic.listen(self.claim.partition, self)
        except (KafkaException, LedgerMQError) as error:
            log.warning("questions to %s are not answered: %s", self.claim.queue_manager, error)

    async def leave(self) -> None:
        await self._around.side_topic.leave(self.claim.partition, self)

    def take_question(self, ask: dict[str, Any], _size_bytes: int) -> None:
        """Answers with the reason; not what clients ask to catch up, which wait as for a worker."""
        if ask["kind"] == "RESYNC":
            return
        detail = f"it is stopped [{self.code}]: {self._why}"[:DETAIL_CHARACTERS_MAX]
        refusal = Answer(reason=Reason.QUEUE_MANAGER_STOPPED, detail=detail)
        self._around.producer.send_outcomes(
            self._book,
            ask["connection"],
            ask["lane"],
            encode_answer(ask["question"], -1, 0, refusal),
            ANSWER,
            -1,
        )

    def take_heartbeat(self, connection: bytes) -> None:
        """Nobody is suspected meanwhile."""


class StoppedManagers:
    """Those of one worker, by partition; `beside` runs a coroutine beside the worker."""

    def __init__(self, beside: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._beside = beside
        self._stopped: dict[int, Stopped] = {}

    def __contains__(self, partition: int) -> bool:
        return partition in self._stopped

    @property
    def partitions(self) -> list[int]:
        return list(self._stopped)

    @property
    def codes(self) -> dict[str, str]:
        """Why each is stopped, as a code by its name."""
        return {one.claim.queue_manager: one.code for one in self._stopped.values()}

    def stop(self, claim: Claim, around: Surroundings, error: BaseException) -> None:
        found = self._stopped.setdefault(claim.partition, Stopped(claim, around))
        found.note(error)
        self._beside(found.listen())

    def due(self) -> set[int]:
        """Those whose pause is over."""
        now = time.monotonic()
        return {partition for partition, one in self._stopped.items() if one.again_at <= now}

    def forget(self, partition: int) -> None:
        """It is served again, or another worker has it."""
        found = self._stopped.pop(partition, None)
        if found is not None:
            self._beside(found.leave())
