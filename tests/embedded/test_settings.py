"""Tests of the broker's settings, and that the container's are the same."""

from pathlib import Path

import pytest
import yaml

from ledgermq.embedded import BrokerStartError
from ledgermq.embedded.settings import SERVER_SETTINGS, server_properties
from support.checkout import ROOT

COMPOSE = ROOT / "docker-compose.yml"


def test_listeners_are_on_loopback_only():
    """Nobody outside the machine reaches a broker that has no security."""
    text = server_properties(data=Path("/data"), port=20001, controller_port=20002)
    listeners = [line for line in text.splitlines() if "listeners=" in line and "://" in line]
    assert len(listeners) == 2
    for line in listeners:
        assert line.split("=")[1] == "PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002"


def test_names_beyond_ascii_reach_java_unharmed():
    """Java reads properties as Latin-1 with escapes, so other letters are escaped."""
    text = server_properties(data=Path("/Größe\\x"), port=1, controller_port=2)
    assert "log.dirs=/Gr\\u00f6\\u00dfe\\\\x\n" in text


def test_a_comma_in_the_directory_is_refused():
    """Kafka would take it for two directories."""
    with pytest.raises(BrokerStartError, match="comma"):
        server_properties(data=Path("/a,b"), port=1, controller_port=2)


def test_the_container_has_the_same_settings():
    """docker-compose.yml says that it does; this holds it to its word."""
    compose = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    environment = compose["services"]["kafka"]["environment"]
    for name, value in SERVER_SETTINGS.items():
        assert environment["KAFKA_" + name.upper().replace(".", "_")] == value, name
