"""What groups cost the fold: work that follows what is got, and bounded memory."""

from __future__ import annotations

import pytest

from ledgermq.core.order import orders
from ledgermq.core.state import records
from ledgermq.core.state.group import Group
from ledgermq_benchmarks.groups import LOGICAL, bytes_per_message, filled_queue

MESSAGES = 10_000
GROUPS = 100


@pytest.fixture
def looks(monkeypatch):
    """How often an entry of an order, and the items of a group, were looked at."""
    counted = {"entries": 0, "items": 0}
    may_be_given, items = records.may_be_given, Group.items

    def counting_looks(message):
        counted["entries"] += 1
        return may_be_given(message)

    def counting_items(self):
        for item in items(self):
            counted["items"] += 1
            yield item

    for module in (records, orders):
        monkeypatch.setattr(module, "may_be_given", counting_looks)
    monkeypatch.setattr(Group, "items", counting_items)
    return counted


def test_logical_order_looks_at_no_message_that_it_does_not_take(looks):
    """Draining 100 interleaved groups looks at each message a few times, not once for each get."""
    session = filled_queue(MESSAGES, GROUPS)
    assert session.drain(LOGICAL) == MESSAGES
    assert looks["entries"] < 4 * MESSAGES
    assert looks["items"] < MESSAGES


def test_putting_to_a_group_whose_beginning_is_gone_looks_at_nothing_of_it(looks):
    """A group that is got while it is put costs each put the same, however long it becomes."""
    session = filled_queue(MESSAGES, 1)
    assert session.drain({**LOGICAL, "all_messages_available": False}) == MESSAGES
    assert looks["entries"] < 4 * MESSAGES
    assert looks["items"] < MESSAGES


@pytest.mark.slow
def test_a_message_of_a_group_takes_at_most_half_as_much_memory_again():
    """1.5 times is what a message in a group may take against one in none."""
    assert bytes_per_message(20_000, 200) <= 1.5 * bytes_per_message(20_000, 0)
