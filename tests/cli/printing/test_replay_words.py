"""What `ledgermq replay` says of how much it put."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ledgermq.cli.commands.replay import Counted, _tell
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.left_out import LeftOut
from ledgermq.cli.printing.output import Output

TARGET = Target(broker="", queue_manager="QM1", topic_prefix="t", timeout_seconds=1)
STRETCH = "QM1@0 to QM1@9"
CHOSEN = SimpleNamespace(first=0, last=9, where="queue:again", name="n", into="queue:again")


@pytest.mark.parametrize(
    ("counted", "done", "said"),
    [
        ((1, 1, 0), 0, f"the one message of {STRETCH} was replayed already"),
        ((2, 2, 0), 0, f"all 2 messages of {STRETCH} were replayed already"),
        ((2, 1, 0), 1, f"1 message of {STRETCH} replayed to queue:again, 1 was before"),
        ((3, 2, 0), 1, f"1 message of {STRETCH} replayed to queue:again, 2 were before"),
        (
            (2, 0, 1),
            1,
            (
                f"1 message of {STRETCH} replayed to queue:again, "
                "1 left out because it cannot be put again"
            ),
        ),
    ],
)
def test_one_message_is_spoken_of_as_one(capsys, counted, done, said):
    """And several as several."""
    messages, replayed, count = counted
    left_out = LeftOut(queue_manager="QM1", count=count)
    found = Counted(messages=messages, replayed=replayed, left_out=left_out)
    _tell(TARGET, Output(as_json=False), CHOSEN, found, done=done)
    assert capsys.readouterr().out == f"{said} (replay n)\n"
