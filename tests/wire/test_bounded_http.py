"""Answers of HTTP without end: who asks for a schema, a token or a worker's health goes on."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from urllib.request import Request

import pytest
from aiokafka.errors import KafkaConnectionError

import ledgermq
from ledgermq.cli.commands import check
from ledgermq.cli.main import main
from ledgermq.cli.printing.exits import UNREACHABLE
from ledgermq.processor.log import tokens
from ledgermq.wire import bounded_http
from ledgermq.wire.framing import schema_registry

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SECONDS = 0.5


def serving(*parts: bytes, pause_seconds: float = 0.0) -> contextlib.AbstractContextManager[str]:
    """The address of a server that says some parts, and the last of them for ever."""

    @contextlib.contextmanager
    def made() -> Iterator[str]:
        done = threading.Event()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    caller, _ = server.accept()
                    with caller, contextlib.suppress(OSError):
                        caller.recv(4096)
                        caller.sendall(b"".join(parts[:-1]))
                        while not done.is_set():
                            caller.sendall(parts[-1])
                            time.sleep(pause_seconds)

        with socket.create_server(("127.0.0.1", 0)) as server:
            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
            done.set()
            server.shutdown(socket.SHUT_RDWR)
        thread.join()

    return made()


def ask_registry(url: str) -> None:
    """What a bridge does for a schema that it does not know."""
    with pytest.raises(ledgermq.SchemaRegistryUnavailableError, match="does not answer"):
        schema_registry.SchemaRegistry(url).text_of(7)


def ask_issuer(url: str) -> None:
    """What a worker does to get a token."""
    given = {"method": "oidc", "client.id": "w", "client.secret": "s", "token.endpoint.url": url}
    fetch = tokens.OidcTokens({tokens.PREFIX + name: value for name, value in given.items()})
    with pytest.raises(KafkaConnectionError, match=bounded_http.NO_END):
        fetch._fetch()


def ask_worker(url: str) -> None:
    """What a probe does."""
    assert main(["check", "worker", "--url", url]) == UNREACHABLE


@pytest.mark.parametrize("ask", [ask_registry, ask_issuer, ask_worker])
@pytest.mark.parametrize(
    ("parts", "pause_seconds"),
    [
        ((b"HTTP/1.1 200 OK\r\n", b"X"), 0.05),
        ((HEAD + b"\r\n", b" "), 0.05),
        ((HEAD + b"\r\n", b" " * 65_536), 0.0),
        ((HEAD + b"Content-Length: 999999999999999999\r\n\r\n", b" " * 65_536), 0.0),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"), 0.05),
    ],
    ids=["headers", "slow body", "fast body", "long body", "chunks"],
)
def test_an_answer_without_end_is_no_answer(
    ask: Callable[[str], None],
    parts: tuple[bytes, ...],
    pause_seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A byte now and then, in headers or body, or more than memory holds: all end in errors."""
    monkeypatch.setattr(schema_registry, "TIMEOUT_SECONDS", SECONDS)
    monkeypatch.setattr(tokens, "TIMEOUT_SECONDS", SECONDS)
    monkeypatch.setattr(check, "HTTP_SECONDS_MAX", SECONDS)
    with serving(*parts, pause_seconds=pause_seconds) as url:
        ask(url)


def test_a_page_ends_at_its_greatest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by bytes, however quick they come."""
    monkeypatch.setattr(bounded_http, "BYTES_MAX", 200_000)
    with (
        serving(HEAD + b"\r\n", b" " * 65_536) as url,
        pytest.raises(TimeoutError, match=bounded_http.NO_END),
    ):
        bounded_http.ask(Request(url), 600.0)


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [(None, {}, 200), (b"x", {}, 307), (None, {"Authorization": "Basic x"}, 302)],
)
def test_what_may_be_secret_goes_nowhere_else(
    data: bytes | None, headers: dict[str, str], status: int
) -> None:
    """A redirection is followed only by a request that carries no body and no password."""
    with contextlib.ExitStack() as places, socket.create_server(("127.0.0.1", 0)) as other:
        arrived = threading.Event()

        def answer() -> None:
            with contextlib.suppress(OSError):
                caller, _ = other.accept()
                arrived.set()
                with caller:
                    caller.recv(4096)
                    caller.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")

        threading.Thread(target=answer, daemon=True).start()
        where = f"http://127.0.0.1:{other.getsockname()[1]}"
        moved = f"HTTP/1.1 {max(status, 302)} Moved\r\nLocation: {where}\r\n".encode()
        url = places.enter_context(serving(moved + b"Content-Length: 0\r\n\r\n", b""))
        assert bounded_http.ask(Request(url, data, headers), 30.0).status == status
        assert arrived.is_set() is (status == 200)
        other.shutdown(socket.SHUT_RDWR)
