"""Questions before a change: what each answer means, and that nothing is drawn over them."""

import io
import sys
import time

import pytest
from rich.console import Console

from ledgermq.cli.options.consent import NotConfirmedError, confirm
from ledgermq.cli.options.spark import stages_bar
from ledgermq.cli.printing.exits import REFUSED, exit_code_of

# A bar is drawn anew ten times a second.
DRAWN_ANEW_SECONDS = 0.3


class Terminal(io.StringIO):
    """A standard input that somebody sits at, who may take some time."""

    asked = staticmethod(lambda: None)

    def isatty(self):
        """It is one."""
        return True

    def readline(self, *size):
        """What is typed."""
        self.asked()
        return super().readline(*size)


@pytest.fixture
def answer(monkeypatch):
    """Has somebody type something."""

    def give(text):
        monkeypatch.setattr(sys, "stdin", Terminal(text))
        return sys.stdin

    return give


@pytest.mark.parametrize("typed", ["y\n", "yes\n", "Y\n"])
def test_yes_goes_on_and_the_answer_of_the_command_stands_alone(answer, capsys, typed):
    """What goes to standard output is read by programs."""
    answer(typed)
    confirm("this would purge 2 messages of queue:orders")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "this would purge 2 messages of queue:orders. Go on? [y/N]: "


@pytest.mark.parametrize("typed", ["n\n", "\n", "maybe\n", ""], ids=["no", "-", "maybe", "Ctrl-D"])
def test_who_does_not_say_yes_is_told_that_nothing_was_done(answer, capsys, typed):
    """That is no Ctrl-C, and ends with 1; what is said of it begins a line of its own."""
    answer(typed)
    with pytest.raises(NotConfirmedError, match="nothing was done") as told:
        confirm("this would purge 2 messages of queue:orders")
    assert exit_code_of(told.value) == REFUSED
    assert capsys.readouterr().err.endswith("[y/N]: " if typed else "[y/N]: \n")


def test_a_progress_bar_makes_way_for_a_question(answer):
    """Whoever is asked in the middle of a job sees the question for as long as it takes."""
    screen = io.StringIO()
    drawn = []

    def asked():
        drawn.append(len(screen.getvalue()))
        time.sleep(DRAWN_ANEW_SECONDS)
        drawn.append(len(screen.getvalue()))

    answer("y\n").asked = asked
    console = Console(file=screen, force_terminal=True)
    with stages_bar(console, "replay", beginning="replay: reading", shown=True):
        confirm("this would put 1 message to queue:a again")
        time.sleep(DRAWN_ANEW_SECONDS)
        before, after = drawn
        assert before == after
        assert len(screen.getvalue()) > after
