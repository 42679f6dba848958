"""What `ledgermq group` shows people on a terminal, over a queue manager in memory."""

import contextlib

import pytest

from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.exits import OK
from ledgermq.cli.printing.output import Output
from ledgermq.testing import MemoryBroker
from support.messages.grouped_items import get_items, group_id, put_items, put_uncommitted


@pytest.fixture
def connection():
    """A connection to a queue manager in memory with a queue `q`."""
    with MemoryBroker().connect() as opened:
        opened.admin.create_queue("q")
        yield opened


@pytest.fixture
def shown(plain, monkeypatch, connection):
    """Calls a command as on a wide terminal; its lines, without blanks at their ends."""
    monkeypatch.setattr(Target, "connect", lambda _: contextlib.nullcontext(connection))
    monkeypatch.setattr(Output, "for_people", True, raising=False)
    monkeypatch.setattr(
        Output, "__init__", lambda self, as_json: vars(self).update(as_json=as_json)
    )
    monkeypatch.setenv("COLUMNS", "140")

    def run(*arguments):
        answer = plain(*arguments)
        assert answer.code == OK, answer.err
        return [line.rstrip() for line in answer.lines]

    return run


def test_people_are_shown_short_ids_and_no_empty_columns(shown, connection):
    """A column that no group needs is left out; what one group needs is there for all."""
    put_items(connection, "q", "a{g=Y.1}", "b{g=Y.2!}")
    heading, row, position = shown("group", "list", "q")
    assert heading.split() == ["GROUP", "STATE", "SINCE", "MESSAGES", "ITEMS"]
    assert row.split()[:2] == [group_id("Y").hex()[:12], "available"]
    assert position.startswith("at QM1@")
    get_items(connection, "q", logical_order=True)
    put_items(connection, "q", "d{g=Z.2!}")
    heading, held, missing, _ = shown("group", "list", "q")
    assert heading.split()[5:] == ["HELD", "KEPT", "FOR", "MISSING"]
    assert held.endswith("consumer 1")
    assert missing.endswith("message 1")


def test_people_are_told_that_there_are_none(shown, connection):
    """Of all groups, or of the incomplete ones."""
    assert shown("group", "list", "q")[-1] == "no groups"
    put_items(connection, "q", "a{g=Y.1!}")
    assert shown("group", "list", "q", "--incomplete")[-1] == "no incomplete groups"


def test_people_are_shown_a_group_as_a_whole_and_its_items(shown, connection):
    """Above the items what holds for the group, without lines that say nothing."""
    put_items(connection, "q", "a{g=Y.1}", "c{g=Y.3!}")
    session = get_items(connection, "q", logical_order=True)
    lines = shown("group", "show", "q", "59")
    above, below = lines[: lines.index("")], lines[lines.index("") + 1 :]
    told = dict(line.split("  ", 1) for line in above)
    assert told["group"].strip() == group_id("Y").hex()
    assert told["missing"].strip() == "message 2"
    assert told["kept for"].strip() == f"session {session}, consumer 1"
    assert "clashing" not in told
    assert [line.split() for line in below] == [
        ["MESSAGE", "PART", "STATE", "SEQUENCE", "PRIORITY", "SESSION", "CONSUMER"],
        ["1", "held", "0", "4", str(session), "1"],
        ["2", "missing"],
        ["3", "last", "message", "available", "1", "4"],
    ]


def test_clashing_items_stand_last(shown, connection):
    """With their state, also when they are held."""
    with connection.session(transacted=True) as first, connection.session(transacted=True) as other:
        one = put_uncommitted(connection, first, "q", "a{g=Y.1}", "b{g=Y.2!}")
        two = put_uncommitted(connection, other, "q", "c{g=Y.1}", "d{g=Y.2}")
        one()
        two()
    get_items(connection, "q", sequence=2)
    lines = shown("group", "show", "q", "59")
    assert [line.split()[:3] for line in lines[-2:]] == [
        ["1", "held,", "clashing"],
        ["2", "clashing", "3"],
    ]
    assert "clashing  2, 3" in lines


def test_message_in_segments_is_called_so(shown, connection):
    """It is no group; bytes are missing of it."""
    put_items(connection, "q", "a{g=-Y.1@0+5}")
    lines = shown("group", "show", "q", group_id("Y").hex())
    assert lines[1].startswith("segmented message  59")
    assert lines[3] == "missing            bytes 5 on"
