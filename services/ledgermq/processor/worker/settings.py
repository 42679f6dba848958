"""Settings of a worker: one frozen record, read from arguments and from LEDGERMQ_* variables."""

from __future__ import annotations

import difflib
import logging
import math
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from ledgermq.digits import plain_digits
from ledgermq.errors import LedgerMQError
from ledgermq.errors.shown import shown
from ledgermq.wire.topics.address import AddressError, parse_servers
from ledgermq.wire.topics.log_topics import OPERATION_BYTES_MAX

LOG_FORMATS: Final = ("text", "json")
# Variables that commands read and a worker does not.
OF_COMMANDS: Final = ("LEDGERMQ_QUEUE_MANAGER",)
# From which likeness on one name was meant for another, between 0 and 1.
NEARLY: Final = 0.9
# Numbers that need not be above 0, or that must be by so much: a worker that shows itself every
# millisecond takes a seventh of a core for it.
LOWEST: Final[dict[str, float]] = {
    "web_port": -1,
    "metrics_per_destination": 0,
    "heartbeat_seconds": 0.05,
}
# As long as Kafka's own names; a line of a log has it, and Kafka's group.
NAME_CHARACTERS_MAX: Final = 249
# The largest that Kafka and its clients take, where they have a limit: it creates so many
# partitions at a time, and counts milliseconds in 32 bits.
HIGHEST: Final[dict[str, float]] = {
    "partitions": 10_000,
    "lanes": 10_000,
    "session_timeout_seconds": 1_000_000,
    "chunk_bytes": OPERATION_BYTES_MAX,
    "web_port": 65_535,
    "request_timeout_seconds": 3_600,
}


class SettingsError(LedgerMQError, ValueError):
    """A setting that cannot be used; the text names it and says what it must be."""

    code = "setting-invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker runs.

    Attributes:
        bootstrap: Kafka addresses, HOST:PORT separated by commas.
        data_directory: Where the worker may keep files; nothing of value is kept there.
        topic_prefix: Prefix of the log topics.
        name: Name in logs, manifests and worker entries. A worker with a name takes its
            partitions back at once when it is started again; two workers must not share one.
        queue_managers: Names claimed in the registry if it is empty.
        partitions: Queue managers that the topics have room for, when they are created here.
        lanes: Outcome lanes of a queue manager, when the topics are created here.
        brokers_min: Brokers that must be there when the topics are created here.
        session_timeout_seconds: Silence after which the group gives partitions to others; as
            short as the broker allows, if that is longer.
        heartbeat_seconds: How often the worker shows itself to the group.
        poll_records: Records of one partition taken from the log at a time.
        slice_records: Records folded before other work is done.
        slice_bytes: Bytes of operations folded before other work is done.
        backlog_records: Records that may wait to be folded before fetching pauses.
        backlog_bytes: Bytes of records that may wait to be folded before fetching pauses.
        body_cache_bytes: Bodies kept in memory.
        chunk_bytes: Size that chunks of outcomes aim at.
        outcomes_unsent_bytes: Outcomes handed to Kafka and not acknowledged, at most.
        checkpoint_seconds: Pause between checkpoints when something changed.
        checkpoint_operations: Operations after which a checkpoint is due.
        checkpoint_blocks: Changed blocks of messages after which a checkpoint is due.
        web_port: Port of metrics and health; 0 is any free port, -1 none.
        web_host: Address that metrics and health listen on.
        schema_registry: Address of a schema registry; may hold a password. Empty: none.
        request_timeout_seconds: Patience with Kafka at the start and for checkpoints.
        log_level: Level of the log, by Python's names.
        log_format: How the log is written: text for people, json for programs.
        metrics_per_destination: How many destinations of a queue manager have metrics of their own;
            the others are summed. 0: none has.
    """

    bootstrap: str
    data_directory: Path
    topic_prefix: str = "ledgermq"
    name: str = ""
    queue_managers: tuple[str, ...] = ("QM1",)
    partitions: int = 4
    lanes: int = 4
    brokers_min: int = 1
    session_timeout_seconds: float = 2.5
    heartbeat_seconds: float = 0.5
    poll_records: int = 1_000
    slice_records: int = 250
    slice_bytes: int = 1_000_000
    backlog_records: int = 4_000
    backlog_bytes: int = 32 * 1024 * 1024
    body_cache_bytes: int = 64 * 1024 * 1024
    chunk_bytes: int = 1024 * 1024
    outcomes_unsent_bytes: int = 64 * 1024 * 1024
    checkpoint_seconds: float = 10.0
    checkpoint_operations: int = 100_000
    checkpoint_blocks: int = 200
    web_port: int = 0
    web_host: str = "127.0.0.1"
    schema_registry: str = field(default="", repr=False)
    request_timeout_seconds: float = 30.0
    log_level: str = "INFO"
    log_format: str = "text"
    metrics_per_destination: int = 200

    def __post_init__(self) -> None:
        if not self.bootstrap:
            raise SettingsError("bootstrap is empty; give the address of Kafka as HOST:PORT")
        try:
            parse_servers(self.bootstrap)
        except AddressError as error:
            raise SettingsError(str(error)) from None
        for name in (one.name for one in fields(self)):
            _check_number(name, getattr(self, name))
        for name in ("queue_managers", "web_host"):
            if not getattr(self, name):
                raise SettingsError(f"{name} is empty; name at least one, or leave it unset")
        if len(self.name) > NAME_CHARACTERS_MAX or not self.name.isprintable():
            raise SettingsError(
                f"name is {shown(self.name)}, must be at most {NAME_CHARACTERS_MAX} characters "
                "that show"
            )
        if self.log_level.upper() not in logging.getLevelNamesMapping():
            raise SettingsError(
                f"log_level is {self.log_level!r}, must be DEBUG, INFO, WARNING or ERROR"
            )
        if self.log_format not in LOG_FORMATS:
            raise SettingsError(f"log_format is {self.log_format!r}, must be text or json")
        if self.heartbeat_seconds * 3 > self.session_timeout_seconds:
            raise SettingsError(
                f"heartbeat_seconds is {self.heartbeat_seconds}, must be at most a third of "
                f"session_timeout_seconds ({self.session_timeout_seconds})"
            )

    @property
    def worker_name(self) -> str:
        """Name for logs and manifests: the one given, else host and process."""
        return self.name or f"{socket.gethostname()}-{os.getpid()}"

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, **given: Any
    ) -> WorkerSettings:
        """Settings from LEDGERMQ_<NAME> variables; what is given explicitly and not None wins.

        Raises:
            SettingsError: A variable does not hold what its setting needs.
        """
        variables = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for one in fields(cls):
            text = variables.get(f"LEDGERMQ_{one.name.upper()}")
            if text is not None:
                values[one.name] = _parse(one.name, str(one.type), text)
        values.update({name: value for name, value in given.items() if value is not None})
        for name in ("bootstrap", "data_directory"):
            if name not in values:
                raise SettingsError(f"{name} is not set; give it or LEDGERMQ_{name.upper()}")
        return cls(**values)


def _check_number(name: str, value: Any) -> None:
    """Raises SettingsError for a number that a setting cannot be."""
    if not isinstance(value, int | float):
        return
    if not math.isfinite(value):
        raise SettingsError(f"{name} is {value}, must be a finite number")
    lowest = LOWEST.get(name)
    if lowest is None and value <= 0:
        raise SettingsError(f"{name} is {value}, must be above 0")
    if lowest is not None and value < lowest:
        raise SettingsError(f"{name} is {value}, must not be below {lowest}")
    highest = HIGHEST.get(name, math.inf)
    if value > highest:
        raise SettingsError(f"{name} is {value}, must be at most {highest}")


def _parse(name: str, kind: str, text: str) -> Any:
    try:
        if kind == "int":
            return int(plain_digits(text))
        if kind == "float":
            return float(plain_digits(text))
        if kind == "Path":
            return Path(text)
        if kind.startswith("tuple"):
            return tuple(part.strip() for part in text.split(",") if part.strip())
    except ValueError:
        number = "a whole number" if kind == "int" else "a number"
        raise SettingsError(f"LEDGERMQ_{name.upper()} is {text!r}, must be {number}") from None
    return text


def misnamed(environment: Mapping[str, str]) -> list[str]:
    """What to say of variables that are nearly those of settings, and so set nothing."""
    known = [f"LEDGERMQ_{one.name.upper()}" for one in fields(WorkerSettings)]
    told = []
    for name in environment:
        if name in known or name in OF_COMMANDS or not name.startswith("LEDGERMQ_"):
            continue
        meant = [one for one in known if one.startswith(name)]
        meant += difflib.get_close_matches(name, known, n=1, cutoff=NEARLY)
        if meant:
            told.append(f"{name} sets nothing: did you mean {meant[0]}?")
    return told
