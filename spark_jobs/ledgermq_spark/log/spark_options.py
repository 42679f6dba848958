"""The options of Kafka's clients as options of Spark's reader.

Certificates and keys are read here and travel as texts, so that executors need no files. Kafka's
Java clients hide passwords, keys and logins in what they log; `SECRET_OPTIONS` hides them in plans.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ledgermq.wire.kafka.settings import KafkaSettings, kafka_settings
from ledgermq.wire.topics.address import AddressError

# Names of options and settings of Spark whose values it does not show.
SECRET_OPTIONS: Final = "(?i)secret|password|token|access[.]?key|jaas|keystore|truststore"
LOGINS: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
ENCRYPTED: Final = "BEGIN ENCRYPTED PRIVATE KEY-----"
# 1.2.840.113549.1.5.13 in DER. OpenSSL encrypts so by default, and Java knows it by no name.
PBES2: Final = bytes.fromhex("2a864886f70d01050d")
OTHER_KEYS: Final = ("BEGIN RSA PRIVATE KEY", "BEGIN EC PRIVATE KEY")


def spark_options(kafka: KafkaSettings | None = None) -> dict[str, str]:
    """Options for `spark.read.format("kafka")`.

    Raises:
        AddressError: They say what Kafka's Java clients cannot do.
    """
    settings = kafka_settings() if kafka is None else kafka
    given = settings.librdkafka
    found: dict[str, str] = {}
    if settings.protocol != "PLAINTEXT":
        found["security.protocol"] = settings.protocol
    if settings.protocol.startswith("SASL") and "kafka.sasl.jaas.config" not in settings.spark:
        found |= _login(given)
    if settings.protocol.endswith("SSL"):
        found |= _trust(given) | _certificate(given)
    return {f"kafka.{name}": value for name, value in found.items()} | dict(settings.spark)


def _login(given: Mapping[str, Any]) -> dict[str, str]:
    mechanism = str(given["sasl.mechanism"])
    if mechanism not in LOGINS:
        raise AddressError(
            f"sasl.mechanism is {mechanism}: for Spark give spark.kafka.sasl.jaas.config in the "
            "file that LEDGERMQ_KAFKA_CONFIG names"
        )
    user, password = (_quoted(str(given[f"sasl.{name}"])) for name in ("username", "password"))
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{LOGINS[mechanism]} required username={user} password={password};",
    }


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _trust(given: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    authorities = given.get("ssl.ca.pem")
    path = given.get("ssl.ca.location")
    if path and path != "probe":
        place = Path(path)
        files = (
            sorted(one for one in place.iterdir() if one.is_file()) if place.is_dir() else [place]
        )
        authorities = "\n".join(_text(one) for one in files)
    if authorities:
        found = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    verifies = str(given.get("enable.ssl.certificate.verification", "true")).lower() == "true"
    if not verifies:
        raise AddressError(
            "enable.ssl.certificate.verification=false: Kafka's Java clients, which Spark reads "
            "with, always verify; give ssl.ca.location"
        )
    if str(given.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        found["ssl.endpoint.identification.algorithm"] = ""
    return found


def _certificate(given: Mapping[str, Any]) -> dict[str, str]:
    if path := given.get("ssl.keystore.location"):
        found = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(path)}
        return found | {"ssl.keystore.password": str(given.get("ssl.keystore.password", ""))}
    chain, key = given.get("ssl.certificate.pem"), given.get("ssl.key.pem")
    if path := given.get("ssl.certificate.location"):
        chain, key = _text(Path(path)), _text(Path(given["ssl.key.location"]))
    if not chain or not key:
        return {}
    if any(kind in key for kind in OTHER_KEYS):
        raise AddressError(
            "ssl.key.location is not in PKCS#8, which Kafka's Java clients want: convert it with "
            "`openssl pkcs8 -topk8 -in KEY -out NEW-KEY`"
        )
    if _is_by_pbes2(key):
        raise AddressError(
            "ssl.key.location is encrypted in a way that Kafka's Java clients cannot read (PBES2): "
            "convert it with `openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -in KEY -out NEW-KEY`, or "
            "give Spark a key that is not encrypted"
        )
    found = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": chain,
        "ssl.keystore.key": key,
    }
    password = given.get("ssl.key.password")
    return found | ({"ssl.key.password": str(password)} if password else {})


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise AddressError(
            f"{path} cannot be read as a file of certificates or keys in PEM: {error}"
        ) from None


def _is_by_pbes2(key: str) -> bool:
    if ENCRYPTED not in key:
        return False
    lines = key.partition(ENCRYPTED)[2].partition("-----END")[0].splitlines()
    try:
        return PBES2 in base64.b64decode("".join(lines[1:]))
    except ValueError:
        return False
