"""Archives of logs of tests: in a few stretches, added to twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ledgermq_spark.archive.updating import update_archive
from support.brokers.broker_logs import Written

PER_STRETCH = 110
TOLD_LATER = 60


def archive(spark: Any, log: Written, path: Path) -> None:
    """Archives a log, its last entries by a second run."""
    for at in (len(log.entries) - 1 - TOLD_LATER, None):
        update_archive(
            log.bootstrap,
            "QM1",
            path,
            at,
            operations_per_stretch=PER_STRETCH,
            spark=spark,
            **log.where,
        )
