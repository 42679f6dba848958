"""The text that a scrape becomes, and who has series of its own; without a broker."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.core.apply import apply, new_state
from ledgermq.core.state.message_states import CONSUMED, GONE, NAMES, NEW
from ledgermq.core.state.records import Subscription
from ledgermq.processor.metrics.collector import Scrape, encoder_for
from ledgermq.processor.metrics.labels import OTHERS, TEMPORARY, Labels
from ledgermq.processor.metrics.latency import BOUNDS_SECONDS, Latency
from ledgermq.processor.metrics.tally import Tally
from ledgermq.protocol import operations as op
from ledgermq.testing import MemoryBroker
from ledgermq.wire.framing.codec import decode_operation
from support.brokers.scraping import OPENMETRICS
from support.brokers.scraping import Scrape as Read
from support.checks.calls import calls_of
from support.checks.checked_histories import examples
from support.generators.generators import informed_histories
from support.generators.naive_histories import Entry
from support.messages.large_states import LargeState

HOSTILE = 'a "quoted" \\name\\,\n{le="1"} # ü\r'


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_label_values_with_quotes_backslashes_and_newlines_are_read_back(accept):
    """The library escapes them; its parsers of both formats read the same text back."""
    encode, _ = encoder_for(accept)
    read = Read(encode(Scrape([], 0, HOSTILE)).decode())
    (built,) = read.families["ledgermq_build_info"].samples
    assert built.labels["worker"] == HOSTILE
    assert built.value == 1


@given(
    st.text(max_size=40)
    | st.builds("application/openmetrics-text;{}={}".format, st.text(max_size=9), st.text())
    | st.builds("application/openmetrics-text;version={}".format, st.text(max_size=9))
)
def test_whatever_a_scraper_says_it_accepts_it_gets_a_text(accept):
    """A header that cannot be read ends in plain text, not in a fault."""
    encode, content_type = encoder_for(accept)
    assert b"ledgermq_build_info" in encode(Scrape([], 0, "worker"))
    assert content_type.startswith(("text/plain", "application/openmetrics-text"))


def test_destinations_beyond_the_limit_share_a_label_and_free_it_when_they_go():
    """The first ones have their own; temporary ones never have."""
    labels = Labels(2)
    assert [labels.of(f"queue:{one}") for one in "abc"] == ["queue:a", "queue:b", OTHERS]
    assert labels.of("queue:temporary/0a/1") == TEMPORARY
    assert labels.forget_all_but({"queue:b", "queue:c"}) == {"queue:a"}
    assert labels.of("queue:c") == "queue:c"
    assert labels.of("queue:d") == OTHERS
    assert Labels(0).of("queue:a") == OTHERS


def test_named_subscriptions_beyond_the_limit_are_summed_with_those_without_a_name():
    """So the number of series is bounded, however many subscriptions a topic has."""
    broker = MemoryBroker()
    with broker.connect(client_id="c") as connection, connection.session() as session:
        for number in range(5):
            session.consumer("topic:t", durable=True, subscription=f"s{number}")
        session.producer("topic:t").send("x")
        scrape = Scrape([], 0, "worker")
        scrape._take_destinations(broker._state, Tally(Labels(2)), ("QM1",))
    held = {key[2]: 0 for key in scrape._values["subscription_messages"]}
    for key, count in scrape._values["subscription_messages"].items():
        held[key[2]] += count
    assert held == {"s0": 1, "s1": 1, "": 3}


def test_what_shares_a_label_costs_few_steps():
    """A scrape of 600 queues and subscriptions more looks at each of them a few times."""
    large = LargeState()
    session = large.open()
    calls = []
    for number in range(700):
        large.do(op.CreateQueue, session, queue=f"q{number}")
        told = {"subscription": f"s{number}", "destination": "topic:t", "shared": True}
        large.do(op.OpenConsumer, session, consumer=number + 1, **told)
        if number in (99, 699):
            scrape, tally = Scrape([], 0, "worker"), Tally(Labels(10))
            calls.append(calls_of(partial(scrape._take_destinations, large.state, tally, ("QM1",))))
    assert scrape._values["queue_consumers"]["QM1", OTHERS] == 700
    assert calls[1] - calls[0] < 600 * 10


def test_a_time_falls_into_the_bucket_that_it_does_not_exceed():
    """A bound is in its bucket; what is longer than all is in the last; below 0 counts as 0."""
    latency = Latency()
    latency.observe({1_000: 2, 1_004: 1}, 1_005)
    latency.observe({1_000: 1}, 900)
    latency.observe({0: 1}, 100_000)
    buckets = dict(latency.buckets())
    assert [buckets[one] for one in ("0.001", "0.0025", "0.005", "60.0", "+Inf")] == [2, 2, 4, 4, 5]
    assert len(buckets) == len(BOUNDS_SECONDS) + 1
    assert latency.sum_seconds == pytest.approx(0.005 * 2 + 0.001 + 100)


@examples(40)
@given(informed_histories())
def test_the_counter_gets_exactly_the_moves_that_a_listener_is_told(history: list[Entry]):
    """Over any history: as many of each kind; and what clients did adds up to what is there."""
    told, counted, stores = Counter(), Counter(), Counter()
    tally, state, places = Tally(Labels(2)), new_state(), set()

    def hear(moves):
        told[moves.before, moves.after, moves.cause] += len(moves.sequences)

    def count(store, messages, before, after, cause):
        counted[NAMES[before], NAMES[after], cause] += len(messages)
        stores[before, after, cause, isinstance(store, Subscription)] += len(messages)
        tally.count(store, messages, before, after, cause)
        if not isinstance(store, Subscription):
            places.add(store)

    for position, (value, time_us) in enumerate(history):
        operation = decode_operation(value, state.active_version)
        apply(state, operation, position, time_us, hear, count)
    assert counted == told
    events = Counter()
    for (name, _, _), number in tally.events().items():
        events[name] += number
        assert number >= 0
    puts = [number for (before, *_, copy), number in stores.items() if before == NEW and not copy]
    assert events["put"] == sum(puts)
    consumed = [
        number
        for (before, after, cause, _), number in stores.items()
        if after == GONE and cause == CONSUMED and NAMES[before] != "published"
    ]
    assert events["acknowledged"] == sum(consumed)
    assert events["committed"] == sum(one.next_sequence for one in places)
    assert len({destination for _, destination, _ in tally.events()}) <= 4
