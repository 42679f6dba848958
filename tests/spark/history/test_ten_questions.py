"""The ten questions of examples/history are answered as its day was, and its page says so."""

from __future__ import annotations

import importlib
import re
import sys

import pytest

from ledgermq_spark import history
from support.brokers.worker_process import new_place
from support.checkout import ROOT

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

EXAMPLE = ROOT / "examples/history"


class Asked:
    """The day as it was lived through, and the answers to all questions."""

    def __init__(self, spark, place, directory):
        sys.path.insert(0, str(EXAMPLE))
        try:
            self.script = importlib.import_module("ten_questions")
        finally:
            sys.path.remove(str(EXAMPLE))
        self.day = self.script.live_through(place.connect)
        prefix = place.topics.prefix
        past = history.read(spark, place.address, topic_prefix=prefix, directory=directory)
        self.script.name_tables(past, self.day)
        self.tables = {
            name: table.localCheckpoint() for name, table in self.script.answers(spark).items()
        }
        self.rows = {name: table.collect() for name, table in self.tables.items()}
        self.pictures = self.script.pictures(spark, past, self.day)

    def columns(self, name, *columns):
        """Some columns of an answer, row by row."""
        return [tuple(row[column] for column in columns) for row in self.rows[name]]


@pytest.fixture(scope="module")
def asked(spark, broker, tmp_path_factory):
    """Ask about a day on topics of its own."""
    place = new_place(broker.bootstrap, tmp_path_factory.mktemp("shop"))
    try:
        place.worker("shop")
        return Asked(spark, place, tmp_path_factory.mktemp("tables"))
    finally:
        place.close()


def test_the_life_of_a_message_has_who_had_it_and_why_it_left(asked):
    """Rolled back three times, moved by its limit, moved back by hand, consumed."""
    told = asked.columns("life", "event", "destination", "who", "actor")
    orders, failed = "queue:orders", "queue:orders.failed"
    packer = "packer-2"
    assert told == [
        ("put", orders, "web", None),
        *[("delivered", orders, packer, None), ("returned", orders, packer, None)] * 2,
        ("delivered", orders, packer, None),
        ("moved", orders, packer, None),
        ("arrived", failed, None, None),
        ("moved", failed, None, "ann"),
        ("arrived", orders, None, "ann"),
        ("delivered", orders, "packer-1", None),
        ("consumed", orders, "packer-1", None),
    ]


def test_what_a_queue_held_at_a_moment_is_what_was_not_packed_by_then(asked):
    """One order was packed, one is in work, two wait."""
    assert asked.columns("moment", "correlation_id", "state", "held_by") == [
        ("order-2", "uncommitted get", "packer-1"),
        ("order-3", "available", None),
        ("order-4", "available", None),
    ]


def test_who_waited_longest_is_told_with_whom_it_waited_for(asked):
    """Order 4 came at the beginning, and was passed by all that packer-2 did to order 3."""
    (first, *others) = asked.columns("waiting", "correlation_id", "got_by", "minutes", "busy_until")
    assert first[:2] == ("order-4", "packer-1")
    assert {one.split()[0] for one in first[3].split(", ")} == {"packer-1", "packer-2"}
    assert [one[0] for one in others] == ["order-8", "order-6", "order-7"]
    assert all(one[2] <= first[2] for one in others)


def test_redeliveries_are_told_of_the_consumer_that_causes_them(asked):
    """Each get of packer-2 was rolled back; of packer-1 one was, and the other eight committed."""
    columns = ("client_id", "deliveries", "consumed", "came_back", "exceeded_the_limit")
    assert asked.columns("redeliveries", *columns) == [
        ("packer-1", 9, 8, 1, 0),
        ("packer-2", 3, 0, 2, 1),
    ]


def test_a_unit_of_work_is_told_with_what_it_put_and_got(asked):
    """The order that packer-1 got and the answer that it put, both undone."""
    columns = ("client_id", "event", "destination", "correlation_id")
    assert asked.columns("unit-of-work", *columns) == [
        ("packer-1", "delivered", "queue:orders", "order-2"),
        ("packer-1", "put", "queue:answers", "order-2"),
        ("packer-1", "rolled back", "queue:answers", "order-2"),
        ("packer-1", "returned", "queue:orders", "order-2"),
    ]


def test_what_operators_did_is_told_with_what_followed(asked):
    """One move, whose message was consumed, and a purge of four tests."""
    (moved, *purged) = asked.columns("operators", "actor", "why", "correlation_id", "in_the_end")
    assert moved[:3] == ("ann", "the address is mended", "order-3")
    assert re.fullmatch(r"consumed at \d\d:\d\d by packer-1", moved[3])
    assert purged == [
        ("bob", "the load test is over", f"order-{number}", "removed") for number in range(9, 13)
    ]


def test_orders_without_an_answer_are_found_by_property_and_correlation(asked):
    """Of the EU: one that was consumed and forgotten, and two of the load test."""
    assert asked.columns("answers", "correlation_id", "fate") == [
        ("order-5", "consumed"),
        ("order-9", "removed"),
        ("order-11", "removed"),
    ]


def test_the_deepest_backlog_is_told_with_what_ended_it(asked):
    """Two of four were left when eight more came; then one was moved, four purged, six packed."""
    assert asked.columns("backlog", "depth", "event", "through", "messages") == [
        (10, "moved", "packer-2", 1),
        (10, "removed", "bob", 4),
        (10, "consumed", "packer-1", 6),
    ]


def test_missed_publications_are_told_by_subscriber_and_reason(asked):
    """Who came later, who did not want it, and whose copy expired."""
    told = asked.columns("publications", "correlation_id", "subscription", "became")
    became = {(price, subscriber): text for price, subscriber, text in told}
    assert len(became) == len(told) == 9
    missed = {one: text for one, text in became.items() if text != "consumed"}
    assert missed == {
        ("price-1", "books"): "missed: it came later",
        ("price-2", "books"): "missed: it came later",
        ("price-2", "letters"): "not wanted: product = 'tea'",
        ("price-3", "letters"): "missed: its time to live or the maximum lifetime is over",
    }


def test_a_group_that_was_split_or_out_of_order_is_told(asked):
    """The first shipment is whole and in order, the second neither."""
    columns = ("correlation_id", "put_as", "given_as", "given_to", "is_split", "is_out_of_order")
    assert asked.columns("groups", *columns) == [
        ("shipment-A", "1 2 3", "1 2 3", "van-1", False, False),
        ("shipment-B", "1 3 2", "1 3 2", "van-1, van-2", True, True),
    ]


def test_the_page_has_these_questions_and_answers(asked):
    """README.md is what the script writes, but for minutes, which may slip on a slow machine."""
    assert sans_times((EXAMPLE / "README.md").read_text()) == sans_times(
        asked.script.page(asked.tables)
    )


def test_the_pictures_show_what_is_committed(asked):
    """As many lanes, bars, marks and lines, with the same names."""
    for name, drawn in asked.pictures.items():
        kept = (EXAMPLE / "pictures" / name).read_text()
        assert texts_of(kept) == texts_of(drawn), name
    assert {path.name for path in (EXAMPLE / "pictures").iterdir()} == set(asked.pictures)


def sans_times(text):
    """A page without minutes, and without the spaces that depend on how long they are."""
    return re.sub(r"[ -]+", " ", re.sub(r"\b\d+(:\d\d)?\b", "#", text))


def texts_of(picture):
    """The texts of a picture but its times, and how many parts of each kind it has."""
    body = picture.partition("</style>")[2]
    texts = [one for one in re.findall(r"<text[^>]*>([^<]+)<", body) if ":" not in one]
    kinds = ("<rect", "<path", "<svg")
    return sorted(texts), [body.count(kind) for kind in kinds]
