"""Settings of a worker and its program: what is given, what is refused."""

import socket
from pathlib import Path

import pytest

from ledgermq.processor.__main__ import main
from ledgermq.processor.worker.settings import SettingsError, WorkerSettings, misnamed

GIVEN = {"bootstrap": "localhost:1", "data_directory": Path("here")}


def test_variables_fill_in_what_is_not_given():
    """LEDGERMQ_<NAME> sets a setting of every type; an explicit value wins."""
    environment = {
        "LEDGERMQ_LANES": "7",
        "LEDGERMQ_NAME": "from-environment",
        "LEDGERMQ_CHECKPOINT_SECONDS": "2.5",
        "LEDGERMQ_QUEUE_MANAGERS": "A, B",
        "LEDGERMQ_DATA_DIRECTORY": "there",
    }
    settings = WorkerSettings.from_environment(environment, bootstrap="b:1", name="given")
    assert settings.lanes == 7
    assert settings.name == settings.worker_name == "given"
    assert settings.checkpoint_seconds == 2.5
    assert settings.queue_managers == ("A", "B")
    assert settings.data_directory == Path("there")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PARTITION", "PARTITIONS"),
        ("LOG_LEVL", "LOG_LEVEL"),
        ("HEARTBEAT", "HEARTBEAT_SECONDS"),
        ("DATA_DIR", "DATA_DIRECTORY"),
        ("WEBPORT", "WEB_PORT"),
    ],
)
def test_a_variable_that_is_nearly_that_of_a_setting_is_named(name, meant):
    """It would set nothing, and nobody would know."""
    (said,) = misnamed({f"LEDGERMQ_{name}": "1", "PATH": "/bin"})
    assert said == f"LEDGERMQ_{name} sets nothing: did you mean LEDGERMQ_{meant}?"


def test_variables_of_commands_clients_and_programs_are_not_taken_for_mistakes():
    """One environment may be for all of them."""
    names = ("QUEUE_MANAGER", "QUEUE_MANAGERS", "CACHE_DIR", "SPARK_CORES", "KAFKA_SASL_USERNAME")
    names += ("IVY_SETTINGS", "JOURNAL_DIRECTORY", "TEST_BOOTSTRAP", "ADDRESS", "SPARK_MEMORY")
    assert misnamed({f"LEDGERMQ_{name}": "1" for name in names}) == []


def test_a_worker_without_a_name_is_called_by_host_and_process():
    """The name in logs tells workers apart even if nobody named them."""
    settings = WorkerSettings.from_environment({}, **GIVEN)
    assert socket.gethostname() in settings.worker_name


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"LEDGERMQ_LANES": "many"}, "LEDGERMQ_LANES is 'many', must be a whole number"),
        ({"LEDGERMQ_LANES": "0"}, "lanes is 0, must be above 0"),
        ({"LEDGERMQ_HEARTBEAT_SECONDS": "5"}, "must be at most a third"),
        ({"LEDGERMQ_HEARTBEAT_SECONDS": "0.001"}, "heartbeat_seconds is 0.001, must not be below"),
        ({"LEDGERMQ_BOOTSTRAP": ""}, "bootstrap is empty"),
        ({"LEDGERMQ_BOOTSTRAP": "h:99999"}, "'h:99999' .* is no HOST:PORT"),
        ({"LEDGERMQ_BOOTSTRAP": "kafka://h:1/QM1"}, "is no HOST:PORT, as localhost:9092 is"),
        ({"LEDGERMQ_LOG_LEVEL": "loud"}, "log_level is 'loud', must be DEBUG, INFO"),
        ({"LEDGERMQ_LOG_LEVEL": ""}, "log_level is '', must be DEBUG, INFO"),
        ({"LEDGERMQ_WEB_PORT": "65536"}, "web_port is 65536, must be at most 65535"),
        ({"LEDGERMQ_WEB_PORT": "-2"}, "web_port is -2, must not be below -1"),
        ({"LEDGERMQ_WEB_HOST": ""}, "web_host is empty"),
        ({"LEDGERMQ_NAME": "x" * 250}, "^name is 'xx.*, must be at most 249 characters that show"),
        ({"LEDGERMQ_NAME": "a\nb"}, "must be at most 249 characters that show"),
        ({"LEDGERMQ_QUEUE_MANAGERS": " , "}, "queue_managers is empty"),
        ({"LEDGERMQ_METRICS_PER_DESTINATION": "-1"}, "must not be below 0"),
        ({"LEDGERMQ_CHECKPOINT_SECONDS": "nan"}, "is nan, must be a finite number"),
        ({"LEDGERMQ_SESSION_TIMEOUT_SECONDS": "inf"}, "is inf, must be a finite number"),
        ({"LEDGERMQ_SESSION_TIMEOUT_SECONDS": "1e9"}, "must be at most 1000000"),
        ({"LEDGERMQ_REQUEST_TIMEOUT_SECONDS": "1e12"}, "must be at most 3600"),
        ({"LEDGERMQ_PARTITIONS": "9" * 20}, "must be at most 10000"),
        ({"LEDGERMQ_LANES": "2000000000"}, "must be at most 10000"),
        ({"LEDGERMQ_CHUNK_BYTES": "99999999999"}, "must be at most 8388608"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(environment, said):
    """The error names the setting, its value and what it must be."""
    given = {key: one for key, one in GIVEN.items() if key != "bootstrap"}
    with pytest.raises(SettingsError, match=said):
        WorkerSettings.from_environment({"LEDGERMQ_BOOTSTRAP": "b:1"} | environment, **given)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("web_port", -1),
        ("metrics_per_destination", 0),
        ("heartbeat_seconds", 0.05),
        ("log_level", "debug"),
    ],
)
def test_the_smallest_values_are_taken(setting, value):
    """No web server, no destination with metrics of its own, and a level in small letters."""
    assert getattr(WorkerSettings(**GIVEN, **{setting: value}), setting) == value


def test_a_missing_address_is_a_usage_error(capsys, monkeypatch):
    """Without it the program says what is missing and ends with code 2."""
    monkeypatch.delenv("LEDGERMQ_BOOTSTRAP", raising=False)
    monkeypatch.setenv("LEDGERMQ_DATA_DIRECTORY", "x")
    assert main() == 2
    assert "LEDGERMQ_BOOTSTRAP" in capsys.readouterr().err


def test_an_unreachable_broker_ends_the_worker_with_a_word(caplog, monkeypatch, tmp_path):
    """Nobody at the address: exit code 3 and a message with the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setenv("LEDGERMQ_REQUEST_TIMEOUT_SECONDS", "2")
    monkeypatch.setenv("LEDGERMQ_BOOTSTRAP", address)
    monkeypatch.setenv("LEDGERMQ_DATA_DIRECTORY", str(tmp_path))
    assert main() == 3
    assert address in caplog.text
