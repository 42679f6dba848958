"""What the fold's work and state grow with: matching subscriptions, messages got, nothing else."""

from __future__ import annotations

import random
import sys

import pytest

from ledgermq.core.apply import apply, new_state
from ledgermq.core.delivery import recipients
from ledgermq.core.destinations import numbering
from ledgermq.core.order import orders, selecting, waiting_consumers
from ledgermq.core.state.message_states import AVAILABLE
from ledgermq.core.state.records import Queue
from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Delivered, Refused
from support.checks import checks
from support.invariants import whole_state as invariants
from support.messages.opening import opening

pytestmark = pytest.mark.slow

START_US = 1_790_000_000_000_000


class Driver:
    """Folds operations one after the other, a millisecond apart; a refusal is an error."""

    def __init__(self) -> None:
        self.state = new_state()
        self.numbers: dict[int, int] = {}

    def fold(self, operation):
        """Folds one entry; its outcomes."""
        position = self.state.position + 1
        found = apply(self.state, operation, position, START_US + position * 1_000)
        assert not any(isinstance(one.outcome, Refused) for one in found), found
        return [one.outcome for one in found]

    def open(self, name: int, client_id: str = "") -> int:
        """Opens a session of a connection of its own; its handle."""
        connection = name.to_bytes(16, "big")
        self.fold(opening(connection=connection, client_id=client_id, suspect_timeout_ms=10_000))
        self.numbers[self.state.position] = 0
        return self.state.position

    def do(self, kind, session: int, **fields):
        """Folds the session's next operation; its outcomes."""
        self.numbers[session] += 1
        number = self.numbers[session]
        operation = kind(
            session=session, session_sequence=number, answered_through=number - 1, **fields
        )
        return self.fold(operation)


def colored(number: int, color: str) -> op.PutMessage:
    """A message with a property."""
    return {
        "message_id": number.to_bytes(16, "big"),
        "priority": 4,
        "persistent": True,
        "content": b"x",
        "header": {
            "properties": {"color": color},
            "correlation_id": None,
            "type": None,
            "time_to_live_ms": 0,
            "delivery_delay_ms": 0,
            "age_ms": 0,
        },
    }


@pytest.fixture
def evaluations(monkeypatch):
    """How often a selector was asked about a message."""
    asked: list[str] = []
    real = selecting.matches

    def counted(selector, message):
        asked.append(selector.text)
        return real(selector, message)

    monkeypatch.setattr(orders, "matches", counted)
    monkeypatch.setattr(numbering, "matches", counted)
    return asked


def test_a_publication_looks_only_at_subscriptions_that_ask_for_its_value(evaluations):
    """Of 1,000 durable subscriptions, each for a color of its own, one is asked (SES-71)."""
    driver = Driver()
    session = driver.open(1, client_id="c")
    for number in range(1_000):
        driver.do(
            op.OpenConsumer,
            session,
            consumer=number + 1,
            destination="topic:t",
            subscription=f"s{number}",
            durable=True,
            selector=f"color = 'c{number}' AND JMSPriority < 9",
        )
    for number in range(100):
        message = colored(number, f"c{number}")
        driver.do(op.Put, session, destination="topic:t", messages=[message])
    assert len(evaluations) == 100
    assert sum(len(one.messages) for one in driver.state.subscriptions.values()) == 100


def test_a_selector_is_asked_once_for_what_has_its_value_and_never_by_a_get(evaluations):
    """100,000 messages, every hundredth is red: the others are not asked about, and taking those
    that match asks about none (SES-35).
    """
    driver = Driver()
    session = driver.open(1)
    for batch in range(100):
        messages = [
            colored(batch * 1_000 + one, "red" if one % 100 == 0 else "blue")
            for one in range(1_000)
        ]
        driver.do(op.Put, session, destination="queue:q", messages=messages)
    driver.do(op.OpenConsumer, session, consumer=1, destination="queue:q", selector="color = 'red'")
    assert len(evaluations) == 1_000
    evaluations.clear()
    for _ in range(1_000):
        *_, delivered = driver.do(op.Get, session, consumer=1, credit=1)
        assert isinstance(delivered, Delivered)
        delivery = delivered.first_delivery
        driver.do(op.Acknowledge, session, deliveries=[{"first": delivery, "last": delivery}])
    assert evaluations == []
    queue = driver.state.queues["q"]
    assert (len(queue.messages), queue.counts[AVAILABLE]) == (99_000, 99_000)
    # What was taken through the selector does not stay behind in the order of all.
    assert queue.available._entries <= 2 * 99_000 + 64


def test_sessions_that_were_closed_leave_nothing_behind():
    """10,000 of them, with subscriptions, temporary queues, client ids and undone work."""
    driver = Driver()
    keeper = driver.open(0)
    driver.do(op.Put, keeper, destination="topic:t", messages=[colored(1, "red")])
    before = len(checks.freeze(driver.state).root)
    for number in range(1, 10_001):
        session = driver.open(number, client_id=f"client-{number}")
        driver.do(op.OpenConsumer, session, consumer=1, destination="topic:t", shared=False)
        own = f"queue:temporary/{number.to_bytes(16, 'big').hex()}/1"
        driver.do(op.CreateTemporary, session, destination=own)
        driver.do(op.Put, session, destination=own, messages=[colored(number, "blue")])
        driver.do(op.Close, session, seen=[])
    state = driver.state
    held = (state.sessions, state.connections, state.client_ids, state.queues)
    assert [len(one) for one in held] == [1, 1, 0, 0]
    assert (len(state.subscriptions), len(state.stores)) == (0, 0)
    assert len(checks.freeze(state).root) <= before + 16


def test_deadlines_of_messages_that_are_gone_do_not_pile_up():
    """100,000 messages that would expire in a year, consumed at once (D6)."""
    driver = Driver()
    session = driver.open(1)
    driver.do(op.OpenConsumer, session, consumer=1, destination="queue:q")
    for batch in range(100):
        messages = [colored(batch * 1_000 + one, "red") for one in range(1_000)]
        for message in messages:
            message["header"]["time_to_live_ms"] = 365 * 86_400_000
        driver.do(op.Put, session, destination="queue:q", messages=messages)
        *_, delivered = driver.do(op.Get, session, consumer=1, credit=1_000)
        first = delivered.first_delivery
        driver.do(op.Acknowledge, session, deliveries=[{"first": first, "last": first + 999}])
    assert len(driver.state.expiries._entries) <= 3 * 1_024


def test_lifetimes_of_queues_and_subscriptions_that_are_gone_do_not_pile_up():
    """5,000 of each that had a message once; they would have been over in a month (DB-04)."""
    driver = Driver()
    session = driver.open(1)
    for number in range(1, 5_001):
        message = colored(number, "red")
        driver.do(op.Put, session, destination="queue:q", messages=[message])
        driver.do(op.DeleteQueue, session, queue="q", purge=True)
        driver.do(op.OpenConsumer, session, consumer=number, destination="topic:t")
        driver.do(op.Put, session, destination="topic:t", messages=[message])
        driver.do(op.CloseConsumer, session, consumer=number, unseen=[])
    lifetimes = driver.state.lifetimes
    assert len(driver.state.stores) == len(lifetimes._noted) == 0
    assert len(lifetimes._entries._entries) <= 64 + 1


def test_a_put_under_a_quota_of_all_looks_at_no_other_queue(monkeypatch):
    """The room of the queue manager is counted as messages move, not queue by queue (INF-04)."""
    driver = Driver()
    session = driver.open(1)
    for number in range(1_000):
        driver.do(op.OpenConsumer, session, consumer=number + 1, destination=f"queue:q{number}")
    driver.do(op.AlterQueueManager, session, messages_max=100)
    looked_at: list[str] = []

    def counted(queue):
        looked_at.append(queue.name)
        return sum(queue.counts)

    monkeypatch.setattr(Queue, "held_messages", property(counted))
    for number in range(100):
        driver.do(op.Put, session, destination="queue:q0", messages=[colored(number, "red")])
    assert set(looked_at) <= {"q0"}
    assert driver.state.held_messages == 100


def looks(monkeypatch, module, name: str) -> list[int]:
    """The number of each consumer that a function of a module is asked about from now on."""
    looked_at: list[int] = []
    real = getattr(module, name)

    def counted(consumer):
        looked_at.append(consumer.number)
        return real(consumer)

    monkeypatch.setattr(module, name, counted)
    return looked_at


def test_a_message_costs_the_same_with_a_thousand_waiting_consumers(monkeypatch):
    """Few of them are looked at for each message and acknowledgement (H23)."""
    driver = Driver()
    session = driver.open(1)
    for number in range(1, 1_001):
        driver.do(op.OpenConsumer, session, consumer=number, destination="queue:q")
        driver.do(op.Get, session, consumer=number, credit=1_000)
    looked_at = looks(monkeypatch, waiting_consumers, "waiting_key")
    got: set[int] = set()
    for number in range(1_100):
        message = colored(number, "red")
        *_, delivered = driver.do(op.Put, session, destination="queue:q", messages=[message])
        got.add(delivered.consumer)
        first = delivered.first_delivery
        driver.do(op.Acknowledge, session, deliveries=[{"first": first, "last": first}])
    assert got == set(range(1, 1_001))
    # Once all of them were put in order; then a few for each message.
    assert len(looked_at) < 1_000 + 1_100 * 12
    assert len(driver.state.queues["q"].waiting._entries) <= 2 * 1_000 + 64 + 1


def test_a_message_costs_the_same_with_a_thousand_consumers_that_select_other_values(
    evaluations, monkeypatch
):
    """One selector is asked, and one consumer looked at: who waits for it (SES-35, H23)."""
    driver = Driver()
    session = driver.open(1)
    for number in range(1_000):
        selector = f"color = 'c{number}' AND JMSPriority < 9"
        driver.do(
            *(op.OpenConsumer, session),
            consumer=number + 1,
            destination="queue:q",
            selector=selector,
        )
        driver.do(op.Get, session, consumer=number + 1, credit=1_000)
    looked_at = looks(monkeypatch, recipients, "_head_for")
    for number in range(1_000):
        message = colored(number, f"c{number}")
        *_, delivered = driver.do(op.Put, session, destination="queue:q", messages=[message])
        assert delivered.consumer == number + 1
    assert len(evaluations) == len(looked_at) == 1_000
    assert not driver.state.queues["q"].filled_orders


def test_a_limit_of_a_session_costs_a_message_one_look_at_each_of_its_consumers():
    """What a session holds of a queue is counted, not added up for each of them (SES-07)."""
    driver, consumers, calls = Driver(), 400, 0
    session = driver.open(1)
    for number in range(1, consumers + 1):
        driver.do(op.OpenConsumer, session, consumer=number, destination="queue:q")
    driver.do(op.AlterQueue, session, queue="q", unacknowledged_max=1_000)
    for number in range(1, consumers + 1):
        driver.do(op.Get, session, consumer=number, credit=1)

    def counted(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(counted)
    try:
        driver.do(op.Put, session, destination="queue:q", messages=[colored(1, "red")])
    finally:
        sys.setprofile(None)
    assert driver.state.queues["q"].in_flight == 1
    assert calls < 50 * consumers


def test_consumers_that_are_passed_over_do_not_pile_up():
    """A suspected session waits on through 300 messages of others (H23)."""
    driver = Driver()
    putter, *handles = [driver.open(number) for number in range(4)]
    for handle in handles:
        driver.do(op.OpenConsumer, handle, consumer=1, destination="queue:q")
        driver.do(op.Get, handle, consumer=1, credit=1_000)
    driver.fold(op.Suspect(worker="w", sessions=handles[:1]))
    for number in range(300):
        messages = [colored(number, "red")]
        *_, delivered = driver.do(op.Put, putter, destination="queue:q", messages=messages)
        assert delivered.session != handles[0]
    assert len(driver.state.queues["q"].waiting._entries) <= 2 * 3 + 64 + 1
    driver.do(op.Alive, handles[0])
    message = colored(0, "red")
    *_, delivered = driver.do(op.Put, putter, destination="queue:q", messages=[message])
    assert delivered.session == handles[0]


@pytest.mark.parametrize("seed", range(5))
def test_whose_turn_it_is_never_depends_on_how_it_was_found(seed):
    """Highest priority, fewest in flight, longest wait, whatever is settled, granted, closed,
    suspected or limited in between (H23).
    """
    chance = random.Random(seed)
    driver = Driver()
    putter, *handles = [driver.open(number) for number in range(5)]
    for handle in handles:
        for number in range(1, 9):
            told = {"destination": "queue:q", "consumer_priority": number % 3}
            driver.do(op.OpenConsumer, handle, consumer=number, **told)
            driver.do(op.Get, handle, consumer=number, credit=chance.randint(1, 4))
    queue = driver.state.queues["q"]
    for step in range(400):
        handle = chance.choice(handles)
        session = driver.state.sessions[handle]
        what = chance.random()
        if what < 0.5:
            ready = [one for one in queue.ready.values() if not waiting_consumers.is_held_back(one)]
            if queue.unacknowledged_max:
                held = {one: len(driver.state.sessions[one].deliveries) for one in handles}
                limit = queue.unacknowledged_max
                ready = [one for one in ready if held[one.session.handle] < limit]
            waiting = not queue.counts[AVAILABLE]
            expected = min(map(waiting_consumers.waiting_key, ready), default=None)
            messages = [colored(step, "red")]
            found = driver.do(op.Put, putter, destination="queue:q", messages=messages)
            told = [(one.session, one.consumer) for one in found if isinstance(one, Delivered)]
            if waiting:
                assert told == ([] if expected is None else [expected[3:]])
        elif what < 0.7 and session.deliveries:
            number = chance.choice(list(session.deliveries))
            driver.do(op.Acknowledge, handle, deliveries=[{"first": number, "last": number}])
        elif what < 0.75:
            driver.do(op.Recover, handle, seen=[])
        elif what < 0.8:
            driver.fold(op.Suspect(worker="w", sessions=[handle]))
        elif what < 0.83:
            limit = chance.choice((0, 0, 2))
            driver.do(op.AlterQueue, handle, queue="q", unacknowledged_max=limit)
        else:
            number = chance.randint(1, 8)
            driver.do(op.Get, handle, consumer=number, credit=chance.randint(1, 3))
        invariants.check(driver.state)
