"""Tests that an outcome on the lanes that hides something differs, in the field that hides it."""

from copy import deepcopy
from dataclasses import replace

import pytest

from ledgermq.cli.commands.audit import _print
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.output import Output
from ledgermq.protocol.outcomes import Delivered
from ledgermq_spark.audit import compare
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.audit.compare import KEYS_MAX, differences
from ledgermq_spark.audit.findings.classify import classify
from ledgermq_spark.audit.findings.evidence import EVIDENCE_MAX
from ledgermq_spark.audit.report.report import html_report
from ledgermq_spark.laws.law import Breach, Law
from support.audits.audits import subject_of
from support.audits.engines import duck_engine
from support.audits.frames import outcomes_frame
from support.brokers.log_writer import LANES, Script
from support.pages.reading import Page
from support.planted.group_planting import clashes, forget_refusals
from support.stories import losses, moving, ordering

pytestmark = [pytest.mark.slow]

TARGET = Target(broker="", queue_manager="QM1", topic_prefix="t", timeout_seconds=1)


def found_of(script, recorded):
    """Return what is found where outcomes are recorded otherwise than a log calls for."""
    engine = duck_engine()
    expected = outcomes_frame(engine, script.outcomes, as_folded=True)
    return classify(differences(expected, outcomes_frame(engine, recorded), LANES), set(), {})


def test_a_delivery_that_hides_its_doubt_is_found():
    """The outcome on the lane says that nobody was lost with it (H20)."""
    script = losses.two_losses()
    recorded = deepcopy(script.outcomes)
    place, at = next(
        (entry, number)
        for entry in recorded
        for number, one in enumerate(entry)
        if isinstance(one.outcome, Delivered) and one.outcome.in_doubt
    )
    place[at] = place[at]._replace(outcome=replace(place[at].outcome, in_doubt=False))
    (found,) = found_of(script, recorded)
    assert (found.kind, found.field) == ("altered outcome", "in_doubt")
    assert found.position == place[at].outcome.position


def test_an_outcome_that_hides_where_a_message_was_is_found():
    """The origin of what is delivered is compared as its other fields are."""
    script, message = moving.wandering()
    recorded = deepcopy(script.outcomes)
    told = next(
        one
        for entry in recorded
        for addressed in entry
        if isinstance(addressed.outcome, Delivered)
        for one in addressed.outcome.messages
        if one["message_id"] == message["message_id"]
    )
    told["header"]["origin"]["sequence"] = 7
    (found,) = found_of(script, recorded)
    assert (found.kind, found.field) == ("altered outcome", "origin")
    assert found.message_id == message["message_id"].hex()


def test_a_delivery_of_what_had_to_wait_is_found():
    """Outcomes as if groups kept no order: what was delayed is passed by its group (§15)."""
    script = ordering.delayed(kept=True, grouped=False)
    other = ordering.delayed(kept=False, grouped=False)
    found = found_of(script, other.outcomes)
    assert {one.kind for one in found} >= {"reordered"}


def test_a_refusal_for_the_sake_of_groups_with_another_reason_is_found():
    """Each of them (GRP-44)."""
    script = Script()
    refused = clashes(script)
    recorded = deepcopy(script.outcomes)
    count = forget_refusals(recorded)
    found = found_of(script, recorded)
    assert [(one.kind, one.field) for one in found] == [("altered outcome", "reason")] * count
    assert {one.position for one in found} <= set(refused)


@pytest.mark.parametrize("turned", [False, True])
def test_what_went_elsewhere_is_not_lost_where_that_differs_behind_the_first_ones(
    monkeypatch, turned
):
    """Of a hundred thousand that differ five hundred are looked at, one here; each is what it is.

    It is told at the first place of both.
    """
    script = Script()
    session = script.session()
    session.consumer("q")
    for text in "abc":
        session.put("q", text)
        session.get(1)
    recorded = deepcopy(script.outcomes)
    places = [
        (entry, at)
        for entry in recorded
        for at, one in enumerate(entry)
        if isinstance(one.outcome, Delivered)
    ]
    assert len(places) == 3
    (entry, at), (last, last_at) = places[0], places[2]
    first, third = entry[at].outcome, last[last_at].outcome
    # Each has the other's message: or one has none, and the other both.
    given = {0: [], 2: [*first.messages, *third.messages]}
    if turned:
        given = {0: [*first.messages, *third.messages], 2: []}
    for number, (where, which) in ((0, places[0]), (2, places[2])):
        outcome = where[which].outcome
        where[which] = where[which]._replace(outcome=replace(outcome, messages=given[number]))
    whole = found_of(script, recorded)
    assert {one.kind for one in whole} == {"reordered"}
    monkeypatch.setattr(compare, "KEYS_MAX", 1)
    (cut,) = found_of(script, recorded)
    assert cut == whole[0]


def test_a_report_says_that_more_differs_than_it_looked_at(capsys):
    """Of thousands of outcomes that were lost it once said 500, of breaches of laws 200."""
    script = Script()
    session = script.session()
    many = KEYS_MAX + 10
    session.put("q", "first")
    for _ in range(many):
        session.put("q", "a")
    query = "SELECT position, -1 AS store, -1 AS sequence, -1 AS session, '' AS summary, "
    query += "NULL AS expected, NULL AS found, queue_manager FROM {operations}"
    law = Law(letter="Z", sentence="", breaches=(Breach("lost", query),))
    whole = subject_of(duck_engine(), script.entries)
    lost = audit(replace(whole, recorded=whole.recorded.where("position < 2"), laws=(law,)))
    assert lost.counts["lost"] + lost.consequences == KEYS_MAX + EVIDENCE_MAX
    assert lost.beyond == [
        "outcomes that differ: 510, only the first 500 were looked at; 510 are not on the lanes",
        "breaches of laws: only the first 200 were looked at, there may be more",
    ]
    page = Page(html_report(lost)).text
    _print(TARGET, Output(as_json=False), lost)
    told = capsys.readouterr().err
    for one in lost.beyond:
        assert one in page
        assert one in told
    assert audit(whole).beyond == []
