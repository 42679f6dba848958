"""Standard streams that are closed, or whose reader has gone: a word and a code, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ledgermq.cli.printing.exits import OK, REFUSED, UNPROVEN, UNREACHABLE, USAGE

COMMAND = (sys.executable, "-m", "ledgermq")


def call(*arguments: str, closed: str = "") -> subprocess.CompletedProcess[str]:
    """Calls a command with streams closed as a shell does it."""
    line = f'exec "$@" {closed}'
    return subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_answer_that_cannot_be_written_is_an_error():
    """Without a standard output nothing was answered."""
    found = call("acl", "client", "--json", closed=">&-")
    assert found.returncode == REFUSED
    assert "standard output is closed" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("closed", [">&-", ">/dev/full"])
def test_an_answer_that_cannot_be_written_does_not_ask_to_do_it_again(closed):
    """What was put by then would be there twice."""
    found = call("acl", "client", closed=closed)
    assert found.returncode == REFUSED
    assert "may be done: look before you call it again" in found.stderr


@pytest.mark.parametrize("closed", ["<&-", "2>&-"])
def test_without_input_or_remarks_a_command_answers_all_the_same(closed):
    """A daemon may have closed them."""
    found = call("acl", "client", closed=closed)
    assert found.returncode == OK, found.stderr
    assert "--allow-principal" in found.stdout


@pytest.mark.parametrize("closed", ["2>/dev/full", "2>&-", "2>&1 >/dev/full"])
def test_without_room_for_remarks_a_command_ends_as_it_would(closed):
    """A log of errors that is full made each of them a refusal; of an audit, an anomaly."""
    assert call("nosuch", closed=closed).returncode == USAGE
    audit = ("audit", "--bootstrap", "127.0.0.1:1", "--timeout", "1")
    assert call(*audit, closed=closed).returncode == UNREACHABLE


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("acl", "client"), OK),
        (("check", "worker", "--url", "http://127.0.0.1:1"), REFUSED),
        (("audit", "--help"), UNPROVEN),
    ],
)
def test_a_reader_that_has_gone_is_no_error_unless_the_code_is_the_answer(arguments, code):
    """As `head` does when it has enough; but what `check` found, nobody has read.

    Of an audit 1 would say that it found anomalies.
    """
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as gone:
        found = subprocess.run(
            [*COMMAND, *arguments],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (found.returncode, found.stderr) == (code, "")
