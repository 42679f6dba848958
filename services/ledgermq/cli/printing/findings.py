"""What `ledgermq doctor` and `ledgermq check` found: verdicts, with what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ledgermq.cli.printing.exits import CHECK_FAILED, OK
from ledgermq.cli.printing.output import Output, headed

GOOD: Final = "ok"
WARNING: Final = "warning"
BAD: Final = "failed"
NOT_LOOKED: Final = "skipped"

COLUMNS: Final = headed("verdict", "check", "found")


class Finding(NamedTuple):
    verdict: str
    check: str
    found: str


def print_findings(output: Output, findings: Sequence[Finding], **about: Any) -> int:
    """Print them, as JSON with what they are about; the exit code says whether a check failed."""
    healthy = not any(one.verdict == BAD for one in findings)
    rows = [one._asdict() for one in findings]
    output.table(COLUMNS, rows, document={**about, "healthy": healthy, "checks": rows})
    return OK if healthy else CHECK_FAILED
