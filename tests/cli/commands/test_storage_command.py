"""`ledgermq storage`, in memory: for scripts, as a table, as bars."""

import contextlib
import json

import pytest

from ledgermq.cli.commands.storage import bar
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.exits import OK, REFUSED, USAGE
from ledgermq.cli.printing.output import size_text
from ledgermq.testing import MemoryBroker


@pytest.fixture
def memory(plain, monkeypatch):
    """Calls a command that speaks to a queue manager in memory."""
    broker = MemoryBroker()

    @contextlib.contextmanager
    def connect(target, *, client_id=None):
        # Nobody moves the clock, so what has no room is told at once.
        with broker.connect(client_id=client_id, send_timeout_seconds=0) as connection:
            yield connection

    monkeypatch.setattr(Target, "connect", connect)
    return plain


def test_storage_is_told_as_json_and_as_lines(memory):
    """A document with everything; a line for each segment with what pins it."""
    assert memory("manager", "alter", "--segment-bytes", "4096", "--segments-min", "2").code == OK
    assert memory("put", "q", "hello").code == OK
    told = json.loads(memory("storage", "--json").out)
    assert (told["segment_bytes"], told["allocated"], told["free"]) == (4096, 2, 1)
    assert told["segments"][0]["oldest"]["destination"] == "queue:q"
    heading, first, second = memory("storage").out.splitlines()
    assert heading.split("\t")[:3] == ["segment", "state", "bytes"]
    assert first.split("\t")[0:2] == ["7ef325", "active"]
    assert first.split("\t")[4:] == ["1", "queue:q 0"]
    assert second.split("\t")[:3] == ["7ef326", "free", "0"]


def test_settings_of_the_storage_are_altered(memory):
    """What the fold refuses ends as refused, what is no number as wrong use (DB-10)."""
    assert memory("manager", "alter", "--segments-max", "3").code == REFUSED
    assert memory("manager", "alter", "--segment-bytes", "0").code == USAGE
    assert memory("manager", "alter", "--segments-max", "8").code == OK
    assert json.loads(memory("storage", "--json").out)["segments_max"] == 8


@pytest.mark.parametrize(("segment_bytes", "told"), [(1, True), (8_450_047, True), (8_450_048, 0)])
def test_segments_that_refuse_messages_say_so_as_they_are_set(memory, segment_bytes, told):
    """What takes no message more says that at once, with a value that takes every message."""
    answer = memory("manager", "alter", "--segment-bytes", str(segment_bytes))
    assert answer.code == OK
    assert (f"more than {segment_bytes:,} bytes" in answer.err) == bool(told)
    assert ("--segment-bytes 8450048" in answer.err) == bool(told)


def test_a_queue_manager_whose_segments_take_nothing_is_altered_back(memory):
    """The smallest segment takes nothing; the refusal says how little a segment takes."""
    assert memory("manager", "alter", "--segment-bytes", "1").code == OK
    answer = memory("put", "q", "hello")
    assert answer.code == REFUSED
    assert "a segment takes 1 [transaction-too-large]" in answer.err
    assert memory("manager", "alter", "--segment-bytes", "8450048").code == OK
    assert memory("put", "q", "hello").code == OK


def test_put_into_full_storage_says_what_is_full(memory):
    """The exit code is that of a refusal (decision 9)."""
    settings = ("--segment-bytes", "64", "--segments-min", "1", "--segments-max", "1")
    assert memory("manager", "alter", *settings).code == OK
    while (answer := memory("put", "q", "hello")).code == OK:
        pass
    assert answer.code == REFUSED
    assert "storage-full" in answer.err


@pytest.mark.parametrize(
    ("appended", "live", "drawn"),
    [
        (0, 0, "·" * 20),
        (100, 100, "█" * 20),
        (100, 1, "█" + "░" * 19),
        (95, 95, "█" * 19 + "·"),
        (100, 99, "█" * 19 + "░"),
        (1, 1, "█" + "·" * 19),
        (50, 200, "█" * 10 + "·" * 10),
        (200, 100, "█" * 10 + "░" * 10),
    ],
)
def test_bar_shows_what_is_live_and_what_is_released(appended, live, drawn):
    """As the figure's slots: nothing that is there is drawn as nothing (DB-11)."""
    assert bar(appended, live, 100) == drawn


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (16 * 2**20, "16 MiB")],
)
def test_sizes_are_told_in_units(size, text):
    """Of 1,024 each."""
    assert size_text(size) == text
