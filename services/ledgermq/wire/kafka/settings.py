"""Options of Kafka's clients, from a file, the environment and the program, in librdkafka's words.

Whoever opens a client of Kafka asks `client_options` for its options: those of the call, and on top
of them what the user gave. Later sources win over earlier ones:

1. the file that LEDGERMQ_KAFKA_CONFIG names: a line `NAME=VALUE` each, `#` begins a remark;
2. LEDGERMQ_KAFKA_<NAME>, with the dots of the name as underscores: LEDGERMQ_KAFKA_SASL_USERNAME is
   `sasl.username`. LEDGERMQ_KAFKA_<NAME>_FILE names a file that holds the value;
3. what the program gives to `connect(kafka=...)`.

`aiokafka.NAME` and `spark.NAME` in the file are for that library alone, in its own words. Secrets
stay in options: they are never part of a text that is shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from ledgermq.errors.shown import shown
from ledgermq.wire.topics.address import AddressError, check_text

PREFIX: Final = "LEDGERMQ_KAFKA_"
FILE_VARIABLE: Final = f"{PREFIX}CONFIG"
FROM_FILE: Final = "_FILE"
# Libraries that are given options in words of their own.
LIBRARIES: Final = ("aiokafka", "spark")
# What the name of an option ends with that takes a number.
UNITS: Final = ("bytes", "kbytes", "messages", "ms", "size")
NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
# What a queue manager's log rests on; a value of anybody else's would break it, or do nothing.
OWN: Final = frozenset(
    {
        "acks",
        "auto.commit.enable",
        "auto.offset.reset",
        "bootstrap.servers",
        "check.crcs",
        "delivery.report.only.error",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "error_cb",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "group.id",
        "group.instance.id",
        "isolation.level",
        "logger",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "message.max.bytes",
        "message.timeout.ms",
        "metadata.broker.list",
        "partition.assignment.strategy",
        "queue.buffering.max.messages",
        "receive.message.max.bytes",
        "request.required.acks",
        "transactional.id",
    }
)
# librdkafka has two words for one thing; these are the ones that are looked for.
SAME: Final = {"sasl.mechanisms": "sasl.mechanism"}
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# An answer that stays away for longer was lost with its connection, as where a machine lost its
# power or a firewall forgot the connection. librdkafka waits for a minute, in which sessions end.
ANSWERED_WITHIN_MS: Final = 15_000
# A connection on which nothing went for as long may have been lost likewise: it is closed, and made
# anew when it is needed. Otherwise who stands by for hours finds out when it has to take over.
CONNECTION_LIMITS: Final = {
    "socket.timeout.ms": ANSWERED_WITHIN_MS,
    "connections.max.idle.ms": ANSWERED_WITHIN_MS,
}
TOGETHER: Final = (
    ("ssl.certificate.location", "ssl.key.location"),
    ("ssl.certificate.pem", "ssl.key.pem"),
)


class Secret(str):
    """A text that does not show in the representation of what holds it, as in a traceback."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KafkaSettings:
    """What the user gave for clients of Kafka, checked.

    Attributes:
        librdkafka: By librdkafka's names.
        aiokafka: By aiokafka's names, beside what follows from the former.
        spark: By the names of Spark's reader (`kafka.…` and others), beside the same.
    """

    librdkafka: Mapping[str, Any] = field(default_factory=dict)
    aiokafka: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"KafkaSettings({', '.join(self.librdkafka)})"

    @property
    def protocol(self) -> str:
        """One of PROTOCOLS."""
        return str(self.librdkafka.get("security.protocol", PROTOCOLS[0])).upper()

    @property
    def user(self) -> str:
        """Who Kafka takes us for, as far as it is known here; for texts."""
        name = self.librdkafka.get("sasl.username")
        name = name or self.librdkafka.get("sasl.oauthbearer.client.id")
        if self.protocol.startswith("SASL") and name:
            return f"user {name}"
        certificate = self.librdkafka.get("ssl.certificate.location")
        return f"the owner of {certificate}" if certificate else "a client without a name"


def client_options(
    bootstrap: str, own: Mapping[str, Any], kafka: KafkaSettings | None = None
) -> dict[str, Any]:
    """Options of a client of librdkafka: its own, beneath what the user gave.

    Without settings those of the environment count.
    """
    given = kafka_settings() if kafka is None else kafka
    return {"bootstrap.servers": bootstrap, **own, **given.librdkafka}


def kafka_settings(
    given: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> KafkaSettings:
    """What file, environment and program say; read anew each time, so that passwords may change.

    Raises:
        AddressError: An option is unknown, or not one that can be given; a file cannot be read; or
            options do not fit together.
    """
    variables = os.environ if environment is None else environment
    found: dict[str, Any] = {}
    if path := variables.get(FILE_VARIABLE):
        found |= _from_file(Path(path))
    found |= _from_variables(variables)
    for name, value in (given or {}).items():
        is_value = isinstance(value, str | int | float | Path) or callable(value)
        if not isinstance(name, str) or not is_value:
            raise AddressError(
                f"kafka={{{shown(str(name))}: …}} is no option of Kafka: names are texts, values "
                "texts or numbers"
            )
        found[name] = str(value) if isinstance(value, Path) else value
    if not found:
        return KafkaSettings()
    for name, value in found.items():
        for text in (name, value):
            if isinstance(text, str):
                check_text(f"{shown(name)}, or its value,", text)
    apart: dict[str, dict[str, Any]] = {library: {} for library in LIBRARIES}
    common: dict[str, Any] = {}
    for name, value in found.items():
        library, _, rest = name.partition(".")
        value = Secret(value) if isinstance(value, str) and _is_secret(name) else value
        if library in apart:
            apart[library][rest] = value
        else:
            common[SAME.get(name, name)] = value
    settings = KafkaSettings(librdkafka=common, **apart)
    _check(settings)
    return settings


def forget_kafka_environment() -> bool:
    """Drops what the environment says, for a process that speaks to a broker of its own.

    Returns whether it said anything.
    """
    found = [name for name in os.environ if name.startswith(PREFIX)]
    for name in found:
        del os.environ[name]
    return bool(found)


def _is_secret(name: str) -> bool:
    return any(word in name for word in ("password", "secret", "key.pem", "jaas"))


def _from_file(path: Path) -> dict[str, str]:
    found = {}
    for number, line in enumerate(_text_of(path, FILE_VARIABLE).splitlines(), 1):
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            # The line itself may be a secret.
            raise AddressError(f"line {number} of {path} is no NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def _from_variables(variables: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable in sorted(variables):
        value = variables[variable]
        if not variable.startswith(PREFIX) or variable == FILE_VARIABLE or not value:
            continue
        name = variable.removeprefix(PREFIX)
        if name.endswith(FROM_FILE):
            name = name.removesuffix(FROM_FILE)
            value = _text_of(Path(value), variable).rstrip("\r\n")
        option = name.lower() if name == "LOG_LEVEL" else name.lower().replace("_", ".")
        if option in found:
            raise AddressError(f"{PREFIX}{name} and {variable} say the same thing: give one")
        found[option] = value
    return found


def _text_of(path: Path, variable: str) -> str:
    try:
        # Editors of Windows begin a file with a mark that is no part of the text.
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise AddressError(
            f"{variable} names {shown(str(path))}, which cannot be read: {why}"
        ) from None


def _check(settings: KafkaSettings) -> None:
    given = settings.librdkafka
    for name in given:
        if name in OWN:
            hint = (
                "; say it in the address of connect, or to commands by --bootstrap or "
                "LEDGERMQ_BOOTSTRAP"
                if "bootstrap" in name
                else ""
            )
            raise AddressError(f"{name} is not for you to give: LedgerMQ sets it itself{hint}")
    if settings.protocol not in PROTOCOLS:
        raise AddressError(
            f"security.protocol is {shown(str(given['security.protocol']))}, must be one of "
            f"{', '.join(PROTOCOLS)}"
        )
    for kind, begin in (("SASL", "sasl."), ("SSL", "ssl.")):
        unused = next((name for name in given if name.startswith(begin)), None)
        if unused and kind not in settings.protocol:
            raise AddressError(
                f"{unused} is given, but security.protocol is {settings.protocol}, which has no "
                f"{'users' if kind == 'SASL' else 'TLS'}: give SASL_SSL or "
                f"{'SASL_PLAINTEXT' if kind == 'SASL' else 'SSL'}"
            )
    if settings.protocol.startswith("SASL"):
        _check_sasl(given)
    for pair in TOGETHER:
        missing = [name for name in pair if not given.get(name)]
        if len(missing) == 1:
            raise AddressError(f"{missing[0]} is missing: certificate and key go together")
    for name, value in given.items():
        if name.endswith((".location", ".keytab")) and value != "probe":
            _check_readable(name, str(value))
        unit = name.rpartition(".")[2]
        # The library takes the digits, and leaves out what follows: of 15s it makes 15 ms.
        if unit in UNITS and not NUMBER.fullmatch(str(value)):
            raise AddressError(f"{name} is {shown(str(value))}, must be a number of {unit}")
    _check_by_librdkafka(tuple(sorted(given.items(), key=lambda one: one[0])))


def _check_sasl(given: Mapping[str, Any]) -> None:
    mechanism = str(given.get("sasl.mechanism", ""))
    if not mechanism:
        raise AddressError("sasl.mechanism is missing: SCRAM-SHA-512, for example")
    if mechanism == "PLAIN" or mechanism.startswith("SCRAM"):
        for name in ("sasl.username", "sasl.password"):
            if not given.get(name):
                raise AddressError(
                    f"{name} is missing, {mechanism} needs it: give {PREFIX}"
                    f"{name.replace('.', '_').upper()}, or that with _FILE"
                )


def _check_readable(name: str, path: str) -> None:
    try:
        if not Path(path).is_dir():
            Path(path).open("rb").close()
    except OSError as error:
        raise AddressError(
            f"{name} is {shown(path)}, which cannot be read: {error.strerror}"
        ) from None


@lru_cache(maxsize=8)
def _check_by_librdkafka(given: tuple[tuple[str, Any], ...]) -> None:
    """Lets the library look at names and values, certificates and keys too."""
    try:
        Producer({"log_level": 0, **dict(given)})
    except KafkaException as error:
        raise AddressError(f"Kafka's client takes no such option: {error.args[0].str()}") from None
    except (TypeError, ValueError) as error:
        raise AddressError(f"Kafka's client takes no such option: {error}") from None
