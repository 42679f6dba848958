"""What checkpoints are worth beside the digests of a rebuild, without a broker."""

import pytest

from ledgermq.processor.checkpoints.restoring import FoundCheckpoint, judge

CHAIN = bytes(32)
REBUILT = {7: ("a" * 64, CHAIN)}


@pytest.mark.parametrize(
    ("changes", "verdict", "retired", "why"),
    [
        ({}, "right", False, ""),
        ({"digest": "b" * 64}, "wrong", True, "its state is not that of the log"),
        ({"chain": b"\1" * 32}, "wrong", True, "its digest chain is not that of the log"),
        ({"problem": "chunk x is missing"}, "unusable", True, "chunk x is missing"),
        ({"position": 8}, "not judged", False, "the rebuild did not come to its position"),
        ({"position": 8, "problem": "it is far"}, "unusable", True, "it is far"),
    ],
)
def test_a_checkpoint_is_taken_away_only_if_it_is_known_to_be_of_no_use(
    changes, verdict, retired, why
):
    """State and chain must both be those of the rebuild; what was not judged stays."""
    whole = {"position": 7, "digest": "a" * 64, "chain": CHAIN, "problem": ""}
    (found,) = judge([FoundCheckpoint(**(whole | changes))], REBUILT)
    assert (found.verdict, found.is_retired) == (verdict, retired)
    assert found.why.startswith(why)
    assert bool(found.why) == bool(why)
