"""Tests of what is said of messages that a replay or a republishing leaves out."""

from ledgermq.cli.printing.left_out import NAMED_MAX, LeftOut
from ledgermq.cli.printing.output import Output


def test_those_that_are_not_named_are_counted_where_the_others_are(capsys):
    """A republishing that stops names what it left out so far, and has no last sentence."""
    named = [f"QM1@{number}:0" for number in range(NAMED_MAX)]
    LeftOut(queue_manager="QM1", count=NAMED_MAX + 2, named=named).say(Output(as_json=False))
    assert capsys.readouterr().err.splitlines()[NAMED_MAX:] == ["left out: 2 messages more"]
    LeftOut(queue_manager="QM1", count=NAMED_MAX, named=named).say(Output(as_json=False))
    assert len(capsys.readouterr().err.splitlines()) == NAMED_MAX
