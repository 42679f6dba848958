"""Bodies that left the cache come back from the log, in order and unchanged (D6)."""

import pytest

import ledgermq
from ledgermq.protocol import operations as op
from support.checks.history import check_history, fold_log

pytestmark = pytest.mark.kafka


def fill(client, queue, puts, size):
    """Puts and commits; the bodies by (put position, index) as they must come back."""
    session = client.open()
    for _ in range(puts):
        session.put(queue, 10, size=size)
        session.write(op.Commit, deliveries=[], puts=10)
        session.answered = max(0, session.sequence - 20)
    session.reply(session.sequence)
    return session


def test_messages_are_delivered_from_the_log_when_the_cache_is_tiny(place):
    """A cache of a few bytes and a restart: every body is read back and right (DB-01)."""
    first = place.worker("first", BODY_CACHE_BYTES=5_000)
    fill(place.client(), "queue:deep", 60, 1_000)
    first.kill()
    place.worker("second", BODY_CACHE_BYTES=5_000)
    client = place.client(1)
    session = client.open("CLIENT")
    session.consumer(1, "queue:deep", 1_000)
    client.read_until(lambda: session.deliveries == 600)
    puts = {
        position: one
        for position, one in enumerate(fold_log(place).operations)
        if isinstance(one, op.Put)
    }
    messages = [message for one in session.delivered for message in one.messages]
    assert [message["sequence"] for message in messages] == list(range(600))
    for message in messages:
        put = puts[message["put_position"]].messages[message["put_index"]]
        assert message["content"] == put["content"]
    check_history(place)


def test_two_deep_queues_are_drained_in_turn_from_the_log(place):
    """Reading back goes on when two queues want bodies of different places alternately."""
    place.worker(BODY_CACHE_BYTES=3_000)
    producer = place.client()
    session = producer.open()
    for _ in range(40):
        for name in ("queue:a", "queue:b"):
            session.put(name, 5, size=800)
        session.write(op.Commit, deliveries=[], puts=10)
        session.answered = max(0, session.sequence - 30)
    session.reply(session.sequence)
    client = place.client(1)
    taker = client.open("CLIENT")
    taker.do(op.OpenConsumer, consumer=1, destination="queue:a")
    taker.do(op.OpenConsumer, consumer=2, destination="queue:b")
    for _ in range(20):
        for number in (1, 2):
            taker.do(op.Get, consumer=number, credit=10)
    client.read_until(lambda: taker.deliveries == 400)
    check_history(place)


def test_groups_are_delivered_from_all_over_the_log(place):
    """In logical order each delivery wants bodies of many Puts; a tiny cache brings them right."""
    place.worker(BODY_CACHE_BYTES=5_000)
    groups, length = 30, 20
    with place.connect() as connection, connection.session(transacted=True) as session:
        producer = session.producer("queue:groups")
        for number in range(1, length + 1):
            for group in range(1, groups + 1):
                here = ledgermq.GroupPlace(
                    group_id=group.to_bytes(24, "big"),
                    group_sequence=number,
                    last_in_group=number == length,
                )
                producer.send(f"{group}:{number}".ljust(300), group=here)
            session.commit()
        consumer = session.consumer("queue:groups", prefetch=50, order=ledgermq.Order.LOGICAL)
        bodies = [consumer.receive(30).body.strip() for _ in range(groups * length)]
        session.commit()
    wanted = [f"{group}:{number}" for group in range(1, 31) for number in range(1, 21)]
    assert bodies == wanted
    check_history(place)


def test_a_browse_shows_bodies_that_are_only_in_the_log(place):
    """BROWSE pages through a queue in delivery order with every body in place."""
    first = place.worker("first")
    fill(place.client(), "queue:deep", 25, 200)
    first.kill()
    place.worker("second", BODY_CACHE_BYTES=2_000)
    client = place.client(1)
    seen, more = [], True
    while more:
        after = seen[-1]["sequence"] if seen else -1
        priority = seen[-1]["priority"] if seen else 9
        answer = client.ask(
            "BROWSE", queue="deep", after_priority=priority, after_sequence=after, limit=60
        )
        seen += answer["messages"]
        more = '"more":true' in answer["document"]
    assert [message["sequence"] for message in seen] == list(range(250))
    assert all(len(message["content"]) == 200 for message in seen)


def test_resync_brings_deliveries_in_flight_with_their_bodies(place):
    """After a restart RESYNC tells sessions, kept replies and deliveries, bodies filled in."""
    first = place.worker("first")
    fill(place.client(), "queue:a", 3, 300)
    client = place.client(1)
    session = client.open("CLIENT")
    session.consumer(1, "queue:a", 30)
    client.read_until(lambda: session.deliveries == 30)
    delivered = [message for one in session.delivered for message in one.messages]
    client.ask("CHECKPOINT")
    first.kill()
    place.worker("second", BODY_CACHE_BYTES=1_000)
    answer = client.ask("RESYNC")
    again = [
        message
        for name, one in answer["outcomes"]
        if name == "ledgermq.outcome.Delivered"
        for message in one["messages"]
    ]
    assert again == delivered
    last = max(client.outcomes)
    assert f'"last_position":{last[0]},"last_index":{last[1]}' in answer["document"]


def test_messages_whose_bodies_are_gone_from_the_log_are_delivered_without_them(place):
    """Their receivers and the worker's log are told; the worker and other messages go on (D6)."""
    from support.brokers import topic_surgery as surgery

    first = place.worker("first")
    producer = fill(place.client(), "queue:a", 2, 300)
    producer.client.ask("CHECKPOINT")
    first.kill()
    surgery.delete_records(place, place.topics.operations, 0, 2)
    second = place.worker("second")
    with place.connect() as connection, connection.session() as session:
        consumer = session.consumer("queue:a")
        session.producer("queue:a").send("behind them")
        lost = consumer.receive(20)
        with pytest.raises(ledgermq.MessageUndecodableError, match="of queue:a is lost"):
            _ = lost.body
        found = [len(consumer.receive(20)._raw["content"]) for _ in range(20)]
    assert found == [0] * 9 + [300] * 10 + [found[-1]]
    assert second.log.count("is lost: ") == 10
    assert "-0@1 has no record any more, the log was cut" in second.log
