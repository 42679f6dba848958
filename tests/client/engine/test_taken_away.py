"""Administration takes messages away that a session holds; and calls that nobody answers."""

import threading

import pytest

import ledgermq
from ledgermq.protocol.operations import (
    Acknowledge,
    Close,
    Commit,
    Get,
    Put,
    Recover,
    Rollback,
)
from support.brokers.hand_made import delivered, got


def filled(memory, bodies="abc"):
    """A queue with messages."""
    with memory.session() as session:
        session.producer("queue:q").send_many(bodies)


def take_away(memory, sequence):
    """As an operator does."""
    memory.admin.correct("q", sequence=sequence, action="REMOVE", actor="test", reason="test")


# -- in memory ---------------------------------------------------------------------------------


def test_what_is_left_can_be_acknowledged_when_a_message_was_taken_away(in_memory):
    """The refusal is raised once; what is in flight still counts as handed over (SES-06)."""
    filled(in_memory)
    with in_memory.session(ack="CLIENT") as session:
        consumer = session.consumer("queue:q")
        messages = [consumer.receive(20) for _ in range(3)]
        take_away(in_memory, 1)
        with pytest.raises(ledgermq.DeliveryUnknownError):
            messages[0].acknowledge()
        assert session._work.settling.handed.as_list() == [
            {"first": 1, "last": 1},
            {"first": 3, "last": 3},
        ]
        messages[0].acknowledge()
        assert not session._work.settling.handed
        assert in_memory.admin.queue_status("q").message_count == 0


@pytest.mark.parametrize("transacted", [False, True])
def test_what_is_left_goes_back_when_a_message_was_taken_away(in_memory, transacted):
    """Recover and rollback count the others as backed out (SES-13)."""
    filled(in_memory)
    mode = {"transacted": True} if transacted else {"ack": "CLIENT"}
    with in_memory.session(**mode) as session:
        consumer = session.consumer("queue:q")
        for _ in range(3):
            consumer.receive(20)
        take_away(in_memory, 0)
        session.rollback() if transacted else session.recover()
        assert not session._work.settling.handed
        found = [consumer.receive(20) for _ in range(2)]
    assert [(one.body, one.delivery_count) for one in found] == [("b", 2), ("c", 2)]


def test_a_session_closes_although_a_message_was_taken_away(in_memory):
    """What it had handed over otherwise goes back as seen."""
    filled(in_memory)
    with in_memory.session(ack="CLIENT") as session:
        consumer = session.consumer("queue:q")
        for _ in range(2):
            consumer.receive(20)
        take_away(in_memory, 0)
    counts = [(one.body, one.delivery_count) for one in in_memory.browser("queue:q")]
    assert counts == [("b", 2), ("c", 1)]


def test_automatic_acknowledgements_are_made_again_for_what_is_left(in_memory):
    """AUTO: one message taken away does not bring its neighbours back (SES-05, SES-69)."""
    filled(in_memory, "abcd")
    with in_memory.session() as session:
        consumer = session.consumer("queue:q", prefetch=4)
        settling = session._work.settling
        assert [one.body for one in consumer.receive_many(1, 20)] == ["a"]
        take_away(in_memory, 1)
        assert [one.body for one in consumer.receive_many(3, 20)] == ["b", "c", "d"]
        with session._engine.lock:
            settling.write_acknowledgements_locked()
        assert in_memory.admin.queue_status("q").message_count == 3, "refused as a whole"
        consumer.receive(0)
        assert not settling.refused
        assert in_memory.admin.queue_status("q").message_count == 0


def test_a_close_makes_automatic_acknowledgements_again_for_what_is_left(in_memory):
    """AUTO: else the neighbours of what was taken away would come again, though acknowledged."""
    filled(in_memory, "abcd")
    with in_memory.session() as session:
        consumer = session.consumer("queue:q", prefetch=4)
        assert len(consumer.receive_many(4, 20)) == 4
        take_away(in_memory, 1)
        with session._engine.lock:
            session._work.settling.write_acknowledgements_locked()
        assert in_memory.admin.queue_status("q").message_count == 3, "refused as a whole"
    assert in_memory.admin.queue_status("q").message_count == 0


def test_a_close_that_cannot_make_acknowledgements_again_says_so_and_closes(route, caplog):
    """AUTO: what was acknowledged may come again then."""
    with route.connect() as connection:
        session = connection.session()
        session._work.settling.refused.add_range(1, 4)
        route.in_flight(delivered(0, session.handle, 2, 2))
        route.silent.add(Acknowledge)
        session.close(timeout=0.1)
    assert "what was acknowledged may come again" in caplog.text
    assert session._engine.ended


def test_a_commit_of_what_was_taken_away_is_rolled_back(in_memory):
    """All of it, with the reason; what is left comes again (SES-20)."""
    filled(in_memory, "ab")
    with in_memory.session(transacted=True) as session:
        consumer = session.consumer("queue:q")
        for _ in range(2):
            consumer.receive(20)
        session.producer("queue:out").send("never")
        take_away(in_memory, 0)
        with pytest.raises(ledgermq.TransactionRolledBackError, match="rolled back, because"):
            session.commit()
        assert consumer.receive(20).delivery_count == 2
        assert session.commit().consumed == 1
    assert in_memory.admin.queue_status("out").next_sequence == 0


# -- by hand -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "kind", "call"),
    [
        ("CLIENT", Acknowledge, lambda session, _: session.acknowledge(timeout=0.02)),
        ("CLIENT", Acknowledge, lambda _, found: found[0].acknowledge(timeout=0.02)),
        ("INDIVIDUAL", Acknowledge, lambda _, found: found[0].acknowledge(timeout=0.02)),
        ("CLIENT", Recover, lambda session, _: session.recover(timeout=0.02)),
        ("TRANSACTED", Rollback, lambda session, _: session.rollback(timeout=0.02)),
        ("TRANSACTED", Commit, lambda session, _: session.commit(timeout=0.02)),
        ("CLIENT", Close, lambda session, _: session.close(timeout=0.02)),
    ],
    ids=["acknowledge", "message", "individual", "recover", "rollback", "commit", "close"],
)
def test_a_call_that_nobody_answers_in_its_time_says_so(route, by_hand, mode, kind, call):
    """It waits for its own outcome, for as long as it was told to."""
    session = by_hand.session(ack=mode)
    _, found = got(route, session)
    route.silent.add(kind)
    with pytest.raises(ledgermq.OutcomeUnknownError, match=rf"{kind.__name__} \d+ .* 0.02 s"):
        call(session, found)
    (operation,) = route.written(kind)
    told = getattr(operation, "deliveries", None) or operation.seen
    last = 1 if mode == "INDIVIDUAL" else 3
    assert told == [{"first": 1, "last": last}]


def test_an_acknowledgement_that_is_not_waited_for_is_written_at_once(route, by_hand):
    """Its refusal is raised by the session's next call, once."""
    session = by_hand.session(ack="CLIENT")
    _, found = got(route, session)
    route.refusing[Acknowledge] = "delivery-unknown"
    found[0].acknowledge(wait=False)
    assert len(route.written(Acknowledge)) == 1
    del route.refusing[Acknowledge]
    with session._engine.lock:
        while session._engine._deferred is None:
            session._engine.condition.wait(0.01)
    with pytest.raises(ledgermq.DeliveryUnknownError):
        session.acknowledge()
    route.in_flight()
    session.acknowledge()
    assert len(route.written(Acknowledge)) == 1, "there is nothing left to settle"


def test_an_acknowledgement_that_somebody_waits_for_is_refused_to_him_alone(route, by_hand):
    """The session's next call does not raise it again."""
    session = by_hand.session(ack="CLIENT")
    _, found = got(route, session)
    route.refusing[Acknowledge] = "delivery-unknown"
    route.in_flight(delivered(0, session.handle, 1, 3))
    with pytest.raises(ledgermq.DeliveryUnknownError):
        found[0].acknowledge()
    assert [one.deliveries for one in route.written(Acknowledge)] == [[{"first": 1, "last": 3}]]
    session.recover()


def test_acknowledging_again_what_was_settled_is_refused_for_one_and_nothing_for_all(
    route, by_hand
):
    """INDIVIDUAL names the delivery; CLIENT has nothing to do and writes nothing."""
    one, every = by_hand.session(ack="INDIVIDUAL"), by_hand.session(ack="CLIENT")
    _, found = got(route, one)
    found[1].acknowledge()
    with pytest.raises(ledgermq.AlreadySettledError, match="delivery 2 "):
        found[1].acknowledge()
    assert one._work.settling.handed.as_list() == [{"first": 1, "last": 1}, {"first": 3, "last": 3}]
    every.acknowledge()
    assert [operation.session for operation in route.written(Acknowledge)] == [one.handle]


def test_what_administration_took_away_is_asked_for_by_session(route, by_hand):
    """The answer tells of all sessions of the connection; only its own count."""
    session, other = by_hand.session(ack="CLIENT"), by_hand.session(ack="CLIENT")
    got(route, session, 4)
    route.in_flight(
        delivered(0, session.handle, 2, 2),
        delivered(0, other.handle, 1, 1),
        delivered(0, other.handle, 4, 1),
    )
    route.refusing[Acknowledge] = "delivery-unknown"
    with pytest.raises(ledgermq.DeliveryUnknownError):
        session.acknowledge()
    assert session._work.settling.handed.as_list() == [{"first": 2, "last": 3}]
    assert [ask["kind"] for ask in route.log.asks] == ["RESYNC"]


def test_a_repair_that_nobody_answers_is_raised(route, by_hand):
    """AUTO: acknowledging again is waited for; with nothing left nothing is written."""
    session = by_hand.session()
    engine, settling = session._engine, session._work.settling
    settling.refused.add_range(1, 4)
    route.in_flight(delivered(0, session.handle, 2, 2))
    route.silent.add(Acknowledge)
    with pytest.raises(ledgermq.OutcomeUnknownError):
        engine.run(settling.repair(0.02))
    assert [one.deliveries for one in route.written(Acknowledge)] == [[{"first": 2, "last": 3}]]
    settling.refused.add_range(6, 7)
    engine.run(settling.repair(0.02))
    assert len(route.written(Acknowledge)) == 1


def test_a_repair_is_made_before_more_is_asked_for_and_its_failure_is_put_off(route, by_hand):
    """AUTO: a `receive` repairs; if that is refused again, the next call says so."""
    session = by_hand.session()
    consumer = session.consumer("queue:q")
    session._work.settling.refused.add_range(1, 1)
    route.in_flight(delivered(0, session.handle, 1, 1))
    route.refusing[Acknowledge] = "delivery-unknown"
    assert consumer.receive(0) is None
    assert [one.deliveries for one in route.written(Acknowledge)] == [[{"first": 1, "last": 1}]]
    assert len(route.written(Get)) == 1
    with pytest.raises(ledgermq.DeliveryUnknownError):
        consumer.receive(0)


def test_a_failed_listener_gives_its_message_back_as_seen(route, by_hand):
    """AUTO: what was acknowledged before is written first; a session that is gone does nothing."""
    session = by_hand.session()
    session._work.settling.unwritten.add_range(1, 1)
    session._work.settling.call_locked(2, 2)
    session._engine.run(session._work.settling.return_failed(2))
    assert [type(one) for one in route.log.operations[-2:]] == [Acknowledge, Recover]
    assert route.log.operations[-1].seen == [{"first": 2, "last": 2}]
    session._engine.run(session._work.settling.return_failed(2))
    assert len(route.written(Recover)) == 1, "it is back already"
    session._work.settling.call_locked(3, 3)
    session._engine.forget("gone")
    session._engine.run(session._work.settling.return_failed(3))
    assert len(route.written(Recover)) == 1


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
@pytest.mark.parametrize(("mode", "soon"), [("AUTO", True), ("DUPS_OK", False), ("CLIENT", False)])
def test_ses_08_only_auto_tells_the_keeper_to_acknowledge_soon(route, by_hand, mode, soon, many):
    """DUPS_OK leaves it to the keeper's round; the other modes leave it to the application."""
    session = by_hand.session(ack=mode)
    calls = []
    session._work.settling._soon = lambda: calls.append(1)
    consumer = session.consumer("queue:q")
    route.tell(delivered(0, session.handle, 1, 2))
    if many:
        found = []
        while len(found) < 2:
            found += consumer.receive_many(2, 20)
    else:
        found = [consumer.receive(20) for _ in range(2)]
    assert bool(calls) == soon
    unwritten, handed = (
        session._work.settling.unwritten.as_list(),
        session._work.settling.handed.as_list(),
    )
    told = [{"first": 1, "last": 2}]
    assert handed == (told if mode == "CLIENT" else [])
    if mode == "DUPS_OK":
        waiting = session._work.settling.ripe.as_list()
        acknowledged = [one.deliveries for one in route.written(Acknowledge)]
        assert told in (unwritten, waiting, *acknowledged)


def test_flushing_a_unit_of_work_writes_it_and_waits(route, by_hand):
    """It stands in the log uncommitted; nobody answering is told."""
    session = by_hand.session(transacted=True)
    producer = session.producer("queue:q")
    producer.send("a")
    assert route.written(Put) == []
    session.flush()
    assert [len(one.messages) for one in route.written(Put)] == [1]
    assert session._engine.protocol.pending == {}
    route.silent.add(Put)
    producer.send("b")
    with pytest.raises(ledgermq.OutcomeUnknownError, match="Put"):
        session.flush(timeout=0.02)
    assert route.written(Commit) == []


@pytest.mark.parametrize(("mode", "count"), [("AUTO", 1), ("DUPS_OK", 0)])
def test_ses_08_before_a_wait_auto_acknowledges_and_dups_ok_does_not(route, by_hand, mode, count):
    """What was handed over is acknowledged with the call that finds nothing more (SES-05)."""
    session = by_hand.session(ack=mode)
    consumer, _ = got(route, session, 3, prefetch=10)
    assert consumer.receive(0) is None
    acknowledged = [one.deliveries for one in route.written(Acknowledge)]
    assert acknowledged == [[{"first": 1, "last": 3}]] * count


def test_a_session_that_is_lost_ends_a_receive_that_waits(route, by_hand):
    """It says so, instead of waiting for what cannot come (SES-69)."""
    session = by_hand.session(ack="CLIENT")
    core, consumer = session._engine, session.consumer("queue:q")
    found = []

    def receive():
        try:
            consumer.receive(20)
        except ledgermq.SessionLostError as error:
            found.append(str(error))

    waiting = threading.Thread(target=receive)
    waiting.start()
    with core.lock:
        while core._user is None or core.protocol.pending:
            core.condition.wait(0.01)
    core.forget("gone")
    waiting.join(30)
    assert found == ["gone; open another session and go on from there"]
