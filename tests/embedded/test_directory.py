"""Tests of what an embedded broker's directory remembers and refuses; no broker is started."""

import os
import re
from dataclasses import replace

import pytest

from ledgermq.embedded import BrokerStartError, DirectoryInUseError, ForeignClusterError
from ledgermq.embedded import directory as directory_module
from ledgermq.embedded.directory import BrokerDirectory


def test_the_identity_is_chosen_once(tmp_path):
    """A second look at the same directory finds the same cluster."""
    first = BrokerDirectory(tmp_path).load()
    assert len(first.cluster_id) == 22
    assert BrokerDirectory(tmp_path).load() == first


def test_what_is_changed_is_remembered(tmp_path):
    """Ports and preparation survive the process."""
    directory = BrokerDirectory(tmp_path)
    changed = replace(directory.load(), formatted=True, port=20001)
    directory.save(changed)
    assert BrokerDirectory(tmp_path).load() == changed


@pytest.mark.parametrize("place", ["meta.properties", "data/meta.properties"])
def test_data_of_an_unknown_kafka_is_refused_untouched(tmp_path, place):
    """A directory that some other Kafka works in is not taken over."""
    meta = tmp_path / place
    meta.parent.mkdir(exist_ok=True)
    meta.write_text("version=1\ncluster.id=someone-elses\n", encoding="utf-8")
    with pytest.raises(ForeignClusterError, match="someone-elses"):
        BrokerDirectory(tmp_path).load()
    assert not (tmp_path / "broker.json").exists()


def test_data_of_another_cluster_is_refused(tmp_path):
    """Data that was swapped under a directory's identity is noticed."""
    directory = BrokerDirectory(tmp_path)
    directory.load()
    directory.data.mkdir()
    (directory.data / "meta.properties").write_text("cluster.id=other\n", encoding="utf-8")
    with pytest.raises(ForeignClusterError, match="cluster other"):
        directory.load()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is not JSON"),
        ("{'port': 1}", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("\xff", "it is not JSON"),
        ("[]", "it is no JSON object"),
        ("{}", "cluster_id is missing"),
        # As one that is not formatted it would lose its data.
        ('{"cluster_id": "c"}', "formatted is missing"),
        ('{"cluster_id": 5, "formatted": true}', "cluster_id is 5, and must be text"),
        ('{"cluster_id": "", "port": 1, "formatted": true}', "cluster_id is '', and must be text"),
        (
            '{"cluster_id": "c", "ports": 1, "formatted": true}',
            "it has 'ports', which no record has",
        ),
        ('{"cluster_id": "c", "formatted": 1}', "formatted is 1, and must be true or false"),
        (
            '{"cluster_id": "c", "port": "20001", "formatted": true}',
            "port is '20001', and must be 0 to 65535",
        ),
        (
            '{"cluster_id": "c", "port": true, "formatted": true}',
            "port is True, and must be 0 to 65535",
        ),
        (
            '{"cluster_id": "c", "port": -1, "formatted": true}',
            "port is -1, and must be 0 to 65535",
        ),
        (
            '{"cluster_id": "c", "formatted": true, "controller_port": 99999}',
            "controller_port is 99999, and must be 0 to 65535",
        ),
        (
            '{"cluster_id": "c", "formatted": true, "owner_pid": null}',
            "owner_pid is None, and must be 0 or more",
        ),
    ],
)
def test_a_record_that_was_edited_wrongly_is_refused_untouched(tmp_path, text, problem):
    """The error names the file, what is wrong with it, and what to write there."""
    record = tmp_path / "broker.json"
    record.write_text(text, encoding="latin-1")
    with pytest.raises(ForeignClusterError) as caught:
        BrokerDirectory(tmp_path).load()
    assert f"{record} cannot be used: {problem}" in str(caught.value)
    assert str(tmp_path / "data" / "meta.properties") in str(caught.value)
    assert record.read_text(encoding="latin-1") == text


def test_what_the_refusal_of_a_record_says_to_write_there_works(tmp_path):
    """The broker goes on with its data, on ports chosen anew."""
    first = BrokerDirectory(tmp_path)
    first.save(replace(first.load(), formatted=True, port=20001))
    cluster = first.load().cluster_id
    first.data.mkdir()
    (first.data / "meta.properties").write_text(f"cluster.id={cluster}\n", encoding="utf-8")
    record = tmp_path / "broker.json"
    record.write_text("port = 20001", encoding="utf-8")
    with pytest.raises(ForeignClusterError) as caught:
        first.load()
    (text,) = re.findall(r"\{.+\}", str(caught.value))
    record.write_text(text, encoding="utf-8")
    found = BrokerDirectory(tmp_path).load()
    assert (found.cluster_id, found.formatted, found.port) == (cluster, True, 0)


def test_a_locked_directory_is_refused_until_the_lock_is_dropped(tmp_path, monkeypatch):
    """Two brokers in one directory would destroy each other's data."""
    monkeypatch.setattr(directory_module, "LOCK_WAIT_SECONDS", 0.0)
    with (
        BrokerDirectory(tmp_path).locked(),
        pytest.raises(DirectoryInUseError, match="choose another directory"),
        BrokerDirectory(tmp_path).locked(),
    ):
        pass
    with BrokerDirectory(tmp_path).locked():
        pass


def test_the_tail_of_the_log_begins_where_it_is_told(tmp_path):
    """An error shows what this start said, not what an earlier one did."""
    directory = BrokerDirectory(tmp_path)
    directory.log.write_text("old\n", encoding="utf-8")
    size = directory.log_size()
    assert directory.log_tail(since=size) == "(the log is empty)"
    with directory.log.open("a", encoding="utf-8") as log:
        log.write("new 1\nnew 2\n")
    assert directory.log_tail(since=size, lines=1) == "new 2"


def test_a_large_log_is_put_aside(tmp_path, monkeypatch):
    """A broker that is restarted for years does not fill the disk with its log."""
    monkeypatch.setattr(directory_module, "LOG_BYTES_MAX", 3)
    directory = BrokerDirectory(tmp_path)
    directory.log.write_text("long\n", encoding="utf-8")
    os.close(directory.open_log())
    assert directory.log.read_text(encoding="utf-8") == ""
    assert (tmp_path / "broker.log.1").read_text(encoding="utf-8") == "long\n"


def test_data_that_a_broker_worked_on_are_never_removed(tmp_path):
    """A record may say that nothing was prepared: an older one, or one that somebody wrote."""
    directory = BrokerDirectory(tmp_path)
    partition = directory.data / "ledgermq.operations-0"
    partition.mkdir(parents=True)
    (partition / "partition.metadata").write_text("version: 0\n")
    with pytest.raises(ForeignClusterError, match=r"operations-0.*Nothing was changed"):
        directory.remove_data()
    assert partition.is_dir()


@pytest.mark.parametrize("missing", ["meta.properties", "__cluster_metadata-0"])
def test_data_that_were_not_put_back_whole_are_named(tmp_path, missing):
    """Kafka waited a minute for its own log, and ended with how it shut down."""
    directory = BrokerDirectory(tmp_path)
    for name in {"meta.properties", "__cluster_metadata-0"} - {missing}:
        (directory.data / name).mkdir(parents=True)
    with pytest.raises(BrokerStartError, match=f"data lacks {missing}, .* put back all of it"):
        directory.refuse_incomplete()


def test_a_preparation_that_was_cut_short_is_removed(tmp_path):
    """It holds what Kafka begins of itself, and no topic."""
    directory = BrokerDirectory(tmp_path)
    (directory.data / "__cluster_metadata-0").mkdir(parents=True)
    (directory.data / "__cluster_metadata-0" / "partition.metadata").write_text("version: 0\n")
    directory.remove_data()
    assert not directory.data.exists()
