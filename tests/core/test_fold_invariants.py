"""The invariants are not blind: each thing that must hold is broken once by hand, and found."""

from __future__ import annotations

import pytest

from ledgermq.core.state.message_states import (
    AVAILABLE,
    CONSUMED,
    REMOVED,
    UNACKNOWLEDGED,
    UNBORN,
    UNCOMMITTED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.records import Times
from ledgermq.protocol.outcomes import Accepted
from support.invariants import whole_state as invariants
from support.scripts.play import play_lines
from support.scripts.verbs import identifier

LINES = (
    "open CLIENT",
    "put q A B C D -> enqueued 0..3",
    "consumer 1 q",
    "get 2 -> accepted; delivered A@0 B@1",
    "consumer 2 q",
    "T: open TRANSACTED",
    "T: consumer 1 q",
    "T: get 1 -> accepted; delivered C@2",
    "T: put q E F",
    "T: consumer 2 r",
    "T: get 5 consumer=2",
)


def sound_state():
    """A state with everything in it; session 0 is CLIENT, session 5 TRANSACTED."""
    return play_lines(*LINES).state


def test_sound_state_passes():
    """The state that the tests below break is whole before."""
    invariants.check(sound_state())


def reply(session: int, sequence: int) -> Accepted:
    """A reply to keep."""
    return Accepted(position=0, index=0, session=session, session_sequence=sequence)


def _queue_under_another_name(state):
    state.queues["other"] = state.queues.pop("q")


def _message_lost_from_the_counts(state):
    state.queues["q"].gone[CONSUMED] += 1


def _held_by_all_wrong(state):
    state.held_messages += 1


def _message_removed_twice(state):
    state.queues["q"].gone[REMOVED] += 1


def _number_skipped(state):
    state.queues["q"].next_sequence += 1


def _min_wrong(state):
    messages = state.queues["q"].messages
    messages[0] = messages.pop(0)


def _max_wrong(state):
    queue = state.queues["q"]
    queue.messages = {number: queue.messages[number] for number in (0, 3, 1, 2)}


def _current_and_pending_wrong(state):
    queue = state.queues["q"]
    queue.counts[UNACKNOWLEDGED] += 1
    queue.counts[UNCOMMITTED_GET] -= 2


def _available_count_wrong(state):
    queue = state.queues["q"]
    queue.counts[AVAILABLE] += 1
    queue.counts[UNACKNOWLEDGED] -= 1


def _available_out_of_order(state):
    queue = state.queues["q"]
    held = state.sessions[0].deliveries.popitem()[1]
    held.consumer.in_flight -= 1
    held.consumer = None
    queue.counts[UNACKNOWLEDGED] -= 1
    queue.counts[AVAILABLE] += 1
    queue.available.extend([held])


def _available_and_in_flight(state):
    queue = state.queues["q"]
    next(iter(queue.available)).consumer = state.sessions[0].consumers[1]


def _available_but_unknown(state):
    queue = state.queues["q"]
    message = queue.messages[3]
    twin = type(message)(queue, 1, 3, message.message_id, 4, True, 1)
    twin.sequence = 3
    queue.messages[3] = twin


def _message_with_another_number(state):
    state.queues["q"].messages[0].sequence = 9


def _message_of_another_queue(state):
    state.queues["q"].messages[0].queue = state.queues["r"]


def _waiting_but_not_open(state):
    queue = state.queues["r"]
    queue.consumers[(5, 2)] = state.sessions[5].consumers[1]


def _waiting_without_credit(state):
    state.sessions[5].consumers[2].credit = 0


def _message_and_waiting_consumer(state):
    consumer = state.sessions[0].consumers[2]
    consumer.credit = 1
    consumer.queue.ready[consumer.key] = consumer


def _session_of_an_unknown_connection(state):
    state.sessions[0].connection = state.sessions[5].connection


def _session_missing_from_its_connection(state):
    del state.sessions[0].connection.sessions[0]


def _too_many_replies(state):
    session = state.sessions[0]
    session.last_sequence = 300
    session.replies = {number: reply(0, number) for number in range(1, 258)}


def _reply_that_was_answered(state):
    state.sessions[0].answered_through = 1


def _reply_from_the_future(state):
    state.sessions[0].replies[99] = reply(0, 99)


def _open_puts_without_a_unit_of_work(state):
    state.sessions[0].open_puts = state.sessions[5].open_puts
    state.sessions[5].open_puts = {}


def _deadline_without_suspicion(state):
    state.sessions[0].deadline = 0


def _deliveries_out_of_order(state):
    session = state.sessions[0]
    session.deliveries = dict(reversed(session.deliveries.items()))


def _delivery_number_used_again(state):
    state.sessions[0].next_delivery = 2


def _delivery_without_consumer(state):
    message = state.sessions[0].deliveries[1]
    message.times = Times(-1, 10)
    message.times.waits_until = 10
    message.consumer = None
    message.queue.counts[UNBORN] += 1
    message.queue.counts[UNACKNOWLEDGED] -= 1


def _delivery_of_another_session(state):
    message = state.sessions[0].deliveries[1]
    message.consumer = state.sessions[5].consumers[1]


def _delivery_of_another_queue(state):
    consumer = state.sessions[5].consumers[2]
    state.sessions[5].deliveries[1].consumer = consumer


def _delivery_that_is_gone(state):
    queue = state.queues["q"]
    message = queue.messages[0]
    twin = type(message)(queue, 1, 0, message.message_id, 4, True, 1)
    twin.sequence = 0
    twin.consumer = message.consumer
    queue.messages[0] = twin


def _in_flight_count_wrong(state):
    state.sessions[0].consumers[1].in_flight = 3


def _in_flight_by_queue_wrong(state):
    state.sessions[0].in_flight.clear()


def _closed_consumer_lingers(state):
    consumer = state.sessions[0].consumers[2]
    consumer.open = False
    del consumer.queue.consumers[consumer.key]


def _open_consumer_is_no_receiver(state):
    consumer = state.sessions[0].consumers[1]
    del consumer.queue.consumers[consumer.key]


def _closed_consumer_is_a_receiver(state):
    state.sessions[0].consumers[1].open = False


def _credit_but_not_waiting(state):
    consumer = state.sessions[5].consumers[2]
    del consumer.queue.ready[consumer.key]


def _connection_under_another_identity(state):
    state.connections[identifier("S")].identity = identifier("X")


def _connection_without_session(state):
    connection = state.connections[identifier("S")]
    state.connections[identifier("X")] = type(connection)(identifier("X"), 0)


def _connection_with_a_strange_session(state):
    connection = state.connections[identifier("S")]
    connection.sessions[5] = state.sessions[0]


def _uncommitted_puts_wrong(state):
    state.queues["q"].counts[UNCOMMITTED] = 1


def _uncommitted_gets_counted_as_unacknowledged(state):
    queue = state.queues["q"]
    queue.counts[UNACKNOWLEDGED] += 1
    queue.counts[UNCOMMITTED_GET] -= 1


BROKEN = [
    (_queue_under_another_name, "stands under"),
    (_message_lost_from_the_counts, "SEQ-14"),
    (_message_removed_twice, "SEQ-14"),
    (_number_skipped, "SEQ-14"),
    (_min_wrong, "min 1 is not 0"),
    (_max_wrong, "max 2 is not 3"),
    (_current_and_pending_wrong, "current \\+ pending"),
    (_available_count_wrong, "available count"),
    (_available_out_of_order, "order of all"),
    (_available_and_in_flight, "available count"),
    (_available_but_unknown, "order of all"),
    (_message_with_another_number, "bears 9"),
    (_message_of_another_queue, "belongs to another queue"),
    (_waiting_but_not_open, "is not open"),
    (_waiting_without_credit, "has no credit"),
    (_message_and_waiting_consumer, "no delivery"),
    (_session_of_an_unknown_connection, None),
    (_session_missing_from_its_connection, None),
    (_too_many_replies, "too many replies"),
    (_reply_that_was_answered, "reply"),
    (_reply_from_the_future, "reply"),
    (_open_puts_without_a_unit_of_work, "open puts"),
    (_deadline_without_suspicion, "deadline"),
    (_deliveries_out_of_order, "deliveries out of order"),
    (_delivery_number_used_again, "next delivery"),
    (_delivery_without_consumer, "without consumer"),
    (_delivery_of_another_session, "of another session"),
    (_delivery_of_another_queue, "of another queue"),
    (_delivery_that_is_gone, "is gone"),
    (_in_flight_count_wrong, "in flight"),
    (_in_flight_by_queue_wrong, "in flight by queue"),
    (_closed_consumer_lingers, "lingers"),
    (_open_consumer_is_no_receiver, "as receiver"),
    (_closed_consumer_is_a_receiver, "as receiver"),
    (_credit_but_not_waiting, "waiting"),
    (_connection_under_another_identity, None),
    (_connection_without_session, "has no session"),
    (_connection_with_a_strange_session, "is not known"),
    (_held_by_all_wrong, "held by all"),
    (_uncommitted_puts_wrong, "uncommitted puts"),
    (_uncommitted_gets_counted_as_unacknowledged, "unacknowledged"),
]


@pytest.mark.parametrize(
    ("broken", "text"), BROKEN, ids=[one.__name__.strip("_") for one, _ in BROKEN]
)
def test_broken_state_is_found(broken, text):
    """Whatever breaks an invariant, the check names it."""
    state = sound_state()
    broken(state)
    with pytest.raises((AssertionError, KeyError), match=text):
        invariants.check(state)


def test_suspected_and_unconfirmed_sessions_may_have_deadlines():
    """A deadline alone is no fault."""
    player = play_lines("open", "B: open", "B: alive", "suspect B -> B: suspected")
    invariants.check(player.state)


def test_256_replies_are_not_too_many():
    """The window's limit itself is allowed."""
    state = sound_state()
    session = state.sessions[0]
    session.last_sequence = 256
    session.replies = {number: reply(0, number) for number in range(1, 257)}
    invariants.check(state)


def test_lingering_consumer_with_deliveries_is_sound():
    """A closed consumer stays as long as it has deliveries in flight."""
    invariants.check(play_lines(*LINES, "close-consumer 1").state)
