"""A Kafka in a container, from the image and the settings of docker-compose.yml."""

from __future__ import annotations

import re
import time
from types import TracebackType

import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from testcontainers.core.container import DockerContainer

from ledgermq.embedded.ports import choose_port
from support.checkout import ROOT

COMPOSE = ROOT / "docker-compose.yml"
PORT_INSIDE = 9092
START_SECONDS = 120.0
# A variable of the file, with what it is unless somebody chooses otherwise.
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


class ContainerBroker:
    """One node, published on a free loopback port; stopped and removed at the end.

    Attributes:
        bootstrap: Its address.
    """

    def __init__(self) -> None:
        compose = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
        service = compose["services"]["kafka"]
        port = choose_port()
        self.bootstrap = f"127.0.0.1:{port}"
        environment = {
            name: DEFAULT.sub(r"\1", text) for name, text in service["environment"].items()
        }
        # Clients go on at the address that the broker advertises.
        advertised = environment["KAFKA_ADVERTISED_LISTENERS"].replace(
            f"HOST://127.0.0.1:{PORT_INSIDE}", f"HOST://{self.bootstrap}"
        )
        assert self.bootstrap in advertised, "docker-compose.yml advertises the loopback address"
        self._container = (
            DockerContainer(service["image"])
            .with_envs(**environment | {"KAFKA_ADVERTISED_LISTENERS": advertised})
            .with_kwargs(hostname="kafka")
        )
        # `with_bind_ports` would publish it on every address of the machine.
        self._container.ports[f"{PORT_INSIDE}/tcp"] = ("127.0.0.1", port)

    def __enter__(self) -> ContainerBroker:
        self._container.start()
        try:
            self._wait()
        except BaseException:
            self._container.stop()
            raise
        return self

    def _wait(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                admin.list_topics(timeout=2)
                return
            except KafkaException as error:
                self._container.reload()
                if time.monotonic() > deadline or self._container.status != "running":
                    out, err = self._container.get_logs()
                    text = (out + err).decode(errors="replace")[-4000:]
                    raise AssertionError(
                        f"Kafka in the container: {error}; it said:\n{text}"
                    ) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._container.stop()
