"""Tests of how `--at` is read."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime

import numpy
import pytest
from confluent_kafka import TopicPartition

from ledgermq.cli.options.replay_choice import _first_position
from ledgermq.cli.options.target import Target
from ledgermq_spark.log import positions
from ledgermq_spark.log.positions import (
    PartitionRange,
    PositionOutOfRangeError,
    last_ms,
    parse_moment,
    resolve_at,
)

LOG = PartitionRange(topic="t.operations", partition=0, start=10, end=20)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1234", 1234),
        ("QM1@7", 7),
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T10:00:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
    ],
)
def test_a_position_or_a_time_is_read(text, moment):
    """Positions stand bare or with their queue manager; a time without zone is UTC."""
    assert parse_moment(text) == moment


def test_anything_else_is_refused():
    """The error shows how both are written."""
    with pytest.raises(PositionOutOfRangeError, match="neither a log position"):
        parse_moment("yesterday")


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (9, "before the start of the log: .* begins at 10; what stood .* an archive of it may"),
        (20, "after the end of the log: .* is 19"),
        (datetime(2999, 1, 1, tzinfo=UTC), "in the future"),
        (
            datetime(2999, 1, 1, tzinfo=UTC),
            "log time is or was ahead of the clock, name a position",
        ),
    ],
)
def test_what_lies_outside_the_log_is_refused(moment, told):
    """The error says where the log begins or ends."""
    with pytest.raises(PositionOutOfRangeError, match=told):
        resolve_at("nobody:1", LOG, moment)


def test_the_first_record_since_a_time_is_looked_for_by_that_time(monkeypatch):
    """Also where it is the log's first; a refusal names the time that was given."""
    asked = []

    class Consumer:
        def offsets_for_times(self, places, timeout):
            asked.append(places[0].offset)
            return [TopicPartition("t.operations", 0, 0)]

    monkeypatch.setattr(positions, "reading", lambda _: nullcontext(Consumer()))
    monkeypatch.setattr(positions, "locate", lambda *_: (None, replace(LOG, start=0)))
    monkeypatch.setattr(Target, "check_broker", lambda _: None)
    target = Target(broker="nobody:1", queue_manager="QM1", topic_prefix="t", timeout_seconds=1)
    assert _first_position(target, datetime(1970, 1, 2, tzinfo=UTC), None) == 0
    assert asked == [86_400_000]
    with pytest.raises(PositionOutOfRangeError, match=r"^2999-01-01T00:00:00Z lies in the"):
        _first_position(target, datetime(2999, 1, 1, tzinfo=UTC), None)


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (0, r"before the first record of .*: name position 0, or a later time$"),
        (10, r"name position 10, or a later time; what stood before it was trimmed, an archive"),
    ],
)
def test_a_time_before_the_log_is_answered_with_where_it_begins(monkeypatch, start, told):
    """Of a log that was trimmed an archive may have more."""

    class Consumer:
        def offsets_for_times(self, places, timeout):
            return [TopicPartition("t.operations", 0, start)]

    monkeypatch.setattr(positions, "reading", lambda _: nullcontext(Consumer()))
    with pytest.raises(PositionOutOfRangeError, match=told):
        resolve_at("nobody:1", replace(LOG, start=start), "1970-01-02")


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (NOON.replace(tzinfo=None), r"2026-11-20T12:00:00 has no time zone: give an aware"),
        (date(2026, 11, 20), r"datetime.date\(2026, 11, 20\) is no moment of a log"),
        (1.5, "1.5 is no moment of a log: give a position, an aware datetime, or a text"),
        (True, "True is no moment of a log"),
        (-1, r"position -1 lies before the start of the log: .* begins at \d+$"),
    ],
)
def test_a_program_is_told_what_is_no_moment(at, told):
    """A time without a zone is that of this machine for Spark, and one in UTC as a text."""
    with pytest.raises(PositionOutOfRangeError, match=told):
        resolve_at("nobody:1", LOG, at)


def test_a_position_may_be_a_number_of_numpy():
    """As one has it out of a table."""
    assert resolve_at("nobody:1", LOG, numpy.int64(12)) == 12


def test_a_time_within_a_millisecond_has_the_records_of_it_before_itself():
    """Records have times in whole ms; the first that was appended since then is in the next."""
    within = datetime(1970, 1, 1, 0, 0, 1, 500, tzinfo=UTC)
    whole = within.replace(microsecond=0)
    assert [last_ms(one, before=False) for one in (whole, within)] == [1_000, 1_000]
    assert [last_ms(one, before=True) for one in (whole, within)] == [999, 1_000]


def test_a_position_on_another_log_is_refused():
    """It names its queue manager."""
    assert resolve_at("nobody:1", LOG, "QM1@12", queue_manager="QM1") == 12
    with pytest.raises(PositionOutOfRangeError, match="QM2@12 is a position on the log of QM2"):
        resolve_at("nobody:1", LOG, "QM2@12", queue_manager="QM1")


def test_no_moment_means_the_end():
    """The last record that the log has now."""
    assert resolve_at("nobody:1", LOG, None) == 19


def test_an_empty_log_has_an_end_and_no_moments():
    """Whoever asks for none gets the state before the first record; any other is refused."""
    empty = PartitionRange(topic="t.operations", partition=0, start=0, end=0)
    assert resolve_at("nobody:1", empty, None) == -1
    with pytest.raises(PositionOutOfRangeError, match="holds no records: no moment lies on it"):
        resolve_at("nobody:1", empty, 0)
