"""Tokens that an issuer does not give: each way ends in the error that aiokafka tries again on."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest
from aiokafka.errors import KafkaConnectionError

from ledgermq.processor.log.tokens import PREFIX, OidcTokens


def fetch(endpoint: str) -> str:
    """A token from an endpoint."""
    given = {"method": "oidc", "client.id": "worker", "client.secret": "secret"}
    given["token.endpoint.url"] = endpoint
    tokens = OidcTokens({PREFIX + name: value for name, value in given.items()})
    return asyncio.run(tokens.token())


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.1 503 Wait\r\n\r\n",
        b"",
    ],
    ids=["another protocol", "cut off", "a list", "deep", "refused", "hung up"],
)
def test_an_answer_without_token_is_an_error_of_kafka(answer):
    """Whatever answers at the issuer's address, the worker's client learns that there is none."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            caller, _ = server.accept()
            with caller:
                caller.recv(4096)
                caller.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(KafkaConnectionError, match="gave no token"):
            fetch(f"http://127.0.0.1:{server.getsockname()[1]}/token")


@pytest.mark.parametrize("port", ["1", "web", "9" * 20])
def test_an_address_where_no_issuer_can_be_is_an_error_of_kafka(port):
    """A port that is none, and one where nobody listens."""
    with pytest.raises(KafkaConnectionError, match="gave no token"):
        fetch(f"http://127.0.0.1:{port}/token")
