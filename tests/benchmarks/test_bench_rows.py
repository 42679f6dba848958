"""Rows of the benchmark and its curves, in tiny sizes on the real broker, with their tables."""

import io
import json
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path

import pytest

from ledgermq_benchmarks import growth, main
from ledgermq_benchmarks.place import BenchPlace
from ledgermq_benchmarks.rows import ROWS
from ledgermq_benchmarks.run import MESSAGES, life_run

# The row of selectors is a point of the curve of consumers.
SMALL = {
    "pipelined-1k": 300,
    "pipelined-64k": 60,
    "priorities": 300,
    "grouped": 300,
    "fan-out": 300,
    "loaded-latency": 20,
}


def small(curve):
    """Of few messages; with one step where it goes on from what was there."""
    sizes = (10, 20) if curve.name == "depth" else (2,)
    return curve._replace(sizes=sizes, messages=200, each=200)


@pytest.fixture(scope="module")
def place(broker):
    """A worker of the benchmark's own."""
    with BenchPlace(broker.bootstrap) as found:
        yield found


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_every_message_of_a_row_is_put_and_got(place, name):
    """Producer and consumer end, which they do when all messages came, and there are figures."""
    found = life_run(place.address(), name, SMALL[name])
    assert found["messages_per_second"] > 0
    row = next(one for one in ROWS if one.name == name)
    value, details = main._figure(row, found)
    assert value > 0
    if name == "pipelined-64k":
        assert details["mib_per_second"] == pytest.approx(value / 16, abs=0.1)
    if name == "loaded-latency":
        assert value == found["p50_ms"] <= details["p99_ms"]
        assert 0 < details["rate_beside"] < details["rate_of"]


@pytest.mark.kafka
@pytest.mark.long
def test_growth_and_managers_are_told_and_drawn(broker, monkeypatch, tmp_path, capsys):
    """Every curve has its points in the file, in the table, and as a line of the picture."""
    curves = [small(curve) for curve in growth.CURVES]
    monkeypatch.setattr(main, "growth", partial(growth.growth, curves=curves))
    tiny = partial(growth.managers, sizes=(1, 2), messages=200)
    monkeypatch.setattr(main, "managers", tiny)
    output = tmp_path / "figures.json"
    given = {"bootstrap": broker.bootstrap, "runs": 1, "output": output}
    assert main.run(with_growth=True, with_managers=True, **given) == 0
    curves = json.loads(output.read_text())["curves"]
    assert {one["name"]: [point["size"] for point in one["points"]] for one in curves} == {
        "depth": [10, 20],
        **{name: [2] for name in ("sessions", "queues", "consumers", "properties")},
        "managers-1": [1, 2],
        "managers-2": [2],
    }
    assert all(point["median"] > 0 for one in curves for point in one["points"])
    assert all(point["worker_cores"] > 0 for point in curves[-1]["points"])
    table = capsys.readouterr().out
    assert "20 messages that wait" in table
    assert "2 queue managers on two workers" in table
    picture = ElementTree.parse(tmp_path / "figures.svg").getroot()
    drawn = [one for one in picture.iter() if "data-line" in one.attrib]
    assert len(drawn) == len(growth.CURVES)


def test_a_row_without_a_minimum_meets_it():
    """A delay of which nothing is asked is not too long."""
    free = next(one for one in ROWS if one.name == "loaded-latency")
    result = main.RowResult(row=free, values=[5.0], details=[{}])
    assert result.meets_minimum
    assert result.document()["meets_minimum"]
    assert set(MESSAGES) <= {one.name for one in ROWS}


def test_the_table_of_curves_divides_by_the_first_point():
    """The last column is what is left of the throughput of the smallest size."""
    points = [
        {"size": size, "median": rate, "lowest": rate, "highest": rate}
        for size, rate in ((1, 200.0), (10, 150.0))
    ]
    out = io.StringIO()
    growth.print_curves([{"name": "queues", "text": "queues", "points": points}], out)
    assert out.getvalue().splitlines()[-1].split() == ["10", "queues", *["150"] * 3, "0.75"]


def test_figures_that_the_disk_has_no_room_for_are_printed_all_the_same(monkeypatch, capsys):
    """They may have taken hours; the error names the file."""
    document = {"rows": [], "meets_minimum": True}
    monkeypatch.setattr(main, "measure", lambda *_, **__: document)
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        main.run(bootstrap="b:1", as_json=True, output=Path("/dev/full"))
    assert json.loads(capsys.readouterr().out) == document
