"""The audit: says whether operations, outcomes, laws, rebuild and live state agree.

It compares what others computed and knows no fold. Each check is a function that returns evidence;
`judge` puts primary findings before what merely follows from them, so that one fault is told once.

Verdicts and exit codes: *agrees* 0; *anomalies* 1; *unproven* 5, where records that would prove or
disprove something have expired or are not written yet, and nothing that is there disagrees.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from ledgermq_spark.audit.compare import KEYS_MAX, Differences, differences
from ledgermq_spark.audit.conservation import CONSERVATION, check_counts, summary_of
from ledgermq_spark.audit.contents import altered_contents, altered_copies
from ledgermq_spark.audit.findings.classify import classify, delivered_before, holders_in
from ledgermq_spark.audit.findings.evidence import (
    ANOMALY_KINDS,
    Evidence,
    beyond_these,
    judge,
)
from ledgermq_spark.audit.findings.naming import name_messages
from ledgermq_spark.audit.lawfulness import breaches
from ledgermq_spark.audit.report.by_hand import done_by_hand
from ledgermq_spark.audit.states import compare_live, compare_messages
from ledgermq_spark.laws.all_laws import LAWS
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.laws.law import Law
from ledgermq_spark.pages.page import counted
from ledgermq_spark.rebuild.checkpoints import Checkpoint
from ledgermq_spark.rebuild.rebuilt import Rebuilt, or_more
from ledgermq_spark.tables.totals import Total, totals_of
from ledgermq_spark.tables.traffic import (
    LISTED_MAX,
    Points,
    never_used,
    series_of,
    slowest_settlements,
    subscription_ends,
)

__all__ = ["EXIT_CODES", "AuditReport", "Subject", "audit", "judge"]

EXIT_CODES = {"agrees": 0, "anomalies": 1, "unproven": 5}
# Of these a report has the first so many, and says how many there are.
CUT: Final = ("never_used", "stalls", "stuck_groups")
# How outcomes differ, as `compare` counts them.
DIFFERING: Final = {
    "missing": "are not on the lanes",
    "extra": "are on the lanes only",
    "differing": "say something else",
    "chain": "name another one before them",
}
ONLY_COUNTS: Final = "only the counts of the rebuilt state were added up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is audited: everything that was read and computed, up to the position of the rebuild.

    `expected` are the outcomes that the operations call for. `facts` are what laws are asked of
    (None: none is), `is_whole` says that they tell of the log from its beginning: else the audit is
    of what stands from `since` on, behind a state that `start` has in words. `first_findings` is
    what was found before the outcomes could be compared, `of_headers` what headers of records say
    against them; `unproven` what is known not to be provable, `notes` what else people should know.
    `laws` are those that are asked.
    """

    rebuilt: Rebuilt
    lanes: int
    operations: Frame
    expected: Frame
    recorded: Frame
    facts: Facts | None
    is_whole: bool = True
    since: int = 0
    start: str = "the beginning of the log"
    live: Checkpoint | None = None
    floors: dict[int, int] = field(default_factory=dict)
    answered_until: int | None = None
    first_findings: list[Evidence] = field(default_factory=list)
    of_headers: list[Evidence] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    laws: tuple[Law, ...] = LAWS


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What the audit found at one position of a queue manager's log.

    Times are microseconds since 1970 UTC. `consequences` counts findings that follow from the
    anomalies listed; `beyond` says of which comparisons only the first findings were looked at, so
    that neither number is of all there are; `compared` says how many of what were compared; `notes`
    what was left out. `corrections` and `by_hand` are what administrators did, and why
    (`by_hand.done_by_hand`). `chain_proof` says what anchors prove of the operations
    (`anchors.ChainProof`). `conservation` says what became of every put that was accepted (INF-19),
    in messages. `proven` says from which start to which position the proof reaches, and which laws
    were asked of how many rows. `stuck_groups` are information: groups that lack something while
    messages of them wait; so are `stalls`: where messages have been for long, and why nobody gets
    them. `in_all` says how many there are of what is listed by its first so many. `depth`,
    `oldest_age_seconds` and `redeliveries` are those of the busiest queues and topics
    (`traffic.Series`).
    """

    queue_manager: str
    position: int
    time: int
    verdict: str
    anomalies: list[Evidence] = field(default_factory=list)
    consequences: int = 0
    beyond: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    compared: dict[str, int] = field(default_factory=dict)
    totals: list[dict[str, Any]] = field(default_factory=list)
    subscription_totals: list[dict[str, Any]] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=dict)
    refused_records: list[dict[str, Any]] = field(default_factory=list)
    corrections: list[dict[str, Any]] = field(default_factory=list)
    digest: str = ""
    chain: str = ""
    by_hand: list[dict[str, Any]] = field(default_factory=list)
    chain_proof: dict[str, Any] = field(default_factory=dict)
    conservation: dict[str, Any] = field(default_factory=dict)
    proven: dict[str, Any] = field(default_factory=dict)
    stuck_groups: list[dict[str, Any]] = field(default_factory=list)
    stalls: list[dict[str, Any]] = field(default_factory=list)
    never_used: list[dict[str, Any]] = field(default_factory=list)
    in_all: dict[str, int] = field(default_factory=dict)
    slowest_settlements: list[dict[str, Any]] = field(default_factory=list)
    depth: dict[str, Points] = field(default_factory=dict)
    oldest_age_seconds: dict[str, Points] = field(default_factory=dict)
    redeliveries: dict[str, Points] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 agrees, 1 anomalies, 5 unproven."""
        return EXIT_CODES[self.verdict]

    @property
    def counts(self) -> dict[str, int]:
        """How many anomalies of each kind, in the report's order."""
        found = Counter(one.kind for one in self.anomalies)
        return {kind: found[kind] for kind in ANOMALY_KINDS if found[kind]}

    def count(self, listed: str) -> int:
        """How many there are of what one of the lists has, or has the first of."""
        return self.in_all.get(listed, len(getattr(self, listed)))

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in ("anomalies",)}
        return plain | {
            "exit_code": self.exit_code,
            "counts": self.counts,
            "anomalies": [one.as_dict() for one in self.anomalies],
        }


def audit(subject: Subject) -> AuditReport:
    """Compare everything at the subject's position."""
    rebuilt, facts = subject.rebuilt, subject.facts
    found = differences(
        subject.expected,
        subject.recorded,
        subject.lanes,
        floors=subject.floors,
        answered_until=subject.answered_until,
    )
    differs = found.extra or found.missing or found.differing
    holders = holders_in(facts) if differs and facts is not None else {}
    unproven = [*subject.unproven, *_unproven(found)]
    notes = [*subject.notes, *_stuck_notes(rebuilt.groups), *_stall_notes(rebuilt.stalls)]
    looked_at = _looked_at(subject, notes)
    primary = [
        *subject.first_findings,
        *classify(found, delivered_before(subject.expected, found, holders), holders),
        *chain.from_iterable(looked_at.values()),
        # Where the rebuilt state itself does not conserve what it numbered.
        *check_counts(rebuilt.statuses, rebuilt.topics, rebuilt.subscriptions, rebuilt.position),
    ]
    secondary = {"headers": subject.of_headers}
    compared = {
        "operations": rebuilt.operations,
        "outcomes": found.compared,
        "recorded outcomes": found.recorded,
    }
    told: dict[str, Any] = {"stuck_groups": rebuilt.groups, "stalls": rebuilt.stalls}
    in_all: dict[str, int] = {}
    laws: list[dict[str, Any]] = []
    if facts is not None:
        secondary["breaches of laws"], laws = breaches(facts, subject.laws)
        told["corrections"], told["by_hand"], in_all = done_by_hand(facts)
    if facts is not None and subject.is_whole:
        left = compare_messages(facts, rebuilt.messages(), rebuilt.position)
        secondary["where moves leave messages"] = left
        totals = totals_of(facts)
        compared |= _counted(totals)
        told |= _of_all(facts, totals, rebuilt)
    else:
        notes.append(f"{CONSERVATION}: {ONLY_COUNTS}; an audit of the whole log does more")
    anomalies, consequences = judge(primary, [*chain.from_iterable(secondary.values())])
    if facts is not None:
        anomalies = name_messages(anomalies, facts)
    refusals, records = _refused(subject.expected)
    return AuditReport(
        queue_manager=rebuilt.queue_manager,
        position=rebuilt.position,
        time=rebuilt.time,
        verdict="anomalies" if anomalies else "unproven" if unproven else "agrees",
        anomalies=anomalies,
        consequences=consequences,
        beyond=[*_beyond(found), *beyond_these(looked_at | secondary)],
        unproven=unproven,
        notes=notes,
        compared=compared,
        refusals=refusals,
        refused_records=records,
        digest=rebuilt.digest,
        chain=rebuilt.chain.hex() if rebuilt.position >= 0 else "",
        proven={
            "since": subject.since,
            "until": rebuilt.position,
            "start": subject.start,
            "laws": laws,
        },
        in_all=in_all | {name: len(told[name]) for name in CUT if name in told},
        **told | {name: told[name][:LISTED_MAX] for name in CUT if name in told},
    )


def _looked_at(subject: Subject, notes: list[str]) -> dict[str, list[Evidence]]:
    """What contents, copies and the live state say otherwise, the first findings of each."""
    return {
        "contents of deliveries": altered_contents(subject.operations, subject.recorded),
        "copies for a trim": altered_copies(subject.operations, subject.expected),
        "fields of the live state": _live(subject, notes),
    }


def _of_all(facts: Facts, totals: list[Total], rebuilt: Rebuilt) -> dict[str, Any]:
    """What a report tells of a log from its beginning on."""
    series = series_of(facts, totals)
    return {
        "conservation": summary_of(totals),
        "totals": [one for one in totals if one["kind"] != "subscription"],
        "subscription_totals": _described(totals, rebuilt.subscriptions, subscription_ends(facts)),
        "never_used": never_used(facts, totals),
        "slowest_settlements": slowest_settlements(facts),
        "depth": series.depth,
        "oldest_age_seconds": series.oldest_age_seconds,
        "redeliveries": series.redeliveries,
    }


REFUSED = """
SELECT reason, count(*) AS total FROM {rows} WHERE kind = 'Refused'
GROUP BY reason ORDER BY reason
"""
REFUSED_FIRST = f"""
SELECT position, session, session_sequence, reason, detail FROM {{rows}} WHERE kind = 'Refused'
ORDER BY position, index LIMIT {LISTED_MAX}
"""


def _stuck_notes(stuck: list[dict[str, Any]]) -> list[str]:
    """What a report says of groups that are not complete beside its table of them."""
    if not stuck:
        return []
    oldest = sum(1 for one in stuck if one["oldest"])
    count = f"{len(stuck):,}{or_more(len(stuck))}"
    told = f"groups that are not complete while messages of them wait: {count}"
    return [f"{told}; of these the oldest in their queues: {oldest:,}"]


def _stall_notes(stalls: list[dict[str, Any]]) -> list[str]:
    if not stalls:
        return []
    told = "queues and subscriptions where messages wait for long that nobody gets"
    return [f"{told}: {len(stalls):,}"]


def _counted(totals: list[Total]) -> dict[str, int]:
    """How many there are of what totals tell of."""
    kinds = Counter(one["kind"] for one in totals)
    puts = [one for one in totals if one["kind"] != "subscription"]
    return {
        "messages": sum(one["put"] for one in puts),
        "deliveries": sum(one["deliveries"] for one in totals),
        "queues": kinds["queue"],
        "topics": kinds["topic"],
        "subscriptions": kinds["subscription"],
    }


def _described(
    totals: list[Total],
    standing: list[dict[str, Any]],
    ends: dict[int, tuple[int, str]],
) -> list[dict[str, Any]]:
    """The totals of subscriptions, with their kinds, what those that stand ask for, and how the
    others ended.
    """
    gone = {"kind": "gone", "client_id": "", "selector": "", "no_local": False}
    known = {one["created_position"]: one for one in standing}
    described = []
    for one in totals:
        if one["kind"] == "subscription":
            status = known.get(one["store"], gone)
            asked = {name: status[name] for name in ("client_id", "selector", "no_local")}
            ended_at, ended_as = ends.get(one["store"], (None, None))
            end = {"ended_position": ended_at, "ended_as": ended_as}
            described.append(one | asked | {"standing": status["kind"]} | end)
    return described


def _live(subject: Subject, notes: list[str]) -> list[Evidence]:
    rebuilt, live = subject.rebuilt, subject.live
    if live is None or live.position != rebuilt.position:
        notes.append("the live state was not compared: there is no checkpoint at this position")
        return []
    told = compare_live(rebuilt.root_bytes, rebuilt.block_bytes(), live, rebuilt.position)
    if not told and live.manifest["digest"] != rebuilt.digest:
        told = [
            Evidence(
                kind="digest mismatch",
                source="live state",
                summary="the live state has another digest, though its fields are the same",
                position=rebuilt.position,
                expected=rebuilt.digest,
                found=live.manifest["digest"],
            )
        ]
    return told


def _beyond(found: Differences) -> list[str]:
    """What differs beyond the outcomes that were looked at, if more do."""
    odd = {name: found.totals.get(name, 0) for name in DIFFERING}
    count = sum(odd.values())
    if count <= KEYS_MAX:
        return []
    each = ", ".join(f"{odd[name]:,} {what}" for name, what in DIFFERING.items() if odd[name])
    return [f"outcomes that differ: {count:,}, only the first {KEYS_MAX} were looked at; {each}"]


def _unproven(found: Differences) -> list[str]:
    told = []
    if found.totals.get("expired"):
        told.append(
            f"expired from the lanes: {counted(found.totals['expired'], 'outcomes')}; what they "
            "said cannot be compared"
        )
    if found.totals.get("unanswered"):
        told.append(
            f"not on the lanes yet, at the end of the log: "
            f"{counted(found.totals['unanswered'], 'outcomes')}; no worker runs, or it is behind"
        )
    return told


def _refused(expected: Frame) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Refusals by reason, and the refused records that were no operations, with positions."""
    counts = {row["reason"]: row["total"] for row in expected.rows(REFUSED)}
    return counts, expected.rows(REFUSED_FIRST)
