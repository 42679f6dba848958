"""A broker with more addresses, each behind a network that a test can break."""

from __future__ import annotations

import asyncio
import enum
import math
import threading
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from ledgermq.embedded import EmbeddedBroker
from ledgermq.embedded import broker as embedded
from ledgermq.embedded.ports import choose_port
from ledgermq.embedded.settings import HOST, server_properties

CHUNK_BYTES = 65536


class Way(enum.Enum):
    """Where something goes."""

    TO_BROKER = "to the broker"
    FROM_BROKER = "from the broker"


class Network:
    """Passes on what comes at one port to another one, in a thread of its own."""

    def __init__(self, port: int, target: int) -> None:
        self.address = f"{HOST}:{port}"
        self._target = target
        self._dead: set[asyncio.StreamWriter] = set()
        self._alive: set[asyncio.StreamWriter] = set()
        self._shut = False
        self._bytes_per_second = math.inf
        self._open = {way: asyncio.Event() for way in Way}
        for one in self._open.values():
            one.set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._do(asyncio.start_server(self._accept, HOST, port))

    def kill_in_silence(self) -> int:
        """Connections that are there lose all that comes, and nobody is told; new ones work.

        As where a machine lost its power, or a firewall forgot them. Returns how many there are.
        """

        async def kill() -> int:
            self._dead |= self._alive
            return len(self._alive)

        return self._do(kill())

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Connections are cut, and no new ones are let in."""

        async def cut() -> None:
            self._shut = True
            for writer in self._alive:
                writer.transport.abort()

        self._do(cut())
        yield
        self._shut = False

    @contextmanager
    def slowed_down(self, bytes_per_second: int) -> Iterator[None]:
        """Lets so much through each connection, in each direction."""
        self._bytes_per_second = bytes_per_second
        yield
        self._bytes_per_second = math.inf

    @contextmanager
    def held_up(self, *ways: Way) -> Iterator[None]:
        """Lets nothing through on these ways, without a word; afterwards all of it."""
        for way in ways:
            self._loop.call_soon_threadsafe(self._open[way].clear)
        yield
        for way in ways:
            self._loop.call_soon_threadsafe(self._open[way].set)

    def close(self) -> None:
        """Ends; what passes is cut."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _do(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._shut:
            writer.transport.abort()
            return
        try:
            from_target, to_target = await asyncio.open_connection(HOST, self._target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            self._pass(reader, to_target, self._open[Way.TO_BROKER]),
            self._pass(from_target, writer, self._open[Way.FROM_BROKER]),
        )

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        self._alive.add(writer)
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                if writer not in self._dead:
                    await is_open.wait()
                    await asyncio.sleep(len(data) / self._bytes_per_second)
                    writer.write(data)
                    await writer.drain()
        self._alive.discard(writer)
        if writer not in self._dead:
            writer.close()


class FarBroker(NamedTuple):
    """Addresses of an embedded broker: `far` is behind the network, `near` goes past it."""

    near: str
    far: str
    network: Network


@contextmanager
def broker_behind_a_network(directory: Path) -> Iterator[FarBroker]:
    """Runs one for as long as it is used."""
    with networks("far") as all_networks, EmbeddedBroker(directory, brief=True) as broker:
        yield FarBroker(broker.bootstrap, all_networks["far"].address, all_networks["far"])


@contextmanager
def networks(*names: str) -> Iterator[dict[str, Network]]:
    """Embedded brokers that are started meanwhile, one at a time, are behind each of them, too."""
    listeners, found = {}, {}
    with ExitStack() as stack:
        for name in names:
            behind, before = choose_port(), choose_port()
            listeners[name.upper()] = (f"{HOST}:{behind}", f"{HOST}:{before}")
            found[name] = stack.enter_context(closing(Network(before, behind)))
        properties = partial(_properties, listeners)
        stack.enter_context(patch.object(embedded, "server_properties", properties))
        yield found


def _properties(listeners: dict[str, tuple[str, str]], **given: Any) -> str:
    more = {
        "listeners": [f"{name}://{behind}" for name, (behind, _) in listeners.items()],
        "advertised.listeners": [f"{name}://{before}" for name, (_, before) in listeners.items()],
        "listener.security.protocol.map": [f"{name}:PLAINTEXT" for name in listeners],
    }
    lines = []
    for line in server_properties(**given).splitlines():
        name, _, value = line.partition("=")
        lines.append(f"{name}={','.join([*more.get(name, ()), value])}")
    return "\n".join([*lines, "inter.broker.listener.name=PLAINTEXT", ""])
