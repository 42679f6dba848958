"""Where a connection goes and how it behaves: the address and the settings of `connect`."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Any, Final, Unpack

from ledgermq.client.arguments import SECONDS_MAX
from ledgermq.client.options import USUAL, ConnectOptions
from ledgermq.errors import IllegalStateError, InvalidClientIDError
from ledgermq.errors.shown import shown
from ledgermq.errors.warnings import give_warning
from ledgermq.protocol.limits import (
    PUT_MESSAGES_MAX,
    REDELIVERY_LIMIT_MAX,
    SUSPECT_TIMEOUT_MS_MAX,
    SUSPECT_TIMEOUT_MS_MIN,
    TIMING_MS_MAX,
    is_name,
)
from ledgermq.wire.content.conversion import plain
from ledgermq.wire.kafka.settings import KafkaSettings, kafka_settings
from ledgermq.wire.topics.address import AddressError, check_text, parse_address
from ledgermq.wire.topics.log_topics import TOPIC_PREFIX_DEFAULT, Topics

PREFETCH_DEFAULT: Final = 200
# With what the library says of itself, less than an Open may say of its client.
APPLICATION_CHARACTERS_MAX: Final = 1_000
SCHEMA_REGISTRY_VARIABLE: Final = "LEDGERMQ_SCHEMA_REGISTRY"
# Options of `connect` that are settings as they were given, each in its range.
RANGES: Final = {
    "send_timeout_seconds": (0, TIMING_MS_MAX // 1000),
    "suspect_timeout_seconds": (SUSPECT_TIMEOUT_MS_MIN // 1000, SUSPECT_TIMEOUT_MS_MAX // 1000),
    "put_messages_max": (1, PUT_MESSAGES_MAX),
    "redelivery_delay_ms": (0, TIMING_MS_MAX),
    "redelivery_limit": (-1, REDELIVERY_LIMIT_MAX),
}


class PickleWarning(UserWarning):
    """A connection reads pickles, and so runs what their senders chose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """One connection's identity and settings, as `connect` says them; times in seconds.

    Attributes:
        bootstrap: Comma-separated `host:port` of Kafka brokers.
        client_id: Empty: none.
        takeover: Digest of what was given.
        schema_registry: Address of a schema registry; may hold a password. Empty: none.
        kafka: Options of Kafka's clients.
    """

    bootstrap: str
    queue_manager: str
    topics: Topics = field(default_factory=Topics)
    client_id: str = ""
    takeover: bytes = b""
    application: str = ""
    schema_registry: str = field(default="", repr=False)
    timeout_seconds: float = USUAL["timeout"]
    send_timeout_seconds: float = USUAL["send_timeout_seconds"]
    suspect_timeout_seconds: float = USUAL["suspect_timeout_seconds"]
    put_messages_max: int = USUAL["put_messages_max"]
    allow_pickle: bool = False
    redelivery_delay_ms: int = USUAL["redelivery_delay_ms"]
    redelivery_limit: int = USUAL["redelivery_limit"]
    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    identity: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def suspect_timeout_ms(self) -> int:
        """The suspect time-out as the protocol writes it."""
        return round(self.suspect_timeout_seconds * 1000)


def settings_from(address: str, **given: Unpack[ConnectOptions]) -> ConnectionSettings:
    """Checks what `connect` was given; warns its caller if that asked for pickles."""
    bootstrap, queue_manager = parse_address(address)
    client_id, takeover = given.get("client_id"), given.get("takeover")
    application = given.get("application")
    if client_id and not is_name(client_id):
        raise InvalidClientIDError(
            f"{shown(client_id)} is no client id: 1 to 128 characters of A-Z a-z 0-9 . _ / % -",
            code=AddressError.code,
            retryable=AddressError.retryable,
        )
    if application and len(application) > APPLICATION_CHARACTERS_MAX:
        raise AddressError(
            f"application has {len(application):,} characters, at most "
            f"{APPLICATION_CHARACTERS_MAX:,} are allowed"
        )
    schema_registry = given.get("schema_registry")
    if schema_registry is None:
        schema_registry = os.environ.get(SCHEMA_REGISTRY_VARIABLE, "")
    texts = {"application": application, "takeover": takeover, "schema_registry": schema_registry}
    for name, text in texts.items():
        if text:
            check_text(name, text)
    if takeover and not client_id:
        raise AddressError("takeover is for a connection with a client id: give client_id too")
    as_given: dict[str, Any] = {name: given.get(name, USUAL[name]) for name in RANGES}
    settings = ConnectionSettings(
        bootstrap=bootstrap,
        queue_manager=queue_manager,
        topics=Topics(given.get("topic_prefix") or TOPIC_PREFIX_DEFAULT),
        client_id=client_id or "",
        # The log is no place for what was given in confidence.
        takeover=hashlib.sha256(takeover.encode()).digest()[:16] if takeover else b"",
        application=application or "",
        schema_registry=schema_registry,
        timeout_seconds=given.get("timeout", USUAL["timeout"]),
        allow_pickle=bool(given.get("allow_pickle")),
        kafka=kafka_settings(given.get("kafka")),
        **as_given,
    )
    if not 0 < settings.timeout_seconds <= SECONDS_MAX:
        raise AddressError(
            f"timeout is {shown(settings.timeout_seconds)} s, it must be above 0, at most "
            f"{SECONDS_MAX}"
        )
    for name, (lowest, highest) in RANGES.items():
        value = getattr(settings, name)
        if not lowest <= value <= highest:
            raise AddressError(f"{name} is {shown(value)}, must be {lowest} to {highest}")
    if settings.allow_pickle:
        give_warning(
            PickleWarning(
                "allow_pickle: reading an object message that is a pickle runs code that its "
                "sender chose; use it only where you trust every sender"
            )
        )
    return settings


def checked_delay_ms(delay_ms: int | None, default: int) -> int:
    """A redelivery delay that was given, or the default; IllegalStateError if out of range."""
    if delay_ms is None:
        return default
    return checked_whole("redelivery_delay_ms", delay_ms, 0, TIMING_MS_MAX)


def checked_whole(name: str, value: object, lowest: int, highest: int) -> int:
    """A whole number of that name; IllegalStateError if out of range."""
    number = plain(value)
    if type(number) is not int or not lowest <= number <= highest:
        raise IllegalStateError(f"{name} is {shown(value)}, must be {lowest} to {highest}")
    return number
