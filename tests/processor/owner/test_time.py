"""Time on the ledger: ticks, agreed time, suspicion of silent sessions (H5, H6, H7)."""

import signal
import time

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import SessionEnded, Suspected
from support.checks.history import check_history, fold_log

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def outcomes_of(client, kind):
    """A client's outcomes of one kind so far."""
    return [one for one in client.outcomes.values() if isinstance(one, kind)]


def ticks_of(place):
    """The Tick entries on the ledger."""
    return [one for one in fold_log(place).operations if isinstance(one, op.Tick)]


def test_a_silent_session_is_suspected_and_then_lost_by_log_time(place):
    """Without heartbeats comes Suspected, then SessionEnded LOST; its deliveries return."""
    place.worker()
    client = place.client()
    session = client.open("CLIENT", suspect_timeout_ms=1_000)
    session.put("queue:a", 2)
    session.reply(1)
    session.consumer(1, "queue:a", 10)
    client.read_until(lambda: outcomes_of(client, SessionEnded))
    assert [one.session for one in outcomes_of(client, Suspected)] == [session.handle]
    ended = outcomes_of(client, SessionEnded)[0]
    assert (ended.reason, ended.returned) == ("LOST", 2)
    check_history(place)


def test_heartbeats_keep_an_idle_session(place):
    """A session that says nothing but whose connection beats is not suspected (H5)."""
    place.worker()
    client = place.client()
    session = client.open("CLIENT", suspect_timeout_ms=1_500)
    session.do(op.Alive)
    until = time.monotonic() + 5
    while time.monotonic() < until:
        client.beat()
        client.read(0.4)
    session.do(op.Alive)
    assert not outcomes_of(client, Suspected)
    check_history(place)


def test_a_suspected_session_that_shows_itself_lives_on(place):
    """Alive clears the suspicion: the session is not lost, and works (H5)."""
    place.worker()
    client = place.client()
    session = client.open("TRANSACTED", suspect_timeout_ms=2_000)
    session.do(op.Alive)
    client.read_until(lambda: outcomes_of(client, Suspected))
    session.do(op.Alive)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        client.beat()
        client.read(0.3)
    session.put("queue:a", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    assert not outcomes_of(client, SessionEnded)
    check_history(place)


def test_a_worker_that_was_stopped_for_long_suspects_nobody_who_beat_meanwhile(place):
    """After SIGSTOP and SIGCONT the side topic is read to its end before anybody is judged (H5)."""
    worker = place.worker("sleeper", SESSION_TIMEOUT_SECONDS=30, HEARTBEAT_SECONDS=2)
    client = place.client()
    session = client.open("CLIENT", suspect_timeout_ms=2_000)
    session.do(op.Alive)
    worker.signal(signal.SIGSTOP)
    until = time.monotonic() + 6
    while time.monotonic() < until:
        client.beat()
        time.sleep(0.5)
    worker.signal(signal.SIGCONT)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        client.beat()
        client.read(0.4)
    session.do(op.Alive)
    assert not outcomes_of(client, Suspected)


def test_silence_does_not_count_while_nobody_listened(place):
    """A worker that starts gives every session its full time before it suspects it (H5)."""
    first = place.worker("first")
    client = place.client()
    session = client.open("CLIENT", suspect_timeout_ms=4_000)
    session.do(op.Alive)
    first.kill()
    time.sleep(4)
    place.worker("second")
    client.beat()
    session.do(op.Alive)
    client.read(0.5)
    assert not outcomes_of(client, Suspected)


def test_many_deadlines_make_few_ticks(place):
    """Sessions that die together cost a handful of Ticks, not a storm (H7)."""
    place.worker()
    clients = [place.client(number % 2) for number in range(6)]
    sessions = [client.open("CLIENT", suspect_timeout_ms=1_000) for client in clients]
    for session in sessions:
        session.do(op.Alive)
    for client in clients:
        client.read_until(lambda client=client: outcomes_of(client, SessionEnded))
    time.sleep(1.5)
    fold, _ = check_history(place)
    ticks = [one for one in fold.operations if isinstance(one, op.Tick)]
    suspects = [one for one in fold.operations if isinstance(one, op.Suspect)]
    assert 1 <= len(ticks) <= 2 * len(sessions)
    assert 1 <= len(suspects) <= len(sessions)


def test_an_idle_queue_manager_writes_nothing_on_its_ledger(place):
    """With no deadline ahead no Tick is written, however long it lasts (H7, H8)."""
    place.worker()
    client = place.client()
    session = client.open()
    session.do(op.Close, seen=[])
    time.sleep(4)
    assert not ticks_of(place)


@pytest.mark.long
def test_a_minute_of_silence_is_agreed_on_before_its_outcomes_are_sent(place):
    """An entry over 60 s after the last one stands still until TimeAgreed counts (H6)."""
    place.worker()
    client = place.client()
    session = client.open("TRANSACTED", suspect_timeout_ms=45_000)
    session.do(op.Close, seen=[])
    time.sleep(61.5)
    again = client.open("TRANSACTED")
    again.put("queue:a", 1)
    again.do(op.Commit, deliveries=[], puts=1)
    fold, _ = check_history(place)
    agreed = [
        position for position, one in enumerate(fold.operations) if isinstance(one, op.TimeAgreed)
    ]
    assert agreed[0] == again.handle + 1
    assert fold.state.time > 0
    assert not fold.state.time_stood_still
