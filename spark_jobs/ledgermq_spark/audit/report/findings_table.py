"""The findings of audits as a table, `audit_findings`: a file of Parquet for each audit.

Audits of a directory add up: an audit of the same positions takes the place of the one before, any
other stands beside it. `docs/tables` has the contract.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ledgermq_spark.audit.audit import AuditReport
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.log.durable_files import UNFINISHED, bounded_name

NAME: Final = "audit_findings"
LAW: Final = "law "
TEXTS: Final = ("kind", "law", "source", "summary", "queue", "message_id")
NUMBERS: Final = ("position", "index", "session")
COLUMNS: Final = pa.schema(
    [
        ("queue_manager", pa.string()),
        ("audited_from", pa.int64()),
        ("audited_until", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("number", pa.int64()),
        *((name, pa.string()) for name in TEXTS),
        *((name, pa.int64()) for name in NUMBERS),
        *((name, pa.string()) for name in ("field", "expected", "found")),
    ]
)


def findings_file(report: AuditReport, directory: Path) -> tuple[Path, bytes]:
    """The file below `audit_findings` that is an audit's, and what is in it, perhaps no row."""
    folder = directory / NAME
    about = {
        "queue_manager": report.queue_manager,
        "audited_from": report.proven.get("since", 0),
        "audited_until": report.position,
        "time": report.time if report.time >= 0 else None,
    }
    rows = [
        about | {"number": number} | _row(one) for number, one in enumerate(report.anomalies, 1)
    ]
    span = f"{about['audited_from']}-{about['audited_until']}"
    beside = UNFINISHED.format(f"audit--{span}.parquet")
    path = folder / f"audit-{bounded_name(report.queue_manager, beside)}-{span}.parquet"
    written = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=COLUMNS), written)
    return path, written.getvalue().to_pybytes()


def _row(one: Evidence) -> dict[str, Any]:
    """A finding by column; null is what is not known or does not apply."""
    found = one.as_dict()
    row = {name: value or None for name, value in found.items() if name not in NUMBERS}
    row |= {name: found[name] if found[name] >= 0 else None for name in NUMBERS}
    if one.field.startswith(LAW):
        row |= {"law": one.field.removeprefix(LAW), "field": None}
    return row
