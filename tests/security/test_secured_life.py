"""Tests of clients, worker and command line on a broker with TLS, users and an authorizer."""

import asyncio
import re
import time
from pathlib import Path

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.wire.kafka.rights import rights_of
from ledgermq.wire.topics.log_topics import TOPIC_PREFIX_DEFAULT
from support.brokers.secured_broker import Authority
from support.brokers.token_issuer import token_issuer

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def take_all(session, queue):
    """Bodies that are on a queue."""
    with session.consumer(f"queue:{queue}") as consumer:
        found = []
        while (message := consumer.receive(timeout=5 if not found else 0.5)) is not None:
            found.append(message.body)
        return found


def test_a_user_with_a_password_does_all_that_a_client_does(secured):
    """Put, get, units of work, browse, groups and status need no right beyond those printed."""
    with secured.connect("client") as connection:
        with connection.session(transacted=True) as session:
            producer = session.producer("queue:a")
            producer.send("kept")
            session.commit()
            producer.send("rolled back")
            session.rollback()
        with connection.session(transacted=True) as session:
            with session.producer("queue:a").group() as group:
                group.send("first")
                group.send("second", last=True)
            session.commit()
        with connection.browser("queue:a") as browser:
            assert [message.body for message in browser] == ["kept", "first", "second"]
        assert connection.admin.queue_status("a").message_count == 3
        with connection.session() as session:
            assert take_all(session, "a") == ["kept", "first", "second"]


def test_a_user_with_a_certificate_is_the_same_user(secured):
    """With a certificate in place of a password the same rights count, in asyncio too."""
    options = secured.broker.by_certificate("client")
    address = f"kafka://{secured.broker.tls_bootstrap}/QM1"

    async def life():
        async with (
            aio.connect(address, kafka=options, timeout=60) as connection,
            connection.session() as session,
            session.consumer("queue:c") as consumer,
        ):
            await session.producer("queue:c").send("by certificate")
            message = await consumer.receive(timeout=30)
            return message.body

    assert asyncio.run(life()) == "by certificate"


def test_a_worker_reads_contents_back_without_a_right_on_another_group(secured):
    """A group must be named for that, and it is told that Kafka does not let the worker into it."""
    prefix = "readback"
    secured.passwords["reader"] = "secret-of-reader"
    secured.broker.add_user("reader", "secret-of-reader")
    secured.broker.allow("reader", rights_of("worker", prefix))
    secured.broker.allow("client", rights_of("client", prefix))
    variables = secured.variables(secured.options("reader")) | {
        "LEDGERMQ_TOPIC_PREFIX": prefix,
        "LEDGERMQ_BODY_CACHE_BYTES": "1",
    }
    process = secured.worker(variables, "readback")
    secured.wait_for_worker(process, topic_prefix=prefix)
    try:
        with (
            secured.connect("client", topic_prefix=prefix, timeout=15.0) as connection,
            connection.session() as session,
        ):
            producer = session.producer("queue:cold")
            for number in range(20):
                producer.send(str(number))
            assert take_all(session, "cold") == [str(number) for number in range(20)]
    finally:
        process.terminate()
        assert process.wait(60) == 0, secured.log_of("readback")


def test_a_key_may_be_encrypted_for_clients_and_workers(secured):
    """With `ssl.key.password`; a wrong one is refused in words before anything is tried."""
    secured.passwords["key"] = password = "secret-of-key"
    options = secured.broker.by_certificate("client", password)
    assert "ENCRYPTED" in Path(options["ssl.key.location"]).read_text()
    assert secured.run(secured.variables(options), "put", "sealed", "tea").code == 0
    of_worker = secured.broker.by_certificate("worker", password)
    process = secured.worker(secured.variables(of_worker), "sealed")
    try:
        limit = time.monotonic() + 60
        while "started" not in secured.log_of("sealed") and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.1)
        # It is in the group only if aiokafka could use the key, too.
        while "stands by" not in secured.log_of("sealed") and process.poll() is None:
            assert time.monotonic() < limit, secured.log_of("sealed")
            time.sleep(0.1)
    finally:
        process.terminate()
        assert process.wait(60) == 0, secured.log_of("sealed")
    for wrong in ("wrong-secret", ""):
        given = secured.variables(of_worker | {"ssl.key.password": wrong})
        ended = secured.run(given, "put", "sealed", "tea")
        assert ended.code == 2, ended.err
        assert "key" in ended.err
        assert "Traceback" not in ended.err
    refused = secured.worker(secured.variables(of_worker | {"ssl.key.password": "x"}), "unsealed")
    assert refused.wait(60) == 2
    assert "Traceback" not in secured.log_of("unsealed")


def test_users_come_in_by_tokens(secured):
    """Client and worker exchange id and secret for a token, which says who they are."""
    with token_issuer() as issuer:
        of_worker = secured.variables(secured.broker.by_token("worker", issuer))
        process = secured.worker(of_worker, "token")
        try:
            limit = time.monotonic() + 60
            while "stands by" not in secured.log_of("token") and process.poll() is None:
                assert time.monotonic() < limit, secured.log_of("token")
                time.sleep(0.1)
        finally:
            process.terminate()
            assert process.wait(60) == 0, secured.log_of("token")
        given = secured.variables(secured.broker.by_token("client", issuer))
        put = secured.run(given, "put", "by-token", "tea")
        assert put.code == 0, put.err
        assert ("worker", "queues") in issuer.asked
        assert ("client", "queues") in issuer.asked
        assert issuer.secret_of("worker") not in secured.log_of("token")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sasl.oauthbearer.client.secret": "wrong"}, "worker do not trust each other"),
        ({"sasl.oauthbearer.method": "default"}, "method must be oidc"),
    ],
)
def test_a_worker_says_why_it_has_no_token(secured, options, said):
    """An issuer that does not know it; a way that it cannot go."""
    with token_issuer() as issuer:
        given = secured.broker.by_token("worker", issuer) | options
        process = secured.worker(secured.variables(given), "no-token")
        try:
            limit = time.monotonic() + 60
            while said not in secured.log_of("no-token"):
                assert time.monotonic() < limit, secured.log_of("no-token")
                time.sleep(0.1)
        finally:
            process.terminate()
            process.wait(60)
        assert "Traceback" not in secured.log_of("no-token")


def test_commands_find_their_options_in_the_environment_and_in_files(secured, tmp_path):
    """A password may lie in a file of its own, and all options together in one."""
    options = secured.options("client")
    password = tmp_path / "password"
    password.write_text(options.pop("sasl.password") + "\n")
    variables = secured.variables(options)
    variables["LEDGERMQ_KAFKA_SASL_PASSWORD_FILE"] = str(password)
    assert secured.run(variables, "put", "orders", "tea").code == 0
    properties = tmp_path / "client.properties"
    properties.write_text(
        "# options of a client\n"
        + "".join(f"{name} = {value}\n" for name, value in secured.options("client").items())
        + "client.id=till-7\n"
    )
    variables = {
        "LEDGERMQ_KAFKA_CONFIG": str(properties),
        "LEDGERMQ_BOOTSTRAP": secured.broker.scram_bootstrap,
    }
    got = secured.run(variables, "get", "orders", "--json")
    assert got.code == 0, got.err
    assert "tea" in got.out


def test_an_administrator_does_with_the_rights_printed_what_administrators_do(secured):
    """Doctor, queue administration, trimming and checkpoints need no right beyond those printed.

    That of the group is enough to see that the worker runs.
    """
    variables = secured.variables(secured.options("administrator"))
    deadline = time.monotonic() + 120
    for command in (
        ("queue", "create", "made"),
        ("doctor",),
        ("chain", "show"),
        ("log", "trim", "--before", "1", "--dry-run"),
        ("storage",),
    ):
        ended = secured.run(variables, *command)
        while "has no checkpoint" in ended.err and time.monotonic() < deadline:
            time.sleep(1.0)  # its worker writes the first one within some seconds
            ended = secured.run(variables, *command)
        assert ended.code == 0, f"{command}: {ended.out}{ended.err}"
    refused = secured.run(variables, "checkpoint", "discard", "--yes")
    assert refused.code == 1, refused.err
    assert "(worker): stop all workers first" in refused.err


def test_a_probe_of_the_cluster_needs_what_clients_and_auditors_may(secured):
    """A client may not read checkpoints: that check fails, not the one that it passed."""
    variables = secured.variables(secured.options("client"))
    ended = secured.run(variables, "check", "cluster")
    assert ended.code == 3
    assert [line.split("\t")[:2] for line in ended.out.splitlines()[1:]] == [
        ["ok", "QM1 worker"],
        ["failed", "QM1 checkpoint"],
    ]
    assert "let user client Describe on topic ledgermq.checkpoints" in ended.out
    secured.add_user("probe", "client")
    secured.broker.allow("probe", rights_of("auditor", TOPIC_PREFIX_DEFAULT))
    ended = secured.run(secured.variables(secured.options("probe")), "check", "cluster")
    assert ended.code == 0, ended.out


def test_who_is_not_let_in_is_told_so_at_once(secured, tmp_path):
    """Wrong password, mechanism, authority and certificate are said in words, with exit code 3."""
    right = secured.options("client")
    stranger = Authority(tmp_path, "stranger")
    certificate, key = stranger.sign("client")
    by_certificate = secured.broker.by_certificate("client")
    forged = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    for options, said in (
        (right | {"sasl.password": "wrong-secret"}, "invalid credentials"),
        (right | {"sasl.username": "nobody"}, "invalid credentials"),
        (right | {"sasl.mechanism": "SCRAM-SHA-256"}, "supported mechanisms: SCRAM-SHA-512"),
        (right | {"ssl.ca.location": str(stranger.certificate)}, "certificate verify failed"),
        # Which of the two words it is depends on the release of Java.
        (by_certificate | forged, "(bad certificate|certificate required)"),
    ):
        ended = secured.run(secured.variables(options), "put", "orders", "tea")
        assert ended.code == 3, ended.err
        assert re.search(f"do not trust each other.*{said}", ended.err), ended.err
        assert "wrong-secret" not in ended.err


def test_a_program_that_is_not_let_in_gets_an_error_of_its_own(secured):
    """`connect` raises AuthenticationFailedError long before its time-out."""
    wrong = secured.options("client") | {"sasl.password": "wrong-secret"}
    with pytest.raises(ledgermq.errors.AuthenticationFailedError) as caught:
        secured.connect("client", kafka=wrong, timeout=3600.0)
    assert "wrong-secret" not in str(caught.value)


def test_a_worker_that_is_not_let_in_ends_and_says_why(secured):
    """A wrong password ends a worker with exit code 3."""
    wrong = secured.options("worker") | {"sasl.password": "wrong-secret"}
    process = secured.worker(secured.variables(wrong), "refused")
    assert process.wait(120) == 3
    assert "user worker do not trust each other" in secured.log_of("refused")


def test_secrets_are_nowhere_to_be_read(secured):
    """Passwords stand in no output, log, file, argument of a process, or shown object."""
    with secured.connect("client") as connection:
        shown = [
            repr(connection),
            repr(connection._running.settings),
            repr(vars(connection._running)),
        ]
    arguments = [
        path.read_bytes().decode(errors="replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.parent.name.isdigit() and _still_there(path)
    ]
    files = [
        path.read_text(errors="replace")
        for path in secured.directory.rglob("*")
        if path.is_file() and "broker/data" not in str(path)
    ]
    texts = [*secured.said, *shown, *arguments, *files]
    assert len(secured.said) > 5
    for password in [*secured.passwords.values(), "wrong-secret"]:
        assert [text for text in texts if password in text] == []


def _still_there(path):
    try:
        return bool(path.read_bytes())
    except OSError:
        return False
