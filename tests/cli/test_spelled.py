"""An error names what was typed: the option, not the keyword of the client or of a record."""

import contextlib
import pickle

import pytest

from ledgermq.cli.main import cli
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.exits import REFUSED, UNPROVEN, USAGE
from ledgermq.cli.spelled import with_options
from ledgermq.errors import OutcomeUnknownError
from ledgermq.testing import MemoryBroker


@pytest.fixture
def memory(plain, monkeypatch):
    """Calls a command that speaks to a queue manager in memory, with a queue q."""
    broker = MemoryBroker()
    with broker.connect() as connection:
        connection.admin.create_queue("q")
    monkeypatch.setattr(
        Target, "connect", lambda _, **who: contextlib.nullcontext(broker.connect(**who))
    )
    return plain


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("queue", "create", "a", "--error-destination", "x"), "--error-destination 'queue:x' doe"),
        (("topic", "create", "a", "--expiry-destination", "x"), "--expiry-destination 'queue:x' d"),
        (("queue", "alter", "q", "--redelivery-limit", "99999999999"), "--redelivery-limit is 999"),
        (("queue", "alter", "q", "--time-to-live-override", "99999999d"), "--time-to-live-overrid"),
        (
            ("queue", "alter", "q", "--redelivery-delay-multiplier", "0.5"),
            "--redelivery-delay-multiplier (in percent) is 50",
        ),
        (
            ("manager", "alter", "--journal-lifetime", "99999999d"),
            "--journal-lifetime (in ms) is 8639999913600000, must be",
        ),
    ],
    ids=lambda words: " ".join(words[:2]) if isinstance(words, tuple) else "",
)
def test_a_refusal_of_an_option_names_the_option(memory, words, told):
    """With --json too."""
    for more in ((), ("--json",)):
        answer = memory(*words, *more)
        assert answer.code in (REFUSED, USAGE)
        assert told in answer.err
        assert "_" not in answer.err


def test_what_somebody_else_called_so_keeps_its_name():
    """In quotation marks, in paths and in longer words stands no keyword."""
    text = "'error_destination' of /error_destination.d: my-error_destination, x_error_destination"
    assert with_options(text, cli, ["queue", "alter", "q"]) == text
    told = with_options("error_destination differs", cli, ["queue", "alter", "q"])
    assert told == "--error-destination differs"
    assert with_options("error_destination differs", cli, ["browse", "q"]) != told


def test_whoever_typed_a_command_is_not_told_what_a_program_calls(plain, monkeypatch):
    """Where its outcome is unknown, the command has ended: what is left is to look."""
    unknown = OutcomeUnknownError("it may have been applied")
    assert str(unknown) == "it may have been applied"
    unknown.resolver = lambda _: None
    assert "Call resolve()" in str(unknown)
    assert "resolve" not in str(pickle.loads(pickle.dumps(unknown)))

    def fail(*_, **__):
        raise unknown

    monkeypatch.setattr(Target, "connect", fail)
    answer = plain("queue", "create", "q", "--json")
    assert (answer.code, answer.error["code"]) == (UNPROVEN, "outcome-unknown")
    look = "Look whether it was, as by `ledgermq trace`, before you call it again"
    assert answer.error["message"] == f"it may have been applied. {look}"
