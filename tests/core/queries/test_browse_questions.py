"""Questions for a page of messages: what one tells, and what it is refused for (PROTOCOL.md §9)."""

import pytest

from ledgermq.core.queries import questions
from ledgermq.protocol.get_options import Options
from support.scripts.play import play_lines
from support.scripts.verbs import group_id

LOGICAL = Options(logical_order=True)
HELD = "open\nput q A B/9{color=red} C{g=Y.1} D{g=Y.2} -> enqueued 0..3"


def page(options=None, **fields):
    """The answer to a question for a page of q, from its beginning unless told otherwise."""
    ask = {
        "kind": "BROWSE",
        "queue": "q",
        "limit": 2,
        "selector": "",
        "options": None if options is None else options.record(),
        "after_priority": 9,
        "after_sequence": -1,
        "group_id": b"",
        "group_sequence": 0,
        "offset": 0,
        **fields,
    }
    return questions.answer(play_lines(HELD).state, ask, "QM1", "w")


def numbers(answer):
    """The sequence numbers of a page's messages."""
    return [one["sequence"] for one in answer.messages]


def test_a_page_tells_from_where_to_go_on():
    """Behind the message seen last; inside of no group there is no place in one (SES-40)."""
    found = page()
    assert numbers(found) == [1, 0]
    assert found.document == {
        "more": True,
        "after_priority": 4,
        "after_sequence": 0,
        "group_id": "",
        "group_sequence": 0,
        "offset": 0,
    }


def test_a_page_goes_on_inside_of_a_group():
    """A place in a group is told as it is to be asked for (GRP-15)."""
    first = page(LOGICAL, limit=3)
    assert numbers(first) == [1, 0, 2]
    place = {"group_id": group_id("Y"), "group_sequence": 2, "offset": 0}
    assert first.document == {
        "more": True,
        "after_priority": 4,
        "after_sequence": 2,
        **place,
        "group_id": place["group_id"].hex(),
    }
    rest = page(LOGICAL, after_priority=4, after_sequence=2, **place)
    assert (numbers(rest), rest.document["more"]) == ([3], False)


def test_a_page_has_what_a_selector_wants():
    """Nothing else, and nothing more (SES-40)."""
    found = page(selector="color = 'red'")
    assert (numbers(found), found.document["more"]) == ([1], False)
    of_group = page(selector=f"JMSXGroupID = 'ID:{group_id('Y').hex()}' AND JMSXGroupSeq = 2")
    assert (numbers(of_group), of_group.document["more"]) == ([3], False)


@pytest.mark.parametrize(
    ("asked", "reason", "detail"),
    [
        ({"selector": "color ="}, "selector-invalid", "found the end at position 7"),
        ({"options": Options(group_id=b"Y")}, "options-invalid", "a group id has 24 bytes, not 1"),
        (
            {
                "options": LOGICAL._replace(group_sequence=3),
                "group_id": group_id("Y"),
                "group_sequence": 2,
            },
            "match-options-invalid",
            "3",
        ),
    ],
)
def test_a_page_that_nobody_can_be_shown_is_refused(asked, reason, detail):
    """Selector, options and what contradicts a place in a group, as a Get is refused (§13)."""
    found = page(**asked)
    assert (found.reason, found.messages, found.document) == (reason, [], None)
    assert detail in found.detail
