"""The same calls, drawn at random, in threads and in coroutines, in memory and on a broker.

Each must return the same, raise the same with the same words, and warn of the same.
"""

import asyncio
import inspect
import random
import re
import warnings
from datetime import UTC, datetime

import pytest

import ledgermq
from ledgermq import AckMode, GetMatch, GroupPlace, Order, StreamBody, aio
from ledgermq.testing import MemoryBroker

GROUP = b"g" * 24
# What differs from place to place.
OWN = (
    (r"[0-9a-f]{24,}", "ID"),
    (r"temporary/\w+/\d+", "TEMPORARY"),
    (r"(position|session|Session|@) ?\d+", r"\1 N"),
)
OPTIONS = {
    "priority": (0, 9, 10, True, 4.0, None),
    "properties": ({"n": 1}, {"n": 2.5}, {"JMSX": 1}, {"a b": 1}, {"n": [1]}, {"n": 2**63}, {}),
    "deduplication_id": ("d1", "d2", "", "x" * 300, 5),
    "correlation_id": ("c", "\ud800", 7),
    "reply_to": ("queue:x", "nonsense", 3),
    "group": (
        GroupPlace(group_id=GROUP, group_sequence=1),
        GroupPlace(group_id=GROUP, group_sequence=2, last_in_group=True),
        GroupPlace(in_group=True),
        5,
    ),
    "logical_order": (True, 1),
    "time_to_live": (-1, 1000, float("nan"), "x"),
    "nonsense": (3,),
}
CONSUMER_OPTIONS = {
    "selector": ("n = 1", "n >", "", "n IS NULL"),
    "order": (Order.LOGICAL, "LOGICAL", "sideways"),
    "complete_message": (True, 1),
    "all_messages_available": (True,),
    "subscription": ("s", ""),
    "durable": (True, False),
    "prefetch": (-1, 10**9, "x", None),
    "match": (GetMatch(group_id=GROUP), 5),
    "redelivery_delay_ms": (-1, None, 2**40),
}
ENDS = ("acknowledge", "commit", "commit", "rollback", "recover", "flush")


def told(value):
    """What a call returned, without what differs from place to place."""
    if isinstance(value, list | tuple):
        return [told(one) for one in value]
    if isinstance(value, ledgermq.Message):
        names = "sequence priority delivery_count correlation_id type segment_status"
        said = [getattr(value, name) for name in names.split()]
        return [repr(value.body), dict(value.properties), *map(repr, said)]
    if isinstance(value, ledgermq.SendReceipt):
        return [value.destination, value.sequence, value.duplicate]
    if isinstance(value, ledgermq.CommitReceipt):
        runs = [(one.destination, one.first_sequence, one.count) for one in value.enqueued]
        return [runs, value.consumed]
    return value if isinstance(value, str | int | float | None) else type(value).__name__


async def done(returned):
    """What a call returns, in threads at once and in coroutines when it was awaited."""
    return await returned if inspect.isawaitable(returned) else returned


class Run:
    """A script at one place; `expected` is what it did where nothing is on its way for long."""

    def __init__(self, connection, name, seed, expected=None, broker=None):
        self.connection, self.name, self.broker = connection, name, broker
        self.draw = random.Random(seed)
        self.expected = expected
        self.results = []
        self.got = []
        self.consumer = None
        self.session = None
        self.producer = None

    def queue(self):
        """One of two queues of this script."""
        return f"queue:{self.name}.{self.draw.choice('ab')}"

    def some(self, options, often):
        """Some of the options, each with one of its values."""
        named = [name for name in options if self.draw.random() < often]
        return {name: self.draw.choice(options[name]) for name in named}

    def clean(self, value):
        """A text without what differs from place to place."""
        text = repr(value).replace(self.name, "NAME")
        for own, same in OWN:
            text = re.sub(own, same, text)
        return text

    async def call(self, label, function, *given, **named):
        """Makes a call and notes what it did; what it returned, if it did not raise."""
        found = None
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                found = await done(function(*given, **named))
                ended = told(found)
            except (ledgermq.LedgerMQError, TypeError) as error:
                kind = type(error).__name__, type(error.__cause__).__name__
                notes = getattr(error, "__notes__", [])
                ended = [kind, str(error), notes, getattr(error, "code", "")]
        told_of = [str(one.message) for one in warned if "LedgerMQ" in str(one.category.__mro__)]
        self.results.append(self.clean([label, ended, told_of]))
        return found

    def waits(self):
        """How long a receive waits: what is expected comes, and nothing else does."""
        if self.broker is not None:
            self.broker.advance(0)
            return 0
        return 0 if self.expected[len(self.results)].startswith("['receive', None") else 20

    async def send(self):
        """Sends one message, many of them wrongly."""
        options = self.some(OPTIONS, 0.05)
        topic = f"topic:{self.name}.t"
        target = self.draw.choice([*(self.queue() for _ in range(9)), topic, "queue:", None])
        number = len(self.results)
        bodies = (f"m{number}", f"m{number}", {"a": number}, b"x", StreamBody([1]), number, None)
        body = self.draw.choice(bodies)
        await self.call("send", self.producer.send, body, destination=target, **options)

    async def send_several(self):
        """Sends several, as such, as segments or as a group."""
        target, most = self.queue(), self.draw.choice([0, 3, 100, "x"])
        bodies = self.draw.choice([["x", "y"], [], ["x", 5], "ab", {"a": 1}, 5])
        how = self.draw.randrange(3)
        if how == 0:
            await self.call("many", self.producer.send_many, bodies, destination=target)
        elif how == 1:
            cut = self.producer.send_segmented
            await self.call("segments", cut, "abcdefgh", max_segment=most, destination=target)
        else:
            await self.call("group", self.send_group, target)

    async def send_group(self, target):
        """Sends a group, and leaves it open now and then."""
        last = self.draw.random() < 0.7
        group = self.producer.group(destination=target)
        is_aio = isinstance(group, aio.GroupSender)
        async with group if is_aio else Entering(group) as sender:
            first = await done(sender.send("first"))
            return [first, await done(sender.send("second", last=last))]

    async def consume(self):
        """Makes a consumer in place of the one that there is."""
        if self.consumer is not None:
            await self.call("end", self.consumer.close)
            await self.call("receive at the end", self.consumer.receive, 0)
        target = self.draw.choice([*(self.queue() for _ in range(9)), "queue:", "x"])
        options = self.some(CONSUMER_OPTIONS, 0.04)
        if options.get("subscription"):
            # Of this script alone: durable ones stay, and others play on the same broker.
            options["subscription"] = f"{self.name}.s"
        made = await self.call("consume", self.session.consumer, target, **options)
        self.consumer = made or self.consumer

    async def receive(self):
        """Receives a message, if there is one."""
        if self.consumer is not None:
            message = await self.call("receive", self.consumer.receive, self.waits())
            self.got += [] if message is None else [message]

    async def settle(self):
        """Settles one message, or answers it."""
        if self.got:
            message = self.draw.choice(self.got)
            options = self.draw.choice(
                [{}, {"requeue": True}, {"delay": 1}, {"reason": "x" * 2000}]
            )
            how = self.draw.choice(["acknowledge", "reject", "reply"])
            if how == "reply":
                await self.call(how, self.session.reply, message, "r")
            else:
                given = options if how == "reject" else {}
                await self.call(how, getattr(message, how), **given)

    async def end(self):
        """Settles, commits or undoes all."""
        how = self.draw.choice(ENDS)
        await self.call(how, getattr(self.session, how))

    async def transaction(self):
        """A block that is a unit of work."""
        target, fails = self.queue(), self.draw.random() < 0.4

        async def block():
            unit = self.session.transaction()
            async with unit if isinstance(self.session, aio.Session) else Entering(unit):
                await done(self.producer.send("in a block", destination=target))
                if fails:
                    raise ledgermq.IllegalStateError("no")

        await self.call("transaction", block)

    async def temporary(self):
        """Temporary destinations, requestors and subscriptions, of which few can be ended."""
        made = await self.call("temporary", self.session.temporary_queue)
        ended = self.draw.choice([made, "queue:x", "queue:temporary/x/1", "zzz"])
        await self.call("delete", self.session.delete_temporary, ended)
        ended = self.draw.choice([f"{self.name}.s", ""])
        await self.call("unsubscribe", self.session.unsubscribe, ended)
        requestor = await self.call("requestor", self.session.requestor, self.queue())
        if requestor is not None:
            await self.call("end of it", requestor.close)

    async def look(self):
        """Browses a queue, by its session or without one."""
        by = self.draw.choice([self.session, self.connection])
        selector = self.draw.choice([None, "n = 1", "n ="])
        await self.call("browse", self.browsed, by, self.queue(), selector)

    async def browsed(self, by, target, selector):
        """What a browser shows, in each of its ways."""
        browser = await done(by.browser(target, selector=selector))
        first, following = await done(browser.first()), await done(browser.next())
        if isinstance(browser, aio.Browser):
            shown = [message async for message in browser]
        else:
            shown = list(browser)
        await done(browser.close())
        return [first, following, *shown]

    async def play(self, steps):
        """The whole script; what each of its calls did."""
        limits = self.some({"redelivery_limit": (0, 2), "available_max": (3,)}, 0.5)
        mode = self.draw.choice([*AckMode, AckMode.TRANSACTED])
        admin = self.connection.admin
        await self.call("create", lambda: admin.create_queue(f"{self.name}.a", **limits) and None)
        self.session = await self.call(f"{mode} {limits}", self.connection.session, ack=mode)
        self.producer = self.session.producer(None)
        send, receive = self.send, self.receive
        kinds = (send, send, send, self.send_several, self.consume, receive, receive, receive)
        others = (self.settle, self.end, self.end, self.transaction, self.temporary, self.look)
        await self.consume()
        for _ in range(steps):
            await self.draw.choice((*kinds, *others))()
        for _ in range(2):
            await self.call("close", self.session.close)
        for _ in range(6):
            await self.draw.choice((send, self.settle, self.end, self.consume))()
        for letter in "ab":
            name = f"queue:{self.name}.{letter}"
            await self.call("left", self.browsed, self.connection, name, None)
        await self.call("close", self.connection.close)
        await self.call("session", self.connection.session)
        return self.results


class Entering:
    """A block for threads, as one for coroutines."""

    def __init__(self, block):
        self.block = block

    async def __aenter__(self):
        """What the block has."""
        return self.block.__enter__()

    async def __aexit__(self, *raised):
        """Leaves it."""
        return self.block.__exit__(*raised)


@pytest.mark.parametrize("seed", range(12))
def test_threads_and_coroutines_are_told_the_same_in_memory_and_on_a_broker(place, named, seed):
    """Whichever calls are made, of which many are wrong."""

    async def play(opened, in_loop, name, **more):
        connection = aio.Connection(opened) if in_loop else opened
        return await asyncio.wait_for(Run(connection, name, seed, **more).play(60), 120)

    memory = MemoryBroker(now=datetime.now(UTC))
    expected = asyncio.run(play(memory.connect(), False, "alone", broker=memory))
    for in_loop, name in ((False, f"{named[:100]}.threads"), (True, f"{named[:100]}.loop")):
        assert expected == asyncio.run(play(place.connect(), in_loop, name, expected=expected))
