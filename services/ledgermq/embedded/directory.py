"""The directory of an embedded broker: its identity, its lock and its log.

- broker.json: cluster id, ports, whether the storage is formatted, who runs it
- lock: locked by the broker's processes for as long as one of them lives
- server.properties: written at every start
- broker.log: what the broker says; a large one is put aside as broker.log.1
- data/: Kafka's own
"""

import base64
import json
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ledgermq.embedded.errors import BrokerStartError, DirectoryInUseError, ForeignClusterError
from ledgermq.errors.shown import shown
from ledgermq.file_lock import lock_within

LOG_BYTES_MAX = 10 * 1024 * 1024
LOCK_WAIT_SECONDS = 5.0
PORT_MAX: Final = 65_535
# Kafka's own log, which the preparation of its storage begins.
METADATA: Final = "__cluster_metadata-0"
META: Final = "meta.properties"
# Kafka leaves it at its end and takes it away at its start.
SHUT_DOWN: Final = ".kafka_cleanshutdown"
# Without these nothing is known of the data; what else is left out is 0.
NEEDED: Final = ("cluster_id", "formatted")


def _is_number(value: object, highest: float) -> bool:
    return type(value) is int and 0 <= value <= highest


_PORT: Final = (lambda value: _is_number(value, PORT_MAX), f"0 to {PORT_MAX}")
# What a record may say, and how that is put in words.
FORMS: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "cluster_id": (lambda value: isinstance(value, str) and value != "", "text"),
    "formatted": (lambda value: isinstance(value, bool), "true or false"),
    "port": _PORT,
    "controller_port": _PORT,
    "owner_pid": (lambda value: _is_number(value, math.inf), "0 or more"),
}


@dataclass(frozen=True, kw_only=True)
class BrokerRecord:
    """What a directory remembers between starts.

    Attributes:
        cluster_id: Kafka's id of this cluster, chosen once.
        formatted: Whether the storage was completely prepared; only then may it hold data.
        port: The client port of the last start; 0 if there was none.
        controller_port: The controller port of the last start; 0 if there was none.
        owner_pid: The process that started the broker last; 0 if none did.
    """

    cluster_id: str
    formatted: bool = False
    port: int = 0
    controller_port: int = 0
    owner_pid: int = 0


class BrokerDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.data = self.path / "data"
        self.log = self.path / "broker.log"
        self.properties = self.path / "server.properties"
        self._record = self.path / "broker.json"

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Create the directory if need be, and lock it by a file descriptor.

        A broker whose owner was killed needs a moment to die, so a held lock is waited for briefly.
        Processes that have the descriptor hold the lock on.

        Raises:
            DirectoryInUseError: Another live broker holds the lock.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not lock_within(LOCK_WAIT_SECONDS, descriptor):
                raise self._in_use()
            yield descriptor
        finally:
            os.close(descriptor)

    def load(self) -> BrokerRecord:
        """Return what the directory remembers, or a new identity if it is new. Lock it first.

        Raises:
            ForeignClusterError: It holds the data of a cluster that is not this broker's, or its
                record is not as a broker writes it.
        """
        try:
            record = _record_in(self._record.read_bytes())
        except FileNotFoundError:
            record = None
        except ValueError as problem:
            raise self._unusable(problem) from None
        for place in (self.path, self.data):
            self._refuse_foreign(place / META, record)
        if record is None:
            record = BrokerRecord(cluster_id=_new_cluster_id())
            self.save(record)
        return record

    def save(self, record: BrokerRecord) -> None:
        scratch = self._record.with_suffix(".new")
        with scratch.open("w", encoding="utf-8") as handle:
            json.dump(asdict(record), handle, indent=1)
            handle.flush()
            os.fsync(handle.fileno())
        scratch.replace(self._record)

    def refuse_incomplete(self) -> None:
        """Look at data that were prepared: Kafka would wait for a minute, and not say what lacks.

        Raises:
            BrokerStartError: They lack what no broker can do without.
        """
        missing = [name for name in (META, METADATA) if not (self.data / name).exists()]
        if missing:
            raise BrokerStartError(
                f"{self.data} lacks {' and '.join(missing)}, without which no broker can work on "
                "it. Nothing was changed. If a backup was put back, put back all of it; if there "
                f"are no data to be kept, remove {self.path}."
            )

    @property
    def ended_in_order(self) -> bool:
        """Whether the last broker here had time to shut down; false while one runs."""
        return (self.data / SHUT_DOWN).exists()

    def remove_data(self) -> None:
        """Remove Kafka's storage, which must never have been used.

        Raises:
            ForeignClusterError: It holds partitions of topics: a broker has worked there.
        """
        held = sorted(one.parent.name for one in self.data.glob("*/partition.metadata"))
        topics = [name for name in held if name != METADATA]
        if topics:
            raise ForeignClusterError(
                f"{self._record} says that no broker has worked in {self.data}, which holds "
                f"{shown(topics[0])} and {len(topics) - 1} more partitions. Nothing was changed. "
                'Choose another directory, put the right record back in place, or write "formatted"'
                ": true there."
            )
        shutil.rmtree(self.data, ignore_errors=True)

    def open_log(self) -> int:
        return open_log(self.log)

    def log_size(self) -> int:
        """Return the size of the log in bytes, so that a later tail can begin there."""
        return self.log.stat().st_size if self.log.exists() else 0

    def log_tail(self, *, since: int = 0, lines: int = 25) -> str:
        """Return the last lines of the log, none from before the given size."""
        if not self.log.exists():
            return "(the log is empty)"
        with self.log.open("rb") as handle:
            handle.seek(since if since <= self.log_size() else 0)
            text = handle.read().decode("utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:]) or "(the log is empty)"

    def free_bytes(self) -> int:
        """How much the disk with data and log has left."""
        return shutil.disk_usage(self.path).free

    def _refuse_foreign(self, meta: Path, record: BrokerRecord | None) -> None:
        found = _cluster_id_in(meta)
        if found is None or (record is not None and found == record.cluster_id):
            return
        expected = "no LedgerMQ broker" if record is None else f"cluster {record.cluster_id}"
        raise ForeignClusterError(
            f"{meta} belongs to Kafka cluster {found}, but {self.path} is the directory of "
            f"{expected}. Nothing was changed. Choose another directory, or put the right data "
            "back in place."
        )

    def _unusable(self, problem: ValueError) -> ForeignClusterError:
        meta = self.data / META
        cluster_id = _cluster_id_in(meta)
        mend = f"remove it: without {meta} no broker has worked here"
        if cluster_id is not None:
            record = json.dumps({"cluster_id": cluster_id, "formatted": True})
            mend = f"if the data in {self.data} are a LedgerMQ broker's, write {record} there"
        return ForeignClusterError(
            f"{self._record} cannot be used: {problem}. Set that right, or {mend}; or choose "
            "another directory."
        )

    def _in_use(self) -> DirectoryInUseError:
        try:
            record = _record_in(self._record.read_bytes())
            detail = f" on port {record.port}, started by process {record.owner_pid}"
        except (OSError, ValueError):
            detail = ""
        return DirectoryInUseError(
            f"An embedded broker is running in {self.path}{detail}. Use that broker, stop it, or "
            "choose another directory."
        )


def open_log(path: Path) -> int:
    """Return a file descriptor that appends to a log; a large one is put aside first."""
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.replace(f"{path}.1")
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _record_in(text: bytes) -> BrokerRecord:
    """The record in a file that somebody may have edited; ValueError says what is wrong with it."""
    try:
        found = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    for name in found:
        if name not in FORMS:
            raise ValueError(f"it has {shown(name)}, which no record has")
    for name in NEEDED:
        if name not in found:
            raise ValueError(f"{name} is missing")
    for name, value in found.items():
        fits, wanted = FORMS[name]
        if not fits(value):
            raise ValueError(f"{name} is {shown(value)}, and must be {wanted}")
    return BrokerRecord(**found)


def _new_cluster_id() -> str:
    # Kafka writes ids in URL-safe base 64, and its command line takes a leading dash for an option.
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _cluster_id_in(meta: Path) -> str | None:
    if not meta.is_file():
        return None
    for line in meta.read_text(encoding="latin-1").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "cluster.id":
            return value.strip().replace("\\", "")
    return "(unnamed)"
