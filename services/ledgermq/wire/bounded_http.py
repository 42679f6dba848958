"""HTTP requests that end, whatever answers: in time and bytes of the whole answer.

A time limit of Python's HTTP holds for each read of the socket, so that an answer of a byte now and
then lasts for ever, in its headers as well; and what has no end is read until no memory holds it.
"""

from __future__ import annotations

import io
import time
import urllib.request
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from ssl import SSLContext
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError

BYTES_MAX: Final = 16 * 1024 * 1024
PART_BYTES: Final = 65_536
NO_END: Final = "what it sends has no end"


class Answer(NamedTuple):
    """What a server answered, of any status."""

    status: int
    reason: str
    page: bytes

    @property
    def is_good(self) -> bool:
        """Whether the status is one of success."""
        return 200 <= self.status < 300

    def check(self) -> None:
        """ConnectionError if the status is none of success."""
        if not self.is_good:
            raise ConnectionError(f"HTTP Error {self.status}: {self.reason}")


def ask(
    request: urllib.request.Request,
    timeout_seconds: float,
    *,
    context: SSLContext | None = None,
    proxied: bool = True,
) -> Answer:
    """The answer to a request; a redirection is followed if nothing that was sent may be secret.

    Args:
        request: What to send, and where.
        timeout_seconds: How long the answer may take, to its last byte.
        context: What TLS trusts; None: what the system does.
        proxied: Whether it goes by the proxies that the environment names.

    Raises:
        OSError, HTTPException: There is no answer, or one without end.
        OverflowError: The port is none.
    """
    handlers = [_Bounded(time.monotonic() + timeout_seconds, context), _NotElsewhere()]
    proxies = [] if proxied else [urllib.request.ProxyHandler({})]
    opener = urllib.request.build_opener(*handlers, *proxies)
    try:
        answered = opener.open(request, timeout=timeout_seconds)
    except HTTPError as error:
        answered = error
    except URLError as error:
        raise (error.reason if isinstance(error.reason, OSError) else error) from None
    with answered:
        page = b"".join(iter(lambda: answered.read1(PART_BYTES), b""))
        return Answer(answered.status, str(answered.reason), page)


class _NotElsewhere(urllib.request.HTTPRedirectHandler):
    """Bodies and passwords are for whom they were sent to."""

    def redirect_request(self, req: Any, *given: Any) -> urllib.request.Request | None:
        secret = req.data is not None or req.has_header("Authorization")
        return None if secret else super().redirect_request(req, *given)


class _Bounded(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Makes connections whose answers end."""

    def __init__(self, ends_at: float, context: SSLContext | None) -> None:
        super().__init__(context=context)
        self._ends_at, self._trusting = ends_at, context

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(partial(self._connection, HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> Any:
        made = partial(self._connection, HTTPSConnection, context=self._trusting)
        return self.do_open(made, req)

    def _connection(self, kind: Any, *given: Any, **options: Any) -> Any:
        connection = kind(*given, **options)
        connection.response_class = partial(_Response, ends_at=self._ends_at)
        return connection


class _Response(HTTPResponse):
    """Reads its status, headers and body from a socket that says when it is enough."""

    def __init__(self, sock: Any, *given: Any, ends_at: float, **options: Any) -> None:
        super().__init__(sock, *given, **options)
        self.fp = io.BufferedReader(_Ending(self.fp.detach(), sock, ends_at))


class _Ending(io.RawIOBase):
    def __init__(self, raw: Any, sock: Any, ends_at: float) -> None:
        self._raw, self._sock, self._ends_at, self._bytes = raw, sock, ends_at, 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        left_seconds = self._ends_at - time.monotonic()
        if left_seconds <= 0 or self._bytes > BYTES_MAX:
            raise TimeoutError(NO_END)
        self._sock.settimeout(left_seconds)
        try:
            count: int = self._raw.readinto(into)
        except TimeoutError:
            raise TimeoutError(NO_END if self._bytes else "it says nothing") from None
        self._bytes += count
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
