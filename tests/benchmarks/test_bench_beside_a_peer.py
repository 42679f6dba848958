"""The benchmark beside RabbitMQ: ratios run by run, and what is not installed is said at once."""

import io
import re
import time

import pytest

from ledgermq_benchmarks import main, rabbitmq
from ledgermq_benchmarks.rabbitmq import RabbitMq
from ledgermq_benchmarks.run import BenchError


class Peer:
    """Answers as a node would: 1,000 messages/s, or 2 ms."""

    version = "3.0"

    def run(self, row, messages):
        """What a row gave, however many messages it had."""
        if row == "latency":
            return {"p50_ms": 2.0, "p99_ms": 4.0, "messages_per_second": 200.0}
        return {"messages_per_second": 1_000.0}


def test_each_run_is_divided_by_the_peers_run_beside_it(monkeypatch):
    """A row needs its own minimum and that of its ratio; a delay must be small, a rate large."""
    figures = iter((800.0, 400.0, 900.0))
    monkeypatch.setattr(main, "WARM_UP_SECONDS", 0.0)
    monkeypatch.setattr(
        main,
        "life_run",
        lambda address, row, messages: {
            "messages_per_second": next(figures) if messages == main.MESSAGES["single"] else 1.0,
            "p50_ms": 3.6,
            "p99_ms": 9.0,
        },
    )
    document = main.measure("b:1", runs=2, names=("single", "latency", "fill"), peer=Peer())
    # The first of the three was the warm-up; "fill" has no such row, and is left out.
    single, latency = document["rows"]
    assert single["ratio"]["runs"] == [0.4, 0.9]
    assert single["ratio"]["median"] == 0.65
    assert single["meets_minimum"]
    assert single["ratio"]["meets_minimum"]
    assert latency["ratio"]["runs"] == [1.8, 1.8]
    assert latency["meets_minimum"]
    assert not latency["ratio"]["meets_minimum"]
    assert not document["meets_minimum"]
    out = io.StringIO()
    main.print_table(document, out)
    assert "RabbitMQ 3.0, quorum queue" in out.getvalue()
    below = [line for line in out.getvalue().splitlines() if line.endswith("BELOW")]
    assert len(below) == 1
    assert re.search(r"\(less is better\)\s+1\.80\s+1\.80\s+1\.80\s+1\.7\s+1\.3", below[0])


def test_rows_run_for_nothing_until_the_broker_has_compiled(monkeypatch):
    """Measured before, a message takes it three times the processor time."""
    ran = []

    def run(address, row, messages):
        ran.append(row)
        time.sleep(0.02)
        return {"messages_per_second": 1.0}

    monkeypatch.setattr(main, "WARM_UP_SECONDS", 0.1)
    monkeypatch.setattr(main, "life_run", run)
    document = main.measure("b:1", runs=1, names=("transacted", "single"))
    assert ran[-2:] == ["transacted", "single"]
    assert ran[:4] == ["transacted", "single"] * 2
    assert [row["runs"] for row in document["rows"]] == [[1.0]] * 2


def test_without_the_package_nothing_is_measured(monkeypatch, tmp_path):
    """The error names the file that is missing and the packages that bring it."""
    monkeypatch.setattr(rabbitmq, "SCRIPTS", tmp_path)
    with pytest.raises(BenchError, match="apt-get install rabbitmq-server"), RabbitMq():
        pass
