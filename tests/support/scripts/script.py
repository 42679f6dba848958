"""The script language of the fold's tests: one operation a line, with what it must answer.

    === rollback counts a backout and keeps the sequence number (SEQ-16)
    open TRANSACTED
    consumer 1 orders
    put orders A1 A2           -> accepted
    commit                     -> committed orders 0..1
    get 10                     -> accepted; delivered A1@0 A2@1
    rollback 1                 -> returned 2
    status orders current=2 pending=0 min=0

`===` begins a script. A line is `[SESSION:] VERB WORDS NAME=VALUE +TIME -> OUTCOME; OUTCOME`; what
is left out has its default: session S, consumer 1, the next session sequence number, the outcome
that says yes. `+30s` lets that much log time pass before the line, `-5s` steps back. A message is
written `NAME`, `NAME/PRIORITY`, `NAME:BYTES`, and `M*3` for M0 M1 M2; a delivered one
`NAME@SEQUENCE+BACKOUTS`, and `M3..5@7` for a run of them. What an outcome says beside zeros must
be written; words in brackets may be left out.

    opened                                accepted            enqueued FIRST..LAST
    committed QUEUE FIRST..LAST consumed=N                    returned N discarded=N
    administered N skipped=N more [last=N] [next=N]
    refused REASON expected=N             ended REASON returned=N discarded=N
    delivered consumer=N [on=QUEUE] [#FIRST] MESSAGES         suspected [until=TIME]
    [SESSION:] before any of them, if it is not the session of the line

Lines that ask and are no entry: `status QUEUE`, `blocked QUEUE`, `session SESSION`, `manager`,
`browse QUEUE`, `deadline TIME`, `journal`; each compares the names given (`play.py` lists them).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "h": 3_600_000_000}
TIME = re.compile(r"([+-]?\d+(?:\.\d+)?)(us|ms|s|h)")
SESSION = re.compile(r"[A-Z][A-Za-z0-9]*:")


class ScriptError(ValueError):
    """A script that cannot be read, or whose expectation was not met; the text says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a script."""

    number: int
    text: str
    session: str
    verb: str
    words: list[str]
    options: dict[str, str]
    elapse_us: int
    expected: list[list[str]] | None


@dataclass(slots=True, kw_only=True)
class Script:
    """A titled script; `source` names file and line for messages to people."""

    title: str
    source: str
    lines: list[Line] = field(default_factory=list)


def time_us(text: str) -> int:
    """Microseconds of `30s`, `+50ms`, `-1us`."""
    match = TIME.fullmatch(text)
    if match is None:
        raise ScriptError(f"{text!r} is no time such as +30s, 50ms or -1us")
    return round(float(match[1]) * UNITS_US[match[2]])


def _line(number: int, text: str) -> Line:
    asked, arrow, answer = text.partition("->")
    words = asked.split()
    session = words.pop(0)[:-1] if SESSION.fullmatch(words[0]) else "S"
    verb = words.pop(0)
    plain: list[str] = []
    options: dict[str, str] = {}
    elapse_us = 0
    for word in words:
        name, equals, value = word.partition("=")
        if TIME.fullmatch(word) and word[0] in "+-":
            elapse_us += time_us(word)
        elif equals and name.replace("_", "").isalpha():
            options[name] = value
        else:
            plain.append(word)
    expected = [one.split() for one in answer.split(";")] if arrow else None
    return Line(
        number=number,
        text=text,
        session=session,
        verb=verb,
        words=plain,
        options=options,
        elapse_us=elapse_us,
        expected=expected,
    )


def read_scripts(text: str, source: str = "inline") -> list[Script]:
    """The scripts of a text."""
    scripts: list[Script] = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = (line + " ").partition(" # ")[0].strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("==="):
            scripts.append(Script(title=line.strip("= "), source=f"{source}:{number}"))
            continue
        if not scripts:
            scripts.append(Script(title=source, source=f"{source}:{number}"))
        scripts[-1].lines.append(_line(number, line))
    return scripts


def scripts_at(path: Path) -> list[Script]:
    """The scripts of one file."""
    return read_scripts(path.read_text(encoding="utf-8"), path.name)


def scripts_of(directory: Path) -> list[Script]:
    """All scripts of the `.txt` files of a directory."""
    found: list[Script] = []
    for path in sorted(directory.glob("*.txt")):
        found.extend(scripts_at(path))
    return found
