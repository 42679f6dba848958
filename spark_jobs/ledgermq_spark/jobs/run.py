"""What the command line and the jobs call: audit and tables of one queue manager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Unpack

from ledgermq_spark.archive.judged import judged_facts
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.proving import ProvenStretch, prove_stretches
from ledgermq_spark.audit.anchors import Anchor
from ledgermq_spark.audit.audit import AuditReport
from ledgermq_spark.audit.auditing import audit_of_all, audit_of_nothing
from ledgermq_spark.audit.behind.archived import audit_of_new
from ledgermq_spark.audit.behind.trimmed import audit_of_rest
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.lawfulness import breaches
from ledgermq_spark.audit.witnesses import Noted, archive_anchors
from ledgermq_spark.jobs.work import STEPS, begin, facts_of, read_log
from ledgermq_spark.laws.all_laws import LAWS
from ledgermq_spark.laws.engines.choice import Choice, quickest_engine
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.positions import refuse_trimmed, resolve_at
from ledgermq_spark.log.store import Store
from ledgermq_spark.rebuild.rebuild import rebuild_at
from ledgermq_spark.rebuild.rebuilt import FoldStoppedError, why_stopped
from ledgermq_spark.rebuild.running import JobOptions, LogJobOptions, Running
from ledgermq_spark.tables.writing import check_whole, write_tables

__all__ = ["rebuild_at", "run_audit", "run_proof", "run_tables"]


def run_tables(
    bootstrap: str,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    output: Path | None = None,
    tunes: bool = True,
    choice: Choice = quickest_engine,
    **options: Unpack[LogJobOptions],
) -> Facts:
    """State what happened up to a position or time, for tables to be asked of.

    They (`tables.all_tables.TABLES`) are written as Parquet below `output`, if given. `choice` says
    what answers.

    Raises:
        PositionOutOfRangeError: `at` lies before the log's start or after its end.
        QueueManagerNotFoundError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version.
        DirectoryUnwritableError: Nothing can be written in the directory for tables.
        TablesBusyError: Somebody else writes tables in it at this moment.
        TablesOtherwiseError: There are tables that grow with an archive in it.
    """
    if output is not None:
        check_whole(output)
    work = begin(bootstrap, queue_manager, tunes=tunes, **options)
    position = resolve_at(bootstrap, work.log, at, queue_manager=queue_manager)
    refuse_trimmed(work.log, queue_manager)
    with work.stage("folding and reading the log", 1):
        rebuilt, operations = read_log(work, position)
    if rebuilt.stopped is not None:
        raise FoldStoppedError(why_stopped(queue_manager, rebuilt.stopped))
    if rebuilt.skipped:
        operations = work.operations(position, skipped=rebuilt.skipped)
    engine = work.engine(rebuilt.files, choice)
    facts = facts_of(rebuilt, Frame.taken(engine, "operations_read", operations))
    with work.stage("making the tables", 3):
        if output is not None:
            write_tables(facts, output)
    work.tell("done", STEPS, STEPS)
    return facts


def run_audit(
    bootstrap: str,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    live_position: int | None = None,
    with_facts: Callable[[Facts], None] | None = None,
    anchors: Sequence[Anchor] = (),
    backups: Path | None = None,
    archive: Path | None = None,
    **options: Unpack[LogJobOptions],
) -> AuditReport:
    """Audit a queue manager: operations, outcomes, laws, rebuild and live state at one position.

    Args:
        bootstrap: Address of the Kafka cluster.
        queue_manager: Its name.
        at: A position or time; the end of the log if not given.
        live_position: Position of the checkpoint that a CHECKPOINT question was answered with: the
            live state is compared there, and `at` is not looked at.
        with_facts: Called with what tables are asked of, for those who want more of them.
        anchors: Positions with the digest chain that somebody noted there, to hold it against.
        backups: A directory of backups of the journal: each noted the digest chain of its time.
        archive: An archive of the log: what is new is added to it, and only that is audited.
        **options: How it runs, as `LogJobOptions` says.

    Raises:
        PositionOutOfRangeError: `at` lies before the log's start or after its end.
        QueueManagerNotFoundError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
        JournalArchiveError: A manifest of a backup cannot be read.
        ArchiveBrokenError: The archive of the log is not whole, or is of another log.
        ArchiveBusyError: Somebody else adds to it at this moment.
    """
    noted = Noted(
        anchors=[*anchors, *archive_anchors(backups, queue_manager)], live_position=live_position
    )
    work = begin(bootstrap, queue_manager, **options)
    if live_position is not None and live_position >= work.log.end:
        # The worker knows more than there is: what is left is audited, and that is told.
        at = live_position = None
    if work.log.end == 0 and at is None:
        return audit_of_nothing(work, noted)
    wanted = at if live_position is None else live_position
    position = resolve_at(bootstrap, work.log, wanted, queue_manager=queue_manager)
    if archive is not None:
        kept = LogArchive(archive, queue_manager)
        return audit_of_new(work, kept, position, live_position, noted)
    if work.log.start > 0:
        return audit_of_rest(work, position, live_position, noted)
    return audit_of_all(work, position, live_position, noted, with_facts)


def run_proof(
    archive: Path,
    queue_manager: str,
    **options: Unpack[JobOptions],
) -> tuple[list[ProvenStretch], list[Evidence]]:
    """Prove an archive: fold every stretch again, all at once, and ask the laws of all of them.

    Laws are asked only if the fold gives what is kept: they judge what it told, and nothing else.

    Raises:
        ArchiveMissingError: There is nothing of this queue manager.
        ArchiveBrokenError: A manifest cannot be read, or a stretch is missing.
    """
    running = Running(**options)
    spark = running.when_needed()
    stretches = LogArchive(archive, queue_manager).there()
    running.tell("folding all stretches again", 0, 2)
    found = prove_stretches(spark, stretches)
    findings: list[Evidence] = []
    if all(one.problem is None for one in found):
        running.tell("asking the laws", 1, 2)
        facts = judged_facts(spark, stretches, stretches, Store(spark, running.place))
        findings, _ = breaches(facts, LAWS)
    running.tell("done", 2, 2)
    return found, findings
