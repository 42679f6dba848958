"""What `ledgermq log trim` says of what forbids it."""

import pytest

from ledgermq.cli.commands.log import TrimPlan, _pin


@pytest.mark.parametrize(("needed", "is_gone"), [(3, True), (10, False), (12, False)])
def test_what_needs_a_record_that_kafka_has_deleted_is_told_how_to_end(needed, is_gone):
    """Such a message holds up every trim, and no other advice helps: its content is lost."""
    plan = TrimPlan(
        queue_manager="QM1",
        start=10,
        end=99,
        before=20,
        furthest=needed,
        pins=[_pin(needed, "message 7 of queue:q", "available")],
        more=False,
    )
    told = plan.why_not()
    assert told.startswith("the log of QM1 cannot be cut before position 20: message 7 of queue:q")
    assert ("is gone already, as the log begins at 10: get the message or" in told) is is_gone
