"""Where a job writes is looked at before anything is read: its findings would be lost."""

import errno
import os
from types import SimpleNamespace

import pytest

from ledgermq.cli.main import main
from ledgermq_spark.jobs import audit as audit_job
from ledgermq_spark.jobs import rebuild as rebuild_job
from ledgermq_spark.jobs import tables as tables_job

NOBODY = "127.0.0.1:1"
TOLD = "cannot be written in {}: Not a directory; name another place: a part of that path is no"


@pytest.fixture
def below_a_file(tmp_path):
    """A directory that nobody can make."""
    (tmp_path / "file").touch()
    return tmp_path / "file" / "below"


@pytest.mark.parametrize("job", [audit_job, rebuild_job, tables_job])
@pytest.mark.parametrize("option", ["--output", "--work"])
def test_a_job_says_at_once_that_it_can_write_nowhere(job, option, below_a_file, tmp_path, capsys):
    """It ended in a traceback, after all of the audit."""
    given = ["--output", str(tmp_path / "output"), option, str(below_a_file)]
    assert job.main(["--bootstrap", NOBODY, *given]) == 2
    assert TOLD.format(below_a_file) in capsys.readouterr().err


def test_an_audit_says_at_once_that_its_report_can_be_written_nowhere(below_a_file, capsys):
    """Its verdict would be lost with the report."""
    assert main(["audit", "--bootstrap", NOBODY, "--report", str(below_a_file)]) == 2
    assert f"a report {TOLD.format(below_a_file)}" in capsys.readouterr().err


def full(path):
    """What the system says of a file for which there is no room."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.mark.parametrize(
    ("verdict", "found", "code"), [("agrees", 0, 2), ("anomalies", 1, 1), ("unproven", 5, 5)]
)
def test_a_verdict_is_told_though_its_report_has_no_room(
    tmp_path, capsys, monkeypatch, verdict, found, code
):
    """And a line; 1 is the code of an audit that found anomalies, and of no other."""
    report = SimpleNamespace(
        queue_manager="QM1",
        position=7,
        verdict=verdict,
        exit_code=found,
        anomalies=(),
        beyond=(),
        unproven=(),
        notes=(),
    )
    page = tmp_path / "audit.html"

    def write(*_):
        raise full(page)

    monkeypatch.setattr(audit_job, "run_audit", lambda **_: report)
    monkeypatch.setattr(audit_job, "write_report", write)
    assert audit_job.main(["--output", str(tmp_path)]) == code
    told = capsys.readouterr()
    assert f"QM1@7: {verdict}" in told.out
    assert told.err == f"error: {page}: No space left on device\n"


@pytest.mark.parametrize("error", [RuntimeError("Spark"), ConnectionRefusedError(111, "Java")])
def test_an_audit_that_failed_found_no_anomaly(error, tmp_path, capsys, monkeypatch):
    """It is unproven, code 5: Python's own code for an error is the verdict of anomalies."""

    def fail(**_):
        raise error

    monkeypatch.setattr(audit_job, "run_audit", fail)
    assert audit_job.main(["--output", str(tmp_path)]) == 5
    assert f"{type(error).__name__}: " in capsys.readouterr().err


def test_a_full_disk_for_intermediate_results_is_one_line(tmp_path, capsys, monkeypatch):
    """Arrow says what was refused, not where."""

    def fail(**_):
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr(rebuild_job, "rebuild_at", fail)
    assert rebuild_job.main(["--output", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told == "error: intermediate results (--work): Error writing bytes to file\n"
