"""Where a job writes is looked at before anything is read: its findings would be lost."""

import pytest

from ledgermq.cli.main import main
from ledgermq_spark.jobs import audit as audit_job
from ledgermq_spark.jobs import rebuild as rebuild_job
from ledgermq_spark.jobs import tables as tables_job

NOBODY = "127.0.0.1:1"
TOLD = "cannot be written in {}: Not a directory; choose a directory that can be made and written"


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
