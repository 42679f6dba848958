"""A Kafka broker with TLS, SCRAM, client certificates and an authorizer that lets nobody in.

Beside its plain listener, whose user may do everything (it is the tests' hand on the broker), it
has two: SASL_SSL for users with a password, SSL for users with a certificate. A user has the same
name at both. What is not allowed by an ACL is refused.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ledgermq.embedded import EmbeddedBroker
from ledgermq.embedded.ports import choose_port
from ledgermq.embedded.settings import HOST, server_properties
from ledgermq.wire.kafka.rights import Right
from support.brokers.token_issuer import Issuer

MECHANISM = "SCRAM-SHA-512"
# How keys are encrypted: by OpenSSL if nothing is said, and so that Java can read them.
OF_OPENSSL = ("-v2", "aes-256-cbc")
FOR_JAVA = ("-v1", "PBE-SHA1-3DES")


class Authority:
    """An authority that signs certificates, in a directory; made by the program `openssl`."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self.certificate = directory / f"{name}.crt"
        self._key = directory / f"{name}.key"
        directory.mkdir(parents=True, exist_ok=True)
        subject = ["-subj", f"/CN={name}", "-days", "2", "-out", str(self.certificate)]
        _openssl("req", "-x509", *_new_key(self._key), *subject)

    def sign(self, name: str, alternatives: str = "", *, days: int = 2) -> tuple[Path, Path]:
        """A certificate for a name and its key, both PEM; below 0 days it has expired."""
        certificate, key, request = (
            self._directory / f"{name}.{kind}" for kind in ("crt", "key", "csr")
        )
        _openssl("req", *_new_key(key), "-subj", f"/CN={name}", "-out", str(request))
        extensions = self._directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternatives}\n" if alternatives else "")
        signer = ["-CA", str(self.certificate), "-CAkey", str(self._key), "-CAcreateserial"]
        made = ["-days", str(days), "-extfile", str(extensions), "-out", str(certificate)]
        _openssl("x509", "-req", "-in", str(request), *signer, *made)
        return certificate, key


def _new_key(path: Path) -> list[str]:
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    return [*curve, "-nodes", "-keyout", str(path)]


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True)


class SecuredBroker(EmbeddedBroker):
    """Its plain listener is `bootstrap`; `scram_bootstrap` and `tls_bootstrap` are the secured."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "broker", brief=True)
        self.authority = Authority(directory / "keys")
        self._scram_port = choose_port()
        self._tls_port = choose_port()
        certificate, key = self.authority.sign("broker", "DNS:localhost,IP:127.0.0.1")
        self._keystore = directory / "keys" / "broker.pem"
        self._keystore.write_text(key.read_text() + certificate.read_text())

    def start(self) -> SecuredBroker:
        """Starts it with all its listeners."""
        with patch("ledgermq.embedded.broker.server_properties", self._properties):
            super().start()
        return self

    def _properties(self, *, data: Path, port: int, controller_port: int) -> str:
        listeners = [
            f"PLAINTEXT://{HOST}:{port}",
            f"SASL_SSL://{HOST}:{self._scram_port}",
            f"SSL://{HOST}:{self._tls_port}",
            f"CONTROLLER://{HOST}:{controller_port}",
        ]
        secured = {
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,"
            "CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": f"{MECHANISM},OAUTHBEARER",
            "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": "org.apache.kafka.common."
            "security.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredLoginStringClaim_sub="broker";',
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common."
            "security.scram.ScramLoginModule required;",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": "User:ANONYMOUS",
        }
        plain = server_properties(data=data, port=port, controller_port=controller_port)
        return plain + "".join(f"{name}={value}\n" for name, value in secured.items())

    @property
    def scram_bootstrap(self) -> str:
        """Where users with a password come in."""
        return f"{HOST}:{self._scram_port}"

    @property
    def tls_bootstrap(self) -> str:
        """Where users with a certificate come in."""
        return f"{HOST}:{self._tls_port}"

    @cached_property
    def admin(self) -> AdminClient:
        """The tests' hand on it."""
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def add_user(self, name: str, password: str) -> None:
        """Makes a user with a password; he may do nothing yet."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion(name, info, password.encode())
        self.admin.alter_user_scram_credentials([wanted])[name].result()

    def by_password(self, name: str, password: str) -> dict[str, str]:
        """Options of a user with a password."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": name,
            "sasl.password": password,
            "ssl.ca.location": str(self.authority.certificate),
        }

    def by_token(self, name: str, issuer: Issuer) -> dict[str, str]:
        """Options of a user who gets tokens from an issuer."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": name,
            "sasl.oauthbearer.client.secret": issuer.secret_of(name),
            "sasl.oauthbearer.scope": "queues",
            "sasl.oauthbearer.token.endpoint.url": issuer.endpoint,
            "ssl.ca.location": str(self.authority.certificate),
        }

    def by_certificate(
        self, name: str, key_password: str = "", encryption: tuple[str, str] = OF_OPENSSL
    ) -> dict[str, str]:
        """Options of a user with a certificate, made now; its key may need a password."""
        certificate, key = self.authority.sign(name)
        found = {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority.certificate),
            "ssl.certificate.location": str(certificate),
            "ssl.key.location": str(key),
        }
        if key_password:
            encrypted = key.with_suffix(".encrypted.key")
            # Not as an argument, where any user of the machine could read it.
            secret = key.with_suffix(".password")
            secret.write_text(key_password)
            _openssl(
                *("pkcs8", "-topk8", "-in", str(key), "-out", str(encrypted)),
                *(*encryption, "-passout", f"file:{secret}"),
            )
            secret.unlink()
            found |= {"ssl.key.location": str(encrypted), "ssl.key.password": key_password}
        return found

    def allow(self, user: str, rights: list[Right]) -> None:
        """Gives a user rights."""
        wanted = [_binding(user, right) for right in rights]
        for made in self.admin.create_acls(wanted).values():
            made.result()

    def withdraw(self, user: str, right: Right) -> None:
        """Takes a right away again."""
        one = _binding(user, right)
        for gone in self.admin.delete_acls([_filter_of(one)]).values():
            assert gone.result(), "there was no such right"


def _binding(user: str, right: Right) -> AclBinding:
    return AclBinding(
        ResourceType[_snake(right.resource).replace("CLUSTER", "BROKER")],
        right.name,
        ResourcePatternType[right.pattern.upper()],
        f"User:{user}",
        "*",
        AclOperation[_snake(right.operation)],
        AclPermissionType.ALLOW,
    )


def _filter_of(one: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        one.restype,
        one.name,
        one.resource_pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission_type,
    )


def _snake(name: str) -> str:
    return "".join(f"_{c}" if c.isupper() and at else c for at, c in enumerate(name)).upper()


def as_variables(options: Mapping[str, str]) -> dict[str, str]:
    """Options as the environment has them."""
    return {
        f"LEDGERMQ_KAFKA_{name.replace('.', '_').upper()}": value for name, value in options.items()
    }
