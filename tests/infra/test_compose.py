"""docker-compose.yml by itself: what it publishes, what it runs as, what can be chosen."""

from __future__ import annotations

import re

import pytest
import yaml

from support.checkout import ROOT

COMPOSE = ROOT / "docker-compose.yml"
SERVICES = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
DOCKERFILE = (ROOT / "infra" / "docker" / "Dockerfile").read_text(encoding="utf-8")


def seconds(text: str) -> int:
    """A duration of a compose file that is in seconds."""
    assert text.endswith("s"), text
    return int(text[:-1])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_on_loopback_only_and_says_when_it_is_well(name):
    """Published ports name the loopback address; `up --wait` waits for health."""
    service = SERVICES[name]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    built = service.get("build", {}).get("target")
    assert "healthcheck" in service or built == "worker"


def test_the_default_is_small():
    """Without a profile there is Kafka with its two workers, and nothing else."""
    default = {name for name, service in SERVICES.items() if "profiles" not in service}
    assert default == {"kafka", "worker-1", "worker-2"}


def test_workers_have_names_of_their_own_and_time_to_drain():
    """No two share a name; the engine kills none that still has time by its own clock."""
    from ledgermq.processor.worker.worker import LAST_RESORT_SECONDS

    workers = {name: one for name, one in SERVICES.items() if name.startswith("worker")}
    names = {one["environment"]["LEDGERMQ_NAME"] for one in workers.values()}
    assert names == set(workers)
    for one in workers.values():
        assert seconds(one["stop_grace_period"]) > LAST_RESORT_SECONDS
        assert one["read_only"] is True
        assert one["cap_drop"] == ["ALL"]


def test_what_can_be_chosen_is_in_the_example():
    """.env.example has each variable of docker-compose.yml with its default, and no others."""
    text = COMPOSE.read_text(encoding="utf-8")
    used = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", text))
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert dict(re.findall(r"^#(\w+)=(.*)$", example, re.MULTILINE)) == used


def test_nothing_that_can_be_chosen_is_taken_for_an_option_of_kafkas_clients():
    """Who sets a port for the stack also runs `make stack-demo` beside it."""
    from ledgermq.wire.kafka.settings import PREFIX

    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert not re.findall(rf"^#{PREFIX}\w*", example, re.MULTILINE)


def test_variables_of_workers_are_settings():
    """What the compose file sets of a worker is a setting it has."""
    from dataclasses import fields

    from ledgermq.processor.worker.settings import WorkerSettings

    known = {f"LEDGERMQ_{field.name.upper()}" for field in fields(WorkerSettings)}
    assert set(SERVICES["worker-1"]["environment"]) <= known
    assert {"LEDGERMQ_WEB_HOST", "LEDGERMQ_WEB_PORT"} <= set(
        re.findall(r"LEDGERMQ_\w+", DOCKERFILE)
    )


def test_images_run_as_nobody_special_and_install_only_what_is_locked():
    """Each final stage names a user; every package that pip fetches is held against its hash."""
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
    final = [one for one in stages if re.match(r"base AS (worker|spark)\n", one)]
    assert len(final) == 2
    assert all("\nUSER 10001:10001\n" in one and "STOPSIGNAL SIGTERM" in one for one in final)
    fetched = re.findall(r"pip install ([^\n\\&]*)", DOCKERFILE)
    assert fetched
    assert all("--require-hashes" in one or "--no-deps /wheels" in one for one in fetched)
