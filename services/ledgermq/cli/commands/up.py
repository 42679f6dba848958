"""`ledgermq up`: a broker and a worker in the foreground, on a data directory."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.running import DATA_DIRECTORY_DEFAULT, announce
from ledgermq.cli.options.target import (
    data_directory_option,
    json_option,
    queue_manager_option,
    topic_prefix_option,
)
from ledgermq.cli.options.together import Long
from ledgermq.cli.printing.exits import OK, REFUSED
from ledgermq.cli.printing.output import Output
from ledgermq.processor.worker.exit_codes import EXIT_STOPPED
from ledgermq.wire.kafka.settings import forget_kafka_environment

PORT_DEFAULT: Final = 9092
START_TIMEOUT_SECONDS: Final = 120.0


@click.command(cls=OnceCommand)
@data_directory_option("Where all data are; made if it is missing.")
@click.option(
    "--port",
    type=Long(0, 65535),
    default=PORT_DEFAULT,
    show_default=True,
    metavar="PORT",
    help="Port of the broker on 127.0.0.1; 0: the one it had last, at first any free one.",
)
@queue_manager_option("Queue manager that is created if the data directory is new.")
@topic_prefix_option
@json_option
def up(
    data_directory: Path, port: int, queue_manager: str, topic_prefix: str, as_json: bool
) -> int:
    """Run a Kafka broker and a worker until Ctrl-C, SIGTERM or the end of the terminal.

    The data stay in the data directory and are there at the next start. A worker that dies is
    started again. Broker and worker listen on this machine only.
    """
    from ledgermq.processor.worker.process import allow_many_files
    from ledgermq.processor.worker.supervisor import Supervisor, stop_signals

    if find_spec("faust") is None:
        # The worker is another process: who lacks its packages is told so before anything starts.
        raise ModuleNotFoundError(name="faust")
    allow_many_files()
    output = Output(as_json=as_json)
    if forget_kafka_environment():
        output.remark(
            "LEDGERMQ_KAFKA_... in the environment does not count here: this broker has no users "
            "and no TLS, and listens on this machine only"
        )
    for number in stop_signals():
        # Whatever tells it to stop while it starts ends it as Ctrl-C does.
        signal.signal(number, signal.default_int_handler)
    with announce(data_directory) as tell_others:
        supervisor = Supervisor(
            data_directory,
            broker_port=port,
            topic_prefix=topic_prefix,
            queue_managers=[queue_manager],
            tell=lambda text: output.remark(f"ledgermq: {text}"),
        )
        output.remark(f"Starting broker and worker on {data_directory.absolute()} ...")
        try:
            supervisor.start(START_TIMEOUT_SECONDS)
            tell_others(bootstrap=supervisor.bootstrap, queue_manager=queue_manager)
            _introduce(output, data_directory, supervisor.bootstrap, queue_manager)
            code = supervisor.run()
        except KeyboardInterrupt:
            code = EXIT_STOPPED
        finally:
            supervisor.stop()
    if code == EXIT_STOPPED:
        # Its terminal may be what has ended.
        with contextlib.suppress(OSError):
            output.remark("Stopped; the data stay.")
        return OK
    return REFUSED


def _introduce(output: Output, directory: Path, bootstrap: str, queue_manager: str) -> None:
    if output.as_json:
        output.line(
            {
                "bootstrap": bootstrap,
                "queue_manager": queue_manager,
                "data_directory": str(directory.absolute()),
                "pid": os.getpid(),
            }
        )
        return
    option = (
        "" if directory == DATA_DIRECTORY_DEFAULT else f" --data-dir {shlex.quote(str(directory))}"
    )
    output.fields(
        {
            "Address": bootstrap,
            "From Python": f'ledgermq.connect("kafka://{bootstrap}/{queue_manager}")',
            "In a shell": f"ledgermq queue list{option}",
            "Logs": f"{directory / 'worker.log'}, {directory / 'broker' / 'broker.log'}",
        }
    )
    output.remark("LedgerMQ is up. Ctrl-C stops it; the data stay.")
