"""Chooses loopback ports that are free and stay so while a broker is down."""

import random
import socket

from ledgermq.embedded.errors import PortTakenError
from ledgermq.embedded.settings import HOST

# Below the range the system takes outgoing ports from: a client that keeps calling a dead broker's
# port from within that range may in the end connect to itself, and then holds the port.
PORTS = range(20000, 32000)
ATTEMPTS_MAX = 200
# Those that this process has chosen: they may not be taken yet.
_chosen: set[int] = set()
# Of the system, as a program may seed the usual one, and others the same.
_random = random.SystemRandom()


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Java does: connections of the broker before that still linger are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
        return True


def choose_port(*, preferred: int = 0, avoid: int = 0) -> int:
    """Return the preferred port if it is free, else any free one but the one to avoid.

    Raises:
        PortTakenError: No free port was found.
    """
    if preferred and preferred != avoid and port_is_free(preferred):
        return preferred
    if len(_chosen) > len(PORTS) // 2:
        _chosen.clear()
    for port in _random.sample(PORTS, ATTEMPTS_MAX):
        if port != avoid and port not in _chosen and port_is_free(port):
            _chosen.add(port)
            return port
    raise PortTakenError(
        f"None of {ATTEMPTS_MAX} ports between {PORTS.start} and {PORTS.stop} on {HOST} is free; "
        "stop what holds them, or give a port."
    )
