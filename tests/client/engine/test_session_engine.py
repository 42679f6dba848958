"""The engine of a session by hand: what it writes again, how it ends, and what then fails."""

import threading

import pytest

import ledgermq
from ledgermq.protocol.operations import Acknowledge, Alive, Close, CloseConsumer, Commit, Get
from ledgermq.protocol.outcomes import Suspected
from support.brokers.hand_made import IDENTITY, accepted, delivered, ended, refused


def commit(desk, core):
    """Writes a commit of nothing."""
    return desk.write(core, Commit, deliveries=[], puts=0)


def kinds_of(desk):
    """How the operations of a session ended."""
    return [type(one.error or one.reply).__name__ for one in desk.settled]


# -- writing -----------------------------------------------------------------------------------


def test_every_operation_names_its_session_and_its_number_in_its_headers(desk):
    """So that a refusal finds its way although the value cannot be read (H29)."""
    core = desk.session(5)
    desk.write(core, Alive)
    desk.write(core, Alive)
    first, second = desk.log.headers
    assert (first["ce_id"], second["ce_id"]) == (b"5:1", b"5:2")
    assert first["ce_type"] == b"ledgermq.operation.Alive"
    assert first["ledgermq-connection"] == IDENTITY.hex().encode()
    assert (first["ledgermq-lane"], first["ledgermq-session"]) == (b"2", b"5")
    assert first["ce_source"] == f"/ledgermq/QM1/{IDENTITY.hex()}".encode()


def test_what_was_held_back_is_written_before_the_next_operation(desk):
    """In the order of numbers, or the fold would see a gap."""
    core = desk.session(5)
    desk.write(core, Alive, with_next=True)
    desk.write(core, Alive, with_next=True)
    assert desk.log.operations == []
    commit(desk, core)
    assert [one.session_sequence for one in desk.log.operations] == [1, 2, 3]


def test_what_was_held_back_is_written_before_a_wait(desk):
    """Somebody is going to wait for it; after the deadline nothing is waited for."""
    core = desk.session(5)
    one = desk.write(core, Alive, with_next=True)
    with core.lock, pytest.raises(ledgermq.OutcomeUnknownError):
        core.run_locked(core.reply(one, -1))
    assert desk.log.operations == []
    with core.lock, pytest.raises(ledgermq.OutcomeUnknownError, match=r"within 0.02 s"):
        core.run_locked(core.reply(one, 0.02))
    assert desk.log.numbers(Alive) == [1]


def test_a_gap_is_closed_from_the_number_that_the_queue_manager_expects(desk):
    """H7: everything from there on is written again, nothing before it."""
    core = desk.session(5)
    for _ in range(4):
        desk.write(core, Alive)
    core.take(refused(7, 5, 3, "session-sequence-gap", expected=2))
    assert desk.log.numbers(Alive) == [1, 2, 3, 4, 2, 3, 4]
    core.take(refused(8, 5, 4, "session-sequence-gap", expected=2))
    assert len(desk.log.operations) == 7
    assert desk.settled == []


@pytest.mark.parametrize(
    ("reason", "settles"),
    [("session-window-full", False), ("reply-forgotten", True), ("queue-unknown", True)],
)
def test_a_refusal_settles_unless_the_operation_is_to_be_written_again(desk, reason, settles):
    """A full window makes room by itself; every other refusal is the outcome."""
    core = desk.session(5)
    desk.write(core, Alive)
    core.take(refused(7, 5, 1, reason))
    assert [one.reply.reason for one in desk.settled] == [reason] * settles
    assert bool(core.protocol.pending) != settles
    assert not core.ended


def test_a_late_repeat_of_what_was_answered_long_ago_is_nobodys(desk):
    """The queue manager forgot the reply, the client has had it."""
    core = desk.session(5)
    desk.write(core, Alive)
    core.take(accepted(6, 5, 1))
    core.take(refused(7, 5, 1, "reply-forgotten"))
    assert kinds_of(desk) == ["Accepted"]
    assert not core.ended


def test_what_is_overdue_is_written_again_whole_and_in_order(desk):
    """The oldest decides; it waits longer each time, so that a worker that starts can breathe."""
    core = desk.session(5)
    assert not core.repeat_overdue(100.0, 0.0)
    assert core.oldest_wait_seconds(100.0) == 0.0
    oldest, younger = desk.write(core, Alive), desk.write(core, Alive)
    oldest.sent_at, younger.sent_at = 100.0, 50.0
    assert core.oldest_wait_seconds(102.0) == 2.0
    assert not core.repeat_overdue(102.9, 3.0)
    assert core.repeat_overdue(103.0, 3.0)
    assert desk.log.numbers(Alive) == [1, 2, 1, 2]
    oldest.sent_at = 103.0
    assert not core.repeat_overdue(108.9, 3.0)
    assert core.repeat_overdue(109.0, 3.0)
    core.forget("gone")
    assert core.oldest_wait_seconds(1000.0) == 0.0
    assert not core.repeat_overdue(1000.0, 0.0)


def test_a_session_is_full_by_bytes_too(desk):
    """Large operations that are unanswered count by their size; answers make room again."""
    core = desk.session(5)
    one = desk.write(core, Alive)
    assert core.protocol.pending_bytes == len(one.value)
    two = desk.write(core, Alive)
    assert core.protocol.pending_bytes == len(one.value) + len(two.value)
    core.take(accepted(6, 5, 1))
    assert core.protocol.pending_bytes == len(two.value)
    core.protocol.pending_bytes = 32 * 1024 * 1024
    assert core.protocol.full
    core.protocol.pending_bytes -= 1
    assert not core.protocol.full


def test_a_full_session_says_what_it_has_been_waiting_for(desk):
    """After the time-out: the oldest operation, whose outcome can be asked for later."""
    core = desk.session(5)
    oldest = desk.write(core, Alive)
    oldest.result = lambda reply: ("made of", reply.position)
    for _ in range(199):
        desk.write(core, Alive)
    with core.lock, pytest.raises(ledgermq.OutcomeUnknownError, match=r"Alive 1 .* 0.02 s") as one:
        core.run_locked(core.room(0.02))
    core.take(accepted(6, 5, 1))
    with core.lock:
        core.run_locked(core.room(-1))
    assert one.value.resolve(0) == ("made of", 6)


def test_a_session_that_is_lost_while_it_waits_for_room_says_so(desk):
    """Nobody will make room any more."""
    core = desk.session(5)
    for _ in range(200):
        desk.write(core, Alive)
    losing = threading.Thread(target=core.forget, args=("gone",))
    with core.lock:
        losing.start()
        with pytest.raises(ledgermq.SessionLostError, match="gone"):
            core.run_locked(core.room(20))
    losing.join()


def test_an_outcome_that_came_late_is_what_resolve_returns(desk):
    """The reply itself where the call makes nothing else of it; a refusal is raised."""
    core = desk.session(5)
    first, second = desk.write(core, Alive), commit(desk, core)
    unknown, in_doubt = core.unknown(first, 1.5), core.unknown(second, 1.5)
    assert (type(unknown), type(in_doubt)) == (
        ledgermq.OutcomeUnknownError,
        ledgermq.TransactionInDoubtError,
    )
    assert "QM1@5 within 1.5 s" in str(unknown)
    assert str(unknown).endswith(f"may yet be. {unknown.advice}")
    core.take(accepted(6, 5, 1))
    core.take(refused(7, 5, 2, "commit-incomplete"))
    assert unknown.resolve(0).position == 6
    with pytest.raises(ledgermq.LedgerMQError, match="so it is"):
        in_doubt.resolve(0)


@pytest.mark.parametrize(
    ("is_held_up", "away", "hint"),
    [
        (False, "", "does a worker of this release serve QM1?"),
        (True, "", "operations wait here to be sent; is the network to the broker slow?"),
        (True, "there is trouble with the broker", "there is trouble with the broker"),
    ],
)
def test_an_outcome_that_stays_away_is_blamed_on_what_is_known(desk, is_held_up, away, hint):
    """On a broker that is away, a slow network, else the worker."""
    core = desk.session(5)
    desk.log.is_held_up, desk.log.away = is_held_up, away
    assert f"({hint})" in str(core.unknown(desk.write(core, Alive), 1.0))


# -- failures that nobody waited for -------------------------------------------------------------


def test_messages_that_a_lost_session_had_asked_for_are_no_failure_of_their_own(desk):
    """Its close would say so or not, as the thread that closes is the later or the sooner."""
    core = desk.session(5)
    one = desk.write(core, Get, target="queue:q", consumer=1, credit=1)
    core.forget("gone")
    core.defer_refusal(one)
    core.raise_deferred()


def test_of_failures_that_nobody_waited_for_the_first_is_raised_once(desk):
    """By the next call of the session."""
    core = desk.session(5)
    one, two, three = (desk.write(core, Alive) for _ in range(3))
    core.take(accepted(6, 5, 1))
    core.take(refused(7, 5, 2, "queue-unknown"))
    two.destination = "queue:q"
    core.defer_refusal(one)
    core.raise_deferred()
    core.defer_refusal(two)
    core.forget("gone")
    core.defer_refusal(three)
    with pytest.raises(ledgermq.QueueNotFoundError, match="queue:q"), core.lock:
        core.check_usable_locked()
    with pytest.raises(ledgermq.SessionLostError), core.lock:
        core.check_usable_locked()
    core.defer_refusal(three)
    with pytest.raises(ledgermq.OutcomeUnknownError):
        core.raise_deferred()
    core.raise_deferred()


# -- the end -------------------------------------------------------------------------------------


def test_the_queue_managers_end_of_a_session_tells_what_was_not_applied(desk, caplog):
    """SES-20: everything behind SessionEnded in the log found the session gone."""
    core = desk.session(5)
    buffer = core.protocol.open_consumer("queue:q", 10)
    core.take(delivered(3, 5, 1, 4))
    desk.write(core, Alive)
    commit(desk, core)
    core.take(ended(9, 5))
    core.take(ended(9, 5))
    assert kinds_of(desk) == ["SessionLostError", "TransactionRolledBackError"]
    told = str(core.lost)
    assert "session QM1@5 was ended at QM1@9 (lost)" in told
    assert "3 deliveries went back, 2 uncommitted puts vanished" in told
    assert buffer.count == 0
    assert [one.levelname for one in caplog.records] == ["ERROR"]
    core.take(Suspected(position=10, index=0, session=5, deadline=1))
    assert len(desk.log.operations) == 2, "a session that is gone does not show itself"


@pytest.mark.parametrize(
    ("repeated", "kinds"),
    [
        (False, ["SessionLostError", "TransactionRolledBackError"]),
        (True, ["OutcomeUnknownError", "TransactionInDoubtError"]),
    ],
)
def test_a_session_that_is_unknown_leaves_in_doubt_what_was_written_twice(desk, repeated, kinds):
    """The first copy may have been applied before the session ended, its reply lost."""
    core = desk.session(5)
    desk.write(core, Alive)
    commit(desk, core)
    if repeated:
        core.repeat_overdue(1e12, 3.0)
    core.take(refused(7, 5, 1, "session-unknown"))
    assert kinds_of(desk) == kinds
    assert "session QM1@5 is gone: so it is" in str(core.lost)
    assert core.protocol.answered_through == 2
    assert core.protocol.pending_bytes == 0


def test_a_refusal_of_something_that_is_not_a_sessions_operation_does_not_end_it(desk):
    """Number 0 is none of its operations; one answered before still says that it is gone."""
    core = desk.session(5)
    desk.write(core, Alive)
    core.take(refused(7, 5, 0, "session-unknown"))
    assert not core.ended
    core.take(accepted(8, 5, 1))
    core.take(refused(9, 5, 1, "session-unknown"))
    assert core.ended


def test_a_close_that_was_answered_loses_nothing(desk, caplog):
    """It is the end that was asked for: no error, neither raised nor logged."""
    core = desk.session(5)
    desk.write(core, Close, seen=[])
    core.take(ended(9, 5, 1, reason="CLOSED"))
    assert (core.ended, core.lost) == (True, None)
    assert kinds_of(desk) == ["SessionEnded"]
    core.forget("the connection was closed")
    assert core.lost is None
    assert not caplog.records


def test_a_session_that_is_lost_while_it_closes_is_not_reported(desk, caplog):
    """Whoever closes it hears of it; a log entry would be for nobody."""
    core = desk.session(5)
    core.closing = True
    core.take(ended(9, 5))
    assert core.lost is not None
    assert not caplog.records


def test_a_close_finds_out_that_automatic_acknowledgements_were_lost(desk):
    """AUTO: what was acknowledged may come again, so the next call or close says so (SES-69)."""
    core = desk.session(5, "AUTO")
    desk.works[core].settling.unwritten.add_range(1, 1)
    with core.lock:
        desk.works[core].settling.write_acknowledgements_locked()
    core.forget("gone")
    with pytest.raises(ledgermq.OutcomeUnknownError, match="Acknowledge 1"):
        core.raise_deferred()


def test_nothing_is_acknowledged_for_a_session_that_is_gone(desk):
    """There is nobody to take it."""
    core = desk.session(5, "AUTO")
    core.forget("gone")
    desk.works[core].settling.unwritten.add_range(1, 1)
    with core.lock:
        desk.works[core].settling.write_acknowledgements_locked()
    core.show_life()
    assert desk.log.operations == []
    core.raise_deferred()


# -- what goes back ------------------------------------------------------------------------------


def test_a_refused_acknowledgement_is_kept_to_be_made_again(desk):
    """AUTO: administration took one of its messages away; the others are still to be settled."""
    core = desk.session(5, "AUTO")
    desk.works[core].settling.unwritten.add_range(1, 3)
    with core.lock:
        desk.works[core].settling.write_acknowledgements_locked()
    desk.works[core].settling.unwritten.add_range(4, 4)
    with core.lock:
        desk.works[core].settling.write_acknowledgements_locked()
    core.take(accepted(6, 5, 2))
    assert not desk.works[core].settling.refused
    core.take(refused(7, 5, 1, "delivery-unknown"))
    assert desk.works[core].settling.refused.as_list() == [{"first": 1, "last": 3}]
    assert [one.deliveries[0]["first"] for one in desk.log.operations] == [1, 4]
    assert desk.log.numbers(Acknowledge) == [1, 2]


@pytest.mark.parametrize("how", ["accepted", "refused", "lost"])
def test_deliveries_that_crossed_the_close_of_their_consumer_go_back(desk, how):
    """Nobody saw them; if the close was refused or the session is gone, nothing is written."""
    core = desk.session(5)
    core.protocol.open_consumer("queue:q", 10)
    core.take(delivered(3, 5, 1, 2))
    with core.lock:
        desk.works[core].unseen.close_consumer_locked(1)
    core.take(delivered(4, 5, 3, 2))
    if how == "accepted":
        core.take(accepted(5, 5, 1))
        core.take(accepted(6, 5, 2))
    elif how == "refused":
        core.take(refused(5, 5, 1, "consumer-unknown"))
    else:
        core.forget("gone")
    written = [one.unseen for one in desk.log.operations if isinstance(one, CloseConsumer)]
    assert written == [[{"first": 1, "last": 2}], [{"first": 3, "last": 4}]][: 1 + (how[0] == "a")]


def test_a_close_that_nothing_crossed_is_written_once(desk):
    """There is nothing to give back after it."""
    core = desk.session(5)
    core.protocol.open_consumer("queue:q", 10)
    with core.lock:
        desk.works[core].unseen.close_consumer_locked(1)
    core.take(accepted(5, 5, 1))
    assert desk.log.numbers(CloseConsumer) == [1]
