"""What bridges and relays refuse before they begin, and how they name what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import ledgermq
from ledgermq.cli.main import main
from ledgermq.client.sending import making
from ledgermq.client.sending.making import Sending, make_message
from ledgermq.errors import LedgerMQError
from ledgermq.relay.definitions import (
    Definition,
    RelayNotFoundError,
    definitions,
    find_definition,
)
from ledgermq.relay.taking import Item, Taker
from ledgermq.relay.transfers import MessageNotRelayedError
from ledgermq.testing import MemoryBroker
from ledgermq.wire.topics.log_topics import Topics, is_log_topic
from relay.test_relay import bridge_out, relay_of, send
from support.checkout import SERVICES

HOLDING = """
import sys, time, ledgermq
from ledgermq.relay.transfers import moving_session
address, prefix, queue = sys.argv[1:]
connection = ledgermq.connect(address, topic_prefix=prefix, suspect_timeout_seconds=1)
consumer = moving_session(connection, ledgermq.AckMode.CLIENT).consumer(queue)
print(consumer.receive(30).body, flush=True)
time.sleep(60)
"""


def ended(ways, *arguments, queue_manager="QM1"):
    """Exit code and output of a command that ends by itself."""
    process = ways.runner(*arguments, queue_manager=queue_manager)
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, output


@pytest.mark.parametrize(
    ("topic", "is_one"),
    [
        *((f"mq.a.{kind}", True) for kind in ("registry", "operations", "outcomes", "checkpoints")),
        ("mq.a.orders", False),
        ("other.operations", False),
        ("operations", False),
        (".operations", False),
    ],
)
def test_a_log_topic_is_known_by_those_beside_it(topic, is_one):
    """An application may have a topic whose name ends as theirs do."""
    beside = {"mq.a.registry", "mq.a.operations", "mq.a.outcomes", "other.operations", "registry"}
    assert is_log_topic(topic, beside) == is_one


@pytest.mark.kafka
def test_a_bridge_neither_reads_nor_writes_a_log_topic(ways):
    """A transaction on the ledger would stop its queue manager; a bridge from it feeds itself."""
    queue, topics = ways.name(), Topics(ways.place.topics.prefix)
    send(ways, queue, "a")
    before = ways.ends(topics.operations)[1]
    for arguments in (
        ("--from", queue, "--to-topic", topics.operations),
        ("--from-topic", topics.outcomes, "--to", queue),
    ):
        code, output = ended(ways, "bridge", *arguments, "--until-end")
        assert code == 1
        assert "is a log topic of LedgerMQ" in output
    assert ways.ends(topics.operations)[1] == before
    assert [one.body for one in ways.messages(queue)] == ["a"]


@pytest.mark.kafka
@pytest.mark.parametrize("topic", ["nowhere", "no name"])
def test_a_bridge_from_a_topic_that_is_not_there_ends(ways, topic):
    """As one to such a topic does: nobody waits for a name that was mistyped."""
    code, output = ended(ways, "bridge", "--from-topic", topic, "--to", ways.name())
    assert code == 1
    assert f"there is no topic {topic} of Kafka" in output


@pytest.mark.kafka
def test_a_relay_to_where_it_takes_from_is_refused(ways):
    """Its messages would go round for ever, each time on the log; by any address of the broker."""
    queue = ways.name("relay")
    port = ways.bootstrap.rpartition(":")[2]
    for goal in (f"queue:{queue}@QM1", f"queue:relay/{queue}@QM1"):
        for address in ((), ("--to-bootstrap", f"localhost:{port}")):
            asked = ("relay", "create", "--from", f"{queue}@QM1", "--to", goal, *address)
            code, output = ended(ways, *asked)
            assert code == 2
            assert "in a circle without end" in output
    code, output = ended(ways, "relay", "create", "--from", f"{queue}@QM1", "--to", f"{queue}@QM2")
    assert code == 0, output


@pytest.mark.parametrize("place", [("x@", "y@QM2"), ("x@QM1", "y@"), ("x@QM1", "y")])
def test_a_relay_whose_queue_manager_has_no_name_is_wrong_use(place, capsys):
    """It is said before anything is tried."""
    assert main(["relay", "create", "--from", place[0], "--to", place[1]]) == 2
    assert "names " in capsys.readouterr().err


@pytest.mark.parametrize(
    "named", [("q" * 123,), ("q", "--name", "q" * 123), ("q", "--name", "a b")], ids=len
)
def test_a_relay_whose_name_is_too_long_is_told_to_take_another(named, capsys):
    """That of its queue is no name of one; the text spoke of a queue that nobody had asked for."""
    place, *name = named
    command = ["relay", "create", "--from", f"{place}@QM1", "--to", "y@QM2", *name]
    assert main([*command, "--bootstrap", "127.0.0.1:9"]) == 2
    told = capsys.readouterr().err
    assert "is no name of a relay: it has 1 to 122 characters of" in told
    assert "--name" in told
    fits = ["relay", "create", "--from", f"{'q' * 122}@QM1", "--to", "y@QM2"]
    assert main([*fits, "--bootstrap", "127.0.0.1:9"]) == 3


def test_a_relay_that_cannot_be_is_not_there():
    """A name that no queue may have is one that no relay has."""
    with MemoryBroker().connect() as connection:
        for name in ("n", "q" * 128, "a b"):
            with pytest.raises(RelayNotFoundError, match="there is no relay"):
                find_definition(connection, name)


@pytest.mark.parametrize(
    "asked",
    [
        ("relay", "create", "--from", "x y@QM1", "--to", "q@QM2", "--name", "n"),
        ("relay", "create", "--from", "@QM1", "--to", "q@QM2"),
        ("relay", "create", "--from", "q", "--to", "queue:dests:x@QM2"),
        ("relay", "create", "--from", "q", "--to", "topic:a/+@QM2"),
        ("bridge", "--from", "x y", "--to-topic", "t"),
        ("bridge", "--from-topic", "t", "--to", "x y"),
        ("bridge", "--from-topic", "t", "--to", "q", "--bad", "topic:a/#"),
        ("bridge", "--from-topic", "t", "--to", "q", "--bad", ""),
    ],
    ids=" ".join,
)
def test_where_nothing_can_be_put_is_refused_before_anything_is_tried(asked, capsys):
    """Else a relay is made that is never listed, or a bridge ends at its first bad record."""
    assert main([*asked, "--bootstrap", "127.0.0.1:9"]) == 2
    assert "is no destination: a name has 1 to 128 characters" in capsys.readouterr().err


@pytest.mark.parametrize(
    "told",
    ["", "[]", "[1]", "null", "{}", "[" * 1000, '{"queue": [1], "to": {}, "queue_manager": null}'],
)
def test_a_queue_that_is_only_called_as_those_of_relays_is_no_relay(told):
    """Anybody may make one; the list of relays ended with it."""
    with MemoryBroker().connect() as connection:
        connection.admin.create_queue("relay/a", description=told)
        Definition(name="b", queue="q", to="queue:q", queue_manager="QM2").create(connection)
        assert [one.name for one, _ in definitions(connection)] == ["b"]
        with pytest.raises(RelayNotFoundError):
            find_definition(connection, "a")


@pytest.mark.kafka
def test_a_relay_is_shown_before_its_queue_is_there(ways):
    """The first message that is put to the queue makes it."""
    queue = ways.name("relay")
    made = ended(ways, "relay", "create", "--from", f"{queue}@QM1", "--to", f"{queue}@QM2")
    assert made[0] == 0
    code, output = ended(ways, "relay", "show", queue)
    assert code == 0, output
    assert "messages waiting\t0" in output


@pytest.mark.kafka
def test_a_relay_is_shown_whose_other_side_does_not_answer(ways):
    """Who looks then wants to know what waits here; that the rest is missing is an error still."""
    queue = ways.name("relay")
    away = Definition(
        name=queue, queue=queue, to="queue:q", queue_manager="QM2", bootstrap="127.0.0.1:9"
    )
    with ways.connect() as connection:
        away.create(connection)
    send(ways, queue, "a", "b")
    code, output = ended(ways, "relay", "show", queue, "--timeout", "5")
    assert code == 3
    assert "messages waiting\t2" in output
    assert "no Kafka broker answers at 127.0.0.1:9" in output


@pytest.mark.kafka
def test_a_record_that_the_queue_refuses_is_named_and_all_before_it_are_taken(ways):
    """Of two that are too large the first one."""
    topic, queue = ways.topic(), ways.name()
    with ways.connect() as connection:
        connection.admin.create_queue(queue, message_bytes_max=100)
    large = (50, 70)
    ways.produce(topic, *({"value": b"x" * (500 if n in large else 1)} for n in range(100)))
    for _ in range(2):
        with pytest.raises(LedgerMQError, match=f"record {topic}-0@50") as caught:
            ways.bridge(topic, f"queue:{queue}").run()
        assert caught.value.code == "message-too-large"
        assert len(ways.messages(queue)) == 50


@pytest.mark.parametrize(("positions", "taken"), [(range(10), 7), ((0, 1, 2, 2, 2, 3), 2)])
def test_a_message_for_which_a_segment_has_no_room_is_named(positions, taken):
    """Whether it is alone at its position or not; all before it are taken."""
    with MemoryBroker().connect() as connection:
        connection.admin.create_queue("q")
        connection.admin.alter_queue_manager(segment_bytes=300_000)
        taker = Taker(connection, "queue:q", "s", lambda _, one: str(len(one.message["content"])))
        large = 7 if taken == 7 else 4
        bodies = [b"x" * (300_000 if at == large else 10) for at in range(len(positions))]
        made = (make_message("queue:q", body, Sending()) for body in bodies)
        items = list(map(Item, positions, made))
        with pytest.raises(LedgerMQError, match=r"^3000\d\d: .* a segment takes 300000"):
            taker.take(0, items)
        assert [one.body for one in connection.browser("queue:q")] == bodies[:taken]


@pytest.mark.kafka
def test_a_message_that_the_other_side_refuses_is_named(ways):
    """By its id: the queue manager only counts the messages of a transfer."""
    queue = ways.name("relay")
    with ways.connect("QM2") as other:
        other.admin.create_queue(queue, message_bytes_max=100)
    send(ways, queue, "a", "x" * 1000, "b")
    large = ways.messages(queue)[1].message_id
    with pytest.raises(LedgerMQError, match=f"message {large} of transfer 0: .*message-too-large"):
        relay_of(ways, queue).run()


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"max.message.bytes": "2000"}, "its largest message is {}, of 5,0"),
        ({"cleanup.policy": "compact"}, "takes no record without a key"),
    ],
    ids=["too-large", "without-key"],
)
def test_what_a_topic_does_not_take_is_told(ways, settings, told):
    """Which message it may be, or what the topic asks of all of them."""
    queue, topic = ways.name("out"), ways.topic(**settings)
    send(ways, queue, "a", "x" * 5000, "b")
    large = ways.messages(queue)[1].message_id
    with pytest.raises(LedgerMQError, match=told.format(large)) as caught:
        bridge_out(ways, queue, topic).run()
    assert caught.value.code == "record-refused"


@pytest.fixture
def limited(ways):
    """The first queue manager gives up what came back once."""
    with ways.connect() as connection:
        connection.admin.alter_queue_manager(redelivery_limit=0)
        yield connection
        connection.admin.alter_queue_manager(redelivery_limit=-1)


@pytest.mark.kafka
def test_transfers_are_not_given_up_however_often_they_are_refused(ways, limited):
    """A redelivery limit is for applications that fail; what is dropped here would be lost."""
    queue = ways.name("relay")
    relay = relay_of(ways, queue)
    with ways.connect("QM2") as other:
        other.admin.create_queue(queue, message_bytes_max=100)
        send(ways, queue, "a", "x" * 1000, "b")
        for _ in range(3):
            with pytest.raises(LedgerMQError, match="message-too-large"):
                relay.run()
        other.admin.alter_queue(queue, message_bytes_max=0)
    relay.run()
    assert [len(one.body) for one in ways.messages(queue, "QM2")] == [1, 1000, 1]


@pytest.mark.kafka
def test_a_bridge_gives_up_no_transfer_that_kafka_refuses(ways, limited):
    """As a relay does not."""
    queue, topic = ways.name("out"), ways.topic(**{"max.message.bytes": "2000"})
    send(ways, queue, "a", "x" * 5000)
    for _ in range(3):
        with pytest.raises(LedgerMQError, match="too large"):
            bridge_out(ways, queue, topic).run()
    assert limited.admin.queue_status(f"bridge/{queue}/{topic}").message_count == 1


@pytest.mark.kafka
def test_what_came_with_a_message_that_no_relay_can_carry_stays(ways, limited):
    """Each run gets them all and puts them back; none is given up."""
    queue = ways.name("relay")
    relay = relay_of(ways, queue)
    send(ways, queue, "a", b"x" * 8_384_000, "b")
    for _ in range(3):
        with pytest.raises(MessageNotRelayedError):
            relay.run()
    assert limited.admin.queue_status(queue).message_count == 3


@pytest.mark.kafka
def test_what_cannot_become_a_record_stays_on_its_queue(ways, monkeypatch):
    """By hand it can be taken from there, and the bridge goes on; in a transfer it was for ever."""
    queue, topic = ways.name("out"), ways.topic()
    send(ways, queue, "a")
    with monkeypatch.context() as garbled:
        garbled.setattr(making, "encode_content", lambda *_: b"garbage")
        send(ways, queue, "no")
    with pytest.raises(MessageNotRelayedError, match="number 1, cannot be carried"):
        bridge_out(ways, queue, topic).run()
    with ways.connect() as connection:
        told = {"sequences": (1, 1), "reason": "garbage", "actor": "op"}
        assert connection.admin.delete_messages(f"queue:{queue}", **told).affected == 1
    bridge_out(ways, queue, topic).run()
    assert [one.value() for one in ways.records(topic)] == [b"a"]


@pytest.mark.kafka
def test_a_message_of_a_group_stays_on_its_queue_where_the_goal_is_a_topic(ways):
    """A topic never takes it, so in a transfer it would hold up all others for ever."""
    queue = ways.name("relay")
    relay = relay_of(ways, queue, "topic")
    with ways.connect() as connection, connection.session() as session:
        producer = session.producer(f"queue:{queue}")
        producer.send("a")
        producer.send("b", group=ledgermq.GroupPlace(last_in_group=True))
        with pytest.raises(MessageNotRelayedError, match=f"topic:{queue} takes no groups"):
            relay.run()
        admin = connection.admin
        assert admin.queue_status(f"relay/{queue}").message_count == 0
        told = {"sequences": (1, 1), "reason": "of a group", "actor": "op"}
        assert admin.delete_messages(f"queue:{queue}", **told).affected == 1
    relay.run()
    assert relay.forwarded == 1


@pytest.mark.kafka
def test_what_a_relay_holds_that_is_killed_is_not_given_up(ways, limited):
    """A kill says nothing of the message, however long it was held."""
    queue = ways.name()
    limited.admin.create_queue(queue)
    send(ways, queue, "a")
    address = f"kafka://{ways.bootstrap}/QM1"
    command = [sys.executable, "-c", HOLDING, address, ways.place.topics.prefix, f"queue:{queue}"]
    for _ in range(2):
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(SERVICES)},
        ) as holder:
            assert holder.stdout.readline() == "a\n"
            time.sleep(2.5)
            holder.kill()
    assert limited.admin.queue_status(queue).message_count == 1
