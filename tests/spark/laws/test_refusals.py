"""Law M on the scripts of all refusals: quiet as they are, and not where an answer is another."""

from collections import defaultdict

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.limits import REPLIES_MAX
from ledgermq.protocol.reasons import Reason
from ledgermq_spark.laws.refusals.refusals import IN_PART, LAW, NOT_JUDGED
from support.audits.engines import duck_engine
from support.audits.testimonies import COLUMNS, Logs
from support.brokers.log_writer import Script
from support.scripts.protocol_pages import refusals_of
from support.scripts.recording import recorded_scripts

NAMES = {which: [name for name, _ in columns] for which, columns in COLUMNS.items()}
REPLIES = {
    "Accepted",
    "Enqueued",
    "Committed",
    "Returned",
    "Administered",
    "SessionEnded",
    "Opened",
}
READER = {
    *(Reason.TIMESTAMP_UNTRUSTED, Reason.RECORD_EMPTY, Reason.SCHEMA_UNKNOWN),
    *(Reason.VERSION_INACTIVE, Reason.RECORD_UNREADABLE, Reason.POSITION_SKIPPED),
}
# What waited has its number: a late answer is none of these.
NOT_LATE = {
    *(Reason.SESSION_UNKNOWN, Reason.SESSION_SEQUENCE_GAP),
    *(Reason.SESSION_WINDOW_FULL, Reason.REPLY_FORGOTTEN),
}
# Answers that could be right for all that the law can tell: it asks no more than whether they may
# be told of such an operation.
BELIEVED = {*NOT_JUDGED, Reason.QUOTA_EXCEEDED}


class Answer:
    """The answer to one operation of a log that was folded."""

    def __init__(self, log, at, operation, outcome):
        self.log, self.at, self.operation, self.outcome = log, at, operation, outcome
        self.position, self.kind = operation["position"], operation["kind"]
        self.what = self.kind
        if outcome["position"] > self.position:
            self.what = f"{self.kind} that waited in {outcome['queue_manager']}"
        self.reason = outcome["reason"] if outcome["kind"] == "Refused" else None

    def pretended(self, name, **values):
        """Return the log up to this answer under a name, with another answer."""
        changed = Logs()
        for which, rows in self.log.rows.items():
            at = NAMES[which].index("position") if "position" in NAMES[which] else None
            changed.rows[which] = [
                (name, *row[1:])
                for row in rows
                if at is None or row[at] <= self.outcome["position"]
            ]
        outcome = self.outcome | values | {"queue_manager": name}
        if self.operation["session"] is None and outcome["kind"] == "Refused":
            outcome |= {"session": -1, "session_sequence": 0}
        changed.rows["outcomes"][self.at] = tuple(outcome.values())
        return changed


def answers_in(log):
    """Yield the answers to operations of a log, also late ones to Commits, with the operations."""
    operations = {
        one["position"]: one
        for one in (
            dict(zip(NAMES["operations"], row, strict=True)) for row in log.rows["operations"]
        )
    }
    commits = {}
    for one in operations.values():
        if one["kind"] == "Commit":
            commits.setdefault((one["session"], one["session_sequence"]), one)
    for at, row in enumerate(log.rows["outcomes"]):
        outcome = dict(zip(NAMES["outcomes"], row, strict=True))
        operation = operations[outcome["position"]]
        numbers = (outcome["session"], outcome["session_sequence"])
        asked = (operation["session"], operation["session_sequence"])
        outside = operation["session"] is None and (
            outcome["kind"] == "Opened" or outcome["session"] == -1
        )
        if outcome["kind"] in {*REPLIES, "Refused"} and (numbers == asked or outside):
            yield Answer(log, at, operation, outcome)
        elif outcome["kind"] in {"Committed", "Refused"} and numbers in commits:
            # Nothing else of these numbers is answered here: the Commit waited.
            yield Answer(log, at, commits[numbers], outcome)


def reasons_of(answer):
    """Return what may refuse an operation, as the pages list it."""
    if answer.kind == "Unreadable":
        return sorted(READER)
    if answer.kind == "TimeAgreed":
        return [Reason.TIME_DISAGREES]
    if answer.outcome["position"] > answer.position:
        return sorted(refusals_of(answer.kind) - NOT_LATE)
    return sorted(refusals_of(answer.kind))


def pretences(log):
    """Yield each way to answer otherwise: what it shows, the answer, and what it is changed to."""
    for answer in answers_in(log):
        others = [one for one in reasons_of(answer) if one not in {answer.reason, *BELIEVED}]
        if answer.reason is None:
            for other in others:
                yield ("refused", answer.what, other), answer, ("Refused", other)
        elif answer.reason not in BELIEVED:
            yield ("accepted", answer.what, answer.reason), answer, ("Accepted", None)
            if others:
                told = ("refused otherwise", answer.what, answer.reason)
                yield told, answer, ("Refused", others[len(answer.reason) % len(others)])


def folded_logs():
    """Yield logs that show every reason, each with its name."""
    full = Script()
    session = full.session()
    for _ in range(REPLIES_MAX + 1):
        session.send(op.Alive, answered_through=0)
    empty = Script()
    empty.add_value(None)
    for name, entries in (*recorded_scripts(), ("a full window", full.entries)):
        log = Logs()
        log.fold(name, entries)
        yield name, log
    # What no log of one worker that knows one version shows: the reader says these, too.
    for reason in (Reason.VERSION_INACTIVE, Reason.POSITION_SKIPPED):
        log = Logs()
        log.fold(reason, empty.entries)
        for which in ("operations", "outcomes"):
            row = dict(zip(NAMES[which], log.rows[which][0], strict=True)) | {"reason": reason}
            log.rows[which][0] = tuple(row.values())
        yield reason, log


@pytest.fixture(scope="module")
def judged(spark):
    """Return the positions at which the law speaks by log, and what each pretence is told of."""
    logs, pretended, scripts = Logs(), {}, []
    for name, one in folded_logs():
        scripts.append(name)
        for what, answer, (kind, reason) in pretences(one):
            if what not in pretended:
                title = " ".join(what)
                pretended[what] = (title, answer.outcome["position"])
                logs.add(answer.pretended(title, kind=kind, reason=reason))
        logs.add(one)
    found = defaultdict(set)
    for row in logs.facts(duck_engine()).judge((LAW,)):
        found[row["queue_manager"]].add(row["position"])
    return found, pretended, scripts


def test_scripts_of_the_fold_break_no_law_of_refusals(judged):
    """Each operation of every script is refused for the first reason that applies (D10)."""
    found, _, scripts = judged
    assert {name: found[name] for name in scripts if found[name]} == {}


def test_another_answer_than_the_right_one_is_found(judged):
    """Accepted, refused, or refused for another reason than the pages say: all is noticed (D10)."""
    found, pretended, _ = judged
    missed = [what for what, (title, position) in pretended.items() if position not in found[title]]
    assert missed == []


def test_every_reason_is_judged_both_ways_or_listed(judged):
    """A new reason is judged, or it is said why it is not."""
    _, pretended, _ = judged
    accepted = {what[2] for what in pretended if what[0] == "accepted"}
    refused = {what[-1] for what in pretended if what[0] != "accepted"}
    assert set(Reason) - accepted <= {*NOT_JUDGED, *IN_PART}
    # A TimeAgreed that is not refused has no answer that could be another.
    assert set(Reason) - refused <= {*NOT_JUDGED, *IN_PART, Reason.TIME_DISAGREES}
