"""Takes what the lane brings and gives it to sessions, openings and questions; closes holes.

Called by the connection's reader only, except where a method says otherwise. After a hole, or when
replies stay away, the answer to RESYNC tells it all: sessions that live, replies kept, deliveries
in flight (PROTOCOL.md §9).
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from ledgermq.client.engine.engine import Engine
from ledgermq.client.link.questions import Questions
from ledgermq.client.problems import Problems
from ledgermq.client.sansio.chain import Chain
from ledgermq.client.sansio.gathering import Gathering
from ledgermq.errors import ConnectionClosedError
from ledgermq.protocol.outcomes import Delivered, Opened, Outcome, Refused
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.codec import (
    UndecodableError,
    UnknownSchemaError,
    decode_record,
    outcome_from_union,
)
from ledgermq.wire.framing.schemas import ANSWER, CHUNK

LOGGER = logging.getLogger("ledgermq.client")
RESYNC_WAIT_MS: Final = 3000
OPENING_PATIENCE_SECONDS: Final = 1.0


class Opening:
    """A session that is being opened; `engine` is there once it is `answered`."""

    def __init__(self, make: Callable[[int], Engine]) -> None:
        self.make = make
        self.asked_at = time.monotonic()
        self.answered = threading.Event()
        self.engine: Engine | None = None
        self.refused: Refused | None = None


class Router:
    """Where outcomes and answers of one connection go.

    Attributes:
        broken: Why the connection cannot go on; None while it can.
        came_at: On the monotonic clock, when an outcome came last that was new.
    """

    def __init__(self, questions: Questions, problems: Problems) -> None:
        self.chain = Chain()
        self.sessions: dict[int, Engine] = {}
        self.openings: dict[bytes, Opening] = {}
        self._questions = questions
        self._problems = problems
        self._resyncs: set[int] = set()
        self._gathering: Gathering | None = None
        # Whether something may be missing though no hole shows it.
        self._missed = False
        self._met_unknown = False
        self.broken: str | None = None
        self.came_at = -math.inf

    # -- from any thread ---------------------------------------------------------------------------

    def ask_resync(self) -> None:
        """Asks what the state of this connection's sessions is; the reader takes the answer."""
        gathering = self._gathering
        if gathering is not None:
            if gathering.overdue:
                self._ask_on(gathering)
            return
        wanted = self.chain.wanted
        number = self._questions.put(
            "RESYNC", not_before=wanted, wait_ms=RESYNC_WAIT_MS if wanted >= 0 else 0
        )
        self._resyncs.add(number)

    def _ask_on(self, gathering: Gathering) -> None:
        gathering.asked(self._questions.put("RESYNC", after=gathering.place))

    @property
    def catching_up(self) -> bool:
        return self._missed or self.chain.hole or self._gathering is not None

    def engines(self) -> list[Engine]:
        return list(self.sessions.values())

    def leave_ended(self) -> None:
        """Forgets sessions that have ended, also those whose end came after nobody waited for it:
        nothing comes for them any more.
        """
        for engine in self.engines():
            if engine.ended:
                self.sessions.pop(engine.handle, None)

    def opening_waits(self, now: float) -> bool:
        """Whether a session is being opened for so long that its answer may have been missed."""
        openings = list(self.openings.values())
        return any(now - one.asked_at > OPENING_PATIENCE_SECONDS for one in openings)

    # -- by the reader -----------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Records may be missing: asks what is now, until that is known.

        What was being asked for page by page may be of before that.
        """
        self._missed = True
        if self._gathering is not None:
            self._end_gathering(self._gathering)
        self.ask_resync()

    def take(self, values: Iterable[bytes]) -> None:
        """Takes records of this connection in the order of the lane."""
        for value in values:
            try:
                self._take_one(value)
            except UnknownSchemaError as error:
                self._meet_unknown(error)
            except UndecodableError as error:
                LOGGER.warning("a record of the lane is skipped: %s", error)
            except Exception:
                # Anybody can write to the lane: what comes behind it must still be read.
                LOGGER.exception("a record of the lane is skipped")

    def _meet_unknown(self, error: UnknownSchemaError) -> None:
        """Says once that calls may wait in vain, and why."""
        if not self._met_unknown:
            LOGGER.warning(
                "records of the lane cannot be read (%s): the worker may be of a newer release "
                "than this client; upgrade the client. Without them calls wait in vain",
                error,
            )
        self._met_unknown = True

    def _take_one(self, value: bytes) -> None:
        name, datum = decode_record(value)
        if name == CHUNK:
            outcomes = [outcome_from_union(one) for one in datum["outcomes"]]
            self._take_chunk(datum["previous_position"], datum["previous_index"], outcomes)
        elif name == ANSWER:
            self._take_answer(datum)

    def _take_chunk(
        self, previous_position: int, previous_index: int, outcomes: list[Outcome]
    ) -> None:
        if self._gathering is not None:
            self._gathering.waiting.append((previous_position, previous_index, outcomes))
            return
        chain = self.chain
        restarts, had_hole = chain.restarts, chain.hole
        accepted = chain.accept(previous_position, previous_index, outcomes)
        if accepted:
            self.came_at = time.monotonic()
        if chain.restarts != restarts:
            self._forget_before(outcomes[0].position)
        elif chain.hole and not had_hole:
            LOGGER.info("outcomes are missing after %s; catching up", chain.last)
            self.ask_resync()
        for outcome in accepted:
            try:
                self._dispatch(outcome)
            except Exception:
                # The chain has gone on: the outcomes behind this one must still be read.
                LOGGER.exception("taking %r failed", outcome)

    def _dispatch(self, outcome: Outcome) -> None:
        if isinstance(outcome, Opened):
            self._open(outcome.session_key, outcome.session)
            return
        session = getattr(outcome, "session", -1)
        engine = self.sessions.get(session)
        if engine is not None:
            engine.take(outcome)
        elif isinstance(outcome, Refused) and session == -1:
            # An Open has no number: with one session being opened at a time, it is this one.
            for opening in list(self.openings.values()):
                opening.refused = outcome
                opening.answered.set()

    def _open(self, session_key: bytes, handle: int) -> None:
        opening = self.openings.get(session_key)
        if opening is None or opening.engine is not None:
            return
        engine = opening.make(handle)
        self.sessions[handle] = engine
        opening.engine = engine
        opening.answered.set()

    def _forget_before(self, position: int, alive: Collection[int] = ()) -> None:
        for engine in self.engines():
            if engine.handle < position and engine.handle not in alive:
                engine.forget(f"session {engine.queue_manager}@{engine.handle} was ended meanwhile")

    def _take_answer(self, answer: dict[str, Any]) -> None:
        gathering = self._gathering
        if gathering is not None and gathering.is_for(answer["question"]):
            self._take_page(gathering, answer)
        elif answer["question"] in self._resyncs:
            self._resyncs.discard(answer["question"])
            if gathering is not None:
                return
            if not answer["reason"]:
                self._take_page(Gathering(), answer)
            elif answer["reason"] != Reason.POSITION_NOT_REACHED and self.chain.hole:
                self._give_up(answer)
        self._questions.take(answer)

    def _take_page(self, gathering: Gathering, page: dict[str, Any]) -> None:
        """Takes a page of an answer, and asks for the next or applies all of them."""
        if page["reason"]:
            self._end_gathering(gathering)
            if page["reason"] == Reason.ANSWER_EXPIRED:
                # The worker that began it is gone; another one begins again.
                LOGGER.info("catching up begins again: %s", page["detail"])
                self.ask_resync()
            elif self.chain.hole:
                self._give_up(page)
            return
        if not gathering.pages and _end_in(json.loads(page["document"])) == self.chain.last:
            # Nothing was missed: what is waited for was not folded then.
            self._missed = False
            return
        gathering.take(page)
        if gathering.place:
            self._gathering = gathering
            self._ask_on(gathering)
            return
        self._gathering = None
        self._resync(gathering.pages)
        self._end_gathering(gathering)

    def _end_gathering(self, gathering: Gathering) -> None:
        self._gathering = None
        for chunk in gathering.waiting:
            self._take_chunk(*chunk)

    def _give_up(self, answer: dict[str, Any]) -> None:
        self.give_up(
            f"outcomes of this connection were lost and cannot be told again: {answer['detail']} "
            f"[{answer['reason']}]. Connect again; what its sessions held goes back to the queues"
        )

    def give_up(self, reason: str) -> None:
        """What was missed is not to be had again: the connection is of no use any more."""
        self.broken = reason
        error = ConnectionClosedError(reason)
        self._problems.report(error)
        for opening in list(self.openings.values()):
            opening.answered.set()
        self._questions.give_up(error)
        for engine in self.engines():
            engine.forget(reason)

    def _resync(self, pages: list[dict[str, Any]]) -> None:
        """Applies the state of this connection as the worker sees it, then goes on."""
        answer = pages[0]
        documents = [json.loads(one["document"]) for one in pages]
        sessions = [one for page in documents for one in page["sessions"]]
        reached = _end_in(documents[0])
        jumped = reached > self.chain.last
        for one in sessions:
            self._open(bytes.fromhex(one["session_key"]), one["session"])
        found = [outcome_from_union(one) for page in pages for one in page["outcomes"]]
        # Replies first: a Returned among them means that what is in flight came after it.
        for outcome in found:
            if not isinstance(outcome, Delivered):
                self._dispatch(outcome)
        deliveries = [outcome for outcome in found if isinstance(outcome, Delivered)]
        for outcome in sorted(deliveries, key=lambda one: (one.session, one.first_delivery)):
            self._dispatch(outcome)
        self._forget_before(answer["position"] + 1, {one["session"] for one in sessions})
        for engine in self.engines() if jumped else ():
            engine.show_life()
        self._missed = False
        for chunk in self.chain.resume(*reached):
            self._take_chunk(*chunk)


def _end_in(document: dict[str, Any]) -> tuple[int, int]:
    """Position and index of the last outcome of this connection, as an answer to RESYNC has it."""
    return document["last_position"], document["last_index"]
