"""What many bindings, topics, temporary queues and selectors cost: looks at those concerned."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.core.destinations import by_name, numbering
from ledgermq.core.order import orders
from ledgermq.core.snapshot.state_records import blocks, restore, root_of
from ledgermq.protocol import operations as op
from ledgermq.protocol.topic_patterns import is_pattern, names_of, stem_of, stems_of, takes_in
from support.checks.calls import calls_of
from support.checks.checked_histories import examples
from support.messages.large_states import CONNECTION, LargeState

MANY = 200


def counted(monkeypatch, module, name: str) -> list[None]:
    """An entry for each call of a function of a module from now on."""
    calls: list[None] = []
    real = getattr(module, name)

    def call(*given):
        calls.append(None)
        return real(*given)

    monkeypatch.setattr(module, name, call)
    return calls


@pytest.mark.parametrize("pattern", ["t{}.a", "t{}.*", "t{}.#"])
def test_a_topic_and_a_restart_look_at_bindings_of_its_own_words(monkeypatch, pattern):
    """200 topics and 200 bindings are not compared each with each, nor is what is unbound."""
    large = LargeState()
    session = large.open()
    large.do(op.CreateQueue, session, queue="q")
    for number in range(MANY):
        told = {"topics": pattern.format(number), "destination": "queue:q", "selector": ""}
        large.do(op.Bind, session, **told)
    compared = counted(monkeypatch, by_name, "takes_in")
    for number in range(MANY):
        large.do(op.CreateTopic, session, topic=f"t{number}.a")
    assert len(compared) <= MANY
    compared.clear()
    again = restore(root_of(large.state), [])
    assert len(compared) <= MANY
    assert [len([*one.bindings]) for one in again.topics.values()] == [1] * MANY
    compared.clear()
    large.do(op.Unbind, session, topics=pattern.format(MANY - 1), destination="queue:q")
    assert len(compared) <= 1
    bound = {name: len([*one.bindings]) for name, one in large.state.topics.items()}
    assert [name for name, count in bound.items() if not count] == [f"t{MANY - 1}.a"]


def test_a_publication_asks_only_bindings_that_select_its_value(monkeypatch):
    """Of 200 bindings of one topic, each for a key of its own, one is asked; changed ones too."""
    large = LargeState()
    session = large.open()
    for number in range(MANY):
        large.do(op.CreateQueue, session, queue=f"q{number}")
        told = {"topics": "t.*", "destination": f"queue:q{number}"}
        large.do(op.Bind, session, **told, selector=f"key = 'k{number}'")
    large.do(op.CreateTopic, session, topic="t.a")
    large.do(op.Bind, session, topics="t.*", destination="queue:q3", selector="key = 'k7'")
    asked = counted(monkeypatch, numbering, "matches")
    large.put(session, "topic:t.a", key="k7")
    assert len(asked) == 2
    large.put(session, "topic:t.a", key="k3")
    assert len(asked) == 2
    held = {one.name: len(one.messages) for one in large.state.queues.values() if one.messages}
    assert held == {"q3": 1, "q7": 1}
    again = restore(root_of(large.state), [])
    assert len([*again.topics["t.a"].bindings]) == MANY


NAMES = st.text("ab./", min_size=1, max_size=7)
PATTERNS = st.text("ab*#./", min_size=1, max_size=7).filter(is_pattern)


@examples(400)
@given(PATTERNS, NAMES)
def test_the_stem_of_a_pattern_is_one_of_each_name_that_it_takes_in(pattern, name):
    """So a topic finds its bindings by the beginnings of its name."""
    if takes_in(names_of(pattern), name):
        assert stem_of(pattern) in stems_of(name)
    if not {"*", "#"} & set(pattern):
        assert stem_of(pattern) == pattern == stems_of(pattern)[-1]


def test_a_queue_that_holds_nothing_is_few_objects():
    """Python looks at all of them, now and then, while nothing else is done."""
    large = LargeState()
    session = large.open()
    large.do(op.CreateQueue, session, queue="first")
    gc.collect()
    before = len(gc.get_objects())
    for number in range(200):
        large.do(op.CreateQueue, session, queue=f"q{number}")
    gc.collect()
    assert len(gc.get_objects()) - before < 200 * 10


def test_the_end_of_temporary_queues_looks_once_at_each_session():
    """100 of them, with open puts of ten of 300 sessions: those vanish, others stay (SES-39)."""
    large = LargeState()
    owner = large.open()
    for number in range(100):
        name = f"queue:temporary/{CONNECTION.hex()}/{number}"
        large.do(op.CreateTemporary, owner, destination=name)
    others = [
        large.open("TRANSACTED", number.to_bytes(16, "big")) for number in range(1_000, 1_300)
    ]
    for number in range(100):
        large.put(others[number % 10], f"queue:temporary/{CONNECTION.hex()}/{number}")
        large.put(others[number % 10], "queue:q")
    assert calls_of(lambda: large.do(op.Close, owner, seen=[])) < 100 * 100
    assert list(large.state.queues) == ["q"]
    left = [large.state.sessions[one] for one in others]
    assert [list(one.open_puts) for one in left[:11]] == [["queue:q"]] * 10 + [[]]
    assert [one.open_bytes for one in left[:11]] == [10] * 10 + [0]


def test_a_restart_asks_each_message_what_it_is_selected_by_once(monkeypatch):
    """100 consumers, each with a key of its own, of a queue of 500: 500 questions, not 50,000."""
    large = LargeState()
    session = large.open()
    for number in range(500):
        large.put(session, "queue:q", key=f"k{number % 100}")
    for number in range(100):
        told = {"consumer": number + 1, "destination": "queue:q"}
        large.do(op.OpenConsumer, session, **told, selector=f"key = 'k{number}'")
    root, found = root_of(large.state), list(blocks(large.state))
    asked = counted(monkeypatch, orders, "matches")
    again = restore(root, found)
    assert len(asked) == 500
    taken = [
        [one.sequence for one in order.take(10)] for order in again.queues["q"].orders.values()
    ]
    assert taken == [[key + step for step in range(0, 500, 100)] for key in range(100)]
