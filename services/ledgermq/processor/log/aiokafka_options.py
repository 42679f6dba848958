"""The options of Kafka's clients in aiokafka's words; Faust reads and keeps its group with it.

What was given to librdkafka is said again where it decides whether Kafka lets us in; everything
else of it is that library's own. `aiokafka.NAME` options come on top.
"""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer

from ledgermq.processor.log.tokens import OidcTokens
from ledgermq.wire.kafka.certificates import trusting_context
from ledgermq.wire.kafka.settings import KafkaSettings, kafka_settings
from ledgermq.wire.topics.address import AddressError

# What the worker sets, or has settings of its own for.
OWN: Final = frozenset(
    {
        "auto_offset_reset",
        "bootstrap_servers",
        "check_crcs",
        "consumer_timeout_ms",
        "enable_auto_commit",
        "group_id",
        "group_instance_id",
        "heartbeat_interval_ms",
        "isolation_level",
        "key_deserializer",
        "loop",
        "max_poll_records",
        "partition_assignment_strategy",
        "sasl_oauth_token_provider",
        "session_timeout_ms",
        "ssl_context",
        "topics",
        "value_deserializer",
    }
)
SAME: Final = {
    "client.id": "client_id",
    "client.rack": "client_rack",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
}
MECHANISMS: Final = ("PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
# By these librdkafka proves who we are, and aiokafka cannot.
UNKNOWN: Final = ("ssl.keystore.", "ssl.certificate.pem", "ssl.key.pem", "ssl.engine.", "ssl.provi")


def aiokafka_options(
    taker: Callable[..., Any] = AIOKafkaConsumer, kafka: KafkaSettings | None = None
) -> dict[str, Any]:
    """Options for one of aiokafka's clients, as many as it takes.

    Raises:
        AddressError: They say what aiokafka cannot do.
    """
    settings = kafka_settings() if kafka is None else kafka
    given = settings.librdkafka
    found: dict[str, Any] = {"security_protocol": settings.protocol}
    found |= {SAME[name]: value for name, value in given.items() if name in SAME}
    if settings.protocol.startswith("SASL") and given.get("sasl.mechanism") not in MECHANISMS:
        raise AddressError(
            f"sasl.mechanism is {given.get('sasl.mechanism')}: a worker can use "
            f"{', '.join(MECHANISMS)}"
        )
    if found.get("sasl_mechanism") == "OAUTHBEARER":
        found["sasl_oauth_token_provider"] = OidcTokens(given)
    if settings.protocol.endswith("SSL"):
        found["ssl_context"] = _context(given)
    known = inspect.signature(AIOKafkaConsumer).parameters
    for name, text in settings.aiokafka.items():
        if name not in known or name in OWN:
            raise AddressError(
                f"aiokafka.{name} is no option of aiokafka's clients, or one that the worker sets "
                "itself: take it out of the options of Kafka (LEDGERMQ_KAFKA_…)"
            )
        found[name] = _value(name, text, known[name].default)
    taken = inspect.signature(taker).parameters
    return {name: value for name, value in found.items() if name in taken}


def _value(name: str, text: str, like: object) -> Any:
    if isinstance(like, bool) and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        if isinstance(like, int):
            raise AddressError(f"aiokafka.{name} is {text!r}, must be like {like}") from None
        return text


def _context(given: Mapping[str, Any]) -> ssl.SSLContext:
    for name in given:
        if name.startswith(UNKNOWN):
            raise AddressError(
                f"{name} cannot be used by a worker: give ssl.certificate.location and "
                "ssl.key.location, files in PEM"
            )
    try:
        context = trusting_context(given)
        if certificate := given.get("ssl.certificate.location"):
            key, password = given["ssl.key.location"], given.get("ssl.key.password", "")
            context.load_cert_chain(certificate, key, password)
        if ciphers := given.get("ssl.cipher.suites"):
            context.set_ciphers(ciphers)
    except (OSError, ValueError) as error:
        raise AddressError(f"certificates or keys of Kafka's clients are wrong: {error}") from None
    return context
