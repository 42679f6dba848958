"""Settings of a worker and its command line: what is given, what is refused."""

import socket
from pathlib import Path

import pytest

from ledgermq.processor.__main__ import main
from ledgermq.processor.worker.settings import SettingsError, WorkerSettings

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


def test_a_worker_without_a_name_is_called_by_host_and_process():
    """The name in logs tells workers apart even if nobody named them."""
    settings = WorkerSettings.from_environment({}, **GIVEN)
    assert socket.gethostname() in settings.worker_name


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"LEDGERMQ_LANES": "many"}, "LEDGERMQ_LANES is 'many', must be a int"),
        ({"LEDGERMQ_LANES": "0"}, "lanes is 0, must be above 0"),
        ({"LEDGERMQ_HEARTBEAT_SECONDS": "5"}, "must be at most a third"),
        ({"LEDGERMQ_BOOTSTRAP": ""}, "bootstrap is empty"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(environment, said):
    """The error names the setting, its value and what it must be."""
    given = {key: one for key, one in GIVEN.items() if key != "bootstrap"}
    with pytest.raises(SettingsError, match=said):
        WorkerSettings.from_environment({"LEDGERMQ_BOOTSTRAP": "b:1"} | environment, **given)


def test_a_missing_address_is_a_usage_error(capsys, monkeypatch):
    """Without --bootstrap the command says what is missing and ends with code 2."""
    monkeypatch.delenv("LEDGERMQ_BOOTSTRAP", raising=False)
    assert main(["--data-dir", "x"]) == 2
    assert "LEDGERMQ_BOOTSTRAP" in capsys.readouterr().err


def test_an_unreachable_broker_ends_the_worker_with_a_word(caplog, monkeypatch, tmp_path):
    """Nobody at the address: exit code 3 and a message with the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setenv("LEDGERMQ_REQUEST_TIMEOUT_SECONDS", "2")
    assert main(["--bootstrap", address, "--data-dir", str(tmp_path)]) == 3
    assert address in caplog.text
