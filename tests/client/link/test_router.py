"""The router by hand: chunks with holes, answers to RESYNC, sessions that are gone (H2, H17)."""

import pytest

import ledgermq
from ledgermq.client.link.router import Opening
from ledgermq.client.sansio import gathering
from ledgermq.protocol.operations import Alive, Commit, Rollback
from ledgermq.protocol.outcomes import Opened, Refused, Returned
from ledgermq.wire.framing.codec import encode_chunk
from support.brokers.hand_made import accepted, delivered, key_of

START = (-1, -1)


def opened(position):
    """A session that is open from its position on."""
    return Opened(position=position, index=0, session_key=key_of(position), session=position)


def numbers_of(pendings):
    """Which operations these are, and at which position they were answered."""
    return [(one.number, one.reply.position) for one in pendings]


def test_a_hole_is_asked_about_once_and_up_to_what_lies_beyond_it(desk):
    """H2: RESYNC asks for an answer that reaches the chunk set aside; more chunks ask no more."""
    desk.chunk(START, accepted(10, 5, 1))
    assert desk.log.asks == []
    desk.chunk((11, 0), accepted(12, 5, 2))
    desk.chunk((12, 0), accepted(13, 5, 3))
    (ask,) = desk.log.asks
    assert (ask["kind"], ask["not_before"], ask["wait_ms"]) == ("RESYNC", 12, 3000)
    desk.router.ask_resync()
    assert desk.log.asks[1]["not_before"] == 13


def test_the_very_first_position_counts_as_one_to_be_reached(desk):
    """Beyond a hole it may be position 0; without a hole there is nothing to wait for."""
    desk.router.ask_resync()
    desk.chunk((0, 0), accepted(0, 5, 1))
    told = [(ask["not_before"], ask["wait_ms"]) for ask in desk.log.asks]
    assert told == [(-1, 0), (0, 3000)]


def test_after_the_answer_the_chunks_set_aside_are_read(desk):
    """H2: each reply settles once, be it told by the answer or by a chunk that waited."""
    core = desk.session(5)
    for _ in range(3):
        desk.write(core, Alive)
    desk.chunk(START, accepted(10, 5, 1))
    desk.chunk((11, 0), accepted(12, 5, 2), accepted(13, 5, 3))
    assert numbers_of(desk.settled) == [(1, 10)]
    desk.resynced(1, (12, 0), [5], accepted(10, 5, 1), accepted(12, 5, 2))
    assert numbers_of(desk.settled) == [(1, 10), (2, 12), (3, 13)]
    assert not desk.router.chain.hole
    assert desk.router.chain.last == (13, 0)


def test_a_hole_behind_the_answer_is_asked_about_again(desk):
    """The chunks set aside need not follow what the answer reached."""
    desk.chunk(START, accepted(10, 5, 1))
    desk.chunk((11, 0), accepted(12, 5, 2))
    desk.chunk((19, 0), accepted(20, 5, 3))
    desk.resynced(1, (13, 0), [])
    assert desk.router.chain.hole
    assert [ask["not_before"] for ask in desk.log.asks] == [12, 20]


def test_an_answer_to_resync_counts_once(desk):
    """A repeat of it, and the answer to a question never asked, change nothing."""
    core = desk.session(5)
    desk.chunk(START, accepted(10, 5, 1))
    desk.chunk((11, 0), accepted(12, 5, 2))
    desk.resynced(1, (12, 0), [5])
    desk.resynced(1, (14, 0), [])
    desk.resynced(77, (14, 0), [])
    assert not core.ended
    assert desk.router.chain.last == (12, 0)


def test_in_an_answer_replies_come_before_deliveries(desk):
    """A rollback that the answer tells of was before what is in flight now, so that is kept."""
    core = desk.session(5)
    buffer = core.protocol.open_consumer("queue:q", 10)
    desk.write(core, Rollback, seen=[])
    returned = Returned(
        position=11, index=0, session=5, session_sequence=1, returned=0, discarded=0
    )
    desk.router.ask_resync()
    desk.resynced(1, (12, 0), [5], delivered(12, 5, 1, 2), returned)
    assert [buffer.take()[0] for _ in range(buffer.count)] == [1, 2]
    assert numbers_of(desk.settled) == [(1, 11)]


def test_deliveries_of_an_answer_come_in_order_whatever_order_they_are_told_in(desk):
    """Delivery numbers rise; one taken too early would make the older ones look like repeats."""
    found = {}
    for handle in (5, 6):
        core = desk.session(handle)
        found[handle] = core.protocol.open_consumer("queue:q", 10)
    desk.router.ask_resync()
    told = [delivered(9, 6, 3, 1), delivered(9, 5, 4, 2), delivered(9, 6, 1, 2)]
    desk.resynced(1, (12, 0), [5, 6], *told, delivered(9, 5, 1, 3))
    taken = {
        handle: [buffer.take()[0] for _ in range(buffer.count)] for handle, buffer in found.items()
    }
    assert taken == {5: [1, 2, 3, 4, 5], 6: [1, 2, 3]}


def test_sessions_that_ended_meanwhile_are_forgotten(desk):
    """H17: what the answer does not name is gone; sessions opened after it are left alone."""
    gone, living, last, later = (desk.session(handle) for handle in (3, 5, 12, 13))
    desk.write(gone, Alive)
    desk.write(last, Commit, deliveries=[], puts=0)
    desk.router.ask_resync()
    desk.resynced(1, (12, 0), [5])
    assert [core.ended for core in (gone, living, last, later)] == [True, False, True, False]
    assert [type(one.error) for one in desk.settled] == [
        ledgermq.OutcomeUnknownError,
        ledgermq.TransactionInDoubtError,
    ]
    assert isinstance(gone.lost, ledgermq.SessionLostError)
    assert "QM1@3 was ended meanwhile" in str(gone.lost)


def test_sessions_show_that_they_live_when_something_was_missed(desk):
    """H5: what was missed may have been a Suspected; when nothing was, nothing is written."""
    for handle in (3, 5):
        desk.session(handle)
    desk.router.ask_resync()
    desk.resynced(1, (12, 0), [5], position=12)
    assert [(one.session, type(one)) for one in desk.log.operations] == [(5, Alive)]
    desk.router.ask_resync()
    desk.resynced(2, (12, 0), [5])
    desk.router.ask_resync()
    desk.resynced(3, (11, 0), [5])
    assert len(desk.log.operations) == 1
    desk.router.ask_resync()
    desk.resynced(4, (12, 1), [5])
    assert len(desk.log.operations) == 2


def test_an_outcome_that_was_lost_for_good_breaks_the_connection(desk):
    """A RESYNC refused while something is missing: the sessions are lost, the reason is told."""
    core = desk.session(5)
    desk.write(core, Commit, deliveries=[], puts=0)
    desk.chunk(START, accepted(10, 5, 7))
    desk.chunk((11, 0), accepted(12, 5, 1))
    desk.answer(1, 13, reason="answer-too-large", detail="12 MB of deliveries")
    assert "12 MB of deliveries [answer-too-large]" in desk.router.broken
    assert core.ended
    assert isinstance(desk.settled[0].error, ledgermq.TransactionInDoubtError)
    assert "Connect again" in str(core.lost)


@pytest.mark.parametrize(
    ("reason", "hole"), [("position-not-reached", True), ("answer-too-large", False)]
)
def test_a_refused_resync_that_can_be_asked_again_breaks_nothing(desk, reason, hole):
    """The worker is not that far yet, or nothing was missing in the first place."""
    core = desk.session(5)
    desk.chunk(START, accepted(10, 5, 7))
    if hole:
        desk.chunk((11, 0), accepted(12, 5, 1))
    else:
        desk.router.ask_resync()
    desk.answer(1, 10, reason=reason)
    assert desk.router.broken is None
    assert not core.ended
    assert desk.router.chain.hole == hole


def test_a_chain_that_begins_anew_ends_the_sessions_of_the_older_one(desk):
    """The queue manager forgot the connection: only what was opened since then is there."""
    older, newer, newest = desk.session(5), desk.session(20), desk.session(21)
    desk.chunk(START, accepted(10, 5, 1))
    desk.chunk(START, opened(20))
    assert [core.ended for core in (older, newer, newest)] == [True, False, False]
    assert "QM1@5 was ended meanwhile" in str(older.lost)


@pytest.mark.parametrize("anew", [False, True])
def test_after_a_hole_nothing_is_waited_for_any_more(desk, anew):
    """A further question is for any position: what lay beyond the hole was reached (H2)."""
    desk.chunk(START, accepted(10, 5, 1))
    desk.chunk((11, 0), accepted(12, 5, 2))
    if anew:
        desk.chunk(START, opened(20))
    else:
        desk.resynced(1, (15, 0), [])
    desk.router.ask_resync()
    assert desk.log.asks[-1]["not_before"] == -1
    assert not desk.router.chain.hole
    assert desk.router.chain.last == ((20, 0) if anew else (15, 0))
    desk.chunk(desk.router.chain.last, accepted(21, 5, 3))
    assert desk.router.chain.last == (21, 0)


def test_what_was_set_aside_is_forgotten_when_the_chain_begins_anew(desk):
    """It belongs to sessions that are gone."""
    core = desk.session(30)
    desk.write(core, Alive)
    desk.chunk(START, accepted(10, 5, 1))
    desk.chunk((11, 0), accepted(12, 30, 1))
    desk.chunk(START, opened(20))
    desk.chunk((25, 0), accepted(26, 5, 1))
    desk.resynced(2, (26, 0), [30])
    assert desk.settled == []


def test_a_repeated_beginning_is_no_new_one(desk):
    """Nor is a chunk that ends where the last one did, or an empty one."""
    core = desk.session(5)
    desk.chunk(START, accepted(10, 5, 1), accepted(11, 5, 2))
    for previous in (START, (10, 0)):
        desk.chunk(previous, accepted(11, 5, 2))
    desk.chunk((99, 0))
    assert (desk.router.chain.restarts, desk.router.chain.hole) == (0, False)
    desk.chunk((10, 0), accepted(11, 5, 2), accepted(12, 5, 3))
    assert desk.router.chain.last == (12, 0)
    assert not core.ended


def test_an_opened_that_was_lost_is_made_up_for_by_the_answer(desk):
    """The session key tells whose it is; a repeat of Opened makes no second session."""
    opening = Opening(desk.core)
    desk.router.openings[key_of(12)] = opening
    desk.router.ask_resync()
    desk.resynced(1, (12, 0), [12, 15])
    assert opening.answered.is_set()
    core = opening.engine
    assert core.handle == 12
    desk.chunk((12, 0), opened(12))
    assert desk.router.sessions == {12: core}
    assert opening.engine is core


def test_a_refused_open_is_told_to_whoever_opens(desk):
    """It has no session number; a refusal that names one is for that session alone."""
    opening = Opening(desk.core)
    desk.router.openings[key_of(1)] = opening
    fields = {"index": 0, "session_sequence": 0, "reason": "client-id-in-use", "detail": ""}
    desk.chunk((-1, -2), Refused(position=7, session=44, **fields))
    assert not opening.answered.is_set()
    desk.chunk((-1, -2), accepted(7, -1, 0))
    assert not opening.answered.is_set()
    desk.chunk((-1, -2), Refused(position=8, session=-1, **fields))
    assert opening.answered.is_set()
    assert opening.refused.position == 8
    assert opening.engine is None


def test_an_open_waits_for_long_after_a_second(desk):
    """Then the keeper asks what became of it; right at the second it does not yet."""
    assert not desk.router.opening_waits(1000.0)
    opening = Opening(desk.core)
    desk.router.openings[key_of(1)] = opening
    opening.asked_at = 100.0
    assert not desk.router.opening_waits(101.0)
    assert desk.router.opening_waits(101.5)


def test_what_cannot_be_read_or_taken_does_not_stop_what_follows(desk, monkeypatch, caplog):
    """Neither a broken record nor a session that fails on an outcome (H2)."""
    first, second = desk.session(5), desk.session(6)
    desk.write(second, Alive)
    monkeypatch.setattr(first, "take", lambda _: 1 / 0)
    desk.router.take([b"nonsense"])
    desk.chunk(START, accepted(10, 5, 1), accepted(11, 6, 1))
    assert numbers_of(desk.settled) == [(1, 11)]
    assert [one.levelname for one in caplog.records] == ["WARNING", "ERROR"]


def test_records_behind_a_broken_one_are_read_too(desk):
    """In one read of the lane."""
    core = desk.session(5)
    desk.write(core, Alive)
    desk.router.take([b"", encode_chunk(*START, [accepted(10, 5, 1)])])
    assert numbers_of(desk.settled) == [(1, 10)]


def page(desk, number, last, sessions, *outcomes, behind="", position=20):
    """Answers RESYNC with a page."""
    told = [{"session": one, "session_key": key_of(one).hex()} for one in sessions]
    document = {"last_position": last[0], "last_index": last[1], "sessions": told}
    desk.answer(number, position, document=document, outcomes=outcomes, next=behind)


def test_an_answer_in_pages_is_applied_when_the_last_has_come(desk):
    """H2: what the lane brings between the pages is newer than all of them, and waits."""
    core = desk.session(5)
    for _ in range(4):
        desk.write(core, Alive)
    desk.router.ask_resync()
    page(desk, 1, (11, 0), [5], accepted(10, 5, 1), behind="x:1")
    assert (desk.log.asks[1]["kind"], desk.log.asks[1]["after"]) == ("RESYNC", "x:1")
    desk.chunk((11, 0), accepted(12, 5, 3))
    desk.chunk((12, 0), accepted(13, 5, 4))
    assert desk.settled == []
    page(desk, 2, (11, 0), [], accepted(11, 5, 2))
    assert numbers_of(desk.settled) == [(1, 10), (2, 11), (3, 12), (4, 13)]
    assert desk.router.chain.last == (13, 0)
    assert not core.ended


def test_sessions_on_any_page_are_alive(desk):
    """A session that only a later page names is not taken for ended."""
    cores = [desk.session(handle) for handle in (3, 4, 5)]
    desk.router.ask_resync()
    page(desk, 1, (11, 0), [3], behind="x:1")
    page(desk, 2, (11, 0), [4])
    assert [core.ended for core in cores] == [False, False, True]


def test_while_pages_come_nothing_is_asked_twice(desk):
    """The keeper asks again as long as replies stay away: a flood of large answers helps nobody."""
    desk.session(5)
    desk.router.ask_resync()
    desk.router.ask_resync()
    page(desk, 1, (11, 0), [5], behind="x:1")
    page(desk, 2, (11, 0), [5], behind="y:1")
    desk.router.ask_resync()
    assert [one["after"] for one in desk.log.asks] == ["", "", "x:1"]
    page(desk, 3, (11, 0), [], behind="x:2")
    page(desk, 3, (11, 0), [], behind="x:2")
    assert [one["after"] for one in desk.log.asks] == ["", "", "x:1", "x:2"]


def test_a_page_that_stays_away_is_asked_for_again(desk, monkeypatch):
    """H2: a question or its answer may be lost."""
    monkeypatch.setattr(gathering, "PATIENCE_SECONDS", -1.0)
    desk.session(5)
    desk.router.ask_resync()
    page(desk, 1, (11, 0), [5], behind="x:1")
    desk.router.ask_resync()
    assert [one["after"] for one in desk.log.asks] == ["", "x:1", "x:1"]


def test_catching_up_begins_again_when_the_rest_of_an_answer_is_gone(desk):
    """The worker that began the answer ended: its pages are dropped, what waited is read."""
    core = desk.session(5)
    for _ in range(2):
        desk.write(core, Alive)
    desk.chunk(START, accepted(10, 5, 1))
    desk.router.ask_resync()
    page(desk, 1, (11, 0), [5], behind="x:1")
    desk.chunk((11, 0), accepted(12, 5, 2))
    assert not desk.router.chain.hole
    desk.answer(2, 20, reason="answer-expired", detail="it is gone")
    assert desk.router.chain.wanted == 12
    assert [one["after"] for one in desk.log.asks] == ["", "x:1", "", ""]
    assert desk.router.broken is None


def test_who_has_missed_nothing_asks_for_no_further_page(desk):
    """On a slow link, replies come late: what is in flight would have come again, before them."""
    core = desk.session(5)
    for _ in range(2):
        desk.write(core, Alive)
    desk.chunk(START, accepted(10, 5, 1))
    desk.router.catch_up()
    page(desk, 1, (10, 0), [5], behind="x:1")
    desk.chunk((10, 0), accepted(12, 5, 2))
    assert numbers_of(desk.settled) == [(1, 10), (2, 12)]
    assert [one["after"] for one in desk.log.asks] == [""]
    assert not desk.router.catching_up


def test_a_page_that_is_refused_otherwise_breaks_the_connection_in_a_hole(desk):
    """What was missed cannot be told, as when the first page is refused."""
    desk.session(5)
    desk.chunk(START, accepted(10, 5, 7))
    desk.chunk((11, 0), accepted(12, 5, 1))
    page(desk, 1, (12, 0), [5], behind="x:1")
    desk.answer(2, 20, reason="answer-too-large", detail="12 MB of deliveries")
    assert "12 MB of deliveries" in desk.router.broken


def test_records_that_only_a_newer_client_can_read_are_told_once(desk, caplog):
    """Whose calls wait in vain learns from the log what to do; what can be read is taken."""
    core = desk.session(5)
    desk.write(core, Alive)
    newer = b"\xc3\x01" + bytes(8)
    desk.router.take([newer, newer, b"garbage"])
    desk.chunk(START, accepted(10, 5, 1))
    assert numbers_of(desk.settled) == [(1, 10)]
    told = [one.getMessage() for one in caplog.records]
    assert len([one for one in told if "upgrade the client" in one]) == 1
    assert len([one for one in told if "is skipped" in one]) == 1
