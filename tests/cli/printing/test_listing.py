"""`--columns` and `--sort` of lists: which values are shown, and in which order rows stand."""

from __future__ import annotations

import pytest

from ledgermq.cli.printing.exits import OK, USAGE


@pytest.fixture
def listed(memory, broker_in_memory):
    """A command line beside queues that hold one, three and no messages, and a topic."""
    with broker_in_memory.connect() as connection, connection.session() as session:
        for name, number in (("one", 1), ("three", 3), ("none", 0)):
            connection.admin.create_queue(name)
            for _ in range(number):
                session.producer(f"queue:{name}").send("x")
        connection.admin.create_topic("prices")
        session.consumer("topic:prices")
    return memory


def test_columns_stand_as_they_were_asked_for(listed):
    """Also those that the list does not have by itself, with times as everywhere."""
    told = listed("queue", "list", "--columns", "max-sequence,name,first_enqueued_at").lines
    assert told[0] == "MAX SEQ\tNAME\tFIRST ENQUEUED AT"
    of_none, of_one, _ = (line.split("\t") for line in sorted(told[1:]))
    assert (of_none, of_one[:2]) == (["0", "none", ""], ["0", "one"])
    assert of_one[2].endswith("Z")


def test_numbers_stand_from_the_largest_and_names_from_the_smallest(listed):
    """What has no value comes last."""

    def names(*options):
        return [row["name"] for row in listed("queue", "list", "--json", *options).document]

    assert names("--sort", "message_count") == ["three", "one", "none"]
    assert names("--sort", "name") == ["none", "one", "three"]
    assert names("--sort", "first_enqueued_at") == ["one", "three", "none"]
    assert names("--sort", "current", "t*") == ["three"]


def test_documents_have_the_columns_too(listed):
    """And all there is, where none were named."""
    assert listed("queue", "list", "one", "--columns", "name,state", "--json").document == [
        {"name": "one", "state": "running"}
    ]
    (whole,) = listed("queue", "list", "one", "--json").document
    assert {"settings", "pending_bytes"} <= whole.keys()
    assert "state" not in whole


@pytest.mark.parametrize("listing", [("topic", "list"), ("subscription", "list")])
def test_topics_and_subscriptions_are_listed_so_too(listed, listing):
    """Each with the columns of its own status."""
    told = listed(*listing, "--columns", "name,receivers", "--sort", "receivers")
    assert (told.code, told.lines[0]) == (OK, "NAME\tRECEIVERS")


@pytest.mark.parametrize("options", [("--sort", "nam"), ("--columns", "name,"), ("--sort", "")])
def test_a_column_that_is_none_is_refused_with_those_that_are(listed, options):
    """No list is printed without it."""
    told = listed("queue", "list", *options)
    assert (told.code, told.out) == (USAGE, "")
    assert "there is no column" in told.err
    assert "message_count" in told.err
