"""`python -m ledgermq_spark.jobs.tables`: a queue manager's tables as Parquet."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ledgermq_spark.jobs.arguments import job, parser, where, work_directory
from ledgermq_spark.jobs.run import run_tables
from ledgermq_spark.log.store import as_it_is
from ledgermq_spark.tables.all_tables import TABLES


@job
def main(arguments: list[str] | None = None) -> int:
    """Build the tables and write them below --output."""
    given = parser("Write a queue manager's tables as Parquet.").parse_args(arguments)
    output = given.output or Path("ledgermq-tables").absolute()
    with work_directory(given) as directory:
        facts = run_tables(**where(given, directory), output=output)
        spark = facts.engine.spark
        counts = {name: spark.read.parquet(as_it_is(output / name)).count() for name in TABLES}
    if given.json:
        print(json.dumps({"directory": str(output), "rows": counts}))
    else:
        for name, rows in counts.items():
            print(f"{output / name}: {rows:,} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
