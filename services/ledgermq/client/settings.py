"""Where a connection goes and how it behaves: the address and the settings of `connect`."""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass, field
from typing import Final

from ledgermq.client.arguments import SECONDS_MAX, check_number, shown
from ledgermq.errors import IllegalStateError, InvalidClientIDError, LedgerMQError
from ledgermq.protocol.limits import (
    REDELIVERY_LIMIT_MAX,
    SUSPECT_TIMEOUT_MS_MAX,
    SUSPECT_TIMEOUT_MS_MIN,
    TIMING_MS_MAX,
    is_name,
)
from ledgermq.wire.topics.log_topics import TOPIC_PREFIX_DEFAULT, Topics

QUEUE_MANAGER_DEFAULT: Final = "QM1"
PREFETCH_DEFAULT: Final = 200
# Long enough for a consumer to make room, short enough for an answer before a call gives up.
SEND_TIMEOUT_SECONDS_DEFAULT: Final = 10.0
SCHEME: Final = "kafka://"
KAFKA_PORT_DEFAULT: Final = 9092
# With what the library says of itself, less than an Open may say of its client.
APPLICATION_CHARACTERS_MAX: Final = 1_000


class AddressError(LedgerMQError, ValueError):
    """The address, or a setting of `connect`, cannot be used."""

    code = "setting-invalid"


class PickleWarning(UserWarning):
    """A connection reads pickles, and so runs what their senders chose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """One connection's identity and settings; times in seconds.

    Attributes:
        bootstrap: Comma-separated `host:port` of Kafka brokers.
        timeout_seconds: How long a call waits for its outcome unless it says otherwise.
        send_timeout_seconds: How long a send may be held up by a quota (INF-03).
        suspect_timeout_seconds: After how much silence the queue manager suspects the connection,
            and how long its sessions then have to show themselves before they end.
        client_id: The client id of its durable subscriptions; empty: none.
        takeover: Digest of what shows that an older connection of the client id is its own.
        application: A name for logs of the broker.
        allow_pickle: Whether object messages that are pickles are read.
        redelivery_delay_ms: How long what comes back waits before it is delivered again, where
            neither session, consumer nor destination say otherwise (INF-09).
        redelivery_limit: How often what it sends is redelivered at most, where neither producer
            nor destination say otherwise (INF-16); -1: no limit.
    """

    bootstrap: str
    queue_manager: str
    topics: Topics = field(default_factory=Topics)
    client_id: str = ""
    takeover: bytes = b""
    application: str = ""
    timeout_seconds: float = 30.0
    send_timeout_seconds: float = SEND_TIMEOUT_SECONDS_DEFAULT
    suspect_timeout_seconds: float = 15.0
    allow_pickle: bool = False
    redelivery_delay_ms: int = 0
    redelivery_limit: int = -1
    identity: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def suspect_timeout_ms(self) -> int:
        """The suspect time-out as the protocol writes it."""
        return round(self.suspect_timeout_seconds * 1000)


def parse_address(address: str) -> tuple[str, str]:
    """Bootstrap servers and queue manager of `kafka://HOST[:PORT][,HOST[:PORT]...][/NAME]`.

    Raises:
        AddressError: the text is not of this form.
    """
    form = "kafka://HOST:PORT[,HOST:PORT...]/QUEUE-MANAGER"
    if not address.startswith(SCHEME):
        raise AddressError(f"address {shown(address)} must begin with {SCHEME}, as in {form}")
    hosts, _, path = address.removeprefix(SCHEME).partition("/")
    queue_manager = path or QUEUE_MANAGER_DEFAULT
    if not is_name(queue_manager):
        raise AddressError(
            f"{shown(queue_manager)} in address {shown(address)} is no queue manager name: "
            "1 to 128 characters of A-Z a-z 0-9 . _ / % -"
        )
    servers = [_with_port(host.strip(), address) for host in hosts.split(",") if host.strip()]
    if not servers:
        raise AddressError(f"address {shown(address)} names no host, as in {form}")
    return ",".join(servers), queue_manager


def _with_port(host: str, address: str) -> str:
    bare = host.rpartition("]")[2] if host.startswith("[") else host
    name, colon, port = bare.rpartition(":")
    if not colon:
        return f"{host}:{KAFKA_PORT_DEFAULT}"
    if (
        not (port.isascii() and port.isdigit())
        or not 0 < int(port) < 65536
        or (not name and not host.startswith("["))
    ):
        raise AddressError(f"{shown(host)} in address {shown(address)} is no HOST:PORT")
    return host


def settings_from(
    address: str,
    *,
    client_id: str | None,
    timeout_seconds: float,
    suspect_timeout_seconds: float,
    send_timeout_seconds: float = SEND_TIMEOUT_SECONDS_DEFAULT,
    topic_prefix: str | None,
    takeover: str | None = None,
    application: str | None = None,
    allow_pickle: bool = False,
    redelivery_delay_ms: int = 0,
    redelivery_limit: int = -1,
) -> ConnectionSettings:
    """Checks what `connect` was given; warns its caller if that asked for pickles.

    Raises:
        AddressError: the address or a setting cannot be used.
    """
    bootstrap, queue_manager = parse_address(address)
    if client_id and not is_name(client_id):
        raise InvalidClientIDError(
            f"{shown(client_id)} is no client id: 1 to 128 characters of A-Z a-z 0-9 . _ / % -"
        )
    if application and len(application) > APPLICATION_CHARACTERS_MAX:
        raise AddressError(
            f"application has {len(application):,} characters, at most "
            f"{APPLICATION_CHARACTERS_MAX:,} are kept"
        )
    if takeover and not client_id:
        raise AddressError("takeover is for a connection with a client id: give client_id too")
    _check_times(timeout_seconds, send_timeout_seconds, suspect_timeout_seconds)
    for name, value, lowest, highest in (
        ("redelivery_delay_ms", redelivery_delay_ms, 0, TIMING_MS_MAX),
        ("redelivery_limit", redelivery_limit, -1, REDELIVERY_LIMIT_MAX),
    ):
        if not is_whole(value, lowest, highest):
            raise AddressError(f"{name} is {value!r}, must be {lowest} to {highest}")
    if allow_pickle:
        warnings.warn(
            "allow_pickle: reading an object message that is a pickle runs code that its sender "
            "chose; use it only where you trust every sender",
            PickleWarning,
            stacklevel=3,
        )
    return ConnectionSettings(
        bootstrap=bootstrap,
        queue_manager=queue_manager,
        topics=Topics(topic_prefix or TOPIC_PREFIX_DEFAULT),
        client_id=client_id or "",
        # The log is no place for what was given in confidence.
        takeover=hashlib.sha256(takeover.encode()).digest()[:16] if takeover else b"",
        application=application or "",
        timeout_seconds=timeout_seconds,
        send_timeout_seconds=send_timeout_seconds,
        suspect_timeout_seconds=suspect_timeout_seconds,
        allow_pickle=bool(allow_pickle),
        redelivery_delay_ms=redelivery_delay_ms,
        redelivery_limit=redelivery_limit,
    )


def _check_times(
    timeout_seconds: float, send_timeout_seconds: float, suspect_timeout_seconds: float
) -> None:
    """Refuses times that cannot be waited for."""
    check_number("timeout", timeout_seconds, " of seconds")
    check_number("send_timeout_seconds", send_timeout_seconds)
    check_number("suspect_timeout_seconds", suspect_timeout_seconds)
    if not 0 < timeout_seconds <= SECONDS_MAX:
        raise AddressError(
            f"timeout is {timeout_seconds} s, it must be above 0, at most {SECONDS_MAX}"
        )
    if not 0 <= send_timeout_seconds <= TIMING_MS_MAX / 1000:
        raise AddressError(
            f"send_timeout_seconds is {send_timeout_seconds}, must be 0 to {TIMING_MS_MAX // 1000}"
        )
    low, high = SUSPECT_TIMEOUT_MS_MIN / 1000, SUSPECT_TIMEOUT_MS_MAX / 1000
    if not low <= suspect_timeout_seconds <= high:
        raise AddressError(
            f"suspect_timeout_seconds is {suspect_timeout_seconds}, must be {low:g} to {high:g}"
        )


def checked_delay_ms(delay_ms: int | None, default: int) -> int:
    """A redelivery delay that was given, or the default.

    Raises:
        IllegalStateError: it is out of range.
    """
    if delay_ms is None:
        return default
    if not is_whole(delay_ms, 0, TIMING_MS_MAX):
        raise IllegalStateError(
            f"redelivery_delay_ms is {delay_ms!r}, must be 0 to {TIMING_MS_MAX}"
        )
    return delay_ms


def is_whole(value: object, lowest: int, highest: int) -> bool:
    """Whether a value is a whole number within a range."""
    return type(value) is int and lowest <= value <= highest
