"""The stack of docker-compose.yml, really run: the demo on it, a worker killed and one drained."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from ledgermq.cli.printing.exits import OK
from ledgermq.embedded.ports import choose_port
from support.checkout import ROOT

Compose = Callable[..., subprocess.CompletedProcess[str]]
KILL = "docker compose kill {worker}"
BASES = ("apache/kafka:4.3.1", "python:3.11-slim-bookworm")


def call(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout."""
    return subprocess.run(
        [str(one) for one in command],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def why_not() -> str:
    """Why the stack cannot be run here; empty if it can."""
    try:
        if call("docker", "info").returncode != 0:
            return "no Docker engine answers"
        if call("docker", "compose", "version").returncode != 0:
            return "there is no `docker compose`"
    except FileNotFoundError:
        return "there is no docker"
    for image in BASES:
        there = call("docker", "image", "inspect", image).returncode == 0
        if not there and call("docker", "pull", "--quiet", image).returncode != 0:
            return f"{image} cannot be pulled; infra/docker/stand_ins.py builds a stand-in"
    return ""


@pytest.fixture(scope="module")
def compose() -> Iterator[Compose]:
    """`docker compose` on a project of the tests' own, which is up meanwhile."""
    reason = why_not()
    if reason:
        pytest.skip(f"the stack was not run: {reason}")
    own = {"COMPOSE_PROJECT_NAME": "ledgermq-test", "LEDGERMQ_BROKER_PORT": str(choose_port())}

    def run(*arguments: object, command: tuple[object, ...] = ("docker", "compose")):
        return call(*command, *arguments, **own)

    try:
        started = run("up", "--wait", "--build")
        assert started.returncode == 0, started.stderr + run("logs", "--tail", "50").stdout
        yield run
    finally:
        run("down", "--volumes", "--timeout", "5")


def states(compose: Compose) -> dict[str, dict]:
    """What the engine says of each service."""
    lines = compose("ps", "--all", "--format", "json").stdout.splitlines()
    return {one["Service"]: one for one in map(json.loads, lines)}


@pytest.mark.long
def test_the_demo_runs_on_the_stack_and_a_killed_worker_is_replaced(compose, tmp_path):
    """All that the demo checks holds, the audit included; then both workers are well again."""
    port = states(compose)["kafka"]["Publishers"][0]["PublishedPort"]
    demo = (sys.executable, "-m", "ledgermq", "demo")
    ended = compose(
        *("--data-dir", tmp_path / "demo", "--bootstrap", f"127.0.0.1:{port}"),
        *("--kill-worker", KILL),
        command=demo,
    )
    assert ended.returncode == OK, ended.stdout + ended.stderr
    assert "SIGKILL to the worker" in ended.stdout
    killed = [name for name, one in states(compose).items() if one["State"] == "exited"]
    assert len(killed) == 1, "the demo killed one worker"
    assert compose("up", "--wait").returncode == 0
    assert all(one["Health"] == "healthy" for one in states(compose).values())


@pytest.mark.long
def test_a_worker_that_is_stopped_drains_and_the_other_takes_over(compose):
    """It ends by itself within its grace period, and the other begins where it was."""
    shown = compose("exec", "-T", "worker-1", "ledgermq", "manager", "show", "--json")
    status = json.loads(shown.stdout)
    owner = status["worker"]
    assert compose("stop", owner).returncode == 0
    assert states(compose)[owner]["ExitCode"] == 0, "it was killed"
    said = compose("logs", "--no-log-prefix", owner).stdout
    assert said.rstrip().endswith(f"worker {owner} stopped")
    other = next(name for name in ("worker-1", "worker-2") if name != owner)
    checked = compose("exec", "-T", other, "ledgermq", "check", "cluster")
    assert checked.returncode == OK, checked.stdout
    assert other in checked.stdout
    said = compose("logs", "--no-log-prefix", other).stdout
    (*_, loaded) = re.findall(r"state loaded at position (\d+) \(from a checkpoint\)", said)
    assert int(loaded) >= status["position"], "the other had to fold again what was folded"


@pytest.mark.long
def test_a_container_has_no_tools_to_build_with_and_no_rights(compose):
    """No compiler, no pip of ours; no root, no capability, and nothing to write on but memory."""
    assert compose("up", "--wait").returncode == 0
    look = "id -u; command -v gcc cc make; ls /opt/ledgermq/bin | grep -c '^pip'; touch /x"
    found = compose("exec", "-T", "worker-2", "sh", "-c", look)
    assert found.stdout.split() == ["10001", "0"]
    assert "Read-only file system" in found.stderr


def test_without_docker_the_stack_says_why_it_was_not_run(monkeypatch, tmp_path):
    """Whoever has no Docker reads a sentence, not a trace."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_not() == "there is no docker"
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    assert why_not() == "no Docker engine answers"
