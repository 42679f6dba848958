"""Compares groups, places, bonds and browses of a state with the slow model's, number by number."""

from __future__ import annotations

from typing import Any

from ledgermq.core.order.single_active import active_consumer
from ledgermq.core.queries import group_status as group_query
from ledgermq.core.queries.browsing import Cursor, Page, browse
from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol.get_options import PLAIN, Options
from support.model.fold import Model

PAGE = 1_000
# Ways to browse that every state is looked at in.
WAYS = (
    PLAIN,
    Options(logical_order=True),
    Options(all_messages_available=True),
    Options(logical_order=True, complete_message=True),
    Options(logical_order=True, all_messages_available=True),
)


def _whole(told: dict[str, Any]) -> dict[str, Any]:
    """A group that was told on one page, without saying so."""
    assert not told["more"], "no group of a history is that long"
    return {field: value for field, value in told.items() if field != "more"}


def compare_groups(state: QueueManager, model: Model) -> None:
    """Raises AssertionError where the two differ."""
    bonds = []
    for name, queue in sorted(state.queues.items()):
        found = [group_query.group_document(queue, one) for one in queue.groups.values()]
        found.sort(key=lambda one: str(one["group_id"]))
        expected = [model.group_status(name, one) for one in model.group_ids(name)]
        assert [_whole(one) for one in found] == expected, f"groups of {name}"
        listed = group_query.group_statuses(queue, b"", PAGE)["groups"]
        without = [
            {field: value for field, value in _whole(one).items() if field != "members"}
            for one in found
        ]
        assert listed == without, f"statuses of the groups of {name}"
        if queue.affinity is not None:
            told = {bucket: one.key for bucket, one in sorted(queue.affinity.bonds.items())}
            bonds.append({"queue": name, "bonds": told})
    assert bonds == model.bonds(), "bonds"
    active = {
        created: one.key
        for created, store in state.stores.items()
        if (one := active_consumer(store)) is not None
    }
    assert active == model.active_consumers(), "active consumers"
    if any(queue.groups for queue in state.queues.values()):
        _compare_browses(state, model)


def _compare_browses(state: QueueManager, model: Model) -> None:
    """The same is shown, in one page or message by message."""
    for name, queue in state.queues.items():
        for options in WAYS:
            expected = model.browse(name, "", options._asdict())
            assert _shown(browse(queue, Cursor(), PAGE, None, options)) == expected, (
                f"browse of {name} with {options}"
            )
            found: list[tuple[int, int]] = []
            page = Page([], True, Cursor())
            while page.more:
                page = browse(queue, page.cursor, 1, None, options)
                found += _shown(page)
            assert found == expected, f"browse of {name} with {options}, page by page"


def _shown(page: Page) -> list[tuple[int, Any]]:
    return [(one["put_position"], one["put_index"]) for one in page.messages]
