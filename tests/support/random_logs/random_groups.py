"""What a random log does with groups, segments, get options and group affinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.get_options import PLAIN
from support.brokers.log_writer import Script, ScriptSession

# The second has group affinity from the beginning, of the third it changes.
QUEUES = ("g", "h", "k")
SELECTORS = ("", "", "", "JMSXGroupSeq < 3", "size > 3", "JMSXGroupID LIKE 'ID:61%'")
TIMES = ((0, 0), (0, 0), (0, 0), (3_000, 0), (0, 1_500), (60_000, 0))
SEGMENT = 10
# How often messages are got complete, also where segments clash and are settled in part.
COMPLETE = 0.3
NO_OPTIONS = PLAIN.record()


def group_id(name: str) -> bytes:
    """Twenty-four bytes that show a name."""
    return name.encode().ljust(24, b"\0")


def place(name: str, number: int = 1, offset: int = -1, **fields: Any) -> op.Group:
    """A place in a group: a message, or with an offset a segment of the usual length."""
    segment = offset >= 0
    group: op.Group = {
        "group_id": group_id(name),
        "group_sequence": number,
        "offset": max(offset, 0),
        "length": SEGMENT if segment else 0,
        "in_group": True,
        "last_in_group": False,
        "segment": segment,
        "last_segment": False,
        "logical_order": False,
    }
    return {**group, **fields}  # type: ignore[typeddict-item]


def group_header(group: op.Group | None, **fields: Any) -> op.Header:
    """A header with a place in a group and what else is given."""
    return {**op.NO_HEADER, "properties": {}, "group": group, **fields}


def options(**fields: Any) -> op.GetOptions:
    """Get options, those that are given."""
    return {**NO_OPTIONS, **fields}  # type: ignore[typeddict-item]


def put_group(session: ScriptSession, queue: str, *groups: op.Group, priority: int = 4) -> int:
    """Puts messages with places in groups; returns the position."""
    script = session.script
    messages = [script.message("x", priority, group_header(one)) for one in groups]
    return session.send(op.Put, destination="queue:" + queue, messages=messages)


class RandomGroups:
    """Chooses at random; it looks at the state, so that most of it is legal."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._random = script.random
        self._begun = False

    def weights(self) -> dict[Callable[..., None], int]:
        """What it does, and how often."""
        return {
            self.put: 70,
            self.get: 50,
            self.subscribe: 20,
            self.lose: 4,
            self.correct: 4,
            self.switch: 2,
            self.err: 5,
        }

    def put(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Puts what comes next of some groups, now and then something else."""
        random, script = self._random, self._script
        if not self._begun:
            self._begun = True
            session.send(op.CreateQueue, queue="h", group_affinity=True)
            return
        queue = random.choice(QUEUES)
        messages = []
        for _ in range(random.choice((1, 1, 2, 3))):
            live, delay = random.choice(TIMES)
            times = {"time_to_live_ms": live, "delivery_delay_ms": delay}
            properties: dict[str, Any] = {"size": random.randrange(6)}
            if random.random() < 0.2:
                properties["JMSXGroupID"] = random.choice("uvw")
                header = group_header(None, properties=properties, **times)
            else:
                header = group_header(self._next(session, queue), properties=properties, **times)
            priority = random.choice((4, 4, 4, 4, 7))
            messages.append(script.message("x", priority, header))
            group = header["group"]
            if group is not None and group["segment"] and not group["offset"]:
                # Often with the rest, so that there are whole logical messages.
                rest = {**group, "offset": SEGMENT, "last_segment": True}
                if random.random() < 0.7:
                    messages.append(script.message("x", priority, {**header, "group": rest}))
        session.send(op.Put, destination="queue:" + queue, messages=messages)

    def _next(self, session: ScriptSession, queue: str) -> op.Group:
        """A place in one of a few groups, often the one after what is there."""
        random = self._random
        name = random.choice("abcdef")
        store = self._script.state.queues.get(queue)
        group = None if store is None else store.groups.get(group_id(name))
        known = self._script.state.sessions.get(session.handle)
        if known is not None and random.random() < 0.5:
            group = known.open_groups.get(("queue:" + queue, group_id(name)), group)
        number = 1 if group is None or not group.slots else max(group.slots) + 1
        if random.random() < 0.35:
            number = random.randrange(1, 5)
        fields: dict[str, Any] = {
            "last_in_group": number > 2 and random.random() < 0.6,
            "logical_order": random.random() < 0.2,
        }
        if random.random() < 0.4:
            offset = SEGMENT * random.randrange(2)
            fields |= {"offset": offset, "last_segment": offset > 0}
            if random.random() < 0.1:
                fields |= {"in_group": False, "last_in_group": False, "number": 1}
            fields["last_in_group"] = number > 3 and fields.get("in_group", True)
        return place(name, fields.pop("number", number), **fields)

    def subscribe(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Opens a consumer and says at once how it gets."""
        known = self._script.state.sessions.get(session.handle)
        number = (known.consumer_highest if known else 0) + 1
        queue = self._random.choice(QUEUES)
        selector = self._random.choice(SELECTORS)
        destination = "queue:" + queue
        session.send(op.OpenConsumer, consumer=number, destination=destination, selector=selector)
        self._ask(session, number, queue)

    def get(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Grants credit, often under other options."""
        known = self._script.state.sessions.get(session.handle)
        mine = {} if known is None else known.consumers
        numbers = [at for at, one in mine.items() if one.open and one.queue.name in QUEUES]
        if not numbers:
            self.subscribe(session, held, transacted)
            return
        number = self._random.choice(numbers)
        self._ask(session, number, mine[number].queue.name)

    def _ask(self, session: ScriptSession, number: int, queue: str) -> None:
        random = self._random
        credit = random.choice((0, 1, 1, 2, 3, 5))
        if random.random() < 0.5:
            session.get(credit, number)
            return
        flags = {
            "all_messages_available": random.random() < 0.3,
            "all_segments_available": random.random() < 0.3,
            "complete_message": random.random() < COMPLETE,
            "logical_order": random.random() < 0.6,
        }
        chosen = options(**flags)
        if random.random() < 0.15:
            chosen["group_id"] = group_id(random.choice("abcdef"))
        if random.random() < 0.15:
            chosen["group_sequence"] = random.choice((1, 1, 2, 3))
        if random.random() < 0.05:
            chosen["sequence"] = random.randrange(30)
        session.send(op.Get, consumer=number, credit=credit, options=chosen)

    def lose(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Loses a session that holds messages, or is not heard of for longer than most may be."""
        script = self._script
        holding = [at for at, one in script.state.sessions.items() if one.deliveries]
        lost = self._random.choice(holding or [session.handle])
        script.add(op.Suspect(worker="w", sessions=[lost]))
        script.wait(self._random.choice((1.1, 2.1, 46)))
        script.add(op.Tick(worker="w"))

    def correct(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Removes or releases a message of a queue with groups, mostly one that is held."""
        random = self._random
        name = random.choice(QUEUES)
        queue = self._script.state.queues.get(name)
        messages = {} if queue is None else queue.messages
        taken = [at for at, one in messages.items() if one.consumer is not None]
        sequence = random.choice(taken or [*messages, 9999])
        action = random.choice(("REMOVE", "RELEASE"))
        session.send(
            op.Correct, queue=name, sequence=sequence, action=action, actor="op", reason="test"
        )

    def switch(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Turns group affinity on or off, limits what a session may hold, or suspends a queue."""
        random = self._random
        if random.random() < 0.6:
            session.send(op.AlterQueue, queue="k", group_affinity=random.random() < 0.7)
        else:
            most = random.choice((0, 2, 4))
            session.send(op.AlterQueue, queue="g", unacknowledged_max=most)

    def err(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Asks for what is refused."""
        random = self._random
        wrong = random.choice(
            (
                {"group_sequence": 0},
                {"in_group": False},
                {"last_segment": True},
                {"group_id": b"short"},
                {"group_id": bytes(24)},
                {"length": 5},
            )
        )
        if random.random() < 0.3:
            group = place("a")
            message = self._script.message("x", 4, group_header(group))
            session.send(op.Put, destination="topic:t", messages=[message])
        elif random.random() < 0.5:
            put_group(session, random.choice(QUEUES), place("z", **wrong))
        else:
            chosen = options(group_id=b"short") if random.random() < 0.5 else options(offset=-5)
            session.send(op.Get, consumer=1, credit=1, options=chosen)
