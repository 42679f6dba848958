"""Which columns a table has: all for programs, for people those that tell something."""

from ledgermq.cli.output import Column, Output

COLUMNS = [Column(key="name", heading="NAME"), Column(key="selector", heading="SELECTOR")]


def keys_of(for_people, rows):
    """The keys of the columns shown for rows."""
    output = Output(as_json=False)
    output.for_people = for_people
    return [one.key for one in output.telling(COLUMNS, rows, ["selector"])]


def test_programs_get_every_column():
    """A script finds its columns whatever the rows hold."""
    assert keys_of(False, [{"name": "a", "selector": ""}]) == ["name", "selector"]
    assert keys_of(False, []) == ["name", "selector"]


def test_people_are_spared_details_that_no_row_has():
    """One row with the detail is enough to show it; other columns stay."""
    assert keys_of(True, [{"name": "", "selector": ""}]) == ["name"]
    rows = [{"name": "a", "selector": ""}, {"name": "b", "selector": "x = 1"}]
    assert keys_of(True, rows) == ["name", "selector"]
