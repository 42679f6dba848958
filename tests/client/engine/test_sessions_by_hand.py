"""Sessions over a route by hand: what is refused, what a failed commit leaves, how they close.

And how acknowledgements of AUTO gather.
"""

import threading
import time

import pytest

import ledgermq
from ledgermq.client.engine import settling
from ledgermq.protocol.operations import (
    Acknowledge,
    Close,
    CloseConsumer,
    Commit,
    CreateTemporary,
    DeleteQueue,
    DeleteTopic,
    Get,
    OpenConsumer,
    Put,
    Recover,
    Rollback,
    Unsubscribe,
)
from ledgermq.protocol.outcomes import Committed, Enqueued
from support.brokers.hand_made import delivered, ended, got, refused


def lose(route, session):
    """Lets the queue manager end a session."""
    route.tell(ended(0, session.handle))
    with session._engine.lock:
        while session._engine.lost is None:
            assert session._engine.condition.wait(20)


def answering(route, **outcomes):
    """Answers operations of some kinds by other outcomes than Accepted."""
    answer = route.log.on_write

    def write(operation):
        make = outcomes.get(type(operation).__name__)
        if make is None or type(operation) in route.refusing or type(operation) in route.silent:
            answer(operation)
        else:
            same = {
                "session": operation.session,
                "session_sequence": operation.session_sequence,
                "position": len(route.log.operations) - 1,
                "index": 0,
            }
            route.tell(make(operation, same))

    route.log.on_write = write


def committed(operation, same):
    """A commit that worked."""
    consumed = sum(one["last"] - one["first"] + 1 for one in operation.deliveries)
    run = {"destination": "queue:q", "first_sequence": 0, "count": operation.puts}
    return Committed(enqueued=[run] if operation.puts else [], consumed=consumed, **same)


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "call", "told"),
    [
        ("CLIENT", lambda one: one.commit(), "^commit needs a transacted .* this one is CLIENT"),
        ("AUTO", lambda one: one.commit_async(), "^commit needs a transacted .* one is AUTO"),
        ("AUTO", lambda one: one.rollback(), "^rollback needs a transacted session"),
        ("AUTO", lambda one: one.transaction().__enter__(), "^transaction needs a transacted"),
        ("TRANSACTED", lambda one: one.recover(), "^recover is not for a transacted session"),
        ("TRANSACTED", lambda one: one.requestor("queue:q"), "a request in a transacted session"),
        ("AUTO", lambda one: one.delete_temporary("queue:q"), "'queue:q' is no temporary destin"),
    ],
)
def test_a_call_that_does_not_fit_the_session_is_refused_by_name(by_hand, mode, call, told):
    """With the mode that there is; nothing is written (SES-17, SES-31)."""
    session = by_hand.session(ack=mode)
    before = len(by_hand._running.transport.operations)
    with pytest.raises(ledgermq.IllegalStateError, match=told):
        call(session)
    assert len(by_hand._running.transport.operations) == before


@pytest.mark.parametrize("what", ["commit", "rollback", "close"])
def test_a_callback_cannot_wait_for_its_own_thread(route, by_hand, what):
    """SES-19, SES-24: it is told so, and the session goes on."""
    answering(route, Commit=committed)
    session = by_hand.session(transacted=True)
    found, called = [], threading.Event()

    def callback(_):
        try:
            getattr(session, what)()
        except ledgermq.IllegalStateError as error:
            found.append(str(error))
        called.set()

    route.silent.add(Commit)
    future = session.commit_async()
    future.add_done_callback(callback)
    route.tell(committed(route.written(Commit)[0], _place(route, session)))
    assert called.wait(20)
    assert found[0].startswith(f"{what} cannot be called by a completion callback")
    assert not session.is_closed


def _place(route, session):
    (operation,) = route.written(Commit)
    return {
        "session": session.handle,
        "session_sequence": operation.session_sequence,
        "position": len(route.log.operations) - 1,
        "index": 0,
    }


def test_a_unit_of_work_that_is_open_is_not_taken_over_by_a_block(route, by_hand):
    """Whether something was sent or something was got."""
    answering(route, Commit=committed)
    session = by_hand.session(transacted=True)
    session.producer("queue:q").send("x")
    with pytest.raises(ledgermq.IllegalStateError, match="open already"):
        session.transaction().__enter__()
    session.commit()
    got(route, session, 1)
    with pytest.raises(ledgermq.IllegalStateError, match="open already"):
        session.transaction().__enter__()
    assert session.commit().consumed == 1
    with session.transaction() as inside:
        assert inside is session
    assert len(route.written(Commit)) == 3


def test_blocks_of_units_of_work_do_not_nest(route, by_hand):
    """The inner one would commit what the outer one rolls back; after both another begins."""
    answering(route, Commit=committed)
    session = by_hand.session(transacted=True)
    producer = session.producer("queue:q")
    with pytest.raises(ledgermq.IllegalStateError, match="do not nest"), session.transaction():
        session.transaction().__enter__()
    nested = pytest.raises(ledgermq.IllegalStateError, match="do not nest")
    with nested, session.transaction():
        producer.send("x")
        session.transaction().__enter__()
    assert not route.written(Commit)
    with session.transaction():
        producer.send("y")
    assert len(route.written(Commit)) == 1


def test_a_block_of_units_of_work_that_is_kept_begins_anew_each_time(route, by_hand):
    """Each entry is another unit of work; entered within itself it is refused as any other."""
    answering(route, Commit=committed)
    session = by_hand.session(transacted=True)
    producer, block = session.producer("queue:q"), session.transaction()
    for body in ("x", "y"):
        with block as inside:
            assert inside is session
            producer.send(body)
            with pytest.raises(ledgermq.IllegalStateError, match="do not nest"):
                block.__enter__()
    assert len(route.written(Commit)) == 2


# -- commits -----------------------------------------------------------------------------------


def test_after_a_failed_asynchronous_commit_nothing_goes_on_before_a_rollback(route, by_hand):
    """The first failure is told; the rollback returns what the commit was to consume (SES-13)."""
    answering(route, Commit=committed)
    session = by_hand.session(transacted=True)
    consumer, _ = got(route, session)
    route.refusing[Commit] = "commit-incomplete"
    error = session.commit_async().exception(20)
    assert error.code == "commit-incomplete"
    with pytest.raises(
        ledgermq.TransactionError, match=r"failed \(refused.*roll back first"
    ) as one:
        session.commit()
    assert one.value.__cause__ is error
    with pytest.raises(ledgermq.IllegalStateError, match=r"an earlier commit .* roll back"):
        consumer.receive(0)
    session.rollback()
    assert [one.seen for one in route.written(Rollback)] == [[{"first": 1, "last": 3}]]
    assert not session._work.settling.handed
    route.refusing.clear()
    session.commit()
    assert consumer.receive(0) is None


def test_a_refused_commit_is_rolled_back_and_raises_why(route, by_hand):
    """SES-20: the exception is one of its own, with the refusal as its cause."""
    session = by_hand.session(transacted=True)
    got(route, session)
    route.refusing[Commit] = "commit-incomplete"
    with pytest.raises(ledgermq.TransactionRolledBackError, match="commit-incomplete") as caught:
        session.commit()
    assert caught.value.__cause__.code == "commit-incomplete"
    assert [one.seen for one in route.written(Rollback)] == [[{"first": 1, "last": 3}]]
    assert session._work.commits.broken is None


def test_a_rollback_waits_for_the_commits_before_it(route, by_hand):
    """As long as it was told to; what they consume is then no longer in hand."""
    session = by_hand.session(transacted=True)
    got(route, session)
    route.silent.add(Commit)
    future = session.commit_async()
    with pytest.raises(ledgermq.TransactionInDoubtError, match=r"Commit .* within 0.02 s"):
        session.rollback(timeout=0.02)
    assert route.written(Rollback) == []
    route.tell(committed(route.written(Commit)[0], _place(route, session)))
    assert future.result(20).consumed == 3
    session.rollback()
    assert [one.seen for one in route.written(Rollback)] == [[]]


@pytest.mark.parametrize("is_under_way", [True, False])
def test_what_waits_in_a_session_that_another_thread_closes_ends_with_it(
    route, by_hand, is_under_way
):
    """SES-25: an operation written behind the Close, or to be written later, gets no answer."""
    session = by_hand.session(transacted=True)
    got(route, session)
    route.silent |= {Commit, Rollback, Close}
    session.commit_async()
    place = _place(route, session)
    errors = []

    def roll_back():
        with pytest.raises(ledgermq.LedgerMQError) as caught:
            session.rollback(timeout=20)
        errors.append(caught.value)

    waiting, closing = threading.Thread(target=roll_back), threading.Thread(target=session.close)
    waiting.start()
    wait_until(session, lambda: session._engine._user is not None)
    closing.start()
    wait_until(session, lambda: route.written(Close))
    route.tell(committed(route.written(Commit)[0], place))
    if is_under_way:
        wait_until(session, lambda: route.written(Rollback) or errors)
    route.tell(ended(0, place["session"], route.written(Close)[0].session_sequence))
    closing.join(20)
    waiting.join(5)
    assert [type(one) for one in errors] == [ledgermq.IllegalStateError]
    assert "closed" in str(errors[0])


def wait_until(session, holds):
    """Waits for what the threads of a session do."""
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit, session
        time.sleep(0.005)


def test_a_commit_of_a_lost_session_says_what_became_of_it(route, by_hand):
    """SES-20: nothing is rolled back by hand, the session's end did that."""
    session = by_hand.session(transacted=True)
    route.silent.add(Commit)
    future = session.commit_async()
    lose(route, session)
    assert isinstance(future.exception(20), ledgermq.TransactionRolledBackError)
    with pytest.raises(ledgermq.TransactionRolledBackError):
        session.commit()
    assert route.written(Rollback) == []
    assert session.is_closed


# -- flushing and closing ----------------------------------------------------------------------


def enqueued(operation, same):
    """A put that worked."""
    return Enqueued(first_sequence=7, count=len(operation.messages), **same)


def test_a_flush_waits_for_everything_that_was_sent(route, by_hand):
    """Also for what was still gathering; it takes no longer than it was told to."""
    answering(route, Put=enqueued)
    session = by_hand.session()
    producer = session.producer("queue:q")
    futures = [producer.send_async("x") for _ in range(5)]
    session.flush()
    assert [future.result(0).sequence for future in futures[:2]] == [7, 7]
    assert session._engine.protocol.pending == {}
    route.silent.add(Put)
    producer.send_async("x")
    with pytest.raises(ledgermq.OutcomeUnknownError, match=r"Put .* within 0.02 s"):
        session.flush(timeout=0.02)
    with pytest.raises(ledgermq.OutcomeUnknownError, match=r"within 0.02 s; their futures go on"):
        producer.flush(timeout=0.02)


@pytest.mark.parametrize("flushing", ["session", "producer"])
def test_a_flush_tells_that_the_session_was_lost_with_what_was_sent(route, by_hand, flushing):
    """Whoever looks at no future would take it for sent."""
    route.silent.add(Put)
    session = by_hand.session()
    producer = session.producer("queue:q")
    future = producer.send_async("x")
    loss = ended(9, session._engine.handle, 0, reason="LOST")
    threading.Timer(0.1, route.tell, [loss]).start()
    with pytest.raises(ledgermq.SessionLostError, match="Put 2 was not applied"):
        (session if flushing == "session" else producer).flush(timeout=20)
    assert isinstance(future.exception(0), ledgermq.SessionLostError)


def test_closing_writes_what_gathered_and_what_was_to_be_acknowledged(route, by_hand):
    """Then Close, which names what was handed over and not settled; once (SES-25)."""
    route.silent.add(Put)
    session = by_hand.session()
    producer = session.producer("queue:q")
    for _ in range(4):
        producer.send_async("x")
    got(route, session, 2)
    session._work.settling.unwritten.add_range(9, 9)
    session.close()
    session.close()
    kinds = [type(one) for one in route.log.operations[-4:]]
    assert [kind for kind in kinds if kind in (Put, Acknowledge, Close)][-2:] == [
        Acknowledge,
        Close,
    ]
    assert [len(one.messages) for one in route.written(Put)] == [1, 1, 2]
    assert [one.seen for one in route.written(Close)] == [[]]
    assert repr(session) == f"Session(QM1@{session._engine.handle}, AUTO, closed)"
    assert session._work not in by_hand._running.works


def test_closing_a_lost_session_writes_nothing_and_is_silent(route, by_hand, caplog):
    """AUTO with an acknowledgement under way says that it may not have counted (SES-69)."""
    quiet, doubtful = by_hand.session(ack="CLIENT"), by_hand.session()
    route.silent.add(Acknowledge)
    doubtful._work.settling.unwritten.add_range(1, 1)
    with doubtful._engine.lock:
        doubtful._work.settling.write_acknowledgements_locked()
    for session in (quiet, doubtful):
        lose(route, session)
    caplog.clear()
    quiet.close()
    with pytest.raises(ledgermq.SessionLostError, match="Acknowledge"):
        doubtful.close()
    doubtful.close()
    assert route.written(Close) == []
    assert not by_hand._running.works
    assert not caplog.records


def test_a_session_that_is_lost_by_its_close_closes_without_a_word(route, by_hand):
    """Gone is gone."""
    session = by_hand.session(ack="CLIENT")
    route.refusing[Close] = "session-unknown"
    session.close()
    assert session.is_closed
    assert session._engine.handle not in by_hand._running.router.sessions


def test_refused_acknowledgements_are_told_when_a_session_closes(route, by_hand, caplog):
    """AUTO: what they were for comes again."""
    session = by_hand.session()
    session._work.settling.refused.add_range(3, 3)
    session.close()
    assert "acknowledgements were refused: DeliveryRanges(3..3)" in caplog.text


def test_an_error_in_a_sessions_block_is_not_hidden_by_one_of_its_close(route, by_hand, caplog):
    """The latter is logged; without the former it is raised."""
    route.silent.add(Close)

    def fails(error):
        with by_hand.session() as session:
            session._engine.timeout_seconds = 0.02
            if error is not None:
                raise error

    with pytest.raises(KeyError):
        fails(KeyError("the block's own"))
    assert "closing a session after an exception did not work" in caplog.text
    with pytest.raises(ledgermq.OutcomeUnknownError, match="Close"):
        fails(None)


# -- what a session makes ----------------------------------------------------------------------


def test_temporary_destinations_are_made_and_deleted_by_operations(route, by_hand):
    """With all that they hold; a refusal names them (SES-39)."""
    session = by_hand.session()
    made = [session.temporary_queue(), session.temporary_topic()]
    assert [one.destination for one in route.written(CreateTemporary)] == made
    for destination in made:
        session.delete_temporary(destination)
    (queue,), (topic,) = route.written(DeleteQueue), route.written(DeleteTopic)
    assert (f"queue:{queue.queue}", queue.purge) == (made[0], True)
    assert (f"topic:{topic.topic}", topic.purge) == (made[1], True)
    route.refusing[DeleteQueue] = "destination-in-use"
    with pytest.raises(ledgermq.RefusedError, match="destination-in-use") as caught:
        session.delete_temporary(made[0])
    assert caught.value.destination == made[0]
    session.unsubscribe("s")
    assert [one.subscription for one in route.written(Unsubscribe)] == ["s"]


def test_a_consumer_says_what_it_is_for(route, by_hand):
    """All that it was told, to the queue manager and to whoever asks."""
    session = by_hand.session()
    told = {"selector": "a = 1", "no_local": True, "durable": True, "shared": True}
    consumer = session.consumer("topic:t", subscription="s", prefetch=3, **told)
    (operation,) = route.written(OpenConsumer)
    assert {name: getattr(operation, name) for name in told} == told
    assert (operation.subscription, operation.destination) == ("s", "topic:t")
    assert (consumer.subscription, consumer.selector, consumer.prefetch) == ("s", "a = 1", 3)
    assert session.consumer("queue:q").subscription is None
    assert session.ack_mode is ledgermq.AckMode.AUTO


def test_with_prefetch_0_a_receive_that_ran_out_of_time_takes_back_what_it_asked_for(
    route, by_hand
):
    """And asks anew the next time; a message that crossed that is handed over."""
    session = by_hand.session(ack="CLIENT")
    consumer = session.consumer("queue:q", prefetch=0)
    assert consumer.receive(0) is None
    assert [one.credit for one in route.written(Get)] == [1, 0]
    answer = route.log.on_write

    def cross(operation):
        if isinstance(operation, Get) and not operation.credit:
            route.tell(delivered(0, session.handle, 1, 1))
        answer(operation)

    route.log.on_write = cross
    assert consumer.receive(0).delivery == 1
    assert [one.credit for one in route.written(Get)] == [1, 0, 1, 0]
    route.log.on_write = answer
    assert consumer.receive_many(5, 0) == []
    assert [one.credit for one in route.written(Get)] == [1, 0, 1, 0, 1, 0]


def test_receiving_many_takes_what_is_here_and_no_more_than_asked_for(route, by_hand):
    """Numbered one after the other, from several deliveries."""
    session = by_hand.session(ack="INDIVIDUAL")
    consumer = session.consumer("queue:q", prefetch=10)
    for first in (1, 3, 6):
        route.tell(delivered(0, session.handle, first, 2))
    with session._engine.lock:
        while consumer._shared.buffer.count < 6:
            assert session._engine.condition.wait(20)
    found = [[one.delivery for one in consumer.receive_many(3, 20)] for _ in range(2)]
    assert found == [[1, 2, 3], [4, 6, 7]]
    assert session._work.settling.handed.as_list() == [
        {"first": 1, "last": 4},
        {"first": 6, "last": 7},
    ]
    with pytest.raises(ledgermq.IllegalStateError, match="max is 0, must be at least 1"):
        consumer.receive_many(0)
    consumer.close(timeout=20)
    assert [one.unseen for one in route.written(CloseConsumer)] == [[]]
    assert route.written(Recover) == []


# -- acknowledgements that gather ----------------------------------------------------------------


def acknowledged(route):
    """How many messages each Acknowledge settles."""
    return [
        sum(one["last"] - one["first"] + 1 for one in operation.deliveries)
        for operation in route.written(Acknowledge)
    ]


def test_ses_05_auto_acknowledges_what_trickles_in_as_one(route, by_hand, monkeypatch):
    """While `receive` waits, an acknowledgement waits a moment for the message after it."""
    monkeypatch.setattr(settling, "GATHER_SECONDS", 60.0)
    session = by_hand.session()
    session._work.settling._soon = lambda: None
    consumer = session.consumer("queue:q")
    for number in range(1, 6):
        later = threading.Timer(0.02, route.tell, [delivered(0, session.handle, number, 1)])
        later.start()
        assert consumer.receive(100) is not None
        later.join()
    assert acknowledged(route) == []
    session.close()
    assert acknowledged(route) == [5]


@pytest.mark.parametrize("timeout", [0, 0.02])
def test_auto_acknowledges_at_once_where_the_wait_is_too_short_to_gather(
    route, by_hand, monkeypatch, timeout
):
    """What a short `receive` came back without is acknowledged when it returns."""
    monkeypatch.setattr(settling, "GATHER_SECONDS", 60.0)
    session = by_hand.session()
    session._work.settling._soon = lambda: None
    consumer, _ = got(route, session, 1)
    assert consumer.receive(timeout) is None
    assert acknowledged(route) == [1]


def test_a_queue_whose_next_message_waits_for_the_acknowledgement_is_not_held_up(
    route, by_hand, monkeypatch
):
    """Such windows gather nothing, so fewer and fewer waits try one; 200 messages have few."""
    windows = []
    gather = settling.Settling.gather_locked

    def counting(self, deadline):
        until = gather(self, deadline)
        if until is not None and until not in windows:
            windows.append(until)
        return until

    monkeypatch.setattr(settling.Settling, "gather_locked", counting)
    session = by_hand.session()
    session._work.settling._soon = lambda: None
    answer = route.log.on_write

    def write(operation):
        answer(operation)
        if type(operation) is Acknowledge:
            last = operation.deliveries[-1]["last"]
            route.tell(delivered(0, session.handle, last + 1, 1))

    route.log.on_write = write
    consumer, _ = got(route, session, 1)
    for _ in range(200):
        assert consumer.receive(20) is not None
    assert acknowledged(route) == [1] * 200
    assert 2 <= len(windows) <= 8


def test_a_queue_that_gathers_again_has_windows_again(route, by_hand, monkeypatch):
    """One window with two messages ends what windows without a second one began."""
    moments = iter(range(1, 1000))
    monkeypatch.setattr(settling.time, "monotonic", lambda: next(moments))
    session = by_hand.session()
    one = session._work.settling
    one._soon = lambda: None
    for first in (1, 2):
        one.hand_over_run_locked(first, first)
        with session._engine.lock:
            assert one.gather_locked(None) is None, "the clock leaps over every window"
    assert (one._ungathered_waits, one._ungathered_waits_left) == (1, 0)
    one.hand_over_run_locked(3, 4)
    with session._engine.lock:
        assert one.gather_locked(None) is None
    assert (one._ungathered_waits, one._ungathered_waits_left) == (0, 0)
    assert acknowledged(route) == [1, 1, 2]


def test_a_listener_s_acknowledgements_gather_too(route, by_hand, monkeypatch, eventually):
    """A listener that is called for one message after the other acknowledges them as one."""
    monkeypatch.setattr(settling, "GATHER_SECONDS", 60.0)
    session = by_hand.session()
    session._work.settling._soon = lambda: None
    called = []
    consumer = session.consumer("queue:q")
    consumer.set_message_listener(called.append)
    for number in range(1, 4):
        route.tell(delivered(0, session.handle, number, 1))
        eventually(lambda number=number: len(called) == number)
    assert acknowledged(route) == []
    session.close()
    assert acknowledged(route) == [3]


def test_an_operation_that_an_older_worker_does_not_read_floods_nothing(route, by_hand):
    """It is written a few times, then as seldom as heartbeats do; the error says what it may be."""
    route.silent.add(Put)
    session = by_hand.session()
    for queue in ("queue:q", "queue:r"):
        session.producer(queue).send_async("x")
        with pytest.raises(ledgermq.OutcomeUnknownError):
            session.flush(timeout=0.1)
    unread, behind = (one.session_sequence for one in route.written(Put))
    for _ in range(100):
        gap = refused(0, session.handle, behind, "session-sequence-gap", expected=unread)
        route.tell(gap)
    with pytest.raises(ledgermq.OutcomeUnknownError, match="does not read operation"):
        session.flush(timeout=2)
    assert len(route.written(Put)) <= 30, "two puts, ten times each and a few by heartbeats"
