"""The registry: which queue manager is which partition (PROTOCOL.md §1, D1).

A log of claims, folded from its start; the first valid claim counts, so that two writers who claim
at once agree on the outcome.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ledgermq.protocol.limits import is_name
from ledgermq.wire.framing.codec import UndecodableError, decode_record, encode_record
from ledgermq.wire.kafka.settings import KafkaSettings
from ledgermq.wire.topics.appending import NotAppendedError, append_record
from ledgermq.wire.topics.log_topics import LANES_DEFAULT, Topics
from ledgermq.wire.topics.reading import LogUnreadableError, PartitionReader, partition_reader

CLAIM: Final = "ledgermq.registry.Claim"


class RegistryError(RuntimeError):
    """The registry cannot be read or a claim cannot be made; the text says why."""


class RegistryUnreadableError(RegistryError):
    """Kafka does not answer what was asked for, perhaps as most of its nodes are down."""


class Claim(NamedTuple):
    queue_manager: str
    partition: int
    lanes: int


def list_queue_managers(
    bootstrap: str,
    topics: Topics,
    *,
    timeout_seconds: float = 15.0,
    kafka: KafkaSettings | None = None,
) -> list[Claim]:
    """All queue managers by partition; RegistryError if the registry cannot be read.

    Here and below AuthenticationFailedError and AccessDeniedError say that Kafka refuses it.
    """
    try:
        with partition_reader(bootstrap, timeout_seconds, kafka=kafka) as reader:
            return _read(reader, topics)
    except LogUnreadableError as error:
        raise RegistryUnreadableError(
            f"the registry at {bootstrap} cannot be read: {error}"
        ) from error


def _read(reader: PartitionReader, topics: Topics) -> list[Claim]:
    partitions = reader.partition_count(topics.operations)
    if not partitions or not reader.partition_count(topics.registry):
        raise RegistryError(
            f"topic {topics.registry} or {topics.operations} does not exist: "
            "start a worker first, or check the topic prefix"
        )
    claims: dict[int, Claim] = {}
    # Asked for, as a broker may not know them yet just after the topic was made: told so while it
    # reads, librdkafka asks again after half a second.
    ends = reader.ends(topics.registry, 0)
    for record in reader.records(topics.registry, 0, *ends):
        claim = _claim_from(record.value())
        if claim is None or not 0 <= claim.partition < partitions or claim.partition in claims:
            continue
        if claim.queue_manager not in {one.queue_manager for one in claims.values()}:
            claims[claim.partition] = claim
    return [claims[partition] for partition in sorted(claims)]


def _claim_from(value: bytes | None) -> Claim | None:
    """The claim in a record, or None for what is no claim: it then counts for nothing."""
    try:
        full_name, datum = decode_record(value)
    except UndecodableError:
        return None
    if full_name != CLAIM or not is_name(datum["queue_manager"]) or datum["lanes"] < 1:
        return None
    return Claim(datum["queue_manager"], datum["partition"], datum["lanes"])


def find_queue_manager(
    bootstrap: str, topics: Topics, name: str, *, timeout_seconds: float = 15.0
) -> Claim | None:
    claims = list_queue_managers(bootstrap, topics, timeout_seconds=timeout_seconds)
    return next((one for one in claims if one.queue_manager == name), None)


def claim_queue_manager(
    bootstrap: str,
    topics: Topics,
    name: str,
    *,
    lanes: int = LANES_DEFAULT,
    timeout_seconds: float = 15.0,
) -> Claim:
    """The claim of a queue manager, made now if there is none.

    Raises RegistryError for a name that is none, or when every partition is taken.
    """
    if not is_name(name):
        raise RegistryError(f"{name!r} is no queue manager name: 1 to 128 of A-Z a-z 0-9 . _ / % -")
    tried: set[int] = set()
    while True:
        claims = list_queue_managers(bootstrap, topics, timeout_seconds=timeout_seconds)
        for one in claims:
            if one.queue_manager == name:
                return one
        with partition_reader(bootstrap, timeout_seconds) as reader:
            partitions = reader.partition_count(topics.operations)
        taken = {one.partition for one in claims} | tried
        free = [partition for partition in range(partitions) if partition not in taken]
        if not free:
            raise RegistryError(
                f"no partition is left for queue manager {name}: all {partitions} are taken, and "
                "the number is fixed; use another topic prefix for more"
            )
        tried.add(free[0])
        claim = Claim(name, free[0], lanes)
        value = encode_record(CLAIM, claim._asdict())
        try:
            append_record(
                bootstrap, topics.registry, 0, name, value, timeout_seconds=timeout_seconds
            )
        except NotAppendedError as error:
            raise RegistryError(f"queue manager {name} cannot be claimed: {error}") from error
