"""The environment of a measurement: a figure without it says nothing."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("confluent-kafka", "fastavro", "faust-streaming", "aiokafka", "pyspark", "ledgermq")


def environment() -> dict[str, object]:
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "python_build": _python_build(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _python_build() -> str:
    """How the interpreter was built, which is worth a quarter of what it computes."""
    if "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
        return "with profile-guided optimization"
    # Debian builds with a profile, and takes its flags out of what extensions are built with.
    distributed = sys.base_prefix == "/usr" and not sysconfig.get_config_var("PGO_PROF_USE_FLAG")
    return "by the distribution" if distributed else "without profile-guided optimization"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
