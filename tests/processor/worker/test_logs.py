"""What of a library's log is held back (the worker's own lines never are)."""

import json
import logging
from datetime import datetime, timedelta

import pytest

from ledgermq.processor.worker import logs
from ledgermq.processor.worker.logs import KAFKA_LOGGER, ManagerLog, RepeatFilter, json_lines


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves: a list whose one item is the time in seconds."""
    now = [100.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    return now


def line(name, text, *arguments):
    """A log line as a library writes it."""
    return logging.LogRecord(name, logging.WARNING, "file.py", 1, text, arguments, None)


def test_a_repeated_line_comes_once_in_ten_seconds_with_the_number_held_back(clock):
    """Arguments may differ: it is the same complaint."""
    repeats = RepeatFilter()
    passed = [repeats.filter(line("aiokafka.client", "no broker %s", n)) for n in range(41)]
    assert passed == [True] + [False] * 40
    clock[0] += 10.1
    again = line("aiokafka.client", "no broker %s", 41)
    assert repeats.filter(again)
    assert again.getMessage() == "no broker 41 (and 40 times more like this)"
    clock[0] += 10.1
    alone = line("aiokafka.client", "no broker %s", 42)
    assert repeats.filter(alone)
    assert alone.getMessage() == "no broker 42"


def test_different_lines_do_not_hold_each_other_back(clock):
    """Another place, another format, or in librdkafka another kind of complaint."""
    repeats = RepeatFilter()
    assert repeats.filter(line("faust.app", "one"))
    assert repeats.filter(line("faust.app", "two"))
    assert repeats.filter(line("mode.worker", "one"))
    text = "%s [%s] %s"
    assert repeats.filter(line(KAFKA_LOGGER.name, text, "FAIL", "producer-1", "refused"))
    assert repeats.filter(line(KAFKA_LOGGER.name, text, "TERMINATE", "producer-1", "in transit"))
    assert not repeats.filter(line(KAFKA_LOGGER.name, text, "FAIL", "producer-1", "again"))


def test_the_workers_own_lines_always_pass(clock):
    """However often they are said."""
    repeats = RepeatFilter()
    assert all(repeats.filter(line("ledgermq.processor.owner.owner", "x")) for _ in range(50))


def test_what_is_remembered_is_bounded(clock):
    """A library that never says the same twice does not fill the memory."""
    repeats = RepeatFilter()
    for number in range(3 * logs.TEXTS_MAX):
        assert repeats.filter(line("faust.app", f"text {number}"))
    assert len(repeats._seen) <= logs.TEXTS_MAX


def test_what_was_held_back_is_told_of_though_the_line_is_remembered_no_more(clock):
    """With the next line that passes: the count went with a line that was not to be filled up."""
    repeats = RepeatFilter()
    for _ in range(6):
        repeats.filter(line("aiokafka.client", "no broker"))
    said = []
    for number in range(logs.TEXTS_MAX):
        record = line("faust.app", f"text {number}")
        assert repeats.filter(record)
        said.append(record.getMessage())
    assert said[-1] == f"text {logs.TEXTS_MAX - 1} (and 5 times more like others before)"
    assert not any("more like" in one for one in said[:-1])
    assert not repeats.filter(line("faust.app", "text 7"))


def test_a_line_for_programs_is_one_json_object_with_its_fields():
    """Whatever is in the text stays in one line; what the caller names are fields of their own."""
    record = line("ledgermq.processor", '%s: a "b"\n\\ü \u2028', "QM1")
    record.queue_manager, record.position = "QM1", 7
    text = json_lines("worker-1").format(record)
    assert len(text.splitlines()) == 1
    found = json.loads(text)
    assert datetime.fromisoformat(found.pop("time")).utcoffset() == timedelta(0)
    assert found == {
        "level": "WARNING",
        "logger": "ledgermq.processor",
        "message": 'QM1: a "b"\n\\ü \u2028',
        "worker": "worker-1",
        "queue_manager": "QM1",
        "position": 7,
    }


def test_a_line_about_a_queue_manager_begins_with_its_name_whatever_that_is(caplog):
    """It has the name and what the caller adds as fields."""
    ManagerLog(logging.getLogger("ledgermq.processor"), "Q%M").warning("at %d", 7, position=7)
    (record,) = caplog.records
    assert record.getMessage() == "Q%M: at 7"
    assert (record.queue_manager, record.position) == ("Q%M", 7)
