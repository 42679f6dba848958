"""From a queue to another queue manager and to a topic of Kafka: each message once, as it was."""

from __future__ import annotations

import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest

import ledgermq
from ledgermq.client.messages.message import raw_message
from ledgermq.errors import (
    BrokerUnavailableError,
    LedgerMQError,
    MessageUndecodableError,
)
from ledgermq.relay import topic_goal
from ledgermq.relay.definitions import Definition, bridge_transfers, source_name
from ledgermq.relay.forwarding import TransfersForgottenError
from ledgermq.relay.queue_goal import QueueGoal
from ledgermq.relay.relaying import Relaying
from ledgermq.relay.topic_goal import PositionLostError, RecordRefusedError, TopicGoal
from ledgermq.relay.transfers import MessageNotRelayedError
from ledgermq.testing import MemoryBroker


def relay_of(ways, queue, kind="queue", **more):
    """A relay to a destination of the queue's name, of which the second queue manager is goal."""
    definition = Definition(name=queue, queue=queue, to=f"{kind}:{queue}", queue_manager="QM2")
    with ways.connect() as connection:
        definition.create(connection)
    return Relaying(
        connect=ways.connect,
        queue=queue,
        transfers=definition.transfers,
        goal=partial(queue_goal, ways, definition),
        until_end=True,
        tell=ways.told.append,
        **more,
    )


class queue_goal:  # noqa: N801
    """The goal of a relay, opened with a connection of its own."""

    def __init__(self, ways, definition, connection):
        topics = ways.place.topics
        self.source = source_name(connection, definition.transfers, ways.bootstrap, topics, 30)
        self.origin, self.connection = connection, ways.connect("QM2")
        self.to = definition.to

    def __enter__(self):
        return QueueGoal(self.connection, self.to, self.source, self.origin)

    def __exit__(self, *_):
        self.connection.close()


def bridge_out(ways, queue, topic, **more):
    """A bridge from a queue to a topic of Kafka."""
    with ways.connect() as connection:
        transfers = bridge_transfers(connection, queue, topic)
        source = source_name(connection, transfers, ways.bootstrap, ways.place.topics, 30)
    return Relaying(
        connect=ways.connect,
        queue=queue,
        transfers=transfers,
        goal=lambda _: TopicGoal(ways.bootstrap, topic, source, 30, **more),
        until_end=True,
        tell=ways.told.append,
    )


def send(ways, queue, *bodies, **options):
    """Puts messages on the first queue manager."""
    with ways.connect() as connection, connection.session() as session:
        for body in bodies:
            session.producer(f"queue:{queue}").send(body, **options)


def raw_of(body):
    """A message as a transfer has it."""
    with MemoryBroker().connect() as connection, connection.session() as session:
        session.producer("queue:a").send(body)
        return raw_message(session.consumer("queue:a").receive(5))


BODIES = [
    None,
    "text \U0001f600",
    b"\x00\xff",
    {"n": 1, "b": b"\xff", "none": None},
    ledgermq.StreamBody([1, "a", b"b"]),
    ledgermq.ObjectBody({"nested": [1, {"a": None}]}),
]


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_message_expires_by_the_clock_of_no_machine_that_relays_it(ways, monkeypatch, hours):
    """It has as much of its life left as the log says that it comes from."""
    queue = ways.name("relay")
    send(ways, queue, "an hour", time_to_live=3600)
    (before,) = ways.messages(queue)
    relay = relay_of(ways, queue)
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + hours * 3_600_000_000_000)
    relay.run()
    monkeypatch.undo()
    (after,) = ways.messages(queue, "QM2")
    assert abs((after.expires_at - before.expires_at).total_seconds()) < 60


def test_a_message_is_what_it_was_on_the_other_side(ways):
    """Identity, body, properties, priority, group and expiry; running again brings nothing."""
    queue = ways.name("relay")
    with ways.connect() as connection, connection.session() as session:
        producer = session.producer(f"queue:{queue}")
        for body in BODIES:
            producer.send(
                body,
                properties={"n": 7, "ok": True, "x": 1.5, "s": "é"},
                correlation_id="c",
                type="t",
                priority=9,
                persistent=False,
                time_to_live=3600,
            )
        with producer.group() as group:
            group.send("one")
            group.send("two", last=True)
        send(ways, queue, "low", priority=0)
    before = ways.messages(queue)
    relay = relay_of(ways, queue)
    relay.run()
    assert relay.forwarded == len(before) == 9
    relay.run()
    assert relay.forwarded == 9
    after = ways.messages(queue, "QM2")
    same = ("message_id", "kind", "priority", "persistent", "correlation_id", "type", "group_id")
    same = (*same, "group_sequence", "group_status", "sent_at")
    for old, new in zip(before, after, strict=True):
        assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
        assert dict(new.properties) == dict(old.properties)
        assert repr(new.unloaded_body) == repr(old.unloaded_body) or new.body == old.body
        if old.expires_at is None:
            assert new.expires_at is None
        else:
            assert abs((new.expires_at - old.expires_at).total_seconds()) < 60
    assert ways.messages(queue) == []


@pytest.mark.slow
def test_of_two_relays_one_works_and_all_comes_once(ways):
    """The other one waits for its client id, and ends when nothing is left."""
    queue = ways.name("relay")
    send(ways, queue, *map(str, range(1200)))
    first = relay_of(ways, queue)
    second = Relaying(
        connect=first.connect,
        queue=queue,
        transfers=first.transfers,
        goal=first.goal,
        until_end=True,
        tell=ways.told.append,
    )
    threads = [threading.Thread(target=one.run) for one in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert first.forwarded + second.forwarded == 1200
    bodies = [int(one.body) for one in ways.messages(queue, "QM2")]
    assert bodies == list(range(1200))


def test_a_relay_that_stands_by_goes_on_when_the_other_is_seen_to_have_ended(ways):
    """And not only when its pause is over, which an Open on the log for each try makes long."""
    relay = relay_of(ways, ways.name("relay"))
    waiting = threading.Thread(target=relay._stand_by, args=(3600.0,), daemon=True)
    with ways.connect(client_id=relay.transfers) as connection, connection.session() as session:
        consumer = session.consumer(f"queue:{relay.transfers}")
        waiting.start()
        waiting.join(2.0)
        assert waiting.is_alive()
        consumer.close()
    waiting.join(60.0)
    assert not waiting.is_alive()


@pytest.mark.slow
def test_a_transfer_that_was_taken_and_not_acknowledged_is_not_put_again(ways):
    """A relay that ends between the two leaves it to the next one."""
    queue = ways.name("relay")
    send(ways, queue, "a", "b")
    relay = relay_of(ways, queue)
    calls = []

    def ends(self, *given):
        calls.append(given)
        raise ledgermq.ConnectionClosedError("it ends here")

    original = ledgermq.Session.acknowledge
    with pytest.MonkeyPatch.context() as patch:

        def once(self, **options):
            return ends(self) if not calls else original(self, **options)

        patch.setattr(ledgermq.Session, "acknowledge", once)
        relay.run()
    assert len(calls) == 1
    assert [one.body for one in ways.messages(queue, "QM2")] == ["a", "b"]


def test_a_transfer_that_was_removed_by_hand_is_left_out(ways):
    """Its number never comes, and those after it do."""
    queue = ways.name("relay")
    relay = relay_of(ways, queue)
    send(ways, queue, "first")
    relay.run()
    with ways.connect() as connection, connection.session() as session:
        session.producer(f"queue:{relay.transfers}").send("no transfer")
    send(ways, queue, "second")
    with pytest.raises(MessageNotRelayedError, match="no transfer"):
        relay.run()
    with ways.connect() as connection:
        connection.admin.purge_queue(relay.transfers, actor="me", reason="it is no transfer")
    send(ways, queue, "third")
    relay.run()
    bodies = [one.body for one in ways.messages(queue, "QM2")]
    assert bodies[0] == "first"
    assert bodies[-1] == "third"


def test_transfers_that_their_queue_manager_forgot_stop_the_relay(ways):
    """Restored to an earlier moment it gives their numbers anew, which would pass for taken."""
    queue = ways.name("relay")
    relay = relay_of(ways, queue)
    send(ways, queue, "first")
    relay.run()
    with ways.connect() as connection, relay.goal(connection) as goal:
        for number in (1, 2):
            goal.take(number, [raw_of("forgotten")])
    send(ways, queue, "second")
    with pytest.raises(TransfersForgottenError, match=r"up to 2 .* QM1 knows of 1 only") as told:
        relay.run()
    assert f"queue delete {relay.transfers} --purge" in str(told.value)
    with ways.connect() as connection:
        connection.admin.delete_queue(relay.transfers, purge=True)
    again = relay_of(ways, queue)
    again.run()
    bodies = [one.body for one in ways.messages(queue, "QM2")]
    assert bodies == ["first", "forgotten", "forgotten", "second"]


def test_transfers_that_where_they_go_forgot_are_told(ways):
    """That may have been restored to an earlier moment; what it lost then is on no queue."""
    queue = ways.name("relay")
    relay, told = relay_of(ways, queue), list[str]()
    relay.tell = told.append
    for body in ("first", "second", "third"):
        send(ways, queue, body)
        relay.run()
    assert not any("any more" in one for one in told)
    with ways.connect("QM2") as other:
        other.admin.delete_queue(queue, purge=True)
    send(ways, queue, "fourth")
    relay.run()
    assert [one.body for one in ways.messages(queue, "QM2")] == ["fourth"]
    (left_out,) = [one for one in told if "any more" in one]
    assert f"transfers 0 to 2 are not in queue {relay.transfers} any more" in left_out
    assert "`ledgermq replay`" in left_out


def test_what_the_other_side_refuses_stays_until_it_takes_it(ways):
    """A queue there that takes no message so large stops the relay; nothing is lost."""
    queue = ways.name("relay")
    with ways.connect("QM2") as other:
        other.admin.create_queue(queue, message_bytes_max=100)
        send(ways, queue, "x" * 1000)
        relay = relay_of(ways, queue)
        for _ in range(2):
            with pytest.raises(LedgerMQError) as caught:
                relay.run()
            assert caught.value.code == "message-too-large"
        other.admin.alter_queue(queue, message_bytes_max=0)
    relay.run()
    assert [len(one.body) for one in ways.messages(queue, "QM2")] == [1000]


@pytest.mark.parametrize("of_transfers", [False, True], ids=["source", "transfers"])
def test_a_relay_whose_queue_gives_out_nothing_says_so_once_and_goes_on_later(ways, of_transfers):
    """Whoever sees it wait learns that gets are disabled, and how to enable them."""
    queue = ways.name("relay")
    send(ways, queue, "held")
    relay = relay_of(ways, queue)
    closed = relay.transfers if of_transfers else queue
    said = threading.Event()
    told = []

    def tell(text):
        told.append(text)
        said.set()

    relay.tell = tell
    with ways.connect() as connection:
        connection.admin.suspend_queue(closed)
        thread = threading.Thread(target=relay.run)
        thread.start()
        assert said.wait(60)
        connection.admin.resume_queue(closed)
        thread.join()
    resumed = f"`ledgermq queue resume {closed}`"
    assert told == [
        f"waits: gets of queue {closed} are disabled, so nothing comes from it until {resumed}"
    ]
    assert [one.body for one in ways.messages(queue, "QM2")] == ["held"]


def test_messages_become_records_with_their_properties_as_headers(ways):
    """Each kind of body, and once."""
    queue, topic = ways.name("out"), ways.topic(2)
    for body in BODIES:
        send(ways, queue, body, properties={"n": 7, "ok": True}, correlation_id="c")
    for _ in range(2):
        bridge_out(ways, queue, topic).run()
    found = {dict(one.headers())["ledgermq-body"]: one for one in ways.records(topic)}
    values = {kind.decode(): one.value() for kind, one in found.items()}
    assert values["plain"] is None
    assert values["text"] == "text \U0001f600".encode()
    assert values["bytes"] == b"\x00\xff"
    assert values["object"] == b'{"nested":[1,{"a":null}]}'
    assert b'"n":1' in values["map"]
    assert values["stream"].startswith(b'[1,"a",')
    assert len(ways.records(topic)) == len(BODIES)
    for one in found.values():
        headers = dict(one.headers())
        assert (headers["n"], headers["ok"]) == (b"7", b"true")
        assert headers["ledgermq-correlation-id"] == b"c"


def test_a_record_that_came_from_kafka_goes_there_as_it_was(ways):
    """Value, key and headers, also those that no property can be."""
    topic, queue, out = ways.topic(), ways.name("out"), ways.topic()
    records = [
        {"value": b"\xff", "key": b"\xff", "headers": [("a-b", b"1"), ("a-b", None)]},
        {"value": None, "key": "k", "headers": [("region", b"EU")]},
        {"value": b"x"},
    ]
    ways.produce(topic, *records)
    ways.bridge(topic, f"queue:{queue}").run()
    bridge_out(ways, queue, out).run()
    for given, found in zip(records, ways.records(out), strict=True):
        key = given.get("key")
        assert found.value() == given["value"]
        assert found.key() == (key.encode() if isinstance(key, str) else key)
        headers = given.get("headers", [])
        assert found.headers()[: len(headers)] == headers


def test_a_topic_that_is_not_there_takes_nothing_from_the_queue(ways):
    """It says so before anything is moved."""
    queue = ways.name("out")
    send(ways, queue, "a")
    with pytest.raises(RecordRefusedError, match="create it first"):
        bridge_out(ways, queue, ways.name("nowhere")).run()
    assert [one.body for one in ways.messages(queue)] == ["a"]


def test_a_bridge_whose_position_kafka_has_lost_stops_until_it_is_told(ways):
    """It might write twice what it wrote before."""
    from confluent_kafka.admin import AdminClient

    queue, topic = ways.name("out"), ways.topic()
    send(ways, queue, "a")
    bridge_out(ways, queue, topic).run()
    with ways.connect() as connection:
        transfers = bridge_transfers(connection, queue, topic)
        source = source_name(connection, transfers, ways.bootstrap, ways.place.topics, 30)
    group = TopicGoal(ways.bootstrap, topic, source, 30)._name
    admin = AdminClient({"bootstrap.servers": ways.bootstrap})
    admin.delete_consumer_groups([group])[group].result()
    send(ways, queue, "b")
    with pytest.raises(PositionLostError, match="ends with /1/0"):
        bridge_out(ways, queue, topic).run()
    bridge_out(ways, queue, topic, assume_untaken=True).run()
    assert [one.value() for one in ways.records(topic)] == [b"a", b"b"]


def test_a_transfer_that_cannot_be_written_leaves_no_transaction_open(ways, monkeypatch):
    """Readers of what is committed would wait for it, and the goal could take nothing else."""
    monkeypatch.setattr(topic_goal, "RECORD_BYTES_MAX", 1000)
    queue, topic = ways.name(), ways.topic()
    send(ways, queue, b"good", b"x" * 2000)
    good, large = (raw_message(one) for one in ways.messages(queue))
    undecodable = {**good, "content": b"\xff"}
    with TopicGoal(ways.bootstrap, topic, ways.name("source"), 30) as goal:
        for number, (other, error) in enumerate(
            ((undecodable, MessageUndecodableError), (large, RecordRefusedError))
        ):
            with pytest.raises(error):
                goal.take(number, [good, other])
            goal.take(number, [good])
    assert [one.value() for one in ways.records(topic)] == [b"good", b"good"]


def test_what_kafkas_library_waits_for_without_end_is_begun_anew(ways, monkeypatch):
    """It ignores its time-out where the group's coordinator went away; the bridge stood still."""
    queue, topic, source = ways.name(), ways.topic(), ways.name("source")
    send(ways, queue, b"body")
    messages = [raw_message(one) for one in ways.messages(queue)]
    waiting = threading.Event()
    with TopicGoal(ways.bootstrap, topic, source, 30) as goal:
        real = goal._producer
        names = ("begin_transaction", "produce", "poll", "flush")
        stuck = {name: getattr(real, name) for name in names}
        stuck["send_offsets_to_transaction"] = lambda *_: waiting.wait()
        goal._producer = SimpleNamespace(**stuck)
        monkeypatch.setattr(topic_goal, "LATE_SECONDS", 1.0 - 30)
        with pytest.raises(BrokerUnavailableError):
            goal.take(0, messages)
        waiting.set()
    with TopicGoal(ways.bootstrap, topic, source, 30) as again:
        assert again.taken is None
        again.take(0, messages)
    assert [one.value() for one in ways.records(topic)] == [b"body"]
