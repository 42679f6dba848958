"""Looking ahead for what was declared skipped, without a broker (§8; H9)."""

import pytest

from ledgermq.protocol.administration import PositionsSkipped
from ledgermq.protocol.operations import Tick
from ledgermq.wire.framing.codec import encode_operation
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim
from ledgermq.wire.topics.skipping import Hole, LookAhead, skip_command

STAMPED = 2
TICK = encode_operation(Tick(worker="w"))


class Record:
    """A record of the operations log."""

    def __init__(self, offset, value, stamp=STAMPED):
        self._told = (offset, value, stamp)

    def offset(self):
        """Where it stands."""
        return self._told[0]

    def value(self):
        """What it holds."""
        return self._told[1]

    def timestamp(self):
        """How it is stamped."""
        return (self._told[2], 0)


def declares(first, last, **changes):
    """The value of a declaration."""
    given = {"first": first, "last": last, "actor": "a", "reason": "r"} | changes
    return encode_operation(PositionsSkipped(**given))


def looked(*records):
    """What a look from position 0 on came to."""
    ahead = LookAhead("b:1", "t", 0)
    ahead._start = ahead._end = 0
    for record in records:
        ahead._take(record)
    return ahead


def test_a_hole_is_what_lies_between_two_records():
    """Positions without a record are told from each of them on; others are none."""
    ahead = looked(Record(0, TICK), Record(3, TICK), Record(4, TICK))
    assert ahead.hole_at(1) == Hole(1, 2)
    assert ahead.hole_at(2) == Hole(2, 2)
    assert [ahead.hole_at(position) for position in (0, 3, 4, 5)] == [None] * 4


def test_declarations_that_touch_cover_a_hole_together():
    """What is covered in part is passed over up to there."""
    ahead = looked(Record(6, declares(1, 2)), Record(7, declares(2, 3)), Record(8, declares(5, 5)))
    assert ahead.hole_at(0) == Hole(0, 5)
    assert ahead.skipped_through(Hole(0, 5)) == -1
    assert ahead.skipped_through(Hole(1, 5)) == 3
    assert ahead.skipped_through(Hole(5, 5)) == 5
    assert [ahead.skipped(position) for position in (0, 1, 3, 4, 5)] == [0, 1, 1, 0, 1]


@pytest.mark.parametrize(
    "record",
    [
        Record(5, declares(4, 5)),
        Record(5, declares(-1, 2)),
        Record(5, declares(3, 2)),
        Record(5, declares(1, 2, actor="")),
        Record(5, declares(1, 2, reason="x" * 1_025)),
        Record(5, declares(1, 2)[:-1]),
        Record(5, declares(1, 2), stamp=1),
        Record(5, None),
    ],
)
def test_a_declaration_that_the_fold_refuses_declares_nothing(record):
    """Only what stands below it, by somebody and for a reason, stamped by the log, counts (§8)."""
    assert looked(record).declared == []


def test_the_command_is_the_one_to_run():
    """An operator can copy it from the worker's log."""
    ledger = Ledger("b:1", Topics(), Claim("QM1", 0, 1), 1.0)
    assert skip_command(ledger, Hole(3, 3)).startswith(
        "ledgermq log skip 3 --queue-manager QM1 --reason"
    )
    ledger = Ledger("b:1", Topics("x"), Claim("A", 0, 1), 1.0)
    command = skip_command(ledger, Hole(3, 9))
    assert "log skip 3 --through 9 --queue-manager A --topic-prefix x" in command
