"""What `ledgermq group` says of groups: what is missing, what cannot be got and why (GRP-46)."""

from dataclasses import replace

import pytest

from ledgermq.cli.commands import groups
from ledgermq.cli.commands.groups import (
    _clashing_text,
    _item_rows,
    age_text,
    missing_text,
    shortened,
)
from ledgermq.cli.printing.blocked import counted, is_wholly_there, sentence
from ledgermq.client.admin import statuses
from ledgermq.core.queries import group_status as group_query
from ledgermq.testing import MemoryBroker
from support.messages.grouped_items import consume, get_items, group_id, put_items


@pytest.fixture
def connection():
    """A connection to a queue manager in memory with a queue `q`."""
    with MemoryBroker().connect() as opened:
        opened.admin.create_queue("q")
        yield opened


def blocked(connection):
    """How many messages of `q` cannot be got in logical order, by reason."""
    admin = connection.admin
    partly = [one for one in admin.groups("q") if not is_wholly_there(one)]
    looked = [admin.group("q", one.group_id) for one in partly]
    return counted(admin.queue_status("q"), looked)


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (["a{g=Y.1}", "b{g=Y.2!}"], ""),
        (["b{g=Y.2!}"], "message 1"),
        (["a{g=Y.1}", "b{g=Y.2}"], "what comes after message 2"),
        (["b{g=Y.2}", "f{g=Y.6!}"], "message 1, messages 3 to 5"),
        (["a{g=Y.1@0+5}", "c{g=Y.3!}"], "bytes 5 on of message 1, message 2"),
        (
            ["a{g=Y.1!@2+3}", "b{g=Y.1!@9+1!}"],
            "bytes 0 to 1 of message 1, bytes 5 to 8 of message 1",
        ),
        (["a{g=-Y.1@0+5}"], "bytes 5 on"),
        (["a{g=-Y.1@0+5}", "b{g=-Y.1@5+5!}"], ""),
        (
            [f"m{one}{{g=Y.{one}}}" for one in range(2, 18, 2)],
            ", ".join(f"message {one}" for one in (1, 3, 5, 7, 9))
            + ", 3 more gaps, what comes after message 16",
        ),
    ],
)
def test_what_is_missing_is_told_in_words(connection, items, text):
    """Messages by number, bytes of segments by place, in logical order; the first few of many."""
    put_items(connection, "q", *items)
    assert missing_text(connection.admin.group("q", group_id("Y"))) == text


def test_what_is_not_listed_of_a_group_is_told_of(connection, monkeypatch):
    """Its highest number stays what it is; a cut list was taken for the whole of it."""
    items = ["b{g=Y.2@0+5}", "c{g=Y.2@9+1!}", *(f"m{at}{{g=Y.{at}}}" for at in range(4, 24, 2))]
    put_items(connection, "q", *items)
    whole = connection.admin.group("q", group_id("Y"))
    assert whole.missing_unlisted == 0
    monkeypatch.setattr(group_query, "GAPS_MAX", 1)
    cut = connection.admin.group("q", group_id("Y"))
    assert (cut.missing, cut.missing_unlisted) == (((1, 1),), len(whole.missing) - 1)
    assert cut.highest_group_sequence == whole.highest_group_sequence == 22
    assert _clashing_text(replace(cut, clashing=(7,), clashing_unlisted=2)) == "7, 2 more"
    rows = [row["group_sequence"] for row in _item_rows(cut)]
    assert "10 more from 2 on" in rows


def test_queue_of_which_all_can_be_got_says_so(connection):
    """Complete groups, and messages in none; one message is no plural."""
    assert sentence(0, blocked(connection)) == "the queue holds no messages"
    put_items(connection, "q", "A")
    assert sentence(1, blocked(connection)) == "1 message, all can be got in logical order"
    put_items(connection, "q", "b{g=Y.2!}", "a{g=Y.1}")
    assert sentence(3, blocked(connection)) == "3 messages, all can be got in logical order"


def test_group_without_its_first_item_cannot_be_got(connection):
    """GRP-14, GRP-46: depth above 0, and nothing to get; a first segment is a first item."""
    put_items(connection, "q", "b{g=Y.2}", "c{g=Y.3!}", "d{g=Z.1!@5+5!}")
    assert blocked(connection) == {"without_first_item": 3}


@pytest.mark.parametrize(
    "items",
    [
        ["a{g=Y.1}", "c{g=Y.3}", "d{g=Y.4!}"],
        ["a{g=Y.1@0+5}", "b{g=Y.1@7+5!}", "c{g=Y.2!}"],
        ["a{g=Y.1@0+5}", "b{g=Y.2}", "c{g=Y.3!}"],
    ],
    ids=["message", "segment", "end-of-message"],
)
def test_what_comes_behind_something_missing_cannot_be_got(connection, items):
    """GRP-46: in logical order a consumer waits for what is missing."""
    put_items(connection, "q", *items)
    assert blocked(connection) == {"behind_missing": 2}


def test_held_and_unborn_items_stand_before_the_rest(connection):
    """GRP-14: a first item in flight counts as absent, and so does one that is not due."""
    put_items(
        connection, "q", "a{g=Y.1}", "b{g=Y.2!}", "c{g=Z.1}", "d{g=Z.2,delay=9s}", "e{g=Z.3!}"
    )
    assert blocked(connection) == {"behind_unavailable": 1, "unborn": 1}
    get_items(connection, "q")
    assert blocked(connection) == {"behind_unavailable": 2, "held": 1, "unborn": 1}


def test_rest_of_a_kept_group_is_for_its_consumer(connection):
    """GRP-17: who is in the group in logical order gets the rest, nobody else."""
    put_items(connection, "q", "a{g=Y.1}", "b{g=Y.2}", "c{g=Y.3!}")
    get_items(connection, "q", logical_order=True)
    assert blocked(connection) == {"kept_for_a_consumer": 2, "held": 1}
    consume(connection, 1)
    assert blocked(connection) == {"kept_for_a_consumer": 2}


def test_reasons_are_told_with_their_numbers(connection):
    """GRP-46: how many of all, then each reason; `at least` where not everything was looked at."""
    put_items(connection, "q", "A", "b{g=Y.2!}", "c{g=Z.1}", "d{g=Z.3!}")
    text = (
        "2 of 4 messages cannot be got in logical order now: "
        "1 in groups without their first item, 1 behind missing ones"
    )
    assert sentence(4, blocked(connection)) == text
    assert sentence(4, blocked(connection), at_least=True) == f"at least {text}"


def test_ids_are_shortened_to_what_tells_them_apart():
    """At least twelve digits; more where ids begin alike."""
    first, second, third = "ab" * 24, "ab" * 10 + "cd" * 14, "0" * 48
    assert shortened([]) == {}
    assert shortened([third]) == {third: "0" * 12}
    assert shortened([first, second]) == {first: "ab" * 11, second: "ab" * 10 + "cd"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3_599, "59 min 59 s"),
        (7_260, "2 h 1 min"),
        (86_400, "1 d"),
        (200_000, "2 d 7 h"),
    ],
)
def test_ages_are_told_in_their_two_largest_units(seconds, text):
    """A clock behind the log's makes no age below 0."""
    assert age_text(seconds) == text


def test_group_that_has_left_meanwhile_is_passed_over(connection):
    """Between the list and the look into a group it may be consumed."""
    put_items(connection, "q", "b{g=Y.2!}", "d{g=Z.2!}")
    listed = connection.admin.groups("q")
    get_items(connection, "q")
    consume(connection, 1)
    looked, all_there = groups._looked_into(connection.admin, "q", listed)
    assert [one.group_id for one in looked] == [group_id("Z")]
    assert all_there


def test_group_of_more_members_than_a_page_is_told_whole(connection, monkeypatch):
    """Page by page, in logical order, every member once."""
    put_items(connection, "q", "c{g=Y.3!@0+5}", "d{g=Y.3!@5+5!}", "b{g=Y.2}", "a{g=Y.1}")
    whole = connection.admin.group("q", group_id("Y"))
    assert [(one.group_sequence, one.offset) for one in whole.members] == [
        *((1, 0), (2, 0)),
        *((3, 0), (3, 5)),
    ]
    monkeypatch.setattr(statuses, "GROUP_MEMBERS_MAX", 1)
    again = connection.admin.group("q", group_id("Y"))
    assert again.members == whole.members
