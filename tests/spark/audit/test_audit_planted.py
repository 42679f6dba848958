"""Tests that the audit finds each anomaly once, names its message, and finds none where none is."""

import json
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pyarrow.compute import field

from ledgermq.protocol.operations import CreateQueue
from ledgermq.protocol.outcomes import Refused
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.audit.auditing import witnessed
from ledgermq_spark.audit.compare import differences
from ledgermq_spark.audit.conservation import CONSERVATION
from ledgermq_spark.audit.findings.classify import classify
from ledgermq_spark.audit.findings.evidence import EVIDENCE_MAX, Evidence, hexadecimal, judge
from ledgermq_spark.audit.report.report import html_report, json_report
from ledgermq_spark.laws.all_laws import LAWS
from ledgermq_spark.laws.law import Breach, Law
from ledgermq_spark.rebuild.checkpoints import BLOCK, ROOT, Checkpoint
from support.audits.audits import audited, subject_of
from support.audits.engines import duck_engine, spark_engine
from support.audits.frames import outcomes_frame
from support.brokers.log_writer import LANES, Script, ScriptSession, fold
from support.planted.group_planting import GROUP_PLANTS
from support.planted.planting import (
    END_PLANTS,
    PLANTS,
    TOPIC_PLANTS,
    conversation,
    departure,
    publication,
    selection,
)
from support.random_logs.random_groups import group_id
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.slow]


def with_stories_to_plant_in(script):
    """Grow a queue or topic for each fault, each with what the fault needs."""
    for queue, _, _ in PLANTS:
        conversation(script, queue, settle=queue != "half")
    for queue, _, _ in END_PLANTS:
        departure(script, queue)
    for name, _, _ in TOPIC_PLANTS:
        (selection if name.startswith("queue") else publication)(script, name)
    for queue, before, _ in GROUP_PLANTS:
        before(script, queue)


@pytest.fixture(scope="module", params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request):
    """Both that answer."""
    if request.param == "duckdb":
        return duck_engine()
    return spark_engine(request.getfixturevalue("spark"))


@pytest.fixture(scope="module")
def planted(engine):
    """Return the audit of one log with a fault in each of its queues and topics, and the faults."""
    script = Script()
    with_stories_to_plant_in(script)
    recorded = deepcopy(script.outcomes)
    faults = [(kind, plant(recorded, queue)) for queue, plant, kind in PLANTS]
    faults += [
        (kind, plant(recorded, name, script)) for name, plant, kind in (*END_PLANTS, *TOPIC_PLANTS)
    ]
    faults += [("unexpected", plant(recorded, queue, script)) for queue, _, plant in GROUP_PLANTS]
    return audited(engine, script.entries, recorded, laws=()), faults


def test_every_planted_fault_is_found_once_and_names_its_message(planted):
    """As many anomalies as faults, each of its kind and message, wherever messages end.

    What a selector does not match, what went with its subscription, what is gone; what is out of
    logical order, incomplete, kept for another or bonded to another (GRP-03, GRP-20).
    """
    report, faults = planted
    assert sorted((one.kind, one.message_id) for one in report.anomalies) == sorted(faults)
    assert report.exit_code == 1


def test_a_group_that_lacks_its_last_message_is_no_anomaly(planted):
    """It is information, in the report and on its page."""
    report, _ = planted
    (stuck,) = [one for one in report.stuck_groups if one["queue"] == "incomplete"]
    assert (stuck["group_id"], stuck["items"]) == (group_id("Y").hex(), 2)
    assert (stuck["oldest"], stuck["first_sequence"]) == (True, 0)
    assert any("are not complete while" in one for one in report.notes)
    page = html_report(report)
    assert "Groups that are not complete" in page
    assert "the last message" in page


def test_the_page_of_an_audit_shows_what_became_of_everything(planted):
    """Conservation, and a row for each queue, topic and subscription with what it asks for."""
    report, _ = planted
    page = html_report(report)
    assert "<h2>INF-19 conservation</h2>" in page
    assert 'it <span class="good">holds</span>' in page
    assert "<td>queue:removed<br>" in page
    assert "Balancing totals per subscription" in page
    assert "<td>sblue</td>" in page
    assert "<code>color = &#x27;red&#x27;</code>" in page
    assert "<td>gone<br><small>at " in page
    assert json.loads(json_report(report))["conservation"]["holds"]


def test_what_merely_looks_like_an_anomaly_is_none():
    """A random log with everything in it, repeats included, agrees."""
    script = Script()
    RandomLog(script).grow(250)
    recorded = deepcopy(script.outcomes)
    # A worker that restarts tells again what it told.
    for entry in recorded[100:160]:
        entry.extend(deepcopy(entry))
    report = audited(duck_engine(), script.entries, recorded)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    assert all(one["balances"] for one in report.totals)
    proven = report.proven
    assert (proven["since"], proven["until"]) == (0, report.position)
    assert [one["letter"] for one in proven["laws"]] == [law.letter for law in LAWS]
    assert all(one["holds"] for one in proven["laws"])
    # Laws are asked of frames that follow from others: what these follow from is counted.
    asked = {one["letter"]: one["looked_at"] for one in proven["laws"]}
    assert set(asked["A"]) == {"moves"}
    assert asked["E"]["operations"] == len(script.entries)
    assert asked["F"] == asked["F"] | asked["A"]
    assert all(looked_at and all(looked_at.values()) for looked_at in asked.values())


def _with_refusal(recorded, position, **changes):
    """The refusal at a position, recorded with other fields."""
    ((at, one),) = [
        (at, one) for at, one in enumerate(recorded[position]) if isinstance(one.outcome, Refused)
    ]
    recorded[position][at] = one._replace(outcome=replace(one.outcome, **changes))


def test_the_text_of_a_refusal_is_compared():
    """It follows from entry and state alone, also where no session is known; once each."""
    script = Script()
    session = script.session()
    twice = [session.send(CreateQueue, queue="q") for _ in range(4)]
    unknown = ScriptSession(script=script, handle=7).put("q", "x")
    recorded = deepcopy(script.outcomes)
    _with_refusal(recorded, twice[1], detail="no room")
    _with_refusal(recorded, twice[2], reason="queue-unknown", detail="no such queue")
    _with_refusal(recorded, unknown, detail="who is that?")
    engine = duck_engine()
    expected = outcomes_frame(engine, script.outcomes, as_folded=True)
    compared = differences(expected, outcomes_frame(engine, recorded), LANES)
    told = classify(compared, set(), {})
    assert [(one.kind, one.position, one.field) for one in told] == [
        ("altered outcome", twice[1], "detail"),
        ("altered outcome", twice[2], "reason"),
        ("altered outcome", unknown, "detail"),
    ]
    assert told[0].found == "no room"


@pytest.fixture(scope="module")
def small():
    """A small clean log as the audit looks at it, with its live state; laws are not its subject."""
    script = Script()
    conversation(script, "q")
    subject = subject_of(duck_engine(), script.entries)
    told = subject.rebuilt
    manifest = {"position": told.position, "digest": ""}
    live = Checkpoint(manifest=manifest, root=told.root_bytes, blocks=told.block_bytes())
    return replace(subject, live=live, laws=())


def test_what_headers_deny_is_an_anomaly_beside_others(small):
    """The audit lists it; it follows from another finding at that position."""
    denied = Evidence(kind="altered operations", summary="", source="headers", position=1)
    assert audit(replace(small, of_headers=[denied])).anomalies == [denied]
    here = replace(denied, kind="lost", source="outcomes", session=0)
    assert judge([here], [denied]) == ([here], 1)
    elsewhere = replace(here, position=2)
    assert judge([elsewhere], [denied]) == ([elsewhere, denied], 0)


def test_of_a_log_without_its_beginning_no_more_headers_are_told_than_were_looked_at():
    """That there may be more is said, as of a log that is whole."""
    denied = Evidence(kind="altered operations", summary="", source="headers")
    claim = SimpleNamespace(queue_manager="QM1")
    work = SimpleNamespace(claim=claim, log=SimpleNamespace(start=7))
    told = SimpleNamespace(findings=[], above=None)
    for count, beyond in (
        (EVIDENCE_MAX - 1, []),
        (EVIDENCE_MAX, ["headers: only the first 200 were looked at, there may be more"]),
    ):
        many = [replace(denied, position=7 + at) for at in range(count)]
        report = witnessed(work, 7 + count, told, many)
        assert (report.verdict, report.beyond) == ("anomalies", beyond)


def test_a_live_state_that_is_the_rebuilt_one_agrees(small):
    """The checkpoint's chunks are compared and are the same; no put is lost (INF-19)."""
    report = audit(small)
    assert report.verdict == "agrees"
    told = report.conservation
    assert (told["rule"], told["holds"]) == (CONSERVATION, True)
    of_queues = told["queues"]
    assert of_queues["accepted"] == sum(one["put"] for one in report.totals) > 0
    whole = of_queues["current"] + of_queues["pending"] + sum(of_queues["removed"].values())
    assert whole == of_queues["accepted"]


def test_one_field_of_a_live_message_is_found(small):
    """The evidence names queue, message and field."""
    name, block = decode_record(small.live.blocks[0])
    assert name == BLOCK
    block["messages"][0]["backout_count"] += 1
    live = replace(small.live, blocks=[encode_record(BLOCK, block)])
    (found,) = audit(replace(small, live=live)).anomalies
    assert (found.kind, found.field, found.queue) == ("state mismatch", "backout_count", "q")
    assert found.message_id == hexadecimal(block["messages"][0]["message_id"])
    assert (found.expected, found.found) == ("0", "1")


def test_one_field_of_the_live_queue_manager_is_found(small):
    """A counter of a queue in the root."""
    _, root = decode_record(small.live.root)
    root["queues"][0]["sent_and_committed"] += 1
    live = replace(small.live, root=encode_record(ROOT, root))
    (found,) = audit(replace(small, live=live)).anomalies
    assert (found.kind, found.field) == ("state mismatch", "sent_and_committed")
    assert "queues q" in found.summary


def test_a_law_that_is_broken_is_told_so_with_the_rows_that_it_looked_at(small):
    """One that nothing breaks holds."""
    query = "SELECT position, -1 AS store, -1 AS sequence, -1 AS session, '' AS summary, "
    query += "NULL AS expected, NULL AS found, queue_manager FROM {flights} WHERE delivery = %d"
    broken, kept = (
        Law(letter=letter, sentence="", breaches=(Breach("lost", query % delivery),))
        for letter, delivery in (("Y", 1), ("Z", 1_000))
    )
    laws = audit(replace(small, laws=(broken, kept))).proven["laws"]
    moves = small.facts.counts()["moves"]
    assert [(one["letter"], one["holds"], one["looked_at"]) for one in laws] == [
        ("Y", False, {"moves": moves}),
        ("Z", True, {"moves": moves}),
    ]


def test_a_put_that_is_nowhere_is_named(small):
    """The rebuilt state has lost it; the moves know where it is (INF-19)."""
    lost = small.rebuilt.messages().filter(field("sequence") != 2)
    (found,) = audit(replace(small, rebuilt=replace(small.rebuilt, others=lost))).anomalies
    assert (found.kind, found.queue, found.source) == ("state mismatch", "q", "moves")
    assert (found.field, found.expected, found.found) == ("presence", "absent", "there")
    assert found.message_id


def test_expired_outcomes_are_unproven_not_lost(small):
    """Where a lane has lost its oldest records, nothing is said to be lost, nothing to agree."""
    middle = small.rebuilt.position // 2
    recorded = small.recorded.where(f"position > {middle}")
    floors = dict.fromkeys(range(-1, small.lanes), middle)
    report = audit(replace(small, recorded=recorded, floors=floors))
    assert (report.verdict, report.exit_code, report.anomalies) == ("unproven", 5, [])


def test_outcomes_that_may_still_come_are_unproven(small):
    """A worker that is behind has lost nothing yet."""
    recorded = small.recorded.where("position < 5")
    report = audit(replace(small, recorded=recorded, answered_until=4, live=None))
    assert (report.verdict, report.anomalies) == ("unproven", [])
    assert "no worker runs" in report.unproven[0]


def test_the_fold_of_the_script_is_what_was_recorded():
    """The support code folds alike while a script grows and afterwards."""
    script = Script()
    RandomLog(script).grow(200)
    state, outcomes = fold(script.entries)
    assert outcomes == script.outcomes
    assert state.position == script.state.position
