"""From a topic of Kafka to a queue on the real broker: everything once, in order, and whole."""

from __future__ import annotations

import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from ledgermq.client.sending.making import Sending, make_message
from ledgermq.errors import (
    ConnectionClosedError,
    LedgerMQError,
    OutcomeUnknownError,
    RefusedError,
)
from ledgermq.relay import running, taking
from ledgermq.relay.bridge_in import RecordsLostError
from ledgermq.relay.records import RecordInvalidError
from ledgermq.relay.taking import Item, Taker

PROPERTIES = {"LedgerMQ_KafkaTopic", "LedgerMQ_KafkaPartition", "LedgerMQ_KafkaOffset"}


def places(messages):
    """Where messages come from, by partition in the order of the queue."""
    found = {}
    for one in messages:
        properties = one.properties
        found.setdefault(properties["LedgerMQ_KafkaPartition"], []).append(
            properties["LedgerMQ_KafkaOffset"]
        )
    return found


def test_each_record_becomes_one_message_in_the_order_of_its_partition(ways):
    """Body, key, headers, timestamp and place are the record's; running again puts nothing."""
    topic, queue = ways.topic(3), ways.name()
    ways.produce(
        topic,
        *(
            {"value": f"{n}", "key": f"k{n % 5}", "headers": [("region", "EU")], "timestamp": n + 1}
            for n in range(2500)
        ),
    )
    bridge = ways.bridge(topic, f"queue:{queue}", body="text")
    bridge.run()
    assert bridge.put == 2500
    again = ways.bridge(topic, f"queue:{queue}", body="text")
    again.run()
    assert again.put == 0
    messages = ways.messages(queue)
    assert sorted(int(one.body) for one in messages) == list(range(2500))
    for offsets in places(messages).values():
        assert offsets == list(range(len(offsets)))
    (seventh,) = (one for one in messages if one.body == "7")
    told = dict(seventh.properties)
    assert told.pop("LedgerMQ_KafkaTopic") == topic
    assert told.pop("LedgerMQ_KafkaTimestamp") == 8
    assert {name for name in told if name in PROPERTIES} == PROPERTIES - {"LedgerMQ_KafkaTopic"}
    assert (told["region"], told["LedgerMQ_KafkaKey"]) == ("EU", "k2")


def test_two_bridges_at_once_put_each_record_once(ways):
    """Neither knows of the other; what one has taken the other leaves out."""
    topic, queue = ways.topic(2), ways.name()
    ways.produce(topic, *({"value": str(n)} for n in range(6000)))
    bridges = [ways.bridge(topic, f"queue:{queue}") for _ in range(2)]
    threads = [threading.Thread(target=one.run) for one in bridges]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one.put for one in bridges) == 6000
    messages = ways.messages(queue)
    assert sorted(int(one.body) for one in messages) == list(range(6000))
    for offsets in places(messages).values():
        assert offsets == list(range(len(offsets)))


def test_two_queues_each_take_all_of_a_topic(ways):
    """What a queue has taken says nothing of another one (D21)."""
    topic, queues = ways.topic(), (ways.name(), ways.name())
    ways.produce(topic, {"value": "a"}, {"value": "b"})
    for queue in queues:
        ways.bridge(topic, f"queue:{queue}").run()
    assert [[one.body for one in ways.messages(queue)] for queue in queues] == [[b"a", b"b"]] * 2


GARBAGE = [
    {"value": None, "key": "tombstone"},
    {"value": b"", "key": b"\xff\x00"},
    {"value": b"{", "headers": [("a-b", b"1"), ("a-b", b"2"), ("", None)]},
    {"value": b'{"a": NaN}'},
    {"value": b'{"a": 1, "a": 2}'},
    {"value": b"[" * 100_000},
    {"value": b'{"n": 1e300, "big": 123456789012345678901234567890}'},
    {"value": b"\xff\xfe", "headers": [("JMSType", b"x"), ("select", b"\xff")]},
    {"value": b'"' + b"x" * 900_000 + b'"'},
    {"value": b"{}", "headers": [("h", b"x" * 70_000)]},
    {"value": b'{"nested": {"a": [1, 2]}}'},
    {"value": b'{"": 1}'},
    {"value": b"7"},
    {"value": b'{"n": 1e400}'},
]


def test_garbage_is_carried_or_goes_aside_and_nothing_is_missing(ways):
    """What is no JSON, or has too large headers, is whole on the other queue; twice changes not."""
    topic, queue, bad = ways.topic(), ways.name(), ways.name("bad")
    ways.produce(topic, *GARBAGE)
    for _ in range(2):
        ways.bridge(topic, f"queue:{queue}", body="json", bad=f"queue:{bad}").run()
    good, aside = ways.messages(queue), ways.messages(bad)
    went = {one.properties["LedgerMQ_KafkaOffset"]: one.body for one in aside}
    assert sorted(went) == [1, 2, 3, 4, 5, 7, 9, 13]
    assert {one.properties["LedgerMQ_KafkaOffset"] for one in good} == {*range(14)} - {*went}
    for offset, told in went.items():
        given = GARBAGE[offset]
        assert told["value"] == given["value"]
        assert told["reason"]
        headers = [list(one) for one in given.get("headers", [])]
        assert told["headers"] == headers
    bodies = {one.properties["LedgerMQ_KafkaOffset"]: one.body for one in good}
    assert bodies[0] is None
    assert bodies[6]["big"] == 123456789012345678901234567890
    assert bodies[10] == {"nested": {"a": [1, 2]}}
    assert bodies[12] == 7


def test_a_queue_for_what_is_no_message_may_have_other_uses(ways):
    """It is the target too, or another bridge's, or took the topic itself: each gets all of it."""
    topic, first, second = ways.topic(), ways.name(), ways.name()
    ways.produce(topic, *({"value": value} for value in (b"{}", b"\xff", b"{", b"1", b"\xff")))
    both = [0, 1, 2, 3, 4]
    for _ in range(2):
        ways.bridge(topic, f"queue:{first}", body="json", bad=f"queue:{first}").run()
    assert sorted(_offsets(ways.messages(first))) == both
    for _ in range(2):
        ways.bridge(topic, f"queue:{second}", body="text", bad=f"queue:{first}").run()
    assert _offsets(ways.messages(second)) == [0, 2, 3]
    assert sorted(_offsets(ways.messages(first))) == sorted([*both, 1, 4])


def _offsets(messages):
    return [one.properties["LedgerMQ_KafkaOffset"] for one in messages]


@pytest.mark.parametrize("quota", [{"messages_max": 7}, {"bytes_max": 3000}])
def test_a_quota_smaller_than_what_waits_is_filled_message_by_message(ways, quota):
    """What it has no room for waits; as it is drained all comes, in order."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, *({"value": str(n).encode()} for n in range(60)))
    with ways.connect() as connection:
        connection.admin.create_queue(queue, **quota)
        bridge = ways.bridge(topic, f"queue:{queue}")
        thread = threading.Thread(target=bridge.run)
        thread.start()
        with connection.session() as session:
            consumer = session.consumer(f"queue:{queue}", prefetch=0)
            found = [consumer.receive(timeout=30) for _ in range(60)]
        thread.join(60)
    assert [int(one.body) for one in found] == list(range(60))
    assert bridge.put == 60


def test_a_full_queue_is_asked_for_room_with_one_message(ways):
    """What is refused stands on the log: no batch of it every second, and it is said once."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, *({"value": b"x" * 1000} for _ in range(500)))
    with ways.connect() as connection:
        connection.admin.create_queue(queue, messages_max=3)
        bridge = ways.bridge(topic, f"queue:{queue}")
        thread = threading.Thread(target=bridge.run)
        thread.start()
        thread.join(5)
        assert thread.is_alive()
        bridge.stopping.set()
        thread.join(60)
    (told,) = (one for one in ways.told if f"queue:{queue}" in one)
    assert "no room for 1 more" in told


def test_headers_that_are_no_properties_stand_in_one(ways):
    """Names, repetitions, values that are no text and nulls: all of them, in their order."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, GARBAGE[2], GARBAGE[7], GARBAGE[1])
    ways.bridge(topic, f"queue:{queue}").run()
    first, second, third = ways.messages(queue)
    told = json.loads(first.properties["LedgerMQ_KafkaHeaders"])
    assert told == [["a-b", "MQ=="], ["a-b", "Mg=="], ["", None]]
    assert json.loads(second.properties["LedgerMQ_KafkaHeaders"])[1] == ["select", "/w=="]
    assert third.properties["LedgerMQ_KafkaKeyBase64"] == "/wA="
    assert [first.body, second.body, third.body] == [b"{", b"\xff\xfe", b""]


def test_what_is_no_message_stops_a_bridge_that_has_nowhere_to_put_it(ways):
    """What came before it is there; the error names the record."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, {"value": b"a"}, {"value": b"\xff"}, {"value": b"c"})
    for _ in range(2):
        with pytest.raises(RecordInvalidError, match=f"{topic}-0@1") as caught:
            ways.bridge(topic, f"queue:{queue}", body="text").run()
        assert "--bad" in caught.value.__notes__[0]
    assert [one.body for one in ways.messages(queue)] == ["a"]


def test_a_record_that_no_message_can_hold_leaves_what_tells_it(ways):
    """It stays on Kafka; its size and digest are on the other queue."""
    topic, queue, bad = ways.topic(**{"max.message.bytes": "12000000"}), ways.name(), ways.name()
    large = {"value": b"x" * 9_000_000}
    ways.produce(topic, large, {"value": b"y"}, **{"message.max.bytes": 12_000_000})
    ways.bridge(topic, f"queue:{queue}", bad=f"queue:{bad}").run()
    (told,) = ways.messages(bad)
    assert told.body["value"]["bytes"] == 9_000_000
    assert [one.body for one in ways.messages(queue)] == [b"y"]


def test_what_was_aborted_is_not_taken(ways):
    """Holes in the positions of a topic are no hole in what is taken."""
    topic, queue = ways.topic(), ways.name()
    producer = Producer({"bootstrap.servers": ways.bootstrap, "transactional.id": ways.name()})
    producer.init_transactions(30)
    for number, keep in enumerate((True, False, True, True, False)):
        producer.begin_transaction()
        producer.produce(topic, f"{number}")
        producer.flush(30)
        (producer.commit_transaction if keep else producer.abort_transaction)(30)
    for _ in range(2):
        ways.bridge(topic, f"queue:{queue}").run()
    assert [one.body for one in ways.messages(queue)] == [b"0", b"2", b"3"]


def test_records_that_were_deleted_too_early_are_told(ways):
    """It stops; told to go on, it says what it skips."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, *({"value": str(n)} for n in range(10)))
    ways.bridge(topic, f"queue:{queue}").run()
    ways.produce(topic, *({"value": str(n)} for n in range(10, 20)))
    admin = AdminClient({"bootstrap.servers": ways.bootstrap})
    for one in admin.delete_records([TopicPartition(topic, 0, 15)]).values():
        one.result()
    with pytest.raises(RecordsLostError, match="positions 10 to 14 of partition 0"):
        ways.bridge(topic, f"queue:{queue}").run()
    assert len(ways.messages(queue)) == 10
    ways.bridge(topic, f"queue:{queue}", skip_lost=True).run()
    assert [int(one.body) for one in ways.messages(queue)] == [*range(10), *range(15, 20)]
    assert "positions 10 to 14" in ways.told[-1]


def test_ends_of_transactions_that_are_deleted_are_no_records_that_were_lost(ways):
    """To a bridge that has read them; one that begins then cannot know, and says so."""
    topic, queue = ways.topic(), ways.name()
    producer = Producer({"bootstrap.servers": ways.bootstrap, "transactional.id": ways.name()})
    producer.init_transactions(30)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, f"{number}")
        producer.flush(30)
        end(30)
    bridge = ways.bridge(topic, f"queue:{queue}")
    bridge.run()
    admin = AdminClient({"bootstrap.servers": ways.bootstrap})
    for one in admin.delete_records([TopicPartition(topic, 0, OFFSET_END)]).values():
        assert one.result().low_watermark == 4
    bridge.run()
    assert [one.body for one in ways.messages(queue)] == [b"0"]
    again = ways.bridge(topic, f"queue:{queue}")
    with pytest.raises(RecordsLostError, match=r"positions 1 to 3 .* if records were: ends of"):
        again.run()
    bridge.passed[0] = (-1, 3)
    with pytest.raises(RecordsLostError, match="positions 1 to 3"):
        bridge.run()


def test_a_topic_that_was_made_again_is_another_source(ways):
    """Its positions begin anew, and so does what is taken of it."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, {"value": "a"}, {"value": "b"})
    ways.bridge(topic, f"queue:{queue}").run()
    admin = AdminClient({"bootstrap.servers": ways.bootstrap})
    admin.delete_topics([topic])[topic].result()
    ways.topic(name=topic)
    ways.produce(topic, {"value": "c"})
    ways.bridge(topic, f"queue:{queue}").run()
    with ways.connect() as connection:
        told = [one for one in connection.admin.list_sources() if one.destination.endswith(queue)]
    assert [(one.partition, one.taken) for one in told] in ([(0, 0), (0, 1)], [(0, 1), (0, 0)])
    assert [one.body for one in ways.messages(queue)] == [b"a", b"b", b"c"]


def test_a_topic_that_is_made_again_while_it_is_read_ends_the_bridge(ways):
    """However long it is; run again, it takes all of the new one."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, {"value": "a"}, {"value": "b"})
    bridge = ways.bridge(topic, f"queue:{queue}")
    bridge.until_end = False
    with ThreadPoolExecutor() as pool:
        running = pool.submit(bridge.run)
        while bridge.put < 2:
            assert not running.done()
            time.sleep(0.05)
        admin = AdminClient({"bootstrap.servers": ways.bootstrap})
        admin.delete_topics([topic])[topic].result()
        ways.topic(name=topic)
        ways.produce(topic, *({"value": str(n)} for n in range(5)))
        with pytest.raises(RecordsLostError, match="deleted and made again"):
            running.result(60)
    assert [one.body for one in ways.messages(queue)] == [b"a", b"b"]
    ways.bridge(topic, f"queue:{queue}").run()
    assert len(ways.messages(queue)) == 7


def test_partitions_that_are_added_are_taken_too(ways):
    """The next run has them, from their beginnings."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, {"value": "a"})
    ways.bridge(topic, f"queue:{queue}").run()
    admin = AdminClient({"bootstrap.servers": ways.bootstrap})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result()
    ways.produce(topic, {"value": "b", "partition": 1})
    ways.bridge(topic, f"queue:{queue}").run()
    assert [one.body for one in ways.messages(queue)] == [b"a", b"b"]


def test_a_topic_here_takes_each_record_once_for_all_its_subscriptions(ways):
    """A destination is a queue or a topic."""
    topic, name = ways.topic(), ways.name("news")
    ways.produce(topic, *({"value": str(n)} for n in range(5)))
    with ways.connect() as connection, connection.session() as session:
        consumers = [session.consumer(f"topic:{name}") for _ in range(2)]
        for _ in range(2):
            ways.bridge(topic, f"topic:{name}").run()
        for consumer in consumers:
            bodies = [consumer.receive(timeout=20).body for _ in range(5)]
            assert bodies == [b"0", b"1", b"2", b"3", b"4"]
            assert consumer.receive(timeout=0.2) is None


def test_a_message_that_the_queue_refuses_for_good_stops_the_bridge(ways):
    """Nothing is passed over: the same run goes on once the queue takes it."""
    topic, queue = ways.topic(), ways.name()
    with ways.connect() as connection:
        connection.admin.create_queue(queue, message_bytes_max=100)
        ways.produce(topic, {"value": b"x" * 1000}, {"value": b"y"})
        with pytest.raises(LedgerMQError) as caught:
            ways.bridge(topic, f"queue:{queue}").run()
        assert caught.value.code == "message-too-large"
        assert ways.messages(queue) == []
        connection.admin.alter_queue(queue, message_bytes_max=0)
    ways.bridge(topic, f"queue:{queue}").run()
    assert [len(one.body) for one in ways.messages(queue)] == [1000, 1]


def test_a_full_queue_is_waited_for(ways):
    """Quotas hold the bridge up, and lose nothing."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, *({"value": str(n)} for n in range(3)))
    with ways.connect() as connection:
        connection.admin.create_queue(queue, messages_max=3)
        with connection.session() as session:
            session.producer(f"queue:{queue}").send("first")
            bridge = ways.bridge(topic, f"queue:{queue}")
            thread = threading.Thread(target=bridge.run)
            thread.start()
            while not any("quota" in one for one in ways.told):
                thread.join(0.05)
                assert thread.is_alive(), "it went on without room"
            assert session.consumer(f"queue:{queue}").receive(timeout=20).body == "first"
            thread.join(60)
    assert [one.body for one in ways.messages(queue)] == [b"0", b"1", b"2"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_wherever_an_answer_is_lost_nothing_is_put_twice_or_left_out(ways, monkeypatch, seed):
    """Before a put or after it, at every place; what goes aside too."""
    chance, lost = random.Random(seed), []
    topic, queue, bad = ways.topic(3), ways.name(), ways.name("bad")
    values = (b"\xff" if n % 50 == 0 else str(n).encode() for n in range(3000))
    ways.produce(topic, *({"value": value} for value in values))
    monkeypatch.setattr(taking, "PART_MESSAGES_MAX", 100)
    monkeypatch.setattr(running, "PAUSE_SECONDS", 0)
    put = Taker._put

    def losing(self, partition, items):
        what = chance.random()
        if what < 0.1:
            lost.append("before")
            raise ConnectionClosedError("lost before it")
        put(self, partition, items)
        if what < 0.2:
            lost.append("behind")
            raise OutcomeUnknownError("lost behind it")

    monkeypatch.setattr(Taker, "_put", losing)
    ways.bridge(topic, f"queue:{queue}", body="text", bad=f"queue:{bad}").run()
    assert {"before", "behind"} <= set(lost)
    messages = ways.messages(queue)
    assert sorted(int(one.body) for one in messages) == [n for n in range(3000) if n % 50]
    aside = places(ways.messages(bad))
    for partition, offsets in places(messages).items():
        assert offsets == sorted(offsets)
        gone = aside.get(partition, [])
        assert gone == sorted(gone)
        assert sorted([*offsets, *gone]) == list(range(len(offsets) + len(gone)))


def test_a_source_without_a_name_is_refused(ways):
    """The queue manager checks it, whoever wrote it (§5)."""
    with ways.connect() as connection:
        taker = Taker(connection, "queue:q", "", str)
        item = Item(0, make_message("queue:q", "x", Sending()))
        with pytest.raises(RefusedError) as caught:
            taker.take(0, [item])
        assert caught.value.code == "source-invalid"
