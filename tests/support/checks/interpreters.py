"""The Python interpreters of this machine that LedgerMQ supports, and how to run a program in them.

Each version is found once, wherever it stands: on the path or among the versions of pyenv. What
does not start, such as a shim without its version, is no interpreter.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from support.checkout import ROOT

LIBRARIES = ("ledgermq", "lark", "fastavro")
MINORS = range(11, 20)
SELF = "import sys; print(sys.implementation.name, *sys.version_info[:3], sys.version, sep='|')"
START_SECONDS = 20
RUN_SECONDS = 300


class Interpreter(NamedTuple):
    """An interpreter: how it is started, and what it says it is."""

    path: str
    version: tuple[int, ...]
    told: str

    def __str__(self) -> str:
        implementation = self.told.partition("|")[0]
        return f"{implementation}-{'.'.join(map(str, self.version))}"


def _least() -> tuple[int, ...]:
    """The oldest version that the project says it supports."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    required = settings["project"]["requires-python"]
    assert required.startswith(">="), required
    return tuple(map(int, required.removeprefix(">=").split(".")))


def _pyenv_root() -> Path | None:
    if "PYENV_ROOT" in os.environ:
        return Path(os.environ["PYENV_ROOT"])
    program = shutil.which("pyenv")
    if program is None:
        return None
    asked = subprocess.run([program, "root"], capture_output=True, text=True, check=False)
    return Path(asked.stdout.strip()) if asked.returncode == 0 else None


def _candidates() -> Iterator[str]:
    yield sys.executable
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        for minor in MINORS:
            found = shutil.which(f"python3.{minor}", path=directory)
            if found is not None:
                yield found
    root = _pyenv_root()
    if root is not None:
        yield from map(str, sorted(root.glob("versions/*/bin/python")))


def _asked(path: str) -> Interpreter | None:
    """What an interpreter says of itself, None if it does not start."""
    try:
        ran = subprocess.run(
            [path, "-c", SELF], capture_output=True, text=True, timeout=START_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = ran.stdout.strip()
    if ran.returncode != 0 or told.count("|") < 4:
        return None
    return Interpreter(path, tuple(map(int, told.split("|")[1:4])), told)


@cache
def interpreters() -> list[Interpreter]:
    """This interpreter, then every other version that was found, the oldest first."""
    found: dict[str, Interpreter] = {}
    for path in dict.fromkeys(_candidates()):
        one = _asked(path)
        if one is not None and one.version >= _least():
            found.setdefault(one.told, one)
    own, *others = found.values()
    return [own, *sorted(others, key=lambda one: one.version)]


def link_libraries(directory: Path) -> Path:
    """Fills a directory with links to what this process imports, and to nothing beside it."""
    for name in LIBRARIES:
        found = importlib.util.find_spec(name)
        assert found is not None, f"{name} is not installed"
        assert found.submodule_search_locations, f"{name} is no package"
        (directory / name).symlink_to(found.submodule_search_locations[0])
    return directory


def run(one: Interpreter, libraries: Path, hash_seed: str, module: str, *arguments: str) -> str:
    """What a module prints that is run as a program; AssertionError with its errors if it fails.

    It sees the libraries and the tests, not the other packages of this Python, whose compiled parts
    another Python could not load.
    """
    source = (libraries, ROOT / "tests")
    environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ} | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join(map(str, source)),
        "PYTHONUTF8": "1",
    }
    ran = subprocess.run(
        [one.path, "-s", "-m", module, *arguments],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=RUN_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, f"{module} comes to no end on {one}:\n{ran.stderr}"
    return ran.stdout
