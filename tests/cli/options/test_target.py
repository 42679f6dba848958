"""Which broker a command speaks to, and what it says while nobody answers."""

from __future__ import annotations

import pytest

from ledgermq.cli.options.running import announce
from ledgermq.cli.printing.exits import UNREACHABLE, USAGE
from support.brokers.worker_process import new_place


@pytest.mark.parametrize("written", ["garbage", "{}", '{"bootstrap": 7, "pid": 1}', "[" * 100_000])
def test_an_up_whose_address_cannot_be_read_is_not_said_not_to_run(plain, tmp_path, written):
    """Whoever was told so would start a second one, or remove the directory."""
    file = tmp_path / "up.json"
    with announce(tmp_path):
        file.write_text(written)
        answer = plain("queue", "list", "--data-dir", tmp_path, "--json")
    assert (answer.code, answer.error["code"]) == (UNREACHABLE, "broker-unavailable")
    assert f"runs on {tmp_path}, but where cannot be read: {file} is not" in answer.error["message"]


def test_where_it_cannot_be_seen_whether_up_runs_the_command_says_why(plain, tmp_path):
    """And speaks to no other broker in its place; an address that is given needs no file."""
    directory = tmp_path / "ledgermq-data"
    (directory / "up.json").mkdir(parents=True)
    for more in ((), ("--data-dir", directory)):
        answer = plain("queue", "list", "--json", *more)
        assert (answer.code, answer.error["code"]) == (UNREACHABLE, "broker-unavailable")
        assert "up.json cannot be read: Is a directory" in answer.error["message"]
    given = plain("queue", "list", "--bootstrap", "127.0.0.1:1", "--json")
    assert "no Kafka broker answers at 127.0.0.1:1" in given.error["message"]


def test_a_data_directory_that_is_named_counts_more_than_an_address_in_the_environment(
    plain, tmp_path, monkeypatch
):
    """Else a purge that was meant for a test directory is one of whatever the shell points to."""
    monkeypatch.setenv("LEDGERMQ_BOOTSTRAP", "127.0.0.1:1")
    with announce(tmp_path) as tell:
        tell(bootstrap="127.0.0.1:2")
        named = plain("queue", "list", "--data-dir", tmp_path, "--json")
        both = plain("queue", "list", "--data-dir", tmp_path, "--bootstrap", "127.0.0.1:3")
        monkeypatch.setenv("LEDGERMQ_DATA_DIRECTORY", str(tmp_path))
        variables = plain("queue", "list", "--json")
    nobody = plain("queue", "list", "--data-dir", tmp_path, "--json")
    assert "no Kafka broker answers at 127.0.0.1:2" in named.error["message"]
    assert "no Kafka broker answers at 127.0.0.1:3" in both.err
    assert "no Kafka broker answers at 127.0.0.1:1" in variables.error["message"]
    assert f"no `ledgermq up` runs on {tmp_path}" in nobody.error["message"]


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"ACKS": "1"}, "acks is not for you to give"),
        ({"CLIENT_COLOUR": "red"}, "Kafka's client takes no such option"),
        ({"SASL_USERNAME": "x"}, "sasl.username is given, but security.protocol is PLAINTEXT"),
        ({"CONFIG": "/nowhere/options"}, "which cannot be read: No such file"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_options_of_kafka_that_cannot_be_are_refused_before_anything_is_tried(
    plain, monkeypatch, variables, told
):
    """Where no broker listened, that was said first: whoever mended it met them afterwards."""
    for name, value in variables.items():
        monkeypatch.setenv(f"LEDGERMQ_KAFKA_{name}", value)
    for command in (("queue", "list"), ("trace", "0" * 32), ("log", "tail")):
        answer = plain(*command, "--bootstrap", "127.0.0.1:1", "--json")
        assert (answer.code, told in answer.error["message"]) == (USAGE, True), answer.err


@pytest.mark.kafka
@pytest.mark.parametrize("command", [("log", "trim", "--before", "0"), ("queue", "list")])
def test_a_command_says_while_it_waits_that_no_worker_answers(
    plain, broker, tmp_path, monkeypatch, command
):
    """Not only once its time is over, which may be half a minute."""
    monkeypatch.setattr("ledgermq.cli.options.target.QUIET_SECONDS", 0.1)
    place = new_place(broker.bootstrap, tmp_path)
    where = ("--bootstrap", broker.bootstrap, "--topic-prefix", place.topics.prefix)
    answer = plain(*command, *where, "--timeout", "2")
    assert answer.code == UNREACHABLE
    first, last = answer.err.splitlines()
    assert first == "no worker of QM1 has answered yet: waiting for one, up to 2 s (--timeout)"
    assert "answered within" in last
