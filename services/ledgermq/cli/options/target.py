"""Which log and queue manager a command speaks to, and the options that say so.

The address is `--bootstrap`, else that of the `ledgermq up` which runs on the directory that
`--data-dir` names, else LEDGERMQ_BOOTSTRAP, else that of an `ledgermq up` on
LEDGERMQ_DATA_DIRECTORY or in its usual place, else localhost:9092.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

import ledgermq
from ledgermq.cli.options.running import DATA_DIRECTORY_DEFAULT, running, running_bootstrap
from ledgermq.cli.options.together import DIRECTORY, GIVEN, Command, Number, together
from ledgermq.cli.printing.output import Output
from ledgermq.client.connection import Connection
from ledgermq.errors import (
    BrokerUnavailableError,
    LedgerMQError,
    QueueNotFoundError,
    TopicNotFoundError,
)
from ledgermq.wire.kafka.access import Reports, metadata_of, text_of
from ledgermq.wire.kafka.settings import client_options, forget_kafka_environment, kafka_settings
from ledgermq.wire.topics.address import QUEUE_MANAGER_DEFAULT, parse_address, parse_servers
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq.wire.topics.registry import Claim, find_queue_manager

if TYPE_CHECKING:
    from ledgermq_spark.log.positions import PartitionRange


BOOTSTRAP_DEFAULT: Final = "localhost:9092"
TIMEOUT_SECONDS_DEFAULT: Final = 30.0
# The most that Kafka's library takes.
TIMEOUT_SECONDS_MAX: Final = 3600.0
PROBE_SECONDS_MAX: Final = 5.0
# Longer than a worker that runs takes to answer, and not too long to be left without a word.
QUIET_SECONDS: Final = 3.0
# More than the session time-out that workers have of themselves.
KILLED_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A log and a queue manager; `broker` is the address, or why it is not known.

    `started_broker`: the command has started the broker for itself; `remark` tells people what a
    command waits for.
    """

    broker: str | BrokerUnavailableError
    queue_manager: str
    topic_prefix: str
    timeout_seconds: float
    data_directory: Path = DATA_DIRECTORY_DEFAULT
    started_broker: bool = False
    remark: Callable[[str], None] = lambda _: None

    @property
    def bootstrap(self) -> str:
        """The broker's address, each host with a port; raises BrokerUnavailableError if not known.

        Asked only by what needs a broker: an archive is read without one.

        Raises:
            AddressError: The address is none.
        """
        if isinstance(self.broker, BrokerUnavailableError):
            raise self.broker
        return parse_servers(self.broker)

    @property
    def topics(self) -> Topics:
        return Topics(self.topic_prefix)

    @property
    def address(self) -> str:
        return f"kafka://{self.bootstrap}/{self.queue_manager}"

    def check_broker(self) -> None:
        """See at once whether something listens at the address; a dead one is else waited for.

        Raises:
            AddressError: The address is none, or the queue manager's name; or options of Kafka's
                clients cannot be.
            BrokerUnavailableError: Nothing listens there.
        """
        kafka_settings()
        problems = []
        for server in parse_address(self.address)[0].split(","):
            host, _, port = server.rpartition(":")
            patience = min(self.timeout_seconds, PROBE_SECONDS_MAX)
            try:
                socket.create_connection((host.strip("[]"), int(port)), patience).close()
            except OSError as error:
                problems.append(error.strerror or str(error))
            else:
                return
        raise BrokerUnavailableError(
            f"no Kafka broker answers at {self.bootstrap} ({', '.join(dict.fromkeys(problems))}): "
            "start one with `ledgermq up`, or give --bootstrap or --data-dir"
        )

    def kafka_admin(self) -> Any:
        """Kafka's administration, once a broker has let us in.

        Raises:
            AuthenticationFailedError: None will.
            BrokerUnavailableError: None answers.
        """
        kafka = kafka_settings()
        reports = Reports(kafka, self.bootstrap)
        own = {"log_level": 0, "error_cb": reports}
        admin = AdminClient(client_options(self.bootstrap, own, kafka))
        try:
            metadata_of(admin, reports, self.timeout_seconds)
        except KafkaException as error:
            raise BrokerUnavailableError(
                f"no Kafka broker answers at {self.bootstrap} ({text_of(error, reports)}): start "
                "one with `ledgermq up`, or give --bootstrap"
            ) from error
        return admin

    def reader(self, *, as_written: bool = False) -> PartitionReader:
        return PartitionReader(self.bootstrap, self.timeout_seconds, as_written=as_written)

    def claim(self) -> Claim:
        """Raises QueueManagerNotFoundError if there is no queue manager of that name."""
        self.check_broker()
        return find_queue_manager(
            self.bootstrap,
            self.topics,
            self.queue_manager,
            timeout_seconds=self.timeout_seconds,
        )

    def ledger_of(self, claim: Claim) -> Ledger:
        return Ledger(self.bootstrap, self.topics, claim, self.timeout_seconds)

    def located(self) -> tuple[Claim, PartitionRange]:
        """The queue manager, and what there is of its log now.

        Raises what `check_broker` raises, and:
            LogUnreachableError: The cluster does not answer, or has no such topics.
            QueueManagerNotFoundError: There is no queue manager of that name.
        """
        from ledgermq_spark.log.positions import locate

        self.check_broker()
        return locate(self.bootstrap, self.topics, self.queue_manager)

    def refuse_if_served(self, refusal: type[LedgerMQError]) -> None:
        """Raises a refusal if a worker runs that has not stopped the queue manager, or one will be
        started again at once.

        What changes checkpoints asks it: a worker counts on what it has stored.
        """
        from ledgermq.processor.worker.membership import refuse_if_workers_run
        from ledgermq.processor.worker.readiness import is_stopped

        up, ledger = running(self.data_directory), self.ledger_of(self.claim())
        if up is not None and up["bootstrap"] == self.bootstrap:
            if is_stopped(ledger):
                return
            raise refusal(
                f"`ledgermq up` runs on {self.data_directory}, process {up['pid']}, and with it a "
                f"worker of {self.queue_manager}: stop it first; this command starts the broker "
                "for itself"
            )
        refuse_if_workers_run(
            ledger,
            refusal,
            # A broker counts those anew that were killed with it, each time that it is started.
            patience_seconds=KILLED_SECONDS if self.started_broker else 0.0,
        )

    @contextlib.contextmanager
    def connect(self, *, client_id: str | None = None, **settings: Any) -> Iterator[Connection]:
        """A connection that is closed at the end.

        It has no client id unless told so: that is one connection's at a time, and any number of
        commands may run at once. `settings` are further ones of `ledgermq.connect`.
        """
        self.check_broker()
        with self._told_of_a_wait():
            connection = ledgermq.connect(
                self.address,
                application="ledgermq-cli",
                client_id=client_id or None,
                timeout=self.timeout_seconds,
                topic_prefix=self.topic_prefix,
                **settings,
            )
        with connection:
            try:
                yield connection
            except (QueueNotFoundError, TopicNotFoundError) as error:
                if meant := _meant(connection, error.destination or ""):
                    error.add_note(meant)
                raise

    @contextlib.contextmanager
    def _told_of_a_wait(self) -> Iterator[None]:
        """Says what is waited for, where the answer does not come soon."""
        text = (
            f"no worker of {self.queue_manager} has answered yet: waiting for one, up to "
            f"{self.timeout_seconds:.3g} s (--timeout)"
        )
        waiting = threading.Timer(QUIET_SECONDS, self.remark, [text])
        waiting.daemon = True
        waiting.start()
        try:
            yield
        finally:
            waiting.cancel()

    def named(self, position: int) -> str:
        return f"{self.queue_manager}@{position}"


def _meant(connection: Connection, destination: str) -> str:
    """What to say of the queue or topic that was meant, if one has nearly that name."""
    kind, _, name = destination.partition(":")
    with contextlib.suppress(LedgerMQError):
        queues = [one.name for one in connection.admin.list_queues()]
        topics = [one.name for one in connection.admin.topics()]
        same, other = (queues, topics) if kind == "queue" else (topics, queues)
        # One that is there is where messages were to come from, and it is their target that is not.
        if name in same:
            return ""
        if name in other:
            return f"there is a {'topic' if kind == 'queue' else 'queue'} of that name"
        if found := difflib.get_close_matches(name, same, n=1):
            return f"did you mean {found[0]}?"
    return ""


def data_directory_option(
    text: str = "Data directory of a running `ledgermq up`, whose broker is used.",
) -> Callable[[Command], Command]:
    return click.option(
        "--data-dir",
        "data_directory",
        type=DIRECTORY,
        default=DATA_DIRECTORY_DEFAULT,
        envvar="LEDGERMQ_DATA_DIRECTORY",
        show_default=True,
        show_envvar=True,
        help=text,
    )


def queue_manager_option(text: str = "Queue manager to use.") -> Callable[[Command], Command]:
    return click.option(
        "--queue-manager",
        metavar="NAME",
        type=GIVEN,
        default=QUEUE_MANAGER_DEFAULT,
        envvar="LEDGERMQ_QUEUE_MANAGER",
        show_default=True,
        show_envvar=True,
        help=text,
    )


topic_prefix_option = click.option(
    "--topic-prefix",
    metavar="PREFIX",
    type=GIVEN,
    default="ledgermq",
    envvar="LEDGERMQ_TOPIC_PREFIX",
    show_default=True,
    show_envvar=True,
    help="Prefix of the names of the log topics on Kafka.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

_target_options: Final = together(
    click.option(
        "--bootstrap",
        metavar="HOST:PORT",
        type=GIVEN,
        envvar="LEDGERMQ_BOOTSTRAP",
        show_envvar=True,
        help="Address of Kafka; several are separated by commas.  [default: the running "
        "`ledgermq up`, else localhost:9092]",
    ),
    data_directory_option(),
    queue_manager_option(),
    topic_prefix_option,
    click.option(
        "--timeout",
        "timeout_seconds",
        metavar="SECONDS",
        type=Number(min=0, min_open=True, max=TIMEOUT_SECONDS_MAX),
        default=TIMEOUT_SECONDS_DEFAULT,
        show_default=True,
        help="How many seconds to wait for an answer of Kafka or of the worker.",
    ),
    json_option,
)


def _is_from(parameter: str, source: ParameterSource) -> bool:
    return click.get_current_context().get_parameter_source(parameter) is source


def _running_on(directory: Path) -> str | None:
    """The address of the `ledgermq up` on a directory, if one runs there.

    Raises:
        BrokerUnavailableError: None does, and the directory was named: what listens at the default
            address is another installation. Or whether one does cannot be read.
    """
    found = running_bootstrap(directory)
    if found is None and not _is_from("data_directory", ParameterSource.DEFAULT):
        raise BrokerUnavailableError(
            f"no `ledgermq up` runs on {directory}: start it with `ledgermq up --data-dir "
            f"{directory}`, or give --bootstrap"
        )
    if found is not None:
        # That broker has no users; what the environment says is for another.
        forget_kafka_environment()
    return found


def _refuse_other_logs(queue_manager: str, given: Iterable[Any]) -> None:
    """Raises UsageError if what a command was given has a position on another log (`QM2@10`)."""
    for value in given:
        if not getattr(value, "is_of", lambda _: True)(queue_manager):
            from ledgermq_spark.log.positions import other_log

            raise click.UsageError(other_log(value, queue_manager))


@contextlib.contextmanager
def _broker_on(directory: Path) -> Iterator[str | None]:
    """The address of a directory's broker, which runs meanwhile; None: it runs already, or is none.

    A worker that refuses to run ends `ledgermq up`, and the command that helps wants the log.
    """
    from ledgermq.embedded import EmbeddedBroker

    if running_bootstrap(directory) is None and (directory / "broker" / "data").is_dir():
        forget_kafka_environment()
        with EmbeddedBroker(directory / "broker") as broker:
            yield broker.bootstrap
    else:
        yield None


def target_options(
    command: Callable[..., Any], *, starts_broker: bool = False
) -> Callable[..., Any]:
    """Give a command the options that name its target; it gets `target` and `output`.

    If it `starts_broker`, it starts that of a data directory on which nothing runs.
    """

    @functools.wraps(command)
    def with_target(
        *, bootstrap: str | None, data_directory: Path, as_json: bool, **given: Any
    ) -> Any:
        names = ("queue_manager", "topic_prefix", "timeout_seconds")
        named = {name: given.pop(name) for name in names}
        _refuse_other_logs(named["queue_manager"], given.values())
        is_named = _is_from("data_directory", ParameterSource.COMMANDLINE)
        if is_named and _is_from("bootstrap", ParameterSource.ENVIRONMENT):
            bootstrap = None
        with contextlib.ExitStack() as stack:
            own = None
            if starts_broker and not bootstrap:
                own = stack.enter_context(_broker_on(data_directory))
            broker: str | BrokerUnavailableError
            try:
                broker = bootstrap or own or _running_on(data_directory) or BOOTSTRAP_DEFAULT
            except BrokerUnavailableError as error:
                broker = error
            output = Output(as_json=as_json)
            target = Target(
                broker=broker,
                data_directory=data_directory,
                started_broker=own is not None,
                remark=output.remark,
                **named,
            )
            return command(target=target, output=output, **given)

    return _target_options(with_target)


def resting_target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `target_options`, for what must be done when `ledgermq up` does not run any more."""
    return target_options(command, starts_broker=True)
