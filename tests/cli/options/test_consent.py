"""Questions before a change: what each answer means, and that nothing is drawn over them."""

import io
import sys
import time

import click
import pytest
from rich.console import Console

from ledgermq.cli.options.consent import NotConfirmedError, confirm
from ledgermq.cli.options.spark import stages_bar
from ledgermq.cli.printing.exits import REFUSED, exit_code_of

# A bar is drawn anew ten times a second.
DRAWN_ANEW_SECONDS = 0.3


class Terminal(io.StringIO):
    """A standard input that somebody sits at."""

    def isatty(self):
        """It is one."""
        return True


@pytest.fixture
def answer(monkeypatch):
    """Has somebody answer questions with a text, or with what a key press raises."""
    monkeypatch.setattr(sys, "stdin", Terminal())

    def give(what):
        def asked(_prompt):
            if isinstance(what, str):
                return what
            raise what

        monkeypatch.setattr(click.termui, "visible_prompt_func", asked)

    return give


@pytest.mark.parametrize("given", ["n", "", EOFError()], ids=["no", "nothing", "Ctrl-D"])
def test_who_does_not_say_yes_is_told_that_nothing_was_done(answer, given):
    """That is no Ctrl-C, and ends with 1."""
    answer(given)
    with pytest.raises(NotConfirmedError, match="nothing was done") as told:
        confirm("this would purge 2 messages of queue:orders")
    assert exit_code_of(told.value) == REFUSED


def test_ctrl_c_at_a_question_ends_as_anywhere(answer, capsys):
    """What is said of it begins a line of its own, behind the `^C` of the terminal."""
    answer(KeyboardInterrupt())
    with pytest.raises(click.Abort):
        confirm("this would purge 2 messages of queue:orders")
    assert capsys.readouterr().err.endswith("[y/N]:\n")


def test_a_progress_bar_makes_way_for_a_question(answer, monkeypatch):
    """Whoever is asked in the middle of a job sees the question for as long as it takes."""
    screen = io.StringIO()
    drawn = []

    def asked(_prompt):
        drawn.append(len(screen.getvalue()))
        time.sleep(DRAWN_ANEW_SECONDS)
        drawn.append(len(screen.getvalue()))
        return "y"

    answer("y")
    monkeypatch.setattr(click.termui, "visible_prompt_func", asked)
    console = Console(file=screen, force_terminal=True)
    with stages_bar(console, "replay", beginning="replay: reading", shown=True):
        confirm("this would put 1 message to queue:a again")
        time.sleep(DRAWN_ANEW_SECONDS)
        before, after = drawn
        assert before == after
        assert len(screen.getvalue()) > after
