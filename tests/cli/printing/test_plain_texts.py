"""Texts of others on a terminal: they say what they say, and steer nothing."""

import json

import click
import pytest

from ledgermq.cli.printing.output import Column, Output, cell_text

# A new title, a screen wiped, a line drawn over, another direction of writing.
STEERING = "a\x1b]0;title\x07b\x9b2Jc\rd\x08e\u202ef\u2028g\u2066h"
SHOWN = r"a\x1b]0;title\x07b\u009b2Jc\rd\x08e\u202ef\u2028g\u2066h"


@pytest.fixture
def output():
    """Where a command prints, whether for people or for a pipe."""
    return Output(as_json=False)


@pytest.mark.parametrize("print_it", ["done", "remark", "error", "fields", "table"])
def test_what_would_steer_a_terminal_is_written_out(output, capsys, print_it):
    """Names, bodies, reasons and errors alike, wherever they are printed."""
    prints = {
        "done": lambda: output.done(STEERING, {}),
        "remark": lambda: output.remark(STEERING),
        "error": lambda: output.error("some-code", STEERING),
        "fields": lambda: output.fields({"Reason": STEERING}),
        "table": lambda: output.table([Column(key="why", heading="WHY")], [{"why": STEERING}]),
    }
    prints[print_it]()
    told = capsys.readouterr()
    assert SHOWN in told.out + told.err
    assert "\x1b]" not in told.out + told.err


def test_a_text_keeps_its_lines_and_a_cell_is_one_line(output, capsys):
    """Also where a value is a list or a dict, which is told as JSON."""
    output.remark("one\n\ttwo")
    assert capsys.readouterr().err == "one\n\ttwo\n"
    assert cell_text("one\n\ttwo") == r"one\n\ttwo"
    assert json.loads(cell_text([STEERING])) == [STEERING]
    assert "\u202e" not in cell_text([STEERING])


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("TERM", "xterm", "\x1b[31m\x1b[1merror:\x1b[0m no"),
        ("NO_COLOR", "1", "\x1b[1merror:\x1b[0m no"),
        ("TERM", "dumb", "error: no"),
    ],
)
def test_colors_are_shown_only_where_they_are_wanted_and_known(monkeypatch, name, value, shown):
    """NO_COLOR takes the colors away, a terminal without them all that steers it."""
    printed = []
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(click, "echo", lambda text, **_: printed.append(text))
    Output(as_json=False).error("code", "no")
    assert printed == [shown]
