"""What is built of the checkout: a wheel that works without it, and a source that has its tests."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest

from support.checkout import ROOT

PROGRAM = """
from ledgermq.testing import MemoryBroker
with MemoryBroker().connect() as connection, connection.session() as session:
    session.producer("queue:q").send("tea")
    print(session.consumer("queue:q").receive(5).body)
"""


def built(kind, directory):
    """The file that hatchling makes of the checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = directory.iterdir()
    return found


@pytest.mark.slow
def test_a_wheel_works_without_the_checkout(tmp_path):
    """Help breaks nowhere, and clients find their schemas."""
    with zipfile.ZipFile(built("wheel", tmp_path / "dist")) as wheel:
        wheel.extractall(tmp_path / "installed")
    there = [str(tmp_path / "installed"), sysconfig.get_path("purelib")]
    for given, told in ((["-m", "ledgermq", "--help"], "What happened"), (["-c", PROGRAM], "tea")):
        answer = subprocess.run(
            # Without what makes the checkout be found.
            [sys.executable, "-S", *given],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(there)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (answer.returncode, answer.stderr) == (0, "")
        assert told in answer.stdout


@pytest.mark.slow
def test_a_source_distribution_has_what_its_tests_need(tmp_path):
    """They read all pages, and the Compose file with its settings."""
    folders = ("", "docs/**/", "examples/**/", "schemas/**/", "tests/**/")
    pages = (page for one in folders for page in ROOT.glob(f"{one}*.md"))
    needed = {str(one.relative_to(ROOT)) for one in pages}
    needed |= {"Makefile", "docker-compose.yml", ".env.example", ".dockerignore"}
    with tarfile.open(built("sdist", tmp_path / "dist")) as source:
        found = {name.partition("/")[2] for name in source.getnames()}
    assert needed - found == set()
