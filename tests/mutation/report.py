"""The summary of mutation testing, build/mutation.md: a part for each package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

HEAD = """\
# Mutation testing

Written by `make mutants`; see `tests/mutation/`. Each mutant is the package with one small thing
wrong. It is tried with the tests that execute what was changed: of the fold the scripts, those of
tests/core, tests/protocol and tests/selector and the golden logs, of `client` those of tests/client
that need no broker (so without the modules that speak with one). A failing test kills it.
"""


class Verdict(NamedTuple):
    """What became of a mutant.

    Attributes:
        file: Its file, as `core/apply.py`.
        outcome: `killed`, `survived`, `timeout` (which counts as killed), `unexecuted` (by any
            test, which counts as survived), or `untried`.
    """

    file: str
    line: int
    before: str
    after: str
    outcome: str

    @property
    def alive(self) -> bool:
        """Whether no test noticed it."""
        return self.outcome in ("survived", "unexecuted")


def name_of(verdict: Verdict) -> str:
    """How equivalent.txt names a mutant."""
    return f"{verdict.file}: {verdict.before} => {verdict.after}"


def reasons_in(path: Path) -> dict[str, str]:
    """Reasons of survivors that make no difference, by file and change."""
    reasons: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            change, _, reason = line.rpartition(" | ")
            reasons[change] = reason
    return reasons


def part(package: str, verdicts: list[Verdict], how: str, reasons: dict[str, str]) -> str:
    """The part of one package: counts by file, the survivors, then reasons that nothing needs."""
    tried = [one for one in verdicts if one.outcome != "untried"]
    alive = [one for one in tried if one.alive]
    explained = sum(name_of(one) in reasons for one in alive)
    count = Counter(one.outcome for one in tried)
    killed = len(tried) - len(alive)
    share = killed / max(1, len(tried))
    told = [
        f"{how}: {len(tried)} of {len(verdicts)} mutants tried,",
        f"{killed} killed ({share:.1%}; {count['timeout']} of them ran without end),",
        f"{len(alive)} survived: {explained} of these make no difference,",
        f"{count['unexecuted']} are executed by no test.",
    ]
    lines = [
        f"## {package}",
        "",
        " ".join(told),
        "",
        "| file | mutants | tried | killed | survived |",
        "|---|---|---|---|---|",
    ]
    for file in dict.fromkeys(one.file for one in verdicts):
        mine = [one for one in verdicts if one.file == file]
        done = [one for one in mine if one.outcome != "untried"]
        dead = sum(not one.alive for one in done)
        lines.append(f"| {file} | {len(mine)} | {len(done)} | {dead} | {len(done) - dead} |")
    lines += ["", "| survivor | before | after | reason |", "|---|---|---|---|"]
    for one in alive:
        before, after = (text.replace("|", "\\|") for text in (one.before, one.after))
        missing = "no test executes it" if one.outcome == "unexecuted" else "**not explained**"
        reason = reasons.get(name_of(one), missing)
        lines.append(f"| {one.file}:{one.line} | `{before}` | `{after}` | {reason} |")
    names = {name_of(one) for one in verdicts}
    stale = [one for one in reasons if one.startswith(f"{package}/") and one not in names]
    lines += ["", *(f"* The reason for `{one}` is for no mutant any more." for one in stale)]
    return "\n".join(lines) + "\n"


def written(before: str, parts: dict[str, str], packages: Iterable[str]) -> str:
    """The summary with some parts new; the others stay as they were."""
    old = dict(re.findall(r"^(?=## (\w+)\n)(.*?)(?=^## |\Z)", before, flags=re.M | re.S))
    kept = {name: parts.get(name, old.get(name, "")) for name in packages}
    return "\n".join([HEAD, *(text.rstrip() + "\n" for text in kept.values() if text)])
