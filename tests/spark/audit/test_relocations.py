"""Tests that messages that were written again are held against what was put (§22, H24)."""

from dataclasses import replace

import pytest

from ledgermq.wire.framing.codec import decode_operation, encode_operation
from ledgermq_spark.audit.contents import altered_copies
from ledgermq_spark.audit.findings.evidence import ANOMALY_KINDS
from support.audits.engines import duck_engine
from support.audits.frames import operations_frame, outcomes_frame
from support.stories.written_again import Relocated

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def story():
    """The story, and the outcomes that follow from it."""
    told = Relocated()
    return told, outcomes_frame(duck_engine(), told.script.outcomes, as_folded=True)


def test_copies_are_compared_with_what_was_put(story):
    """One that was skipped is one too; of Relocates that were refused none (H24)."""
    told, expected = story
    (found,) = altered_copies(operations_frame(expected.engine, told.script.entries), expected)
    assert (found.kind, found.position, found.index) == ("altered copy", told.late, 0)
    assert found.field == "priority"
    assert found.message_id == told.message["message_id"].hex()
    assert found.kind in ANOMALY_KINDS


@pytest.mark.parametrize("change", ["content", "header"])
def test_a_copy_with_the_right_size_is_no_better(story, change):
    """The fold cannot tell; the audit compares what stands on the log."""
    told, expected = story
    entries = list(told.script.entries)
    operation = decode_operation(entries[told.first].value)
    copy = operation.messages[0]
    if change == "content":
        copy["message"]["content"] = copy["message"]["content"][:-1] + b"!"
    else:
        copy["header"][0]["properties"] = {"color": "led"}
    entries[told.first] = replace(entries[told.first], value=encode_operation(operation))
    found = altered_copies(operations_frame(expected.engine, entries), expected)
    assert [one.position for one in found] == [told.first, told.late]
