"""A command of the command line, forked: see `forked`."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ledgermq.__main__ import main
from support.brokers.forked import Forked, become


class ForkedCommand(Forked):
    """A running command; what it says goes to files, which may be one."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        out: Path,
        errors: Path,
        *,
        directory: Path | None = None,
    ) -> None:
        self._out = out
        for one in (out, errors):
            one.touch()
        there = str(directory or Path.cwd())
        files = [str(one) for one in (out, errors)]
        super().__init__(_run, list(arguments), dict(environment), *files, there)

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Waits for its end, or raises TimeoutExpired; what it said."""
        self.wait(timeout)
        return self._out.read_text(errors="replace"), None


def _run(
    arguments: list[str], environment: dict[str, str], out: str, errors: str, directory: str
) -> None:
    become(environment, out, errors)
    os.chdir(directory)
    sys.argv = ["ledgermq", *arguments]
    try:
        code = main()
    finally:
        # What is forked so ends without these.
        atexit._run_exitfuncs()
    sys.exit(code)
