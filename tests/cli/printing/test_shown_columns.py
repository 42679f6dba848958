"""Which columns a table has: all for programs, for people those that have something to show."""

from ledgermq.cli.printing.output import Column, Output, shown_columns

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
