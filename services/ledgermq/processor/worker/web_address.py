"""Where a worker serves metrics and health: seen before anything else is started."""

from __future__ import annotations

import os
import socket

from ledgermq.errors import LedgerMQError
from ledgermq.errors.shown import shown


class WebAddressError(LedgerMQError):
    """Nothing can listen on the address of metrics and health."""

    code = "web-address-unusable"

    def __init__(self, host: str, port: int, why: OSError | UnicodeError) -> None:
        text = str(why)
        if isinstance(why, OSError):
            # Errors about names have numbers of their own, of which the system knows nothing; those
            # of asyncio have a longer text than the system's.
            of_names = isinstance(why, socket.gaierror)
            text = (why.strerror if of_names else os.strerror(why.errno or 0)) or text
        super().__init__(
            f"the address of metrics and health, port {port} of {shown(host)}, cannot be listened "
            f"on ({text}): give another --web-port or LEDGERMQ_WEB_HOST; port 0 is any free one, "
            "-1 none"
        )


def usable_port(host: str, port: int) -> int | None:
    """The port to listen on: the one given, for 0 any free one; None if there shall be none.

    Raises:
        WebAddressError: Nothing can listen there.
    """
    if port < 0:
        return None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the web server does: connections of the last worker may still be ending.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            usable: int = probe.getsockname()[1]
    except (OSError, UnicodeError) as error:
        raise WebAddressError(host, port, error) from error
    return usable


def in_address(host: str) -> str:
    """A host as it stands in an address; one of IPv6 is put in brackets."""
    return f"[{host}]" if ":" in host else host
