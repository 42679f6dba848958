"""Questions before a change: what each answer means, and that nothing is drawn over them."""

import io
import sys
import time

import pytest
from rich.console import Console

from ledgermq.cli.options.consent import NotConfirmedError, confirm
from ledgermq.cli.options.spark import stages_bar
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.exits import OK, REFUSED, USAGE, exit_code_of
from ledgermq.testing import MemoryBroker
from support.terminal import Terminal

# A bar is drawn anew ten times a second.
DRAWN_ANEW_SECONDS = 0.3


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


@pytest.fixture
def broker():
    """A queue manager in memory with two queues and a subscription that hold a message each."""
    broker = MemoryBroker()
    with broker.connect(client_id="c") as connection, connection.session() as session:
        for name in ("q", "r"):
            connection.admin.create_queue(name)
        connection.admin.create_topic("t")
        session.consumer("topic:t", subscription="s", durable=True).close()
        for place in ("queue:q", "queue:r", "topic:t"):
            session.producer(place).send("x")
    return broker


@pytest.fixture
def holder(broker):
    """A transacted session with an open put."""
    with broker.connect() as connection, connection.session(transacted=True) as session:
        session.producer("queue:q").send("open")
        session.flush()
        yield session


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("queue", "purge", "q", "--reason", "r"), "purge 1 message of queue:q"),
        (("queue", "delete", "r", "--purge"), "delete queue r with 1 message"),
        (("subscription", "delete", "s", "--client-id", "c"), "delete subscription s of client"),
        (("txn", "rollback", "SESSION", "--reason", "r"), "roll back session"),
        (("session", "end", "SESSION", "--reason", "r"), "end session"),
    ],
    ids=lambda words: " ".join(words[:2]) if isinstance(words, tuple) else "",
)
def test_every_command_that_wants_a_yes_asks_for_it_at_a_terminal(
    plain, monkeypatch, broker, holder, words, asked
):
    """All in one way: the answer no ends with 1; where nobody can be asked, --yes is missing."""
    monkeypatch.setattr(Target, "connect", lambda _, **who: broker.connect(**who))
    words = [str(holder.handle) if word == "SESSION" else word for word in words]
    said_no = plain(*words, typed="n\n")
    assert said_no.code == REFUSED
    assert f"this would {asked}" in said_no.err
    assert ". Go on? [y/N]: " in said_no.err
    alone = plain(*words)
    assert (alone.code, "add --yes" in alone.err) == (USAGE, True)
    said_yes = plain(*words, typed="y\n")
    assert (said_yes.code, said_yes.err.count("\n")) == (OK, 0)
