"""Tests of tables and audit on logs with groups, segments, get options and group affinity."""

import random
from copy import deepcopy

import pytest

from ledgermq.protocol import operations as op
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.audit.report import html_report
from ledgermq_spark.audit.states import compare_live
from ledgermq_spark.derivation.turns import check_turns
from ledgermq_spark.rebuild.checkpoints import ROOT, Checkpoint
from support.audits.audits import audited, subject_of
from support.brokers.log_writer import Script
from support.planted.group_planting import GROUP_PLANTS, clashes, forget_refusals
from support.random_logs.random_groups import group_id, options, place, put_group
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1])
def test_a_random_log_with_groups_agrees(spark, tmp_path, seed):
    """Refusals, places, kept groups, affinity and deliveries are what the fold makes them."""
    script = Script(random=random.Random(seed))
    RandomLog(script, groups=True).grow(500)
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    assert all(one["balances"] for one in report.totals)
    assert report.compared["groups"] > 5


@pytest.fixture(scope="module")
def planted(spark, tmp_path_factory):
    """A log with a queue for each plant, as the audit sees it; the faults."""
    script = Script()
    for queue, before, _, _ in GROUP_PLANTS:
        before(script, queue)
    recorded = deepcopy(script.outcomes)
    faults = [(kind, plant(recorded, queue, script)) for queue, _, plant, kind in GROUP_PLANTS]
    directory = tmp_path_factory.mktemp("planted")
    return subject_of(spark, directory, script.entries, recorded), faults


def test_every_delivery_that_groups_do_not_allow_is_found_once(planted):
    """Out of logical order, incomplete, kept for another, bonded to another (GRP-03, GRP-20)."""
    subject, faults = planted
    report = audit(subject)
    found = sorted((one.kind, one.message_id) for one in report.anomalies)
    assert found == sorted(("unexpected", message) for _, message in faults)


def test_the_operations_alone_tell_what_groups_do_not_allow(planted):
    """Were the fold itself wrong, outcomes and rebuild would agree; the operations would not."""
    subject, faults = planted
    found = check_turns(subject.tables, subject.recorded)
    assert sorted((one.kind, one.message_id) for one in found) == sorted(faults)


def test_a_stuck_group_is_information_and_no_anomaly(planted):
    """The one that lacks its last message is told in the report and on its page."""
    subject, _ = planted
    report = audit(subject)
    (stuck,) = report.stuck_groups
    assert (stuck["queue"], stuck["group_id"]) == ("incomplete", group_id("Y").hex())
    assert (stuck["resident"], stuck["oldest"], stuck["first_resident"]) == (2, True, 0)
    assert any("are not complete, 1 of them the oldest" in one for one in report.notes)
    page = html_report(report)
    assert "Groups that are not complete" in page
    assert "the last message" in page


@pytest.mark.parametrize(
    ("record", "field", "value"),
    [
        ("consumers", "holds_group", False),
        ("consumers", "place", []),
        ("consumers", "options", []),
        ("queues", "group_affinity", True),
        ("queues", "bonds", []),
    ],
)
def test_one_field_of_the_live_groups_is_found(planted, record, field, value):
    """A place, the options, a kept group or a bond in the root of a checkpoint."""
    subject, _ = planted
    _, root = decode_record(subject.root_bytes)
    entries = root["queues"]
    if record == "consumers":
        entries = [one for session in root["sessions"] for one in session["consumers"]]
    changed = next(one for one in entries if one[field] != value)
    assert changed[field] or field == "group_affinity"
    changed[field] = value
    live = Checkpoint(manifest={}, root=encode_record(ROOT, root), blocks=subject.blocks())
    found = compare_live(subject.root_bytes, subject.blocks(), live, subject.position)
    assert [one.kind for one in found] == ["state mismatch"]
    assert field in found[0].summary


@pytest.mark.long
def test_refusals_come_from_the_operations_whatever_the_outcomes_tell(spark, tmp_path):
    """What the outcomes say of refused puts and gets is but where the tables begin (GRP-44)."""
    script = Script()
    refused = clashes(script)
    told = {
        one.outcome.position: one.outcome.reason
        for entry in script.outcomes
        for one in entry
        if type(one.outcome).__name__ == "Refused"
    }
    assert told == refused
    recorded = deepcopy(script.outcomes)
    count = forget_refusals(recorded)
    subject = subject_of(spark, tmp_path, script.entries, recorded)
    report = audit(subject)
    assert [one.kind for one in report.anomalies] == ["altered outcome"] * count
    acts = subject.tables.facts.acts.where("what = 'act' AND reason IS NOT NULL").collect()
    assert {row["position"]: row["reason"] for row in acts} == refused


@pytest.fixture(scope="module")
def lived(spark, tmp_path_factory):
    """Groups that came in their time, in segments, in part, with clashes; one is got complete."""
    script = Script()
    producer, consumer = script.session(), script.session("TRANSACTED")
    put_group(producer, "q", place("Y"), place("Y", 3, last_in_group=True))
    script.wait(2)
    put_group(producer, "q", place("Y", 2))
    for number, offsets in ((2, (10, 30)), (4, (0, 10)), (7, (-1,))):
        put_group(producer, "q", *(place("Z", number, offset) for offset in offsets))
    whole = {"in_group": False}
    put_group(
        producer, "q", place("S", 1, 0, **whole), place("S", 1, 10, last_segment=True, **whole)
    )
    one, other = script.session("TRANSACTED"), script.session("TRANSACTED")
    put_group(one, "q", place("X"))
    put_group(other, "q", place("X"))
    one.commit()
    other.commit()
    consumer.consumer("q")
    asked = options(logical_order=True, all_messages_available=True, complete_message=True)
    consumer.send(op.Get, consumer=1, credit=5, options=asked)
    consumer.commit(1, 2, 3)
    return subject_of(spark, tmp_path_factory.mktemp("lived"), script.entries)


def test_groups_tell_what_was_ever_there_and_what_is_missing(lived):
    """Complete or not, since when, what waits and what was consumed, without the fold."""
    rows = {
        bytes.fromhex(row["group_id"])[:1].decode(): row for row in lived.tables.groups.collect()
    }
    assert sorted(rows) == ["S", "X", "Y", "Z"]
    y, z, s, x = rows["Y"], rows["Z"], rows["S"], rows["X"]
    assert (y["messages"], y["items"], y["last_group_sequence"], y["complete"]) == (3, 3, 3, True)
    assert (y["missing"], y["consumed"], y["resident"]) == ("", 3, 0)
    assert y["time_to_completion_us"] == y["completed_at"] - y["first_enqueued_at"] > 2_000_000
    assert (z["in_group"], z["complete"], z["completed_at"]) == (True, False, None)
    assert (z["missing"], z["last_group_sequence"]) == ("1, 3, 5-6", 0)
    assert z["missing_segments"] == "2 from 0 to 10, 2 from 20 to 30, 2 from 40, 4 from 20"
    assert (s["in_group"], s["complete"], s["messages"], s["resident"]) == (False, True, 1, 2)
    assert (x["items"], x["messages"], x["clashing"]) == (2, 1, 1)
    assert (x["first_sequence"], x["last_sequence"]) == (10, 11)


def test_what_is_got_complete_agrees_and_costs_one_credit(lived):
    """Three messages and two segments of one for four of five credits (GRP-38)."""
    report = audit(lived)
    assert report.verdict == "agrees"
    assert [bytes.fromhex(one["group_id"])[:1] for one in report.stuck_groups] == [b"Z", b"X"]
    (queue,) = report.totals
    assert (queue["deliveries"], queue["status"]["groups"]) == (5, 3)
