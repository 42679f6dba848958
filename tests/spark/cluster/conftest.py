"""The artifact, a cluster that it is submitted to, and four queue managers, one of them busy."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.brokers.broker_logs import Written, write
from support.brokers.log_writer import Script
from support.checkout import ROOT
from support.clusters.standalone import StandaloneCluster
from support.planted.planting import conversation
from support.random_logs.random_log import RandomLog

BUSY, OTHERS = "QM1", ("QM2", "QM3", "QM4")
BUSY_OPERATIONS, OTHER_OPERATIONS = 5_400, 200


@pytest.fixture(scope="session")
def artifact(tmp_path_factory) -> Path:
    """The artifact of this checkout."""
    built: Path = runpy.run_path(str(ROOT / "infra" / "spark" / "artifact.py"))["build"](
        tmp_path_factory.mktemp("artifact")
    )
    return built


@pytest.fixture(scope="session")
def cluster(artifact, tmp_path_factory) -> Iterator[StandaloneCluster]:
    """A master and two workers of one core each."""
    with StandaloneCluster(tmp_path_factory.mktemp("cluster") / "all", artifact) as started:
        yield started


@pytest.fixture(scope="session")
def logs(broker) -> dict[str, Written]:
    """Four queue managers on one installation; the first has nine tenths of all operations."""
    written: dict[str, Written] = {}
    prefix = None
    for name in (BUSY, *OTHERS):
        script = Script(step_us=0)
        conversation(script, f"talk.{name}")
        RandomLog(script, topics=True).grow(BUSY_OPERATIONS if name == BUSY else OTHER_OPERATIONS)
        entries = [replace(one, stamp=1, wait_seconds=0.0) for one in script.entries]
        written[name] = write(
            broker.bootstrap, entries, partitions=4, queue_manager=name, prefix=prefix
        )
        prefix = written[name].prefix
    return written
