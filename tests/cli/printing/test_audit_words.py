"""What `ledgermq audit` prints of a report."""

from ledgermq.cli.commands.audit import FIGURES, _print
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.output import Output
from support.pages.reports import report_of

TARGET = Target(broker="", queue_manager="QM1", topic_prefix="t", timeout_seconds=1)


def test_what_a_report_has_not_has_no_heading(capsys):
    """That of an archive has no totals; what there is one of is told so."""
    idle = [{"kind": "queue", "store": 5, "destination": "queue:idle", "made_at": 5}]
    told = {"totals": [], "conservation": {}, "never_used": idle, "by_hand": [{}]}
    _print(TARGET, Output(as_json=False), report_of(compared={"queues": 1}, **told))
    out, err = capsys.readouterr()
    assert out == ""
    assert "1 queue, 1 never used\n" in err
    assert "done by hand, as the report lists it: 1 operation\n" in err


def test_an_audit_that_had_nothing_to_compare_says_so(capsys):
    """As of a trimmed log below its oldest checkpoint."""
    _print(TARGET, Output(as_json=False), report_of(compared={}, position=7, time=-1))
    assert "compared up to QM1@7: nothing\n" in capsys.readouterr().err


def test_temporary_destinations_that_balance_are_one_row_on_a_terminal(capsys):
    """A service that answers requests leaves thousands of them; programs get each by itself."""
    figures = dict.fromkeys(FIGURES, 0)
    totals = [
        {**figures, "destination": name, "put": put, "balances": balances}
        for name, put, balances in (
            ("queue:orders", 5, True),
            ("queue:temporary/a/1", 2, True),
            ("queue:temporary/a/2", 3, True),
            ("topic:temporary/a/3", 9, False),
            ("queue:temporaryish", 1, True),
        )
    ]
    output = Output(as_json=False)
    _print(TARGET, output, report_of(totals=totals))
    assert capsys.readouterr().out.count("temporary/a/") == 3
    output.for_people = True
    _print(TARGET, output, report_of(totals=totals))
    shown = capsys.readouterr().out
    assert "2 temporary destinations" in shown
    assert "queue:temporary/a/" not in shown
    assert all(name in shown for name in ("queue:orders", "topic:temporary/a/3", "temporaryish"))
