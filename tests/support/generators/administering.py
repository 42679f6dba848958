"""What a generator that knows the state draws of administration: settings, corrections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import BackUpJournal
from ledgermq.protocol.operations import Operation
from support.generators.naive_operations import QUEUES, manager_settings
from support.model.fold import Model

DELAYS_MS = (50, 1_000, 20_000)
STEPS = ([{"retries": 0, "delay_ms": 3_000}, {"retries": 1, "delay_ms": 0}],)
STEPS += ([{"retries": 0, "delay_ms": 0}, {"retries": 1, "delay_ms": 7_000}],)
ERROR_DESTINATIONS = ("queue:q", "queue:q", "queue:q", "queue:r", "queue:s", "topic:t")


class Administering(ABC):
    """Draws operations of administration that suit the model's state."""

    draw: st.DrawFn
    model: Model

    @abstractmethod
    def one(self, choices: Any) -> Any:
        """One of the choices."""

    @abstractmethod
    def write(self, operation: Operation | bytes) -> None:
        """Appends an operation and lets the model follow."""

    @abstractmethod
    def common(self, session: dict[str, Any]) -> dict[str, Any]:
        """Handle and numbers of the session's next operation."""

    def administer(self, session: dict[str, Any]) -> None:
        """Suspend, resume, create, delete, correct."""
        queue = self.one(QUEUES)
        kinds = ("suspend", "resume", "create", "delete", "correct", "correct", "correct")
        kind = self.one((*kinds, "resume", "manager", "end", "journal"))
        if kind == "create":
            self.write(op.CreateQueue(**self.common(session), queue=queue))
        elif kind == "delete":
            purge = self.draw(st.booleans())
            self.write(op.DeleteQueue(**self.common(session), queue=queue, purge=purge))
        elif kind == "correct":
            self.correct(session)
        elif kind == "end":
            self.end_other(session)
        elif kind == "journal":
            self.journal(session)
        elif kind == "manager":
            self.write(op.AlterQueueManager(**self.common(session), **self.draw(manager_settings)))
        else:
            gets_disabled = kind == "suspend"
            limit = self.one((None, None, 0, 1, 3))
            self.write(
                op.AlterQueue(
                    **self.common(session),
                    queue=queue,
                    gets_disabled=gets_disabled,
                    unacknowledged_max=limit,
                    settings=self.settings(),
                )
            )

    def journal(self, session: dict[str, Any]) -> None:
        """Journaling is turned on or off, or the journal backed up, seldom out of its bounds."""
        before = self.model.journal_places()["needed_from"] or 0
        end = self.model.position + 1
        if self.one((False, False, True)):
            common = self.common(session)
            self.write(op.AlterQueueManager(**common, journaling=self.one((True, True, False))))
            return
        low, middle, high = sorted(
            self.one((before, before - 1, end - 2, end, end, end + 1)) for _ in range(3)
        )
        self.write(
            BackUpJournal(
                **self.common(session),
                actor="a",
                reason="r",
                through=high,
                kept_from=middle,
                needed_from=low,
            )
        )

    def settings(self) -> dict[str, Any] | None:
        """Some settings of a queue; those that expire what is there have somewhere to go."""
        drawn = {
            "time_to_live_override_ms": self.one((None, None, -1, 0, 1_000)),
            "delivery_delay_override_ms": self.one((None, None, -1, 0, 1_000)),
            "expiry_destination": self.one((None, "", "queue:r", "queue:s", "topic:t")),
            "puts_disabled": self.one((None, None, False, False, True)),
            "fifo_mode": self.one((None, "CONCURRENT", "PROTECTED", "SERIALIZED")),
            **self.redelivery(),
        }
        return drawn if self.draw(st.booleans()) else None

    def end_other(self, session: dict[str, Any], *targets: dict[str, Any]) -> None:
        """The unit of work of a session is rolled back, or the session is ended, by hand.

        `targets`: those of which it is one; any, if there are none.
        """
        target = self.one([one["session"] for one in targets or self.model.sessions])
        kind = self.one((op.RollbackTransaction, op.RollbackTransaction, op.EndSession))
        self.write(kind(**self.common(session), target_session=target, actor="a", reason="r"))

    def redelivery(self) -> dict[str, Any]:
        """Settings of redelivery; error destinations may name each other."""
        return {
            "redelivery_delay_override_ms": self.one((None, None, -1, 0, *DELAYS_MS)),
            "redelivery_limit": self.one((None, -1, 0, 0, 1, 2)),
            "redelivery_delay_multiplier_percent": self.one((None, 100, 150, 1_000)),
            "redelivery_delay_max_ms": self.one((None, 0, 5_000)),
            "redelivery_steps": self.one((None, [], *STEPS, *STEPS)),
            "error_destination": self.one((None, "", *ERROR_DESTINATIONS)),
        }

    def configure(self, session: dict[str, Any]) -> None:
        """Settings of redelivery for a queue or topic, whose error destination is there."""
        destination = self.one(ERROR_DESTINATIONS)
        target = self.one([one for one in ERROR_DESTINATIONS if one != destination])
        for one in dict.fromkeys((destination, target)):
            if self.model.place(one) is None and self.is_open(session):
                kind, _, name = one.partition(":")
                create = op.CreateQueue(**self.common(session), queue=name)
                if kind == "topic":
                    create = op.CreateTopic(**self.common(session), topic=name)
                self.write(create)
        if not self.is_open(session):
            return
        # A limit that is soon exceeded, most often: few histories bring one message back twice.
        limit = self.one((None, -1, 0, 0, 0, 1))
        settings = self.redelivery() | {"error_destination": target, "redelivery_limit": limit}
        kind, _, name = destination.partition(":")
        fields = self.common(session) | {"inherits_redelivery": self.one((None, None, True, False))}
        if self.one((True, False, False)):
            self.write(op.AlterQueueManager(**self.common(session), redelivery=settings))
        elif kind == "topic":
            self.write(op.AlterTopic(**fields, topic=name, settings=settings))
        else:
            self.write(op.AlterQueue(**fields, queue=name, settings=settings))

    def is_open(self, session: dict[str, Any]) -> bool:
        """Whether a session did not end meanwhile."""
        return any(one is session for one in self.model.sessions)

    def correct(self, session: dict[str, Any]) -> None:
        """A message of a queue is removed or released by hand, whoever has it."""
        known = [one for one in self.model.messages if one["queue"] in QUEUES]
        held = [one for one in known if one["place"] == "flight"]
        known = held if held and self.one((False, True)) else known
        places = [(one["queue"], one["sequence"]) for one in known if one["sequence"] is not None]
        queue, sequence = self.one(places or [("q", 0)])
        self.write(
            op.Correct(
                **self.common(session),
                queue=queue,
                sequence=sequence,
                action=self.one(("REMOVE", "RELEASE")),
                actor="a",
                reason="r",
            )
        )
