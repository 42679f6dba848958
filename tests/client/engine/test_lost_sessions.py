"""Tests of sessions that are suspected, ended or interfered with by administration."""

import threading

import pytest

import ledgermq
from ledgermq.protocol.operations import Alive, Commit
from ledgermq.protocol.outcomes import SessionEnded, Suspected
from support.brokers.plain_worker import Written
from support.brokers.tampering import Losing, sent

pytestmark = pytest.mark.usefixtures("impatient")


def test_a_suspected_session_shows_that_it_lives(breakable, eventually):
    """Suspected is answered by Alive at once, for every session of the connection."""
    with breakable.connect() as connection, connection.session() as session:
        handles = {session.handle, connection._running.control.handle}
        eventually(lambda: {one for one, _ in sent(breakable.worker, Alive)} == handles)
        breakable.worker.suspect(*handles)
        eventually(lambda: {one for one, at in sent(breakable.worker, Alive) if at > 1} == handles)
        eventually(lambda: not any(one.suspected for one in connection.admin.sessions()))


def test_a_suspicion_that_was_lost_in_a_hole_is_answered_too(breakable, eventually):
    """After catching up, every session shows itself: what was missed may have been a Suspected."""
    with breakable.connect() as connection, connection.session() as session:
        eventually(lambda: len(sent(breakable.worker, Alive)) >= 2)
        breakable.worker.answers = lambda ask: ask["kind"] != "RESYNC"
        breakable.worker.tamper = losing = Losing(Suspected)
        breakable.worker.suspect(session.handle)
        eventually(lambda: losing.lost == 1)
        assert [one.suspected for one in connection.admin.sessions()] == [False, True]
        breakable.worker.answers = lambda _: True
        with connection.session():  # any further outcome shows the hole
            eventually(lambda: not any(one.suspected for one in connection.admin.sessions()))


def lose_session(breakable, core, eventually):
    """Lets the queue manager end a session whose client seems dead."""
    # The Alive that confirms a new session would clear the suspicion if it came after it.
    eventually(lambda: core.handle in {session for session, _ in sent(breakable.worker, Alive)})
    core._show_life_locked = lambda: None
    breakable.worker.suspect(core.handle)
    with breakable.connect() as other:
        eventually(
            lambda: (
                other.admin.alter_queue_manager() > 0
                and core.handle not in [one.session for one in other.admin.sessions()]
            )
        )


def test_a_commit_of_a_session_that_was_ended_is_rolled_back(breakable, eventually):
    """The error says so, what it held is with others again, and a new session goes on (SES-20)."""
    with breakable.connect(suspect_timeout_seconds=1.0) as connection:
        with connection.session() as other:
            other.producer("queue:in").send("a")
        session = connection.session(transacted=True)
        consumer = session.consumer("queue:in")
        assert consumer.receive(20).body == "a"
        session.producer("queue:out").send("never")
        session.flush()  # a put that comes after the suspicion would be a sign of life
        lose_session(breakable, session._engine, eventually)
        with pytest.raises(ledgermq.TransactionRolledBackError, match="another session"):
            session.commit()
        with pytest.raises(ledgermq.SessionLostError, match="another session"):
            consumer.receive(1)
        session.close()
        with connection.session() as after:
            message = after.consumer("queue:in").receive(20)
            assert (message.body, message.delivery_count) == ("a", 2)
            assert list(after.browser("queue:in")) == []


def test_a_commit_under_way_when_its_session_ends_is_rolled_back(breakable, eventually):
    """SessionEnded stands before the commit on the log: the commit was not applied (SES-20)."""
    with breakable.connect(suspect_timeout_seconds=1.0) as connection:
        session = connection.session(transacted=True)
        session.producer("queue:out").send("never")
        session.flush()  # a put that comes after the suspicion would be a sign of life
        held: list[Written] = []
        mine = connection._running.settings.identity

        def hold(written: Written) -> list[Written]:
            if written.connection == mine:
                held.append(written)
                return []
            return [written]

        breakable.worker.answers = lambda ask: ask["connection"] != mine
        breakable.worker.tamper = hold
        lose_session(breakable, session._engine, eventually)
        commit = session.commit_async()
        eventually(lambda: (session.handle, 3) in sent(breakable.worker, Commit))
        breakable.worker.tamper = lambda written: [written]
        for written in held:
            breakable.worker.write(written)
        breakable.worker.answers = lambda ask: True
        error = commit.exception(20)
        assert isinstance(error, ledgermq.TransactionRolledBackError)
        assert error.retryable
        session.close()


def test_a_lost_end_of_a_session_is_found_out(breakable, eventually):
    """SessionEnded got lost: after catching up, the session is known to be gone, the fate not."""
    with breakable.connect(suspect_timeout_seconds=1.0) as connection:
        session = connection.session(ack="CLIENT")
        breakable.worker.tamper = Losing(SessionEnded)
        lose_session(breakable, session._engine, eventually)
        with connection.session():
            eventually(lambda: session.is_closed)
            with pytest.raises(ledgermq.SessionLostError):
                session.producer("queue:q")
        session.close()


def test_administration_goes_on_when_its_own_session_was_lost(breakable, eventually):
    """The connection opens another one, also when the queue manager has forgotten it whole."""
    with breakable.connect(suspect_timeout_seconds=1.0) as connection:
        control = connection._running.control
        lose_session(breakable, control, eventually)
        eventually(lambda: control.lost is not None)
        connection.admin.create_queue("orders")
        with connection.session() as session:
            assert session.producer("queue:orders").send("x").sequence == 0


def test_a_message_taken_away_by_administration_does_not_block_the_others(breakable):
    """Its acknowledgement is refused; what else was handed over can be acknowledged."""
    with breakable.connect() as connection, connection.session(ack="CLIENT") as session:
        session.producer("queue:q").send_many(["a", "b", "c"])
        consumer = session.consumer("queue:q")
        messages = [consumer.receive(20) for _ in range(3)]
        connection.admin.correct("q", sequence=1, action="REMOVE", actor="test", reason="test")
        with pytest.raises(ledgermq.DeliveryUnknownError):
            messages[0].acknowledge()
        messages[0].acknowledge()
        assert connection.admin.queue_status("q").message_count == 0


def test_a_rollback_works_although_administration_took_a_message_away(breakable):
    """The other messages go back and count as backed out."""
    with breakable.connect() as connection, connection.session(transacted=True) as session:
        session.producer("queue:q").send("a")
        session.producer("queue:q").send("b")
        session.commit()
        consumer = session.consumer("queue:q")
        assert [consumer.receive(20).body for _ in range(2)] == ["a", "b"]
        connection.admin.correct("q", sequence=0, action="REMOVE", actor="test", reason="test")
        with pytest.raises(ledgermq.TransactionRolledBackError):
            session.commit()
        message = consumer.receive(20)
        assert (message.body, message.delivery_count) == ("b", 2)


def test_automatic_acknowledgement_survives_administration(breakable):
    """An acknowledgement refused for one message is made again for the others."""
    with breakable.connect() as connection, connection.session() as session:
        session.producer("queue:q").send_many(["a", "b", "c"])
        consumer = session.consumer("queue:q", prefetch=3)
        taken = [consumer.receive(20)]
        connection.admin.correct("q", sequence=2, action="REMOVE", actor="test", reason="test")
        taken += [consumer.receive(20) for _ in range(2)]
        assert [one.body for one in taken] == ["a", "b", "c"]
        assert consumer.receive(0.5) is None
        assert consumer.receive(0.5) is None
    assert breakable.worker.state.queues["q"].messages == {}


def test_closing_gives_up_after_its_time_out_and_says_so(breakable):
    """With no worker to answer, close does not hang and does not pretend."""
    connection = breakable.connect()
    session = connection.session()
    consumer = session.consumer("queue:q")
    waiting = threading.Thread(target=consumer.receive)
    waiting.start()
    breakable.worker.pause()
    with pytest.raises(ledgermq.OutcomeUnknownError):
        connection.close(timeout=1.0)
    waiting.join(20)
    assert not waiting.is_alive()
    breakable.worker.resume()
