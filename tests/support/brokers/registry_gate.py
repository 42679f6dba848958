"""A gate before a schema registry: shut, open, or answering in its place whatever a test wants."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit


class RegistryGate:
    """Passes requests on to a registry; `answer`, a status and a body, takes its place."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._behind = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path
        self.answer: tuple[int, bytes] | None = None
        self.asked: list[tuple[str, str | None]] = []
        self._server: ThreadingHTTPServer | None = None
        self.port = 0
        self.open()

    @property
    def url(self) -> str:
        """Its address, which stays the same while it is shut."""
        return f"http://127.0.0.1:{self.port}{self._path}"

    def open(self) -> None:
        """Listens, and passes on what is asked."""
        gate = self

        class Passing(BaseHTTPRequestHandler):
            def pass_on(self) -> None:
                gate.asked.append((self.path, self.headers.get("Authorization")))
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size) if size else None
                status, answer = gate.answer or gate._ask(self.command, self.path, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_DELETE = pass_on  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Passing)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        asked = urllib.request.Request(self._behind + path, body, kind, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answered:
                return answered.status, answered.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def shut(self) -> None:
        """Refuses connections from now on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()
