"""The keeper by hand: one round after the other at moments that the test chooses."""

import threading

import pytest

import ledgermq
from ledgermq.client.link import heartbeats as module
from ledgermq.client.link.heartbeats import Heartbeats
from ledgermq.client.link.router import Opening
from ledgermq.protocol.operations import Acknowledge, Alive
from ledgermq.protocol.outcomes import Suspected
from support.brokers.hand_made import accepted, key_of

START = (-1, -1)


@pytest.fixture
def keeper(desk):
    """Its keeper, with a heartbeat every five seconds, whose thread does not run."""
    return Heartbeats(desk.router, desk.log, 5.0)


def pending(desk, core, sent_at, kind=Alive):
    """Writes an operation as if at that moment."""
    one = desk.write(core, kind)
    one.sent_at = sent_at
    return one


def test_the_keepers_pauses_keep_what_the_modes_promise():
    """SES-08: AUTO within a few tenths of a second, DUPS_OK within a second."""
    assert 0 < module.ACKNOWLEDGE_WITHIN_SECONDS <= 0.3
    assert 0 < module.ROUND_SECONDS + module.ACKNOWLEDGE_WITHIN_SECONDS <= 1.0


def test_heartbeats_come_at_their_interval(desk, keeper):
    """H5: a session that does nothing lives on them; they are not more frequent than that."""
    beats = []
    for now in (100.0, 102.0, 104.9, 105.0, 105.1, 109.9, 110.5):
        keeper._round(now)
        beats.append(desk.log.beats)
    assert beats == [1, 1, 1, 2, 2, 2, 3]
    assert desk.log.served == 7


def test_a_broken_connection_does_not_beat(desk, keeper):
    """Else the queue manager would keep what its sessions hold from everybody."""
    desk.router.broken = "why"
    pending(desk, desk.session(5), 0.0)
    keeper._round(100.0)
    assert (desk.log.beats, desk.log.served, len(desk.log.operations)) == (0, 1, 1)


def test_a_hole_that_stays_is_asked_about_ever_more_rarely(desk, keeper):
    """After 1, 2, 4 and 4 seconds: a worker that starts finds no flood of questions (H2)."""
    desk.chunk((0, 0), accepted(1, 5, 1))
    desk.log.asks.clear()
    asked = []
    for now in (100.0, 100.9, 101.0, 102.9, 103.0, 106.9, 107.0, 110.9, 111.0, 114.9, 115.0):
        keeper._round(now)
        asked.append(len(desk.log.asks))
    assert asked == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]


def test_after_a_hole_was_closed_the_next_one_is_asked_about_as_soon_as_the_first(desk, keeper):
    """The pause begins at a second again."""
    desk.chunk((0, 0), accepted(1, 5, 1))
    for now in (100.0, 101.0, 103.0):
        keeper._round(now)
    desk.resynced(1, (9, 0), [])
    keeper._round(106.0)
    desk.chunk((11, 0), accepted(12, 5, 1))
    desk.log.asks.clear()
    asked = []
    for now in (107.0, 107.9, 108.0):
        keeper._round(now)
        asked.append(len(desk.log.asks))
    assert asked == [1, 1, 2]


def test_without_a_hole_and_without_anybody_waiting_nothing_is_asked(desk, keeper):
    """Nor written."""
    desk.session(5)
    for now in (100.0, 200.0):
        keeper._round(now)
    assert (desk.log.asks, desk.log.operations) == ([], [])


def test_a_reply_that_stays_away_is_asked_about_and_the_operation_repeated(desk, keeper):
    """Asked after one second, written again after three, then after six more."""
    core = desk.session(5)
    desk.session(6)
    one = pending(desk, core, 100.0)
    seen = []
    for now in (101.0, 101.1, 102.9, 103.0):
        keeper._round(now)
        seen.append((len(desk.log.asks), len(desk.log.operations)))
    assert seen == [(0, 1), (1, 1), (2, 1), (2, 2)]
    assert one.sends == 2
    one.sent_at = 103.0
    for now in (108.9, 109.0):
        keeper._round(now)
        seen.append(one.sends)
    assert seen[-2:] == [2, 3]
    assert desk.log.numbers(Alive) == [1, 1, 1]


def test_while_outcomes_come_those_that_are_behind_them_are_waited_for(desk, keeper):
    """On a slow link, or a busy lane, further questions and repeats would only hold them up."""
    core = desk.session(5)
    one = pending(desk, core, 100.0)
    seen = []
    for now, came_at in (
        (103.0, 100.1),
        (105.0, 102.1),
        (105.1, 102.2),
        (114.9, 114.0),
        (115.0, 114.0),
    ):
        desk.router.came_at = came_at
        keeper._round(now)
        seen.append((len(desk.log.asks), one.sends))
    assert seen == [(0, 1), (0, 1), (1, 1), (2, 1), (2, 2)]


def test_what_the_broker_did_not_take_is_written_again_at_once(desk, keeper):
    """A failed report makes the next round repeat everything pending, once."""
    core = desk.session(5)
    pending(desk, core, 100.0)
    pending(desk, core, 100.0)
    desk.log.failed = True
    keeper._round(100.1)
    assert desk.log.numbers(Alive) == [1, 2, 1, 2]
    assert not desk.log.failed
    for one in core.protocol.pending.values():
        one.sent_at = 100.1
    keeper._round(100.2)
    assert len(desk.log.operations) == 4


def test_what_waits_for_a_broker_is_not_written_again_behind_itself(desk, keeper):
    """A broker that was away for minutes had eight copies of it; once it is back, one is due."""
    core = desk.session(5)
    one = pending(desk, core, 100.0)
    desk.log.is_held_up = True
    desk.log.failed = True
    for now in (103.0, 109.0, 220.0):
        keeper._round(now)
    assert one.sends == 1
    desk.log.is_held_up = False
    one.sent_at = 220.0
    keeper._round(220.5)
    assert one.sends == 2, "what failed meanwhile is written again at once"


def test_a_session_that_is_opened_for_long_is_asked_about(desk, keeper):
    """Its Opened may have been lost; RESYNC tells it too."""
    desk.router.openings[key_of(1)] = opening = Opening(desk.core)
    opening.asked_at = 100.0
    keeper._round(100.9)
    assert desk.log.asks == []
    keeper._round(101.1)
    assert [ask["kind"] for ask in desk.log.asks] == ["RESYNC"]


def test_what_was_handed_over_is_acknowledged_a_round_later(desk, keeper):
    """AUTO: `receive` may not have returned yet in this round (SES-05)."""
    core = desk.session(5, "AUTO")
    desk.works[core].settling.unwritten.add_range(1, 3)
    keeper._round(100.0)
    assert desk.log.operations == []
    assert keeper._soon, "the rest is for the next round, which comes soon"
    desk.works[core].settling.unwritten.add_range(4, 4)
    keeper._round(100.1)
    assert [one.deliveries for one in desk.log.operations] == [[{"first": 1, "last": 3}]]
    assert keeper._soon
    keeper._round(100.2)
    assert [one.deliveries for one in desk.log.operations[1:]] == [[{"first": 4, "last": 4}]]
    assert not keeper._soon
    assert desk.log.kinds() == ["Acknowledge", "Acknowledge"]


def test_in_a_crowd_acknowledgements_wait(desk, keeper):
    """A session with too much unanswered adds nothing of its own, to a suspicion neither (H5)."""
    core = desk.session(5, "AUTO")
    for _ in range(240):
        desk.write(core, Alive)
    desk.works[core].settling.unwritten.add_range(1, 1)
    for now in (1.0, 1.1, 1.2):
        keeper._round(now)
    core.take(Suspected(position=9, index=0, session=5, deadline=1))
    assert desk.log.kinds().count("Acknowledge") == 0
    assert len(desk.log.operations) == 240
    core.take(accepted(7, 5, 1))
    core.take(Suspected(position=10, index=0, session=5, deadline=1))
    assert len(desk.log.operations) == 241
    core.take(accepted(8, 5, 2))
    keeper._round(1.3)
    assert desk.log.numbers(Acknowledge) == [242]


def test_the_keepers_thread_outlives_errors(desk, monkeypatch, caplog):
    """Those of the library and any other: the next round comes."""
    caplog.set_level("INFO")
    monkeypatch.setattr(module, "ROUND_SECONDS", 0.0)
    errors = iter([ledgermq.OutcomeUnknownError("not now"), ValueError("a fault")])
    went_on = threading.Event()

    def serve():
        for error in errors:
            raise error
        went_on.set()

    desk.log.serve = serve
    keeper = Heartbeats(desk.router, desk.log, 5.0)
    keeper.start()
    assert went_on.wait(20)
    keeper.stop()
    assert not keeper._thread.is_alive()
    assert [one.levelname for one in caplog.records] == ["INFO", "ERROR"]


def test_a_keeper_that_is_stopped_by_itself_or_before_it_began_ends(desk):
    """It does not wait for its own thread, and makes no further round."""
    never = Heartbeats(desk.router, desk.log, 5.0)
    never.stop()
    never.start()
    never._thread.join(20)
    keeper = Heartbeats(desk.router, desk.log, 5.0)
    desk.log.serve = keeper.stop
    keeper.start()
    keeper._thread.join(20)
    assert not keeper._thread.is_alive()
    assert desk.log.beats == 1


def test_telling_the_keeper_to_be_soon_wakes_it(desk, monkeypatch):
    """It need not sleep out its round for an acknowledgement that waits."""
    monkeypatch.setattr(module, "ROUND_SECONDS", 3600.0)
    rounds, awake = threading.Semaphore(0), []
    keeper = Heartbeats(desk.router, desk.log, 5.0)

    def serve():
        awake.append(keeper._wake.is_set())
        rounds.release()

    desk.log.serve = serve
    keeper.start()
    assert rounds.acquire(timeout=20)
    core = desk.session(5, "AUTO")
    desk.works[core].settling.unwritten.add_range(1, 1)
    keeper.soon()
    keeper.soon()
    assert rounds.acquire(timeout=20)
    assert rounds.acquire(timeout=20), "a round later it is written"
    keeper.stop()
    assert desk.log.numbers(Acknowledge) == [1]
    assert awake == [False] * 3, "it sleeps again after each round"


def test_a_page_that_stays_away_is_asked_for_though_nothing_else_is_missing(desk, keeper):
    """H2: what the lane brings waits for the last page, so somebody must ask for it."""
    desk.session(5)
    desk.router.ask_resync()
    told = {"last_position": 11, "last_index": 0, "sessions": []}
    desk.answer(1, 11, document=told, next="x:1")
    keeper._round(100.0)
    assert [ask["after"] for ask in desk.log.asks] == ["", "x:1"]
    for _ in range(2):
        desk.router._gathering._asked_at -= 10.0
        keeper._round(110.0)
    assert [ask["after"] for ask in desk.log.asks] == ["", "x:1", "x:1"]
    keeper._round(120.0)
    assert [ask["after"] for ask in desk.log.asks] == ["", "x:1", "x:1", "x:1"]
