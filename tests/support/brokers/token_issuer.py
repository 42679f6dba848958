"""An issuer of tokens as OIDC has them, without signatures, which Kafka takes if it is told to."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs


class Issuer(ThreadingHTTPServer):
    """It listens on loopback; `asked` is who asked for which scope."""

    def __init__(self, life_seconds: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.life_seconds = life_seconds
        self.asked: list[tuple[str, str]] = []

    @property
    def endpoint(self) -> str:
        """Where clients exchange what they know for a token."""
        return f"http://127.0.0.1:{self.server_port}/token"

    def secret_of(self, name: str) -> str:
        """What a client must know."""
        return f"token-secret-of-{name}"

    def token_for(self, name: str) -> str:
        """A token that says whose it is, and until when."""
        now = int(time.time())
        claims = {"sub": name, "iat": now, "exp": now + self.life_seconds, "scope": "queues"}
        return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class _Handler(BaseHTTPRequestHandler):
    server: Issuer

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        who = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        name, _, secret = who.partition(":")
        known = secret == self.server.secret_of(name)
        answer: dict[str, Any] = {"error": "invalid_client"}
        if known and form["grant_type"] == ["client_credentials"]:
            self.server.asked.append((name, *form["scope"]))
            answer = {
                "access_token": self.server.token_for(name),
                "token_type": "Bearer",
                "expires_in": self.server.life_seconds,
            }
        body = json.dumps(answer).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Nothing: the tests look at what was asked."""


@contextmanager
def token_issuer(life_seconds: int = 300) -> Iterator[Issuer]:
    """An issuer that runs until the block ends."""
    with Issuer(life_seconds) as issuer:
        thread = threading.Thread(target=issuer.serve_forever, daemon=True)
        thread.start()
        try:
            yield issuer
        finally:
            issuer.shutdown()
            thread.join()
