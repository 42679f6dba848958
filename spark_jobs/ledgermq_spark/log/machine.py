"""How much of this machine a job may take: processors, memory for Spark's Java and for DuckDB."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Final

from ledgermq.digits import is_whole
from ledgermq.errors import LedgerMQError

CORES_VARIABLE: Final = "LEDGERMQ_SPARK_CORES"
MEMORY_VARIABLE: Final = "LEDGERMQ_SPARK_MEMORY"
CORES_MAX: Final = 1024
# Spark's Java refuses less than 450 MiB.
MEMORY_MIB_MIN: Final = 512
MEMORY_MIB_DEFAULT: Final = 2048
MEMORY_MIB_PER_CORE: Final = 512
MEMORY: Final = re.compile(r"([1-9][0-9]{0,6})([mg])")
# What a container may use, as the kernel says within it (cgroups, version 2).
PROCESSOR_QUOTA = Path("/sys/fs/cgroup/cpu.max")
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")


class SparkSettingError(LedgerMQError, ValueError):
    """A variable that says how much Spark may take does not hold what it must."""

    code = "setting-invalid"


def cores() -> int:
    """Return how many processors Spark keeps busy: LEDGERMQ_SPARK_CORES, else all it may use.

    Raises:
        SparkSettingError: The variable holds no whole number from 1 to 1,024.
    """
    text = os.environ.get(CORES_VARIABLE, "")
    if not text:
        return usable_cores()
    number = int(text) if is_whole(text) and len(text) <= 4 else 0
    if not 1 <= number <= CORES_MAX:
        raise SparkSettingError(
            f"{CORES_VARIABLE} is {text!r}, it must be a whole number from 1 to {CORES_MAX}"
        )
    return number


def memory(cores: int) -> str:
    """Return the heap of Spark's Java: LEDGERMQ_SPARK_MEMORY, else what so many processors need.

    Raises:
        SparkSettingError: The variable holds no such amount, or less than Spark starts with.
    """
    return _memory(_heap_mib(cores))


def query_memory(cores: int) -> str:
    """Return what DuckDB may take: LEDGERMQ_SPARK_MEMORY, else a quarter of what there is.

    That is no less than what Java may take. What does not fit it writes to disk, and reads again.

    Raises:
        SparkSettingError: As `memory` raises it.
    """
    return _memory(max(_heap_mib(cores), usable_memory_mib() // 4))


def _heap_mib(cores: int) -> int:
    wanted = min(cores * MEMORY_MIB_PER_CORE, usable_memory_mib() // 2)
    return max(MEMORY_MIB_DEFAULT, wanted)


def _memory(otherwise_mib: int) -> str:
    """What the variable says."""
    text = os.environ.get(MEMORY_VARIABLE, "").lower()
    if not text:
        return f"{otherwise_mib}m"
    found = MEMORY.fullmatch(text)
    if found is None or int(found[1]) * (1024 if found[2] == "g" else 1) < MEMORY_MIB_MIN:
        raise SparkSettingError(
            f"{MEMORY_VARIABLE} is {text!r}, it must be a number of mebibytes or gibibytes from "
            f"{MEMORY_MIB_MIN}m up, such as 6g"
        )
    return text


def usable_cores() -> int:
    """Return how many processors this process may use: by its affinity, and by its container."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota, _, period = _said(PROCESSOR_QUOTA).partition(" ")
    if quota.isdecimal() and period.isdecimal() and int(period) > 0:
        allowed = min(allowed, max(1, math.ceil(int(quota) / int(period))))
    return allowed


def usable_memory_mib() -> int:
    """Return how many mebibytes there are: in the machine, or for the container."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _said(MEMORY_LIMIT)
    return (min(there, int(limit)) if limit.isdecimal() else there) // 2**20


def _said(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
