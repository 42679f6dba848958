"""Tests of stretches of history on a real broker: what came in, and what of it was replayed."""

import math
import uuid
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from ledgermq.wire.content import replayed
from ledgermq.wire.content.content import decode_content
from ledgermq.wire.topics.log_topics import Topics, ensure_topics
from ledgermq.wire.topics.registry import claim_queue_manager
from ledgermq_spark.journal.stretch import stretch_of
from ledgermq_spark.log.positions import PositionOutOfRangeError
from support.brokers.log_writer import LANES, Script, append_operations, color_header
from support.messages.selections import of_queue

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
CAME_IN = ["early put", "plain", "fills", "waited", "topic", "u1", "u2", "u3", "of another", "last"]


def copy_header(replay, position, index=0, **more):
    """The header of a copy of the message that was put there."""
    header = color_header("red")
    header["properties"] = {
        replayed.REPLAY: replay,
        replayed.FROM: replayed.put_named("QM1", position, index),
        **more,
    }
    return header


def story():
    """A log, with the stretch of it that is meant, and where two of its messages were put."""
    script = Script(step_us=0)
    session, unit = script.session(), script.session("TRANSACTED")
    session.put("q", "before")
    unit.put("q", "early put")
    first = unit.commit()
    plain = session.put("q", "plain")
    settings = given_settings({"messages_max": 1})
    session.send(op.CreateQueue, queue="full", settings=settings)
    session.put("full", "fills")
    waiting = [script.message("waited")]
    session.send(op.Put, destination="queue:full", messages=waiting, blocking_ms=60_000)
    session.send(
        op.Put, destination="queue:full", messages=[script.message("refused")], blocking_ms=0
    )
    moved = {"selection": of_queue("full"), "target": "queue:q", "actor": "a", "reason": "r"}
    session.send(administration.MoveMessages, **moved)
    session.publish("t", "topic")
    unit.put("b", "u1", "u2")
    two = unit.put("a", "u3")
    unit.commit()
    unit.put("q", "rolled back")
    unit.rollback()
    for name in ("again", "other"):
        message = script.message("of another", header=copy_header(name, plain))
        session.send(op.Put, destination="queue:q", messages=[message])
    unit.put("q", "committed too late")
    last = session.put("q", "last")
    unit.commit()
    # Copies that count are those that were accepted.
    copies = [script.message("copy", header=copy_header("again", two, nan=math.nan))]
    unit.send(op.Put, destination="queue:q", messages=copies)
    unit.commit()
    copies = [script.message("never", header=copy_header("again", last))]
    unit.send(op.Put, destination="queue:q", messages=copies)
    unit.rollback()
    unit.send(op.Put, destination="queue:q", messages=copies)
    return SimpleNamespace(script=script, first=first, last=last)


@pytest.fixture(scope="module")
def log(broker, spark):
    """The story on a broker, and how a stretch of it is had."""
    prefix = f"stretch-{uuid.uuid4().hex[:8]}"
    topics = Topics(prefix)
    ensure_topics(broker.bootstrap, topics, partitions=1, lanes=LANES)
    claim = claim_queue_manager(broker.bootstrap, topics, "QM1", lanes=LANES)
    told = story()
    append_operations(broker.bootstrap, topics, "QM1", claim.partition, told.script.entries)

    def stretch(first=told.first, last=told.last, replay="again", **given):
        return stretch_of(
            broker.bootstrap,
            "QM1",
            first=first,
            last=last,
            replay=replay,
            topic_prefix=prefix,
            spark=spark,
            **given,
        )

    place = TopicPartition(topics.operations, claim.partition)
    return SimpleNamespace(stretch=stretch, bootstrap=broker.bootstrap, place=place, **vars(told))


def told(stretch):
    """What its messages say, in their order, and which of them were replayed."""
    found = [(decode_content(one.content).body, done) for one, done in stretch.messages()]
    return [body for body, _ in found], [body for body, done in found if done]


def test_a_stretch_has_what_came_in_in_the_order_of_the_numbers(log):
    """Put before it and committed in it, or let in late; not what was refused, rolled back,
    committed later or moved by administration, nor copies of the replay itself.
    """
    stretch = log.stretch()
    bodies, done = told(stretch)
    assert bodies == CAME_IN
    assert done == ["plain", "u3"]
    assert stretch.through == len(log.script.entries) - 1
    assert stretch.gone() == (0, [])


def test_what_was_replayed_is_told_by_the_name_of_the_replay(log):
    """Another one has its own copies, and puts those of others again."""
    bodies, done = told(log.stretch(replay="other", first=0))
    assert bodies == ["before", *CAME_IN]
    assert done == ["plain"]
    bodies, done = told(log.stretch(replay="third"))
    assert (bodies.count("of another"), done) == (2, [])


def test_a_stretch_is_narrowed_to_where_messages_were_put(log):
    """Topics and queues, by kind and name; a stretch in which nothing came in is empty."""
    assert told(log.stretch(sources=["topic:t", "queue:b"]))[0] == ["topic", "u1", "u2"]
    empty = log.stretch(sources=["queue:nowhere"])
    assert (told(empty), empty.gone()) == (([], []), (0, []))


def test_times_of_a_stretch_are_utc_whatever_the_time_zone(log, live_in):
    """Selectors of a replay see them, and what is to be put at the pace of the originals."""
    live_in("America/New_York")
    stretch = log.stretch()
    micros = stretch.rows.selectExpr("position", "unix_micros(enqueued_at)").collect()
    expected = dict(map(tuple, micros))
    for one, _ in stretch.messages():
        assert one.enqueued_at.timestamp() * 1e6 == expected[one.position]


def test_of_a_log_that_was_cut_a_stretch_needs_a_checkpoint(log):
    """Runs last: without one nobody can tell which puts were accepted."""
    cut = TopicPartition(log.place.topic, log.place.partition, log.first - 1)
    admin = AdminClient({"bootstrap.servers": log.bootstrap})
    for future in admin.delete_records([cut]).values():
        future.result(timeout=20)
    with pytest.raises(PositionOutOfRangeError, match=f"begins at position {log.first - 1}"):
        log.stretch()
