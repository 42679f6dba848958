"""The registry: which queue manager is which partition (PROTOCOL.md §1, D1).

A log of claims, folded from its start; the first valid claim counts, so that two writers who claim
at once agree on the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ledgermq.errors import QueueManagerNotFoundError
from ledgermq.protocol.limits import is_name
from ledgermq.protocol.operations import Unreadable
from ledgermq.wire.framing.codec import UndecodableError, decode_as, decode_operation, encode_record
from ledgermq.wire.kafka.settings import KafkaSettings
from ledgermq.wire.topics.appending import NotAppendedError, append_record
from ledgermq.wire.topics.log_topics import LANES_DEFAULT, Topics
from ledgermq.wire.topics.reading import LogUnreadableError, PartitionReader

CLAIM: Final = "ledgermq.registry.Claim"
# So many records of a log may be none of a queue manager before nobody looks for further ones.
FOREIGN_MAX: Final = 1_000


class RegistryError(RuntimeError):
    """The registry cannot be read or a claim cannot be made; the text says why."""


class RegistryUnreadableError(RegistryError):
    """Kafka does not answer what was asked for, perhaps as most of its nodes are down."""


class RegistryLostError(RegistryError):
    """The registry names no queue manager, and the log has entries of some."""


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
        with PartitionReader(bootstrap, timeout_seconds, kafka=kafka) as reader:
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
        datum = decode_as(CLAIM, value)
    except UndecodableError:
        return None
    if not is_name(datum["queue_manager"]) or datum["lanes"] < 1:
        return None
    return Claim(datum["queue_manager"], datum["partition"], datum["lanes"])


def find_queue_manager(
    bootstrap: str,
    topics: Topics,
    name: str,
    *,
    timeout_seconds: float = 15.0,
    kafka: KafkaSettings | None = None,
) -> Claim:
    """The claim of a queue manager; QueueManagerNotFoundError if nobody claimed its name."""
    claims = list_queue_managers(bootstrap, topics, timeout_seconds=timeout_seconds, kafka=kafka)
    for one in claims:
        if one.queue_manager == name:
            return one
    known = ", ".join(one.queue_manager for one in claims) or "none"
    raise QueueManagerNotFoundError(
        f"there is no queue manager {name} at {bootstrap} under topic prefix {topics.prefix} "
        f"(known: {known}): check the name; a log has those that its first worker was started "
        "with (`ledgermq worker --queue-manager NAME`, which may be repeated)"
    )


def queue_managers_on_log(
    bootstrap: str, topics: Topics, *, timeout_seconds: float = 15.0
) -> dict[int, str]:
    """By partition, whose entries the log has, as their keys say; no claim is asked for."""
    try:
        with PartitionReader(bootstrap, timeout_seconds) as reader:
            partitions = range(reader.partition_count(topics.operations))
            found = {one: _named_on_log(reader, topics, one) for one in partitions}
    except LogUnreadableError as error:
        raise RegistryUnreadableError(
            f"whose log is which partition of {topics.operations} cannot be read: {error}"
        ) from error
    return {partition: name for partition, name in found.items() if name is not None}


def _named_on_log(reader: PartitionReader, topics: Topics, partition: int) -> str | None:
    first, end = reader.ends(topics.operations, partition)
    for record in reader.records(
        topics.operations, partition, first, min(end, first + FOREIGN_MAX)
    ):
        name = (record.key() or b"").decode(errors="replace")
        # Anybody may write a record with any key.
        if is_name(name) and not isinstance(decode_operation(record.value()), Unreadable):
            return name
    return None


def check_not_lost(topics: Topics, on_log: Mapping[int, str], names: tuple[str, ...]) -> None:
    """Raises RegistryLostError if a registry without claims once had others than these names."""
    if set(on_log.values()) <= set(names):
        return
    whose = ", ".join(f"{topics.operations}-{at} those of {on_log[at]}" for at in sorted(on_log))
    named = list(dict.fromkeys(on_log[at] for at in sorted(on_log)))
    options = " ".join(f"--queue-manager {name}" for name in named)
    raise RegistryLostError(
        f"{topics.registry} names no queue manager, but the log has entries ({whose}): the "
        "registry was deleted or lost. Put its records back; or start a worker once that names "
        f"all of them, with {options} (or LEDGERMQ_QUEUE_MANAGERS={','.join(named)}): each gets "
        "the partition with its entries again"
    )


def claim_queue_manager(
    bootstrap: str,
    topics: Topics,
    name: str,
    *,
    lanes: int = LANES_DEFAULT,
    timeout_seconds: float = 15.0,
    on_log: Mapping[int, str] | None = None,
) -> Claim:
    """The claim of a queue manager, made now if there is none.

    It is on the partition that has its entries, where a registry was lost; else on the lowest
    without entries of any. `on_log` is what `queue_managers_on_log` found, which else is looked up.

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
        with PartitionReader(bootstrap, timeout_seconds) as reader:
            partitions = reader.partition_count(topics.operations)
        if on_log is None:
            on_log = queue_managers_on_log(bootstrap, topics, timeout_seconds=timeout_seconds)
        taken = {one.partition for one in claims} | tried
        left = [partition for partition in range(partitions) if partition not in taken]
        own = [partition for partition in left if on_log.get(partition) == name]
        free = own or [partition for partition in left if partition not in on_log]
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
