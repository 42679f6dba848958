"""Queues and topics that are listed by what their names begin with, of very many."""

from __future__ import annotations

import pytest

from ledgermq.cli.options.destinations import common_prefix
from ledgermq.client.link.questions import Questions
from ledgermq.core.queries import paging
from ledgermq.testing import MemoryBroker

# Names that stand before, among and behind each other in every way that a prefix may end.
NAMES = ("A", "a", "a%", "a-", "a.", "a.b", "a.b.1", "a.b.2", "a.b/", "a.c", "a/", "aa", "az", "b")


@pytest.fixture(scope="module")
def connection():
    """A connection to a queue manager with all of these names, as queues and as topics."""
    with MemoryBroker().connect() as connection:
        for name in NAMES:
            connection.admin.create_queue(name)
            connection.admin.create_topic(name)
        yield connection


@pytest.mark.parametrize("prefix", ["", *NAMES, "a.b.3", "ab", "z", "a b", "é", "\0", "~"])
def test_a_list_has_all_that_begin_so_and_nothing_else(connection, monkeypatch, prefix):
    """Whether there is such a name or not; pages are of two, so that a list has several."""
    monkeypatch.setattr(paging, "PAGE_ENTRIES", 2)
    wanted = [one for one in sorted(NAMES) if one.startswith(prefix)]
    assert [one.name for one in connection.admin.list_queues(prefix=prefix)] == wanted
    assert [one.name for one in connection.admin.topics(prefix=prefix)] == wanted


def test_only_pages_with_such_names_are_asked_for(connection, monkeypatch):
    """Of 30,000 queues a worker would tell all, for seconds, each time that few are looked at."""
    monkeypatch.setattr(paging, "PAGE_ENTRIES", 2)
    asked = []
    real = Questions._ask_page

    def counted(questions, *arguments, **more):
        asked.append(more["after"])
        return real(questions, *arguments, **more)

    monkeypatch.setattr(Questions, "_ask_page", counted)
    assert len(connection.admin.list_queues(prefix="a.b.")) == 2
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("patterns", "prefix"),
    [
        *(((), ""), (("orders",), "orders"), (("orders.*",), "orders."), (("*",), "")),
        *((("o?a", "ob"), "o"), (("a[bc]", "a"), "a"), (("a", "b"), "")),
    ],
)
def test_patterns_have_a_prefix_in_common(patterns, prefix):
    """What stands before all that is more than a name."""
    assert common_prefix(patterns) == prefix
