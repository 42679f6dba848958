"""How much of a machine Spark takes: what variables, affinity and containers say."""

import os

import pytest

from ledgermq.cli.printing.exits import USAGE, exit_code_of
from ledgermq_spark.log import machine

GIB_IN_MIB = 1024


@pytest.fixture(autouse=True)
def plain_machine(monkeypatch, tmp_path):
    """Eight processors, 16 GiB, no container, no variables; the files that a container has."""
    monkeypatch.delenv(machine.CORES_VARIABLE, raising=False)
    monkeypatch.delenv(machine.MEMORY_VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 4 * 2**20}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(machine, "PROCESSOR_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(machine, "MEMORY_LIMIT", tmp_path / "memory.max")
    return tmp_path


def test_all_processors_are_used_and_memory_grows_with_them():
    """Of 16 GiB no more than half; up to four processors share 2 GiB."""
    assert machine.cores() == 8
    heaps = [machine.memory(cores) for cores in (1, 4, 5, 16, 64)]
    assert heaps == ["2048m", "2048m", "2560m", "8192m", "8192m"]


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        *[("max 100000", 8), ("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1)],
        *[("1600000 100000", 8), ("", 8), ("x y", 8), ("100000 0", 8), ("100000", 8)],
    ],
)
def test_a_container_has_the_processors_of_its_quota(plain_machine, quota, expected):
    """A part of one counts as one; what cannot be read limits nothing."""
    (plain_machine / "cpu.max").write_text(quota)
    assert machine.cores() == expected


@pytest.mark.parametrize(
    ("limit", "expected"), [("max", 8), (f"{6 * 2**30}", 3), (f"{2**30}", 2), ("1e9", 8)]
)
def test_a_container_has_the_memory_of_its_limit(plain_machine, limit, expected):
    """Half of it, but no less than what every job is given."""
    (plain_machine / "memory.max").write_text(limit)
    assert machine.memory(16) == f"{expected * GIB_IN_MIB}m"


@pytest.mark.parametrize(
    ("limit", "expected"), [("max", 4096), (f"{6 * 2**30}", 2048), (f"{2**30}", 2048)]
)
def test_duckdb_has_a_quarter_of_the_memory(plain_machine, monkeypatch, limit, expected):
    """No less than Java, and as much as a variable says."""
    (plain_machine / "memory.max").write_text(limit)
    assert machine.query_memory(2) == f"{expected}m"
    monkeypatch.setenv(machine.MEMORY_VARIABLE, "1G")
    assert machine.query_memory(2) == machine.memory(2) == "1g"


@pytest.mark.parametrize("text", ["1", "3", "0016", "1024"])
def test_a_variable_says_how_many_processors(monkeypatch, text):
    """More than there are may be said as well."""
    monkeypatch.setenv(machine.CORES_VARIABLE, text)
    assert machine.cores() == int(text)


@pytest.mark.parametrize("text", ["512m", "1g", "6G", "2048M"])
def test_a_variable_says_how_much_memory(monkeypatch, text):
    """As Java writes it."""
    monkeypatch.setenv(machine.MEMORY_VARIABLE, text)
    assert machine.memory(2) == text.lower()


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "all", "1025", " 2", "²", "9" * 5_000])
def test_a_number_of_processors_that_is_none_is_refused(monkeypatch, text):
    """The error names the variable and what it must be; the command ends as wrongly used."""
    monkeypatch.setenv(machine.CORES_VARIABLE, text)
    with pytest.raises(
        machine.SparkSettingError, match=r"LEDGERMQ_SPARK_CORES.* 1 to 1024"
    ) as told:
        machine.cores()
    assert exit_code_of(told.value) == USAGE


@pytest.mark.parametrize("text", ["511m", "0g", "6", "6gb", "1.5g", "-1g", "g", "9" * 5_000 + "g"])
def test_memory_that_spark_cannot_have_is_refused(monkeypatch, text):
    """What Java would choke on, and less than Spark begins with."""
    monkeypatch.setenv(machine.MEMORY_VARIABLE, text)
    with pytest.raises(machine.SparkSettingError, match=r"LEDGERMQ_SPARK_MEMORY.* such as 6g"):
        machine.memory(2)
