"""The process from which Spark forks the Python of its tasks, with what most of them import.

Each of them imported it for itself: half a second of a processor, at two for each core.
"""

from __future__ import annotations

import gc

from pyspark import daemon

import ledgermq_spark.archive.proving
import ledgermq_spark.log.store  # noqa: F401 (for the tasks)

if __name__ == "__main__":
    # Spark looks for cycles after every task, and what is imported stays.
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]
