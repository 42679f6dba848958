"""Tests of how `--at` is read."""

from datetime import UTC, datetime

import pytest

from ledgermq_spark.log.positions import (
    PartitionRange,
    PositionOutOfRangeError,
    parse_moment,
    resolve_at,
)

LOG = PartitionRange(topic="t.operations", partition=0, start=10, end=20)


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
        (9, "before the start of the log: .* begins at 10"),
        (20, "after the end of the log: .* is 19"),
        (datetime(2999, 1, 1, tzinfo=UTC), "in the future"),
    ],
)
def test_what_lies_outside_the_log_is_refused(moment, told):
    """The error says where the log begins or ends."""
    with pytest.raises(PositionOutOfRangeError, match=told):
        resolve_at("nobody:1", LOG, moment)


def test_no_moment_means_the_end():
    """The last record that the log has now."""
    assert resolve_at("nobody:1", LOG, None) == 19


def test_an_empty_log_has_an_end_and_no_moments():
    """Whoever asks for none gets the state before the first record; any other is refused."""
    empty = PartitionRange(topic="t.operations", partition=0, start=0, end=0)
    assert resolve_at("nobody:1", empty, None) == -1
    with pytest.raises(PositionOutOfRangeError, match="holds no records: no moment lies on it"):
        resolve_at("nobody:1", empty, 0)
