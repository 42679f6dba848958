"""A broker that is away is told of once, then at a growing distance, and when it is back."""

import logging
import socket
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

import ledgermq
from ledgermq.client.link import broker_news
from ledgermq.client.link import transport as transport_module
from ledgermq.client.link.broker_news import KAFKA_LOGGER, BrokerNews
from ledgermq.client.link.lane import LaneReader
from ledgermq.client.link.transport import Transport
from ledgermq.client.settings import ConnectionSettings

FORM = "%s [%s] %s"


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        """What it shows."""
        return self.now


@pytest.fixture
def clock():
    """It."""
    return Clock()


@pytest.fixture
def news(clock):
    """The news of one connection."""
    return BrokerNews("h:1", clock)


def failing(news, clock, seconds, a_second=29):
    """A broker is away for so long; what librdkafka logs meanwhile."""
    for _ in range(round(seconds * a_second)):
        news.log(logging.ERROR, FORM, "FAIL", "rdkafka#producer-1", "connection refused")
        clock.now += 1 / a_second


def test_an_hour_without_a_broker_is_about_twenty_lines(news, clock, caplog):
    """At once, after 1, 2, 4 ... seconds, then every five minutes, with how many were left out."""
    failing(news, clock, 3600)
    lines = [one.getMessage() for one in caplog.records]
    assert 15 <= len(lines) <= 22
    assert "trouble with the broker at h:1" in lines[0]
    assert "connection refused" in lines[0]
    assert "28 more" in lines[1]
    assert "(57 more" in lines[2]
    assert all(one.levelno == logging.WARNING for one in caplog.records)
    assert all(one.name == "ledgermq.client.kafka" for one in caplog.records)


def test_that_it_is_back_is_said_once_with_how_long_it_was_away(news, clock, caplog):
    """And a later failure begins anew, at once."""
    failing(news, clock, 90)
    caplog.clear()
    news.well()
    news.well()
    assert [one.getMessage() for one in caplog.records] == ["the broker at h:1 is back after 90 s"]
    caplog.clear()
    clock.now += 301
    failing(news, clock, 0.5)
    assert len(caplog.records) == 1


def test_a_broker_that_comes_and_goes_is_told_of_at_a_growing_distance_too(news, clock, caplog):
    """One of several that is away, while the others take what is written."""
    for _ in range(720):
        failing(news, clock, 1, a_second=2)
        news.well()
        clock.now += 4
    assert len(caplog.records) <= 42


def test_errors_count_as_lines_and_what_is_no_trouble_is_passed_on(news, clock, caplog):
    """The error callback says the same things as the log; other lines stay as they are."""
    for _ in range(10):
        news.error(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert [one.args[-1] for one in caplog.records] == ["1/1 brokers are down"]
    news.log(logging.ERROR, FORM, "TERMINATE", "rdkafka#producer-1", "2 messages in transit")
    assert caplog.records[-1].getMessage() == "TERMINATE [rdkafka#producer-1] 2 messages in transit"
    assert caplog.records[-1].levelno == logging.ERROR


def test_nothing_is_said_while_all_is_well(news, caplog):
    """A record that arrives is no news."""
    news.well()
    assert caplog.records == []


def closed_port():
    """A port of this machine where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def test_a_producer_and_a_lane_without_a_broker_say_it_once(caplog, monkeypatch):
    """With librdkafka itself, on a port where nobody listens: it was 29 lines a second."""
    clock = Clock()
    caplog.set_level(logging.DEBUG)
    settings = ConnectionSettings(bootstrap=f"127.0.0.1:{closed_port()}", queue_manager="QM1")
    news = BrokerNews(settings.bootstrap, clock)
    counted = []
    monkeypatch.setattr(news, "_lock", Counting(news._lock, counted))
    lane, transport = LaneReader(settings, news), Transport(settings, news)
    try:
        transport.beat()
        deadline = time.monotonic() + 20
        while len(counted) < 20 and time.monotonic() < deadline:
            transport.serve()
            lane.read(0.05)
    finally:
        transport.close(0.0)
        lane.close()
    assert len(counted) >= 20
    assert [one.levelname for one in caplog.records] == ["WARNING"]
    assert "refused" in caplog.text


def test_operations_without_a_broker_are_held_up_until_they_are_given_up(monkeypatch):
    """What is written now waits behind them."""
    monkeypatch.setattr(transport_module, "HELD_UP_SECONDS", 0.0)
    settings = ConnectionSettings(bootstrap=f"127.0.0.1:{closed_port()}", queue_manager="QM1")
    transport = Transport(settings, BrokerNews(settings.bootstrap))
    try:
        transport.write(b"operation", [])
        assert transport.is_held_up
    finally:
        transport.close(0.0)
    assert not transport.is_held_up


@pytest.mark.parametrize("written", [0, 1])
def test_a_producer_that_was_closed_keeps_no_threads(written):
    """Else who connects often has hundreds of them, and as many ways to the broker."""

    def threads():
        return {one.name for one in Path("/proc/self/task").iterdir()}

    settings = ConnectionSettings(bootstrap=f"127.0.0.1:{closed_port()}", queue_manager="QM1")
    before = threads()
    transport = Transport(settings, BrokerNews(settings.bootstrap))
    for _ in range(written):
        transport.write(b"operation", [])
    assert len(threads() - before) > 1
    transport.close(0.0)
    assert threads() <= before
    for use in (transport.serve, transport.beat, lambda: transport.write(b"operation", [])):
        with pytest.raises(ledgermq.ConnectionClosedError):
            use()
    transport.close(0.0)


class Counting:
    """A lock that counts."""

    def __init__(self, lock, counted):
        self._lock = lock
        self._counted = counted

    def __enter__(self):
        self._counted.append(1)
        return self._lock.__enter__()

    def __exit__(self, *error):
        return self._lock.__exit__(*error)


def test_the_logger_keeps_quiet_unless_the_application_configures_logging():
    """It has a handler that drops everything, so that nothing comes out of last resort."""
    assert any(type(one) is logging.NullHandler for one in KAFKA_LOGGER.handlers)
    assert broker_news.PAUSE_MAX_SECONDS == 300
    with pytest.raises(ledgermq.BrokerUnavailableError):
        ledgermq.connect(f"kafka://127.0.0.1:{closed_port()}", timeout=0.2)
