"""What a client is told that no broker lets in: why, where librdkafka does not say it."""

import contextlib
import re
import socket
import ssl
import struct
import threading
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import Consumer, KafkaException

from ledgermq.errors import AuthenticationFailedError
from ledgermq.processor.log.tokens import OidcTokens
from ledgermq.wire.kafka.access import Reports, metadata_of, text_of
from ledgermq.wire.kafka.certificates import trusting_context
from ledgermq.wire.kafka.settings import KafkaSettings, client_options
from support.brokers.secured_broker import Authority


@contextmanager
def listening(answer):
    """The address of a server that answers each connection by a function, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with closing(connection):
                    answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield "127.0.0.1:{1}".format(*server.getsockname())
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def asked(address, options):
    """What asking for Kafka's metadata there ends in."""
    kafka = KafkaSettings(librdkafka=options)
    reports = Reports(kafka, address)
    client = Consumer(
        client_options(address, {"group.id": "x", "log_level": 0, "error_cb": reports}, kafka)
    )
    with closing(client), pytest.raises((AuthenticationFailedError, KafkaException)) as caught:
        metadata_of(client, reports, 5.0)
    error = caught.value
    return text_of(error, reports) if isinstance(error, KafkaException) else str(error)


@pytest.mark.parametrize(
    ("alternatives", "days", "why"),
    [
        ("DNS:kafka-1.example.net", 2, "IP address mismatch, .* not valid for '127.0.0.1'"),
        ("IP:127.0.0.1", -1, "certificate has expired"),
    ],
    ids=["other-host", "expired"],
)
def test_what_is_wrong_with_a_brokers_certificate_is_told(tmp_path, alternatives, days, why):
    """Kafka's library says of each that it was not verified, and that authorities are wrong."""
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("broker", alternatives, days=days))

    def answer(connection):
        with contextlib.suppress(OSError):
            context.wrap_socket(connection, server_side=True)

    with listening(answer) as address:
        options = {
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.certificate),
        }
        told = asked(address, options)
    assert f"the certificate that {address} shows is not trusted: " in told
    assert re.search(why, told), told


def test_a_listener_that_hangs_up_is_not_taken_for_one_that_is_not_there():
    """So does one that expects TLS or users with a client that was given no options for them."""
    with listening(lambda _: None) as address:
        assert "nothing answered by security.protocol PLAINTEXT" in asked(address, {})


@pytest.mark.parametrize(
    "trust",
    [trusting_context, lambda given: OidcTokens(given)._context],
    ids=["broker", "issuer"],
)
def test_who_is_trusted_does_not_depend_on_the_python(monkeypatch, trust):
    """From 3.13 on it refuses authorities that say nothing of their key, which librdkafka takes."""

    def newest(**authorities):
        context = default(**authorities)
        context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        return context

    default = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", newest)
    tokens = {"method": "oidc", "client.id": "till", "client.secret": "x"}
    given = {f"sasl.oauthbearer.{name}": value for name, value in tokens.items()}
    context = trust(given | {"sasl.oauthbearer.token.endpoint.url": "https://login.example/"})
    assert not context.verify_flags & (ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@pytest.mark.parametrize("after", ["connecting", "shaking hands"])
def test_a_listener_that_hangs_up_on_tls_may_be_of_another_protocol(tmp_path, after):
    """A listener of SASL_SSL does so with a client of SSL: `broken pipe` says nothing of that."""
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("broker", "IP:127.0.0.1"))

    def answer(connection):
        if after == "connecting":
            return
        with contextlib.suppress(OSError):
            secured = context.wrap_socket(connection, server_side=True)
            # Closed so, the client is told that the connection was reset.
            secured.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            secured.close()

    options = {"security.protocol": "SSL", "ssl.ca.location": str(authority.certificate)}
    with listening(answer) as address:
        told = asked(address, options)
    assert re.search("security.protocol SSL.* be that of the listener", told), told
    assert "security.protocol" not in asked(address, options), "nobody listens there"
