"""The audit of what came onto a log since the last audit, behind the state that was proven then.

What is new is added to an archive; laws judge the new stretches there with what was carried into
them. An audit that agrees is noted in the archive, and the next one begins behind it.
"""

from __future__ import annotations

import operator
import time
from datetime import UTC, datetime
from typing import Any

from ledgermq_spark.archive.judged import judged_facts
from ledgermq_spark.archive.log_archive import PROVEN, LogArchive
from ledgermq_spark.archive.stretch import FOLD, ArchiveBrokenError, Stretch
from ledgermq_spark.archive.updating import extend
from ledgermq_spark.audit.audit import AuditReport, Subject
from ledgermq_spark.audit.auditing import audit_behind, checkpoint_at, checkpoints_of
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.headers import check_operation_headers
from ledgermq_spark.audit.lane_ends import lane_floors
from ledgermq_spark.audit.witnesses import Noted, hear
from ledgermq_spark.jobs.work import Work, told_outcomes
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.log.positions import PositionOutOfRangeError
from ledgermq_spark.rebuild.rebuilt import rebuilt_from


def audit_of_new(
    work: Work, archive: LogArchive, position: int, live_position: int | None, noted: Noted
) -> AuditReport:
    """Audits what lies between the last proven position and this one.

    Raises what `archive.updating.extend` raises, and:
        PositionOutOfRangeError: The position was archived before.
    """
    started = time.monotonic()
    held = archive.stretches()
    if held and held[-1].last > position:
        raise PositionOutOfRangeError(
            f"position {position} is in the archive {archive.path} already, which ends at "
            f"{held[-1].last}: an audit with an archive looks at what is new. Leave out its option"
        )
    findings: list[Evidence] = []
    with work.stage("adding to the archive", 1):
        extend(work, archive, position)
    stretches = archive.there()
    proven = archive.proven()
    new = _new_stretches(archive, stretches, proven)
    for stretch in new:
        stretch.check()
    before = stretches[: len(stretches) - len(new)]
    base = before[-1] if before else None
    lanes_from, notes = _lanes_from(work, proven, base)
    checkpoints = checkpoints_of(work)
    live = checkpoint_at(checkpoints, position, live_position, findings)
    with work.stage("reading the log", 2):
        last, parts = new[-1], [one.part(FOLD) for one in new]
        rebuilt = rebuilt_from(
            last.queue_manager, new[0].first, last.last, parts, started, parts[-1:]
        )
        facts = judged_facts(work.spark, stretches, new, work.store)
        lanes = Frame.taken(facts.engine, "lanes", work.outcomes(position, lanes_from))
        read = work.operations(position, new[0].first)
        operations = Frame.taken(facts.engine, "operations_read", read)
        told = hear(work, lanes, checkpoints, noted)
    subject = Subject(
        rebuilt=rebuilt,
        lanes=work.claim.lanes,
        operations=operations,
        expected=told_outcomes(rebuilt, facts.engine),
        recorded=told.outcomes,
        facts=facts,
        is_whole=False,
        since=new[0].first,
        start=_start(base),
        live=live,
        floors=lane_floors(work, told.outcomes, lanes_from),
        first_findings=[*findings, *told.findings],
        of_headers=[*check_operation_headers(operations), *told.of_headers],
        notes=notes,
    )
    report = audit_behind(work, told, None if base is None else base.state(), subject)
    if report.verdict == "agrees":
        archive.note_proven(_noted(work, report))
    return report


def _new_stretches(
    archive: LogArchive, stretches: list[Stretch], proven: dict[str, Any] | None
) -> list[Stretch]:
    """Those behind what was proven; the last one once more, if there are none."""
    if proven is None:
        return stretches
    known = next((one for one in stretches if one.last == proven["last"]), None)
    if known is None or known.digest != proven["digest"]:
        raise ArchiveBrokenError(
            f"the archive {archive.home} is not the one of the last audit: that proved the state "
            f"{proven['digest']} at position {proven['last']}; take that from a copy, or remove "
            f"{archive.home / PROVEN}, and the next audit begins at position 0"
        )
    return [one for one in stretches if one.first > known.last] or stretches[-1:]


def _lanes_from(
    work: Work, proven: dict[str, Any] | None, base: Stretch | None
) -> tuple[list[int] | None, list[str]]:
    """Where the last audit stopped reading lanes, if it read all of them, and what to say of it.

    Lanes that are shorter now were cut or made anew: no offset means there what it meant then.
    """
    if proven is None or base is None:
        return None, []
    reach, ends = _reach(proven), proven["lane_ends"]
    if ends is None or base.last != proven["last"]:
        return None, [reach]
    now = [one.end for one in work.lanes]
    if len(ends) == len(now) and all(map(operator.le, ends, now)):
        return ends, [reach]
    told, was = (", ".join(map(str, one)) for one in (now, ends))
    anew = (
        f"the lanes end at {told}, and that audit read them up to {was}: they were cut or made "
        "anew, and read from their beginnings now"
    )
    return None, [reach, anew]


def _start(base: Stretch | None) -> str:
    if base is None:
        return "the beginning of the log"
    return f"the state at position {base.last} in the archive, proven before"


def _reach(proven: dict[str, Any]) -> str:
    return (
        f"positions 0 to {proven['last']} were proven by the audit of {proven['at']}, up to the "
        f"state {proven['digest']}"
    )


def _noted(work: Work, report: AuditReport) -> dict[str, Any]:
    """What the next audit goes on from.

    Lanes were looked at before the log's end was: whatever answers later entries lies above.
    """
    reached_end = report.position == work.log.end - 1
    return {
        "last": report.position,
        "digest": report.digest,
        "chain": report.chain,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "lane_ends": [one.end for one in work.lanes] if reached_end else None,
    }
