"""A lane that went on without its reader: it goes on from the end, whatever fails meanwhile."""

import threading
import time
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from ledgermq.client.link import lane as module
from ledgermq.client.link.broker_news import BrokerNews
from ledgermq.client.link.heartbeats import Heartbeats
from ledgermq.client.link.lane import LaneReader
from ledgermq.client.settings import ConnectionSettings
from ledgermq.protocol.operations import Alive
from support.brokers.hand_made import accepted

BEYOND = 1_000_000


def lose_place(connection, monkeypatch):
    """Has the reader look for a record that is not there, as if it had been deleted.

    In its own thread: librdkafka may let another one wait for as long as this one polls.
    """
    lane, read = connection._running.lane, connection._running.lane.read

    def lose(timeout_seconds):
        monkeypatch.setattr(lane, "read", read)
        lane._consumer.assign([TopicPartition(lane._topic, lane._partition, BEYOND)])
        return read(timeout_seconds)

    monkeypatch.setattr(lane, "read", lose)


@pytest.mark.kafka
def test_a_lane_whose_end_kafka_does_not_tell_at_once_is_read_on(installation, queue, monkeypatch):
    """Nothing is read any more then: each call would wait for its outcome in vain."""
    with installation.connect() as connection, connection.session() as session:
        producer = session.producer(queue)
        producer.send("a")
        asked, offsets_of = [], module.offsets_of

        def refuse_once(*given):
            asked.append(given)
            if len(asked) == 1:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            return offsets_of(*given)

        monkeypatch.setattr(module, "offsets_of", refuse_once)
        lose_place(connection, monkeypatch)
        limit = time.monotonic() + 20
        while not asked:
            assert time.monotonic() < limit, "it does not notice"
            time.sleep(0.02)
        assert producer.send("b").sequence == 1
        assert len(asked) == 2


def test_a_lane_that_met_a_damaged_record_holds_no_close_up(monkeypatch):
    """Librdkafka's threads may wait for each other for ever, until it has found its way on."""
    settings = ConnectionSettings(bootstrap="127.0.0.1:1", queue_manager="QM1")
    lane = LaneReader(settings, BrokerNews(settings.bootstrap))
    told = [KafkaError(KafkaError._BAD_MSG), KafkaError(KafkaError._AUTO_OFFSET_RESET)]
    closed = threading.Event()

    class Stuck:
        def poll(self, _seconds):
            return SimpleNamespace(error=lambda: told.pop(0)) if told else None

        def consume(self, _records, _seconds):
            return []

        def close(self):
            assert not told, "it is closed while its threads may wait for each other"
            closed.set()

    monkeypatch.setattr(lane, "_consumer", Stuck())
    lane.read(1.0)
    lane.close()
    assert closed.wait(10)


def test_what_a_lost_lane_brought_is_asked_for_until_that_is_answered(desk):
    """Else a consumer would wait for a message that it was given then, if the answer is lost."""
    keeper = Heartbeats(desk.router, desk.log, 5.0)
    desk.session(5)
    desk.router.catch_up()
    for now in (100.0, 101.0, 103.0):
        keeper._round(now)
    assert [ask["kind"] for ask in desk.log.asks] == ["RESYNC"] * 4
    desk.resynced(4, (9, 0), [5])
    keeper._round(107.0)
    assert len(desk.log.asks) == 4


def test_what_was_asked_for_page_by_page_before_a_lane_was_lost_is_asked_for_anew(desk):
    """It is of before that, and what came between its pages and then is lost."""
    core = desk.session(5)
    desk.write(core, Alive)
    desk.router.ask_resync()
    told = {"last_position": 11, "last_index": 0, "sessions": []}
    desk.answer(1, 11, document=told, next="x:1")
    desk.router.catch_up()
    assert [ask["after"] for ask in desk.log.asks] == ["", "x:1", ""]
    desk.answer(2, 11, document=told)
    desk.resynced(3, (20, 0), [5], accepted(20, 5, 1))
    assert [one.reply.position for one in desk.settled] == [20]
    assert not core.ended
