"""The process from which Spark forks the Python of its tasks, with what most of them import.

Each of them imported it for itself: half a second of a processor, at two for each core.
"""

from __future__ import annotations

import gc
import zipimport

from pyspark import daemon

import ledgermq_spark.archive.proving
import ledgermq_spark.log.store  # noqa: F401 (for the tasks)


def keep_directories_of_archives() -> None:
    """Have what stands in archives on the path read once: Spark forgets it before every task.

    Before 3.13 Python reads it again at once, which took longer than most tasks. What is on the
    path by now stays as it is; what Spark adds for a job has another name.
    """
    zipimport.zipimporter.invalidate_caches = _stay  # type: ignore[method-assign]


def _stay(self: zipimport.zipimporter) -> None:
    """Nothing is forgotten."""


if __name__ == "__main__":
    keep_directories_of_archives()
    # Spark looks for cycles after every task, and what is imported stays.
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]
