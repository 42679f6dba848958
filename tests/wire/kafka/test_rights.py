"""Tests of the rights that `ledgermq acl` prints."""

import json

import pytest

from ledgermq.cli.main import main
from ledgermq.wire.kafka.rights import ROLES, kafka_acls_lines, rights_of


@pytest.mark.parametrize("role", ROLES)
def test_lines_and_json_say_the_same_rights(role, capsys):
    """What a person pastes and what a program reads give the same."""
    assert main(["acl", role, "--json", "--topic-prefix", "mq"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {one["principal"] for one in listed} == {f"User:ledgermq-{role}"}
    assert main(["acl", role, "--topic-prefix", "mq"]) == 0
    printed = set()
    for line in capsys.readouterr().out.splitlines():
        words = line.split()
        operations = [words[at + 1] for at, word in enumerate(words) if word == "--operation"]
        if words[-1] == "--cluster":
            where = ("Cluster", "kafka-cluster")
        else:
            where = (words[-2].removeprefix("--").capitalize(), words[-1].strip("'"))
        printed |= {(*where, operation) for operation in operations}
    assert printed == {(one["resource"], one["name"], one["operation"]) for one in listed}


def test_rights_are_on_the_topics_of_the_prefix_alone():
    """An installation gets no rights on another one's topics, nor on names that begin alike."""
    for role in ROLES:
        for right in rights_of(role, "mq"):
            assert right.name.startswith("mq.") or right.resource == "Cluster"
    assert not [one for one in rights_of("auditor", "mq") if one.operation != "Read"]


def test_bridges_get_rights_on_foreign_topics(capsys):
    """Beside those of a role: to read one, or to write one by transactions of their own."""
    wanted = ["--from-topic", "orders", "--from-topic", "prices", "--to-topic", "shipped"]
    assert main(["acl", "client", *wanted]) == 0
    added = capsys.readouterr().out.splitlines()
    assert main(["acl", "client"]) == 0
    without = capsys.readouterr().out.splitlines()
    rest = [one for one in added if one not in without]
    assert [one.partition("'User:ledgermq-client' ")[2] for one in rest] == [
        "--operation Read --topic 'orders'",
        "--operation Read --topic 'prices'",
        "--operation Read --operation Write --topic 'shipped'",
        "--operation Read --group 'ledgermq-' --resource-pattern-type prefixed",
        "--operation Write --transactional-id 'ledgermq-' --resource-pattern-type prefixed",
    ]
    assert main(["acl", "client", "--to-topic", "a'b"]) == 2
    assert main(["acl", "client", "--from-topic", ""]) == 2
    assert "no name of a topic" in capsys.readouterr().err


def test_a_principal_is_quoted_for_the_shell_and_must_be_one(capsys):
    """A name with blanks, as a certificate has, stays one argument."""
    (line, *_) = kafka_acls_lines(rights_of("client", "mq"), "kafka-acls.sh", "User:CN=a, O=b")
    assert "--allow-principal 'User:CN=a, O=b' --operation Write --topic 'mq.operations'" in line
    assert main(["acl", "client", "--principal", "alice"]) == 2
    assert main(["acl", "client", "--principal", "User:a'b"]) == 2
    assert main(["acl", "king"]) == 2
    assert "TYPE:NAME" in capsys.readouterr().err
