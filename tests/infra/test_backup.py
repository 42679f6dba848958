"""Backup and restore as docs/deployment.md has it: a copy of the data directory, proven after."""

from __future__ import annotations

import shutil

import pytest

import ledgermq
from ledgermq.cli.main import main
from ledgermq.cli.printing.exits import OK, REFUSED
from ledgermq.processor.worker.supervisor import running_installation

BEFORE = [f"before {number}" for number in range(50)]


def put(bootstrap: str, texts: list[str]) -> None:
    """Put messages."""
    with (
        ledgermq.connect(f"kafka://{bootstrap}/QM1") as connection,
        connection.session(transacted=True) as session,
    ):
        producer = session.producer("queue:q")
        for text in texts:
            producer.send(text)
        session.commit()


def chain(bootstrap: str, capsys) -> str:
    """What `ledgermq chain show` prints."""
    capsys.readouterr()
    assert main(["chain", "show", "--bootstrap", bootstrap]) == OK
    return capsys.readouterr().out.strip()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
def test_a_copy_of_the_data_directory_is_put_back_and_proven(tmp_path, capsys):
    """What was there at the backup is there again, to the digest; what came later is gone, and
    an anchor of it shows that.
    """
    data, backup = tmp_path / "data", tmp_path / "backup"
    with running_installation(data) as bootstrap:
        with ledgermq.connect(f"kafka://{bootstrap}/QM1") as connection:
            connection.admin.create_queue("q")
        put(bootstrap, BEFORE)
        anchor = chain(bootstrap, capsys)
    shutil.copytree(data, backup)
    with running_installation(data) as bootstrap:
        put(bootstrap, ["after"])
        later = chain(bootstrap, capsys)
    shutil.rmtree(data)
    shutil.copytree(backup, data)
    with running_installation(data) as bootstrap:
        audit = ["audit", "--bootstrap", bootstrap, "--anchor"]
        assert main([*audit, anchor]) == OK, capsys.readouterr().out
        assert main([*audit, later]) == REFUSED, "the installation is of an earlier time"
        with (
            ledgermq.connect(f"kafka://{bootstrap}/QM1") as connection,
            connection.session() as session,
            session.consumer("queue:q") as consumer,
        ):
            got = [consumer.receive(timeout=30).body for _ in BEFORE]
            assert got == BEFORE
            assert consumer.receive(timeout=1) is None
