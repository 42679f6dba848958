"""Which columns a table has: all for programs, for people those that have something to show."""

import io

import pytest
from rich.console import Console

from ledgermq.cli.printing.output import Column, Output, drawn_table, shown_columns

COLUMNS = [
    Column(key="name", heading="NAME"),
    Column(key="selector", heading="SELECTOR", detail=True),
]


def keys_for_people(rows):
    """The keys of the columns that people are shown for rows."""
    return [one.key for one in shown_columns(COLUMNS, rows)]


def test_programs_get_every_column(capsys):
    """A script finds its columns whatever the rows hold."""
    for rows in ([{"name": "a", "selector": ""}], []):
        Output(as_json=False).table(COLUMNS, rows)
        assert capsys.readouterr().out.splitlines()[0] == "NAME\tSELECTOR"


def test_people_are_spared_details_that_no_row_has():
    """One row with the detail is enough to show it; other columns stay."""
    assert keys_for_people([{"name": "", "selector": ""}]) == ["name"]
    rows = [{"name": "a", "selector": ""}, {"name": "b", "selector": "x = 1"}]
    assert keys_for_people(rows) == ["name", "selector"]


WIDE = [
    Column(key="position", heading="POSITION", number=True),
    Column(key="message_id", heading="MESSAGE ID", whole=True),
    Column(key="why", heading="WHY"),
    Column(key="body", heading="BODY", cut=True),
]
ROWS = [
    {"position": 1234567890123, "message_id": f"{number:032x}", "why": "none here", "body": "tea"}
    for number in (1, 2)
]


def drawn(monkeypatch, width, columns=WIDE, rows=ROWS):
    """The lines of a table on a terminal of that width."""
    monkeypatch.setenv("COLUMNS", str(width))
    screen = io.StringIO()
    Console(file=screen, width=width).print(drawn_table(columns, rows))
    return [line.rstrip() for line in screen.getvalue().splitlines()]


@pytest.mark.parametrize("width", [30, 45, 60, 70, 80, 100, 200])
def test_no_number_and_no_id_is_cut_however_narrow_the_terminal(monkeypatch, width):
    """Of one that is cut nobody sees that it is another one; nor is a column left out."""
    lines = drawn(monkeypatch, width)
    told = "".join(line.replace(" ", "") for line in lines)
    assert max(map(len, lines)) <= width
    assert told.count("1234567890123") == len(ROWS)
    assert [one["message_id"] for one in ROWS if one["message_id"] not in told] == []
    assert told.count("nonehere") == told.count("tea") == len(ROWS)


def test_rows_stand_in_blocks_where_a_table_has_no_room(monkeypatch):
    """A line for each value, behind its heading."""
    assert drawn(monkeypatch, 60)[:5] == [
        "POSITION    1234567890123",
        "MESSAGE ID  00000000000000000000000000000001",
        "WHY         none here",
        "BODY        tea",
        "",
    ]
    assert drawn(monkeypatch, 80)[0].split() == ["POSITION", "MESSAGE", "ID", "WHY", "BODY"]


def test_details_are_left_out_and_named_where_the_others_have_room(monkeypatch):
    """A list stays one that can be looked over."""
    details = (("who", "WHO"), ("client_id", "CLIENT ID"))
    columns = [*WIDE, *(Column(key=key, heading=name, detail=True) for key, name in details)]
    rows = [{**one, "client_id": "billing", "who": "me"} for one in ROWS]
    lines = drawn(monkeypatch, 75, columns, rows)
    assert [line.split()[-1] for line in lines] == ["WHO", "me", "me", "all"]
    assert lines[-1] == "no room for CLIENT ID: --json has all"
    assert drawn(monkeypatch, 67, columns, rows)[-1] == "no room for WHO, CLIENT ID: --json has all"
    assert drawn(monkeypatch, 90, columns, rows)[-1].endswith("me   billing")
    assert "CLIENT ID   billing" in drawn(monkeypatch, 60, columns, rows)


def test_nothing_is_drawn_of_no_rows_where_their_headings_have_no_room(monkeypatch):
    """What is said below the table says it."""
    assert drawn(monkeypatch, 20, rows=[]) == []
