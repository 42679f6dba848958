"""The invariants of topics are not blind: each thing that must hold is broken once, and found."""

from __future__ import annotations

import pytest

from ledgermq.core.state.message_states import (
    CONSUMED,
    DROPPED,
    EXPIRED,
    UNACKNOWLEDGED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.topics import SubscriptionKey
from support.invariants import whole_state as invariants
from support.scripts.play import play_lines
from support.scripts.verbs import identifier

LINES = (
    "open CLIENT client=c",
    "consumer 1 topic:t",
    "consumer 2 topic:t durable=d",
    "put topic:t A B C -> enqueued 0..2",
    "get 1 consumer=2 -> accepted; delivered consumer=2 on=topic:t A@0",
    "ack 1",
    "temporary topic:temporary/53000000000000000000000000000000/x",
)


def sound_state():
    """A topic with a plain and a durable subscription, and a temporary topic."""
    return play_lines(*LINES).state


def durable(state):
    """The durable subscription."""
    return state.subscriptions[SubscriptionKey("durable", "d", "c")]


def plain(state):
    """The one of a consumer alone."""
    return next(one for key, one in state.subscriptions.items() if key.kind == "consumer")


def temporary(state):
    """The name of the temporary topic."""
    return next(name for name in state.topics if name.startswith("temporary"))


def _topic_under_another_name(state):
    state.topics["other"] = state.topics.pop("t")


def _message_lost(state):
    state.topics["t"].gone[CONSUMED] += 1


def _expired_twice(state):
    state.topics["t"].gone[EXPIRED] += 1


def _dropped_twice(state):
    state.topics["t"].gone[DROPPED] += 1


def _out_of_order(state):
    topic = state.topics["t"]
    topic.publications = dict(reversed(topic.publications.items()))


def _held_by_more(state):
    state.topics["t"].publications[1].holders += 1


def _unknown_to_the_state(state):
    stray = durable(state)
    del state.subscriptions[stray.key]
    state.subscriptions[SubscriptionKey("durable", "e", "c")] = stray


def _under_another_key(state):
    durable(state).key = SubscriptionKey("durable", "e", "c")


def _not_of_its_topic(state):
    one = durable(state)
    del one.topic.subscriptions[one.created_position]


def _without_a_store(state):
    one = durable(state)
    state.stores[one.created_position] = plain(state)


def _too_many_stores(state):
    state.stores[999] = durable(state)


def _added_wrong(state):
    durable(state).added += 1


def _added_and_expired_wrong(state):
    durable(state).gone[EXPIRED] += 1


def _two_consumers(state):
    one = durable(state)
    one.consumers[(9, 9)] = next(iter(plain(state).consumers.values()))


def _nothing_keeps_it(state):
    plain(state).consumers.clear()


def _owned_by_nobody(state):
    state.topics[temporary(state)].owner = None


def _not_known_to_its_owner(state):
    state.connections[identifier("S")].owned.clear()


def _owned_under_another_name(state):
    owned = state.connections[identifier("S")].owned
    owned["topic:x"] = owned.pop(f"topic:{temporary(state)}")


def _client_id_of_another(state):
    state.client_ids["d"] = state.connections[identifier("S")]


def _client_id_of_nobody(state):
    connection = state.connections[identifier("S")]
    strange = type(connection)(identifier("X"), 0)
    strange.client_id = "c"
    strange.identity = connection.identity
    state.client_ids["c"] = strange


BROKEN = [
    (_topic_under_another_name, "stands under other"),
    (_message_lost, "topic t: SEQ-14"),
    (_expired_twice, "topic t: SEQ-14"),
    (_dropped_twice, "topic t: SEQ-14"),
    (_out_of_order, "topic t: order"),
    (_held_by_more, "who has which message"),
    (_unknown_to_the_state, None),
    (_under_another_key, None),
    (_not_of_its_topic, None),
    (_without_a_store, "no store"),
    (_too_many_stores, "stores"),
    (_added_wrong, "INF-19"),
    (_added_and_expired_wrong, None),
    (_two_consumers, "SES-49"),
    (_nothing_keeps_it, "SES-43"),
    (_owned_by_nobody, "owner"),
    (_not_known_to_its_owner, "SES-39"),
    (_owned_under_another_name, "name"),
    (_client_id_of_another, "client id d"),
    (_client_id_of_nobody, "client id c"),
]


def test_sound_topics_pass():
    """The state that the tests below break is whole before."""
    invariants.check(sound_state())


@pytest.mark.parametrize(
    ("broken", "text"), BROKEN, ids=[one.__name__.strip("_") for one, _ in BROKEN]
)
def test_broken_topic_is_found(broken, text):
    """Whatever breaks an invariant of topics, the check names it."""
    state = sound_state()
    broken(state)
    with pytest.raises((AssertionError, KeyError), match=text):
        invariants.check(state)


def test_what_is_in_flight_keeps_a_plain_subscription():
    """Without its consumer, in a session of either kind."""
    for mode in ("CLIENT", "TRANSACTED"):
        lines = [f"open {mode}", "consumer 1 topic:t", "get 1", "T: open"]
        lines += ["T: put topic:t A -> enqueued 0..0; S: delivered on=topic:t A@0"]
        state = play_lines(*lines, "close-consumer 1").state
        assert len(state.subscriptions) == 1
        invariants.check(state)


def test_topic_forgets_what_selectors_asked_for():
    """The index by values has nothing of subscriptions that are gone."""
    lines = ["open CLIENT", 'consumer 1 topic:t selector=color~==~"red"']
    lines += ['consumer 2 topic:t selector=color~==~"red"', 'consumer 3 topic:t selector=n~==~"a"']
    lines += [f"close-consumer {number}" for number in (1, 2)]
    player = play_lines(*lines)
    topic = player.state.topics["t"]
    assert topic.by_value.asked == [("n", ["a"])]
    last = play_lines(*lines, "close-consumer 3")
    assert not last.state.topics["t"].by_value


def test_what_two_sessions_have_in_flight_keeps_a_shared_subscription():
    """Unacknowledged and uncommitted ones count together, not against each other."""
    lines = ["open CLIENT", "consumer 1 topic:t shared=s", "get 1"]
    lines += ["T: open TRANSACTED", "T: consumer 1 topic:t shared=s", "T: get 1"]
    lines += ["P: open", "P: put topic:t A B -> enqueued 0..1; S: delivered on=topic:t A@0;"]
    lines[-1] += " T: delivered on=topic:t B@1"
    state = play_lines(*lines, "close-consumer 1", "T: close-consumer 1").state
    (subscription,) = state.subscriptions.values()
    assert (subscription.counts[UNACKNOWLEDGED], subscription.counts[UNCOMMITTED_GET]) == (1, 1)
    invariants.check(state)
