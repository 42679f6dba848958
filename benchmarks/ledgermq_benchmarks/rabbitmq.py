"""RabbitMQ from the distribution's package, on which some rows are run in the same hour as ours.

Its queues are quorum queues, which flush what they confirm, on a single node, as our broker does.
Its programs are in `benchmarks/peers/RabbitMqRows.java`, with RabbitMQ's own client.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple, Self

from ledgermq.embedded.jars import JarSet, fetched_jars
from ledgermq.embedded.ports import choose_port
from ledgermq.embedded.settings import HOST
from ledgermq_benchmarks.run import BenchError

# Debian's and Ubuntu's package has its scripts here; the ones on PATH want to be root.
SCRIPTS = Path("/usr/lib/rabbitmq/bin")
PROGRAMS = Path(__file__).parents[1] / "peers" / "RabbitMqRows.java"
CLIENT = JarSet(
    name="rabbitmq-client-5.37.0",
    title="RabbitMQ's Java client 5.37 (about 3 MB)",
    modules=(
        ("com.rabbitmq", "amqp-client", "5.37.0"),
        ("org.slf4j", "slf4j-nop", "1.7.36"),
    ),
)


class PeerRow(NamedTuple):
    """The program beside one of our rows, and what our figure divided by its one must reach."""

    program: str
    minimum: float
    aim: float


# RabbitMQ never confirms an acknowledgement, so one program stands beside both of ours.
PEER_ROWS = {
    "transacted": PeerRow("transacted", 1.0, 1.5),
    "pipelined": PeerRow("pipelined", 1.4, 2.0),
    "single": PeerRow("single", 0.5, 0.8),
    "single-auto": PeerRow("single", 0.5, 0.8),
    "sixteen": PeerRow("sixteen", 0.5, 1.0),
    "sixteen-auto": PeerRow("sixteen", 0.5, 1.0),
    "latency": PeerRow("latency", 1.7, 1.3),
}
START_SECONDS = 90.0
STOP_SECONDS = 30.0
ROW_SECONDS = 400.0


class RabbitMq:
    """A node of its own on loopback, in a directory that is gone afterwards; a context manager.

    Raises:
        BenchError: The package or a Java compiler is missing, or the node does not answer.
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="ledgermq-bench-rabbitmq-")
        self._path = Path(self._directory.name)
        self._children: list[subprocess.Popen[bytes]] = []
        self._class_path = ""
        self.port = 0
        self.version = ""

    def __enter__(self) -> Self:
        try:
            self._compile()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        # The node first: it says goodbye to epmd, which tells nodes of each other's ports.
        for child in reversed(self._children):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        self._directory.cleanup()

    def run(self, row: str, messages: int) -> dict[str, Any]:
        """One run of a row, after one for nothing while Java compiles; its figures."""
        command = ["java", "-Xmx1g", "-cp", self._class_path, "RabbitMqRows"]
        try:
            answer = subprocess.run(
                [*command, str(self.port), PEER_ROWS[row].program, str(messages)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=ROW_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BenchError(f"RabbitMQ's {row} did not end within {ROW_SECONDS:.0f} s") from None
        if answer.returncode:
            raise BenchError(f"RabbitMQ's {row} failed:\n{answer.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(answer.stdout)
        self.version = found.pop("version")
        return found

    def _compile(self) -> None:
        compiler = shutil.which("javac")
        if not (SCRIPTS / "rabbitmq-server").exists() or compiler is None:
            raise BenchError(
                f"running beside RabbitMQ needs {SCRIPTS / 'rabbitmq-server'} and javac; on Debian "
                "and Ubuntu: apt-get install rabbitmq-server openjdk-17-jdk-headless, and end the "
                "service that this starts"
            )
        self._class_path = os.pathsep.join([str(self._path), *map(str, fetched_jars(CLIENT))])
        command = [compiler, "-d", str(self._path), "-cp", self._class_path, str(PROGRAMS)]
        subprocess.run(command, check=True)

    def _start(self) -> None:
        self.port = choose_port()
        ports = {self.port}
        while len(ports) < 3:
            ports.add(choose_port())
        epmd_port, node_port = ports - {self.port}
        plugins = self._path / "enabled_plugins"
        plugins.write_text("[].")
        settings = {
            "HOME": str(self._path),
            "ERL_EPMD_PORT": str(epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(node_port),
            "RABBITMQ_MNESIA_BASE": str(self._path / "data"),
            "RABBITMQ_LOG_BASE": str(self._path / "log"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        with (self._path / "output").open("ab") as output:
            for command in (["epmd"], [str(SCRIPTS / "rabbitmq-server")]):
                self._children.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=output,
                        env=os.environ | settings,
                        start_new_session=True,
                    )
                )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._children[-1].poll() is not None or time.monotonic() > deadline:
                said = (self._path / "output").read_text(errors="replace")
                raise BenchError(f"RabbitMQ does not answer; it said:\n{said[-2000:]}")
            time.sleep(0.2)

    def _answers(self) -> bool:
        """Whether it listens, which it does once it is ready for clients."""
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0
