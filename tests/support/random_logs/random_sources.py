"""Random logs of relays: parts of sources come once, again, too early and to what was deleted."""

from __future__ import annotations

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script, ScriptSession

PLACES = ("queue:q", "queue:q", "queue:r", "topic:t")
SOURCES = (("k", 0), ("k", 0), ("k", 1), ("l", 0))


class RandomSources:
    """Two relays that do not know of each other, a transacted session, and a consumer."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.random = script.random
        self.sessions = [
            script.session(mode, connection=script.identifier())
            for mode in ("CLIENT", "CLIENT", "TRANSACTED", "CLIENT")
        ]
        self.sessions[3].consumer("q", credit=5)
        self.sessions[3].subscribe("t", 2, 5, subscription="s", durable=True, shared=True)
        self.taken: dict[tuple[str, str, int], int] = {}

    def grow(self, steps: int) -> Script:
        """So many operations."""
        for _ in range(steps):
            self.step()
        return self.script

    def step(self) -> None:
        """One operation of one session."""
        self.script.wait(self.random.choice((0, 0, 0.1)))
        what, getter = self.random.random(), self.sessions[3]
        if what < 0.7:
            self.put(self.random.choice((*self.sessions[:2] * 4, self.sessions[2])))
        elif what < 0.8:
            getter.get(3, self.random.choice((1, 2)))
        elif what < 0.9:
            getter.acknowledge(*self.script.in_flight(getter))
        elif what < 0.93:
            getter.send(op.DeleteQueue, queue="r", purge=True)
            self.taken = {key: at for key, at in self.taken.items() if key[0] != "queue:r"}
        else:
            messages = self.random.choice((0, 30, 60))
            settings = {"puts_disabled": self.random.random() < 0.2, "messages_max": messages}
            given = dict.fromkeys(("time_to_live_override_ms", "delivery_delay_override_ms"))
            getter.send(
                op.AlterQueue,
                queue="q",
                settings={**given, "expiry_destination": None, **settings},
            )

    def put(self, session: ScriptSession) -> None:
        """A part of a source: most often the next one."""
        place = self.random.choice(PLACES)
        name, partition = self.random.choice(SOURCES)
        key = (place, name, partition)
        following = self.taken.get(key, self.random.choice((-1, 6))) + 1
        first = following + self.random.choice((0, 0, 0, 0, -1, -2, 1))
        count = self.random.choice((1, 1, 2, 3))
        last = first + count - 1 + self.random.choice((0, 0, 0, 0, 4, -1, -3))
        position = session.send(
            op.Put,
            destination=place,
            messages=[self.script.message(str(first + at)) for at in range(count)],
            blocking_ms=self.random.choice((0,) * 12 + (500,)),
            source={"name": name, "partition": partition, "first": first, "last": last},
        )
        replies = [type(one.outcome).__name__ for one in self.script.outcomes[position]]
        if "Enqueued" in replies:
            self.taken[key] = last
