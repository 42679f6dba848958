"""What a random log does with topics, subscriptions, selectors, temporaries and client ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script, ScriptSession, color_header

TOPICS = ("t", "t", "t", "u")
SELECTORS = ("", "", "color = 'red'", "color <> 'red'", "size > 3 AND JMSPriority > 4")
COLORS = ("", "red", "red", "blue")
# The client id that each of the four connections mostly has, and its token.
CLIENTS = ("", "c", "c", "d")
TOKENS = (b"", b"same", b"same", b"")
# durable, shared
KINDS = ((False, False), (False, True), (True, False), (True, True))


class RandomTopics:
    """Chooses at random; it looks at the state, so that most of it is legal."""

    def __init__(self, script: Script, connections: list[bytes]) -> None:
        self._script = script
        self._random = script.random
        self._connections = connections

    def weights(self) -> dict[Callable[..., None], int]:
        """What it does beside puts and consumers, and how often."""
        return {
            self.administer: 4,
            self.unsubscribe: 2,
            self.temporary: 3,
            self.limit: 1,
            self.lose: 2,
            self.leave_shared: 8,
        }

    def open_fields(self, number: int) -> dict[str, Any]:
        """Client id and token of an Open of a connection, sometimes others."""
        client_id, token = CLIENTS[number], TOKENS[number]
        if self._random.random() < 0.05:
            client_id = self._random.choice(("", "c", "d", "a b"))
        return {"client_id": client_id, "takeover": token}

    def _temporaries(self) -> list[str]:
        """Temporary destinations that stand, and some that never did."""
        owned = [
            one
            for connection in self._script.state.connections.values()
            for one in connection.owned
        ]
        return [*owned, "queue:temporary/" + self._connections[0].hex() + "/none"]

    def destination(self, queue: str) -> str:
        """Where a put goes or a consumer gets from."""
        what = self._random.random()
        if what < 0.45:
            return "queue:" + queue
        if what < 0.85:
            return "topic:" + self._random.choice(TOPICS)
        return self._random.choice(self._temporaries())

    def put(self, session: ScriptSession, queue: str, bodies: list[str], priority: int) -> None:
        """Puts messages, some with properties."""
        messages = []
        for body in bodies:
            color = self._random.choice(COLORS)
            header = color_header(color) if color else None
            messages.append(self._script.message(body, priority, header))
        session.send(op.Put, destination=self.destination(queue), messages=messages)

    def subscribe(self, session: ScriptSession, queue: str, number: int) -> None:
        """Opens a consumer of a queue or of one of the four kinds of subscriptions."""
        random = self._random
        destination = self.destination(queue)
        fields: dict[str, Any] = {"selector": random.choice(SELECTORS)}
        if random.random() < 0.03:
            fields["selector"] = "color ="
        durable, shared = random.choice(KINDS)
        if destination.startswith("topic:") or random.random() < 0.02:
            named = durable or shared
            fields |= {
                "durable": durable,
                "shared": shared,
                "subscription": random.choice(("s", "s", "p")) if named else "",
                "no_local": random.random() < (0.03 if shared else 0.4),
            }
            if random.random() < 0.7:
                # Often the same, so that consumers attach to what stands.
                fields["selector"] = "" if shared else "color = 'red'"
            if random.random() < 0.03:
                fields["subscription"] = random.choice(("", "a b", "x"))
        session.send(op.OpenConsumer, consumer=number, destination=destination, **fields)

    def administer(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Creates and deletes topics."""
        random = self._random
        topic = random.choice((*TOPICS, "v", "bad name", "temporary/x"))
        what = random.randrange(3)
        if what == 0:
            limit = random.choice((0, 0, 95, -1))
            session.send(op.CreateTopic, topic=topic, message_bytes_max=limit)
        else:
            session.send(op.DeleteTopic, topic=topic, purge=what == 1)

    def unsubscribe(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Ends a durable subscription, if nobody uses it."""
        session.send(op.Unsubscribe, subscription=self._random.choice(("s", "s", "p", "x")))

    def temporary(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Makes or deletes a temporary queue or topic."""
        random = self._random
        known = self._script.state.sessions.get(session.handle)
        owner = known.connection.identity if known is not None else self._connections[0]
        if random.random() < 0.1:
            owner = random.choice(self._connections)
        kind, name = random.choice(("queue", "topic")), random.choice(("a", "b"))
        whole = f"temporary/{owner.hex()}/{name}"
        if random.random() < 0.75:
            session.send(op.CreateTemporary, destination=f"{kind}:{whole}")
        elif kind == "queue":
            session.send(op.DeleteQueue, queue=whole, purge=random.random() < 0.7)
        else:
            session.send(op.DeleteTopic, topic=whole, purge=True)

    def leave_shared(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Leaves a shared subscription while something of it is in flight, or comes to one."""
        known = self._script.state.sessions.get(session.handle)
        for one in () if known is None else known.consumers.values():
            shared = getattr(one.queue, "shared", False) and not one.queue.durable
            if shared and one.open and one.in_flight:
                session.send(op.CloseConsumer, consumer=one.number, unseen=[])
                return
        number = 1 if known is None else known.consumer_highest + 1
        where: dict[str, Any] = {"destination": "topic:t", "shared": True, "subscription": "l"}
        session.send(op.OpenConsumer, consumer=number, **where)
        session.get(self._random.choice((1, 3)), number)
        messages = [self._script.message(str(self._random.random()), 4, None) for _ in range(2)]
        session.send(op.Put, destination="topic:t", messages=messages)

    def limit(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Limits what a session may hold of a queue, or of each subscription of a topic."""
        limit = self._random.choice((0, 1, 2, 2_000_000))
        if limit == 1 or self._random.random() < 0.5:
            session.send(op.AlterQueue, queue="q", unacknowledged_max=limit)
        else:
            session.send(op.AlterTopic, topic="t", unacknowledged_max=limit)

    def lose(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Lets a session, and perhaps all of its connection, be lost."""
        known = self._script.state.sessions.get(session.handle)
        handles = [session.handle]
        if known is not None and self._random.random() < 0.5:
            handles = list(known.connection.sessions)
        self._script.add(op.Suspect(worker="w", sessions=handles))
        self._script.wait(46)
        self._script.add(op.Tick(worker="w"))
