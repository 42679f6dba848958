"""Tests that each right that `ledgermq acl` prints is needed, and its lack is told in words."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

import ledgermq
from ledgermq.errors import AccessDeniedError, ConnectionClosedError
from ledgermq.processor.worker.membership import session_timeout_seconds
from ledgermq.relay.transaction_markers import finish_transaction
from ledgermq.wire.kafka.rights import Right, rights_of, rights_of_bridge
from ledgermq.wire.topics.reading import PartitionReader
from support.brokers.open_transaction import leave_open

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
PATIENCE_SECONDS = 120


def use(secured, user="client"):
    """Puts a message and asks a question, as a client does."""
    with secured.connect(user) as connection:
        with connection.session() as session:
            session.producer("queue:rights").send("x")
        return connection.admin.queue_status("rights")


def send_for_ever(producer):
    """Sends until it is refused."""
    while True:
        producer.send("after")


def ask_for_ever(connection):
    """Asks until it is refused."""
    while True:
        connection.admin.queue_status("rights")


def denied(secured, user="client"):
    """The text of the error that using the connection ends in; a broker learns of rights late."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < limit:
        try:
            use(secured, user)
        except ledgermq.LedgerMQError as error:
            return str(error)
    raise AssertionError("it was allowed all the time")


@pytest.mark.parametrize("right", rights_of("client", "ledgermq"), ids=lambda one: one.name)
def test_a_client_without_one_of_its_rights_is_told_which(secured, right):
    """A topic that it may not see, or sees and may not use, is named with the user."""
    secured.broker.withdraw("client", right)
    only_seen = right._replace(operation="Describe")
    try:
        hidden = denied(secured)
        assert re.search(f"does not let user client Describe on topic {right.name}", hidden)
        secured.broker.allow("client", [only_seen])
        limit = time.monotonic() + PATIENCE_SECONDS
        while f"let user client {right.operation} on topic {right.name}" not in denied(secured):
            assert time.monotonic() < limit
    finally:
        secured.broker.allow("client", [right])
    limit = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            use(secured)
            break
        except ledgermq.LedgerMQError:
            assert time.monotonic() < limit
    secured.broker.withdraw("client", only_seen)


def test_a_client_whose_right_is_taken_away_is_told_while_it_works(secured):
    """A connection that Kafka does not let write any more ends at once, long before a time-out."""
    right = Right("Topic", "ledgermq.operations", "Write")
    try:
        with secured.connect("client", timeout=3600.0) as connection:
            session = connection.session()
            producer = session.producer("queue:rights")
            producer.send("before")
            secured.broker.withdraw("client", right)
            with pytest.raises(ledgermq.LedgerMQError, match="let user client Write"):
                send_for_ever(producer)
            with pytest.raises(ConnectionClosedError, match="let user client Write"):
                connection.session()
    finally:
        secured.broker.allow("client", [right])


def test_a_client_that_may_ask_no_more_is_told_which_right_that_needs(secured):
    """Also where its producer knows of the refusal before it queues the next question."""
    right = Right("Topic", "ledgermq.questions", "Write")
    try:
        with secured.connect("client") as connection:
            connection.session().producer("queue:rights").send("x")
            connection.admin.queue_status("rights")
            secured.broker.withdraw("client", right)
            with pytest.raises(
                ledgermq.LedgerMQError, match=r"user client Write on topic ledgermq\.questions"
            ):
                ask_for_ever(connection)
    finally:
        secured.broker.allow("client", [right])


RIGHTS_OF_BRIDGES = rights_of_bridge(["foreign-in"], ["foreign-out"])


@pytest.fixture(scope="module")
def bridging(secured):
    """A client that may also read and write topics of Kafka, by bridges of its own."""
    secured.add_user("bridge", "client")
    secured.broker.allow("bridge", RIGHTS_OF_BRIDGES)
    topics = [NewTopic(name, 1, 1) for name in ("foreign-in", "foreign-out")]
    for made in secured.broker.admin.create_topics(topics).values():
        made.result()
    producer = Producer({"bootstrap.servers": secured.broker.bootstrap})
    producer.produce("foreign-in", b"tea")
    assert producer.flush(30) == 0
    variables = secured.variables(secured.options("bridge"))

    def run(queue):
        taken = secured.run(
            *(variables, "bridge", "--from-topic", "foreign-in", "--to", queue),
            *("--until-end", "--timeout", "10"),
        )
        if taken.code:
            return taken
        return secured.run(
            *(variables, "bridge", "--from", queue, "--to-topic", "foreign-out"),
            *("--until-end", "--timeout", "10"),
        )

    return run


def test_a_bridge_needs_no_right_beyond_those_printed(secured, bridging):
    """From a topic to a queue, and from there to a topic."""
    ended = bridging("queue:bridged")
    assert ended.code == 0, ended.err
    with PartitionReader(secured.broker.bootstrap, 20) as reader:
        (record, *_) = reader.records("foreign-out", 0, 0)
    assert record.value() == b"tea"


@pytest.mark.parametrize("right", RIGHTS_OF_BRIDGES, ids=lambda one: "-".join(one[:3]))
def test_a_bridge_without_one_of_its_rights_ends_and_says_so(secured, bridging, right):
    """It does not wait for what will not come; Read to a topic is needed to note its position."""
    secured.broker.withdraw("bridge", right)
    kind = right.resource.replace("Id", " id").lower()
    try:
        for number in range(20):
            ended = bridging(f"queue:without-{right.resource}-{right.operation}-{number}")
            if ended.code:
                break
        assert ended.code == 3, ended.err
        assert f"on {kind} {right.name}" in ended.err
    finally:
        secured.broker.allow("bridge", [right])


def test_a_bridge_that_may_not_finish_an_open_transaction_says_who_may(
    secured, bridging, monkeypatch
):
    """It would make Kafka forget how it was to end; with the rights the same run goes on."""
    plain, name = {"bootstrap.servers": secured.broker.bootstrap}, "ledgermq-left-open"
    producer = Producer({**plain, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("foreign-out", b"whole")
    place = TopicPartition("foreign-out", 0, 1)
    group = Consumer({**plain, "group.id": name}).consumer_group_metadata()
    producer.send_offsets_to_transaction([place], group)
    producer.commit_transaction(30)
    for variable, value in secured.variables(secured.options("bridge")).items():
        monkeypatch.setenv(variable, value)
    where = (secured.broker.scram_bootstrap, name, "foreign-out", 20)
    positions = []
    finish = partial(finish_transaction, *where, check_position=lambda: positions.append("asked"))
    assert (finish(), positions) == ("", ["asked"])
    leave_open(secured.broker.bootstrap, name, "foreign-out", b"open", position=2)
    rights = [
        Right("Topic", "__consumer_offsets", "Read"),
        Right("Cluster", "kafka-cluster", "ClusterAction"),
    ]
    # A broker learns of rights late.
    limit = time.monotonic() + PATIENCE_SECONDS
    for right, places in zip(rights, ("partition 0", r"partition \d of .*s and"), strict=True):
        expected = rf"left it open on {places} .* may also ClusterAction .* user bridge may not"
        told = ""
        while not re.search(expected, told):
            with pytest.raises(AccessDeniedError) as raised:
                finish()
            told = str(raised.value)
            assert time.monotonic() < limit, told
        secured.broker.allow("bridge", [right])
    done = ""
    while not done:
        with suppress(AccessDeniedError):
            done = finish()
        assert time.monotonic() < limit
    assert "is finished: commit on partition" in done
    assert positions == ["asked"]
    for right in rights:
        secured.broker.withdraw("bridge", right)


@pytest.fixture(scope="module")
def relaying(secured):
    """The variables of a user who relays with the rights of a client; it has carried a message."""
    secured.add_user("relay", "client")
    variables = secured.variables(secured.options("relay"))
    for command in (
        ("put", "relayed", "tea"),
        ("relay", "create", "--from", "relayed", "--to", "queue:there@QM1"),
        ("relay", "run", "relayed", "--until-end"),
    ):
        ended = secured.run(variables, *command)
        assert ended.code == 0, ended.err
    return variables


@pytest.mark.parametrize(
    "right",
    [one for one in rights_of("client", "ledgermq") if not one.name.endswith("registry")],
    ids=lambda one: one.name,
)
def test_a_relay_whose_right_is_taken_away_ends_and_says_which(secured, relaying, right):
    """It needs those of a client all the time, and does not wait for what will not come."""
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(secured.run, relaying, "relay", "run", "relayed")
        try:
            with secured.connect("client") as connection:
                limit = time.monotonic() + PATIENCE_SECONDS
                while not connection.admin.queue_status("relay/relayed").receivers:
                    assert time.monotonic() < limit
            secured.broker.withdraw("relay", right)
            ended = running.result(PATIENCE_SECONDS)
        finally:
            secured.broker.allow("relay", [right])
    assert ended.code == 3, ended.err
    assert re.search(
        f"let user relay (Describe|{right.operation}) on topic {right.name}", ended.err
    )


@pytest.mark.parametrize(
    ("command", "right"),
    [
        (("log", "relocate", "--all", "--reason", "r"), ("operations", "Read")),
        (("log", "relocate", "--all", "--reason", "r"), ("outcomes", "Read")),
        (("log", "skip", "0", "--reason", "r", "--yes"), ("operations", "Read")),
        (("log", "tail"), ("operations", "Read")),
        (("log", "trim", "--before", "1", "--dry-run"), ("checkpoints", "Read")),
    ],
    ids=lambda one: "-".join(one[:2]),
)
def test_an_administrator_without_a_right_is_told_which(secured, command, right):
    """Each command names the first that it misses, with exit code 3."""
    missing = Right("Topic", f"ledgermq.{right[0]}", right[1])
    variables = secured.variables(secured.options("administrator"))
    secured.broker.withdraw("administrator", missing)
    limit = time.monotonic() + PATIENCE_SECONDS
    try:
        # A broker learns of rights late.
        while (ended := secured.run(variables, *command)).code != 3:
            assert time.monotonic() < limit, ended
    finally:
        secured.broker.allow("administrator", [missing])
    assert f"let user administrator {right[1]} on topic {missing.name}" in ended.err


def test_an_auditor_cannot_write(secured):
    """Whoever only reads the log can put nothing, not even a question."""
    with pytest.raises(
        AccessDeniedError, match=r"user auditor Describe on topic ledgermq.questions"
    ):
        use(secured, "auditor")


def test_a_worker_needs_one_more_right_for_a_short_session_timeout(secured, monkeypatch, caplog):
    """Without it the broker's limit is not known: its default counts, and the log says why."""
    caplog.set_level("INFO")
    for variable, value in secured.variables(secured.options("worker")).items():
        monkeypatch.setenv(variable, value)
    asked = partial(session_timeout_seconds, secured.broker.scram_bootstrap, 2.5, 20.0)
    assert asked() == 6.0
    assert "is not known (the right to DescribeConfigs on the cluster is missing)" in caplog.text
    right = Right("Cluster", "kafka-cluster", "DescribeConfigs")
    secured.broker.allow("worker", [right])
    try:
        limit = time.monotonic() + PATIENCE_SECONDS
        while asked() != 2.5:
            assert time.monotonic() < limit
    finally:
        secured.broker.withdraw("worker", right)


def add_worker(secured, prefix):
    """A user of a worker on topics of its own, which clients may use; its name and variables."""
    user = f"worker-{prefix}"
    secured.passwords[user] = f"secret-of-{user}"
    secured.broker.add_user(user, secured.passwords[user])
    secured.broker.allow(user, rights_of("worker", prefix))
    secured.broker.allow("client", rights_of("client", prefix))
    return user, secured.variables(secured.options(user)) | {"LEDGERMQ_TOPIC_PREFIX": prefix}


def test_a_worker_that_knows_it_may_not_write_before_it_does_says_which_right_that_needs(secured):
    """An idle worker learns it when it asks again for what topics there are."""
    prefix = "idle"
    user, variables = add_worker(secured, prefix)
    soon = {"LEDGERMQ_KAFKA_TOPIC_METADATA_REFRESH_INTERVAL_MS": "500"}
    process = secured.worker(variables | soon, user)
    secured.wait_for_worker(process, topic_prefix=prefix)
    right = Right("Topic", f"{prefix}.outcomes", "Write")
    with secured.connect("client", topic_prefix=prefix, timeout=20.0) as connection:
        session = connection.session()
        secured.broker.withdraw(user, right)
        time.sleep(5)
        with suppress(ledgermq.LedgerMQError):
            session.producer("queue:rights").send("x", timeout=2)
        code, told = process.wait(PATIENCE_SECONDS), secured.log_of(user)
        secured.broker.allow(user, [right])
        process = secured.worker(variables, user)
    process.terminate()
    assert (code, process.wait(60)) == (3, 0), told
    assert f"let user {user} Write on topic {prefix}.outcomes" in told


@pytest.mark.parametrize("taken", [("operations", "Read"), ("workers", "Read")], ids="-".join)
def test_a_worker_whose_right_is_taken_away_ends_in_words_and_goes_on_with_it(secured, taken):
    """What reads the log and the group runs inside of Faust, which would tell of a crash."""
    prefix = f"revoked-{taken[0]}"
    user, variables = add_worker(secured, prefix)
    (right,) = [
        one for one in rights_of("worker", prefix) if one[1:3] == (f"{prefix}.{taken[0]}", taken[1])
    ]
    process = secured.worker(variables, user)
    secured.wait_for_worker(process, topic_prefix=prefix)
    with secured.connect("client", topic_prefix=prefix) as connection:
        with connection.session() as session:
            session.producer("queue:rights").send("before")
        secured.broker.withdraw(user, right)
        assert process.wait(PATIENCE_SECONDS) == 3
        told = secured.log_of(user)
        kind = right.resource.lower()
        assert f"does not let user {user} Read on {kind} {right.name}: an administrator" in told
        assert "Traceback" not in told
        secured.broker.allow(user, [right])
        process = secured.worker(variables, user)
        with connection.session() as session, session.consumer("queue:rights") as consumer:
            assert consumer.receive(timeout=30).body == "before"
    process.terminate()
    assert process.wait(60) == 0, secured.log_of(user)


@pytest.mark.long
@pytest.mark.parametrize(
    "at",
    range(len(rights_of("worker", "x"))),
    ids=lambda at: "-".join(rights_of("worker", "x")[at]),
)
def test_a_worker_without_one_of_its_rights_ends_and_says_which(secured, at):
    """Each right is missed: on topics of its own, when a client wants something, or later.

    That is when a message becomes due, or at the next start, which finds a checkpoint.
    """
    prefix = f"without{at}"
    rights = rights_of("worker", prefix)
    missing = rights.pop(at)
    user = f"worker-{prefix}"
    secured.passwords[user] = f"secret-of-{user}"
    secured.broker.add_user(user, secured.passwords[user])
    secured.broker.allow(user, rights)
    secured.broker.allow("client", rights_of("client", prefix))
    variables = secured.variables(secured.options(user)) | {
        "LEDGERMQ_TOPIC_PREFIX": prefix,
        "LEDGERMQ_CHECKPOINT_SECONDS": "1",
        "LEDGERMQ_PARTITIONS": "1",
    }
    process = secured.worker(variables, user)
    # They are read at a start that is not the first.
    read_later = (f"{prefix}.checkpoints", f"{prefix}.outcomes")
    is_later = missing.operation == "Read" and missing.name in read_later
    stops_at = time.monotonic() + 10 if is_later else None
    limit = time.monotonic() + PATIENCE_SECONDS
    # Without checkpoints, and without knowing how large the log is, a worker goes on.
    goes_on = missing.resource == "Cluster" or missing[1:3] == (f"{prefix}.checkpoints", "Write")
    # Where no other right shows the topic it is hidden.
    wanted = f"(?:{missing.operation}|Describe) on (?:the )?{missing.resource.lower()}"
    said = re.compile(wanted + ("" if missing.resource == "Cluster" else f" {missing.name}"))
    try:
        while process.poll() is None and not said.search(secured.log_of(user)):
            assert time.monotonic() < limit, secured.log_of(user)
            started = "started" in secured.log_of(user)
            if stops_at is not None and time.monotonic() > stops_at and started:
                stops_at = None
                process.terminate()
                assert process.wait(60) == 0
                process = secured.worker(variables, user)
            try:
                with secured.connect("client", topic_prefix=prefix, timeout=15.0) as connection:
                    with connection.session() as session:
                        session.producer("queue:rights").send("x", delivery_delay=0.1)
                    connection.admin.storage()
            except ledgermq.LedgerMQError:
                time.sleep(0.2)
    finally:
        if goes_on:
            process.terminate()
        code = process.wait(60)
    assert code == (0 if goes_on else 3), secured.log_of(user)
