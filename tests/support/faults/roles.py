"""Clients of a fault run, each a process of its own: `python -m support.faults.roles ROLE ...`.

Every role puts messages with bodies that nobody else has, takes messages, and writes into its
history what it did. What an application would have to do about an error is done, and told: it goes
on waiting where an outcome is unknown, and connects again where its connection is of no use.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ledgermq
from ledgermq import aio
from ledgermq.client.link.lane import LaneReader
from ledgermq.processor.worker.process import die_with_parent
from support.faults.history import Recorder

TIMEOUT_SECONDS = 90.0
SUSPECT_SECONDS = 5.0
RECEIVE_SECONDS = 0.3
PAUSE_SECONDS = 0.03
AGAIN_SECONDS = 0.5
# A client that is told to stop still finishes what it has begun.
CLOSE_SECONDS = 60.0


class Client:
    """What all roles share: a seed, a history, and names for messages."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.name: str = given.name
        self.address: str = given.address
        self.random = random.Random(given.seed)
        self.history = Recorder(given.directory, given.name)
        self.stopping = False
        self.settings = {
            "timeout": TIMEOUT_SECONDS,
            "suspect_timeout_seconds": SUSPECT_SECONDS,
            "topic_prefix": given.topic_prefix,
            "application": given.name,
        }
        self._bodies = itertools.count(1)
        self._units = itertools.count(1)

    def bodies(self, count: int) -> list[str]:
        """Bodies that no other message has."""
        return [f"{self.name}:{next(self._bodies)}" for _ in range(count)]

    def got(self, queue: str, messages: Sequence[Any]) -> list[list[Any]]:
        """Tells of messages that were handed over; what a unit of work says of them."""
        for one in messages:
            self.history.write(
                "got",
                queue=queue,
                body=one.body,
                sequence=one.sequence,
                count=one.delivery_count,
            )
        return [[queue, one.body, one.sequence] for one in messages]

    @contextmanager
    def unit(
        self, what: str, puts: list[list[str]], gets: list[list[Any]]
    ) -> Iterator[list[ledgermq.OutcomeUnknownError]]:
        """A unit of work around the call that ends it; the list gets what is to be resolved."""
        number = next(self._units)
        self.history.write("invoke", unit=number, what=what, puts=puts, gets=gets)
        unresolved: list[ledgermq.OutcomeUnknownError] = []
        try:
            yield unresolved
            if unresolved:
                self.history.write("unknown", unit=number, error=unresolved[0].code)
                unresolved[0].resolve(TIMEOUT_SECONDS)
        except ledgermq.TransactionRolledBackError as error:
            self.history.write("fail", unit=number, error=error.code)
            raise
        except ledgermq.LedgerMQError as error:
            self.history.write("unknown", unit=number, error=error.code, text=str(error)[:300])
            raise
        self.history.write("ok", unit=number, resolved=bool(unresolved))

    def call(self, what: str, puts: Any, gets: Any, end: Any, **options: Any) -> None:
        """A unit of work that a call ends, without coroutines."""
        with self.unit(what, puts, gets) as unresolved:
            try:
                end(**options)
            except ledgermq.OutcomeUnknownError as error:
                unresolved.append(error)

    def run(self) -> None:
        """Works until told to stop; connects again after an error that ends its connection."""
        while not self.stopping:
            try:
                with ledgermq.connect(self.address, **self.settings) as connection:
                    self.work(connection)
            except ledgermq.LedgerMQError as error:
                self.history.write("error", error=error.code, text=str(error)[:300])
                time.sleep(AGAIN_SECONDS)
        self.history.write("end")

    def work(self, connection: Any) -> None:
        """Uses a connection until told to stop."""
        raise NotImplementedError

    def pause(self) -> None:
        """Waits for a moment."""
        time.sleep(self.random.uniform(0, 2 * PAUSE_SECONDS))


class Auto(Client):
    """Sends one message at a time and takes some, each acknowledged as it is handed over.

    Some it publishes to topics that nobody subscribes to, from which they go to queues: one has it
    as its error destination, one is bound to it. A queue that keeps the newest messages is sent
    some besides; of those only the audit knows what became.
    """

    def work(self, connection: Any) -> None:
        """Sends, takes, and goes on."""
        with suppress(ledgermq.DestinationExistsError):
            connection.admin.create_queue("unrouted")
        with suppress(ledgermq.DestinationExistsError):
            told = {"error_destination": "queue:unrouted", "moves_unrouted": True}
            connection.admin.create_topic("nobody", **told)
        with suppress(ledgermq.DestinationExistsError):
            connection.admin.create_queue("bound")
        connection.admin.bind("news.*", "queue:bound")
        with suppress(ledgermq.DestinationExistsError):
            connection.admin.create_queue("newest", available_max=20)
        with connection.session() as sending, connection.session() as taking:
            producer, consumer = sending.producer("queue:auto"), taking.consumer("queue:auto")
            topics = {"unrouted": "topic:nobody", "bound": "topic:news.today"}
            publishers = {queue: sending.producer(topic) for queue, topic in topics.items()}
            newest = sending.producer("queue:newest")
            while not self.stopping:
                [body] = self.bodies(1)
                if self.random.random() < 0.1:
                    self.call("send", [], [], newest.send, body=body)
                elif self.random.random() < 0.2:
                    queue = self.random.choice([*topics])
                    self.call("send", [[queue, body]], [], publishers[queue].send, body=body)
                else:
                    self.call("send", [["auto", body]], [], producer.send, body=body)
                gets = self.got("auto", consumer.receive_many(3, RECEIVE_SECONDS))
                if gets:
                    # Their acknowledgements go out by themselves; nobody waits for them.
                    self.call("taken", [], gets, lambda: None)
                self.pause()


class Acknowledging(Client):
    """Sends asynchronously, takes several messages and acknowledges them together, or recovers."""

    def work(self, connection: Any) -> None:
        """Sends, takes, and acknowledges."""
        with connection.session() as sending, connection.session(ack="CLIENT") as taking:
            producer = sending.producer("queue:client")
            # Each of them comes before some others, until it has as much as it asked for.
            priority = self.random.randint(-1, 1)
            consumer = taking.consumer("queue:client", consumer_priority=priority)
            while not self.stopping:
                bodies = self.bodies(self.random.randint(1, 4))
                for body in bodies:
                    producer.send_async(body)
                self.call("send", [["client", one] for one in bodies], [], sending.flush)
                gets = self.got("client", consumer.receive_many(5, RECEIVE_SECONDS))
                if gets and self.random.random() < 0.1:
                    self.call("recover", [], gets, taking.recover)
                elif gets:
                    self.call("acknowledge", [], gets, taking.acknowledge)
                self.pause()


class Rejecting(Client):
    """Settles each message by itself: acknowledges it, puts it back, or sends it away for good."""

    def work(self, connection: Any) -> None:
        """Sends, takes, and settles."""
        with suppress(ledgermq.DestinationExistsError):
            connection.admin.create_queue("dead")
        with suppress(ledgermq.DestinationExistsError):
            connection.admin.create_queue("individual", error_destination="queue:dead")
        with connection.session() as sending, connection.session(ack="INDIVIDUAL") as taking:
            producer = sending.producer("queue:individual")
            consumer = taking.consumer("queue:individual")
            while not self.stopping:
                for body in self.bodies(self.random.randint(1, 3)):
                    self.call("send", [["individual", body]], [], producer.send, body=body)
                messages = consumer.receive_many(3, RECEIVE_SECONDS)
                gets = self.got("individual", messages)
                # In any order, as nothing but the order of delivery is promised.
                pairs = list(zip(messages, gets, strict=True))
                self.random.shuffle(pairs)
                for message, get in pairs:
                    self._settle(message, get)
                self.pause()

    def _settle(self, message: Any, get: list[Any]) -> None:
        drawn = self.random.random()
        if drawn < 0.2:
            self.call("requeue", [], [get], message.reject, requeue=True)
        elif drawn < 0.4:
            self.call("reject", [["dead", message.body]], [get], message.reject, reason="drawn")
        else:
            self.call("acknowledge", [], [get], message.acknowledge)


class StandingBy(Client):
    """Takes what a queue delivers to one consumer at a time, or waits to be that one."""

    def work(self, connection: Any) -> None:
        """Sends, takes as long as it is active, and acknowledges."""
        with suppress(ledgermq.DestinationExistsError):
            connection.admin.create_queue("single", single_active_consumer=True)
        with connection.session() as sending, connection.session(ack="CLIENT") as taking:
            producer, consumer = sending.producer("queue:single"), taking.consumer("queue:single")
            while not self.stopping:
                [body] = self.bodies(1)
                self.call("send", [["single", body]], [], producer.send, body=body)
                gets = self.got("single", consumer.receive_many(3, RECEIVE_SECONDS))
                if gets:
                    self.pause()
                    self.call("acknowledge", [], gets, taking.acknowledge)
                self.pause()


class Moving(Client):
    """Units of work over three queues: puts to one, takes from it, puts what it took to both."""

    def work(self, connection: Any) -> None:
        """Puts, takes, and commits or rolls back."""
        with connection.session(transacted=True) as session:
            producer = session.producer(None)
            consumer = session.consumer("queue:work")
            while not self.stopping:
                puts = [["work", body] for body in self.bodies(self.random.randint(1, 3))]
                gets = self.got("work", consumer.receive_many(3, RECEIVE_SECONDS))
                for _ in gets:
                    [body] = self.bodies(1)
                    puts += [["left", body], ["right", body]]
                for queue, body in puts:
                    producer.send(body, destination=f"queue:{queue}")
                undo = self.random.random() < 0.15
                end = session.rollback if undo else session.commit
                self.call("rollback" if undo else "commit", puts, gets, end)
                self.pause()


class Grouping(Client):
    """Puts whole groups, one a unit of work, and takes whole groups."""

    def work(self, connection: Any) -> None:
        """Puts a group and takes one."""
        with (
            connection.session(transacted=True) as sending,
            connection.session(transacted=True) as taking,
        ):
            producer = sending.producer("queue:groups")
            consumer = taking.consumer("queue:groups", order="LOGICAL", all_messages_available=True)
            while not self.stopping:
                bodies = self.bodies(self.random.randint(2, 4))
                with producer.group() as group:
                    for body in bodies:
                        group.send(body, last=body is bodies[-1])
                self.call("commit", [["groups", one] for one in bodies], [], sending.commit)
                gets = self.got("groups", consumer.receive_group(RECEIVE_SECONDS))
                if gets:
                    self.call("commit", [], gets, taking.commit)
                self.pause()


class Coroutines(Client):
    """The same as a mover with one queue, as a coroutine."""

    def run(self) -> None:
        """As all roles do, but in an event loop."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        while not self.stopping:
            try:
                async with aio.connect(self.address, **self.settings) as connection:
                    await self._work(connection)
            except ledgermq.LedgerMQError as error:
                self.history.write("error", error=error.code, text=str(error)[:300])
                await asyncio.sleep(AGAIN_SECONDS)
        self.history.write("end")

    async def _work(self, connection: Any) -> None:
        async with connection.session(transacted=True) as session:
            producer = session.producer("queue:aio")
            async with session.consumer("queue:aio") as consumer:
                while not self.stopping:
                    puts = [["aio", body] for body in self.bodies(self.random.randint(1, 3))]
                    for _, body in puts:
                        await producer.send(body)
                    message = await consumer.receive(RECEIVE_SECONDS)
                    gets = self.got("aio", [message] if message else [])
                    undo = self.random.random() < 0.1
                    with self.unit("rollback" if undo else "commit", puts, gets) as unresolved:
                        try:
                            await (session.rollback() if undo else session.commit())
                        except ledgermq.OutcomeUnknownError as error:
                            unresolved.append(error)
                    await asyncio.sleep(self.random.uniform(0, 2 * PAUSE_SECONDS))


class Draining(Client):
    """Takes everything that is left on all queues, until nothing is in flight or delayed either."""

    def work(self, connection: Any) -> None:
        """Empties queue after queue."""
        with connection.session(transacted=True) as session:
            while left := self._left(connection):
                for queue in left:
                    self._empty(session, queue)
        self.stopping = True

    def _left(self, connection: Any) -> list[str]:
        found = {one.name: one.message_count for one in connection.admin.list_queues()}
        return [queue for queue in QUEUES if found.get(queue, 0)]

    def _empty(self, session: Any, queue: str) -> None:
        with session.consumer(f"queue:{queue}") as consumer:
            while messages := consumer.receive_many(200, 0.5):
                self.call("commit", [], self.got(queue, messages), session.commit)


QUEUES = (
    *(
        "auto",
        "unrouted",
        "bound",
        "client",
        "individual",
        "dead",
        "single",
        "work",
        "left",
        "right",
        "groups",
        "aio",
    ),
)
ROLES: dict[str, type[Client]] = {
    "auto": Auto,
    "client": Acknowledging,
    "individual": Rejecting,
    "single": StandingBy,
    "moving": Moving,
    "groups": Grouping,
    "aio": Coroutines,
    "draining": Draining,
}


def lose_replies(share: float, seed: int) -> None:
    """Has the lane of this process lose a share of what it brings, as if it had never come."""
    chance, read = random.Random(seed), LaneReader.read

    def losing(lane: LaneReader, timeout_seconds: float) -> tuple[list[bytes], bool]:
        values, missing = read(lane, timeout_seconds)
        return [one for one in values if chance.random() >= share], missing

    LaneReader.read = losing  # type: ignore[method-assign]


def main() -> None:
    """Runs one client."""
    die_with_parent()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--name", required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--topic-prefix", required=True)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--lose", type=float, default=0.0, help="share of replies that are lost")
    given = parser.parse_args()
    if given.lose:
        lose_replies(given.lose, given.seed)
    client = ROLES[given.role](given)

    def stop(*_unused: object) -> None:
        client.stopping = True

    signal.signal(signal.SIGTERM, stop)
    with suppress(KeyboardInterrupt):
        client.run()


if __name__ == "__main__":
    main()
