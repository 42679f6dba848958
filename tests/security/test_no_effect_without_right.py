"""No effect on log, topics or rights without a right, and every attempt is answered (I14)."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ledgermq.wire.kafka.rights import rights_of
from ledgermq.wire.topics.log_topics import TOPIC_PREFIX_DEFAULT, Topics
from ledgermq.wire.topics.reading import PartitionReader
from support.brokers.secured_broker import Authority

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PATIENCE_SECONDS = 60
MARK = b"written without a right"
TOPICS = Topics(TOPIC_PREFIX_DEFAULT)
ALL = [
    *(TOPICS.registry, TOPICS.operations, TOPICS.outcomes),
    *(TOPICS.questions, TOPICS.checkpoints),
]
DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    # What somebody may not even see is not there for him.
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._NOENT,
}
USERS = ("client", "worker", "auditor", "administrator", "nobody")
ACL = AclBinding(
    *(ResourceType.TOPIC, TOPICS.operations, ResourcePatternType.LITERAL, "User:nobody", "*"),
    *(AclOperation.ALL, AclPermissionType.ALLOW),
)
ANY_ACL = AclBindingFilter(
    *(ResourceType.ANY, None, ResourcePatternType.ANY, None, None),
    *(AclOperation.ANY, AclPermissionType.ANY),
)


def records(secured):
    """All that stands on each topic, as its raw bytes."""
    with PartitionReader(secured.broker.bootstrap, 30, as_written=True) as reader:
        return {
            (topic, partition): [
                (one.key(), one.value())
                for one in reader.records(topic, partition, *reader.ends(topic, partition))
            ]
            for topic in ALL
            for partition in range(reader.partition_count(topic))
        }


def rights(secured):
    """All rights that anybody has, and who is in the workers' group."""
    admin = secured.broker.admin
    group = f"{TOPIC_PREFIX_DEFAULT}.workers"
    members = admin.describe_consumer_groups([group])[group].result().members
    return (
        sorted(map(str, admin.describe_acls(ANY_ACL).result())),
        [one.member_id for one in members],
        {name: len(one.partitions) for name, one in admin.list_topics().topics.items()},
    )


def write(options, bootstrap, topic):
    """What Kafka answers to one that writes: codes of errors, of the record and of the client."""
    codes = set()
    producer = Producer(
        {
            **options,
            "bootstrap.servers": bootstrap,
            "message.timeout.ms": 10_000,
            "log_level": 0,
            "error_cb": lambda error: codes.add(error.code()),
        }
    )
    landed = []
    producer.produce(
        topic, MARK, key=MARK, partition=0, on_delivery=lambda *one: landed.append(one)
    )
    assert producer.flush(PATIENCE_SECONDS) == 0
    ((error, _),) = landed
    assert error is not None, f"{options.get('sasl.username')} wrote to {topic}"
    return codes | {error.code()}


def read(options, bootstrap, group, topic):
    """What Kafka answers to one that reads as a member of a group, or without one."""
    settings = {**options, "bootstrap.servers": bootstrap, "log_level": 0}
    consumer = Consumer(settings | {"group.id": group or "mine", "auto.offset.reset": "earliest"})
    try:
        if group:
            consumer.subscribe([topic])
        else:
            consumer.assign([TopicPartition(topic, 0, 0)])
        limit = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < limit:
            found = consumer.poll(1.0)
            if found is not None:
                assert found.error() is not None, "something was read"
                if found.error().code() in DENIED:
                    return
        raise AssertionError("it was not answered")
    finally:
        consumer.close()


@pytest.fixture(scope="module")
def honest(secured):
    """What a client did before anybody tried anything; a user without any right is there."""
    secured.passwords["nobody"] = "secret-of-nobody"
    secured.broker.add_user("nobody", "secret-of-nobody")
    with secured.connect("client") as connection, connection.session() as session:
        session.producer("queue:guarded").send("honest")
    return secured


def check_nothing_happened(secured, before):
    """The log goes on from what it was, without a trace; rights and members are the same."""
    log, everybody = before
    now = records(secured)
    for place, found in now.items():
        if place[0] != TOPICS.checkpoints:  # which Kafka compacts
            assert found[: len(log[place])] == log[place], place
        assert not [one for one in found if MARK in (one[0] or b"") + (one[1] or b"")], place
    assert now[TOPICS.registry, 0] == log[TOPICS.registry, 0]
    assert rights(secured) == everybody
    with secured.connect("client") as connection:
        assert [one.body for one in connection.browser("queue:guarded")] == ["honest"]


def test_who_may_not_write_or_read_a_topic_is_told_and_leaves_no_trace(honest):
    """Each user of each role at each topic that its role does not write or read."""
    before, where = (records(honest), rights(honest)), honest.broker.scram_bootstrap
    tried = 0
    for user in USERS:
        granted = [] if user == "nobody" else rights_of(user, TOPIC_PREFIX_DEFAULT)
        may = {(one.name, one.operation) for one in granted}
        for topic in ALL:
            if (topic, "Write") not in may:
                assert write(honest.options(user), where, topic) & DENIED
                tried += 1
            if (topic, "Read") not in may:
                read(honest.options(user), where, "", topic)
                tried += 1
        if user != "worker":
            read(honest.options(user), where, f"{TOPIC_PREFIX_DEFAULT}.workers", TOPICS.operations)
            tried += 1
    assert tried > 25
    check_nothing_happened(honest, before)


def test_who_is_not_let_in_leaves_no_trace(honest, tmp_path):
    """A wrong password and a forged certificate are answered as such."""
    before = (records(honest), rights(honest))
    wrong = honest.options("worker") | {"sasl.password": "wrong-secret"}
    said = write(wrong, honest.broker.scram_bootstrap, TOPICS.operations)
    assert KafkaError._AUTHENTICATION in said
    certificate, key = Authority(tmp_path, "stranger").sign("worker")
    forged = honest.broker.by_certificate("worker") | {
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
    }
    assert write(forged, honest.broker.tls_bootstrap, TOPICS.operations)
    check_nothing_happened(honest, before)


@pytest.mark.parametrize("user", ["client", "worker", "auditor", "nobody"])
def test_who_may_not_administer_kafka_is_told_and_changes_nothing(honest, user):
    """Records, topics, settings, rights and passwords; administrators of LedgerMQ cut records."""
    before = (records(honest), rights(honest))
    where = honest.broker.scram_bootstrap
    admin = AdminClient({**honest.options(user), "bootstrap.servers": where, "log_level": 0})
    retention = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    config = ConfigResource(ResourceType.TOPIC, TOPICS.operations, incremental_configs=[retention])
    password = UserScramCredentialUpsertion(
        user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"stolen"
    )
    for attempt in (
        admin.delete_records([TopicPartition(TOPICS.operations, 0, 1)]),
        admin.delete_topics([TOPICS.outcomes]),
        admin.create_partitions([NewPartitions(TOPICS.operations, 9)]),
        admin.incremental_alter_configs([config]),
        admin.create_acls([ACL]),
        admin.alter_user_scram_credentials([password]),
    ):
        (future,) = attempt.values()
        error = future.exception(PATIENCE_SECONDS)
        assert error is not None, attempt
        assert error.args[0].code() in DENIED, error
    check_nothing_happened(honest, before)
