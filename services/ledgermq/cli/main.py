"""The entry point: the group of commands, and errors as one clear sentence with an exit code."""

from __future__ import annotations

import errno
import io
import logging
import os
import select
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import click

from ledgermq.cli.near_names import wrong_option
from ledgermq.cli.options.once import OnceGroup, write_commands
from ledgermq.cli.printing.exits import INTERRUPTED, OK, REFUSED, UNPROVEN, USAGE, exit_code_of
from ledgermq.cli.printing.output import Output
from ledgermq.cli.spelled import with_options
from ledgermq.errors import LedgerMQError, OutcomeUnknownError
from ledgermq.system_refusals import told_refusal

# By the section of help that lists them, with the module of each, which is imported when it is
# called: Spark and Faust take longer to load than most answers.
_SECTIONS: Final = {
    "Run and watch": {
        "up": "ledgermq.cli.commands.up",
        "worker": "ledgermq.cli.commands.worker",
        "doctor": "ledgermq.cli.commands.doctor",
        "check": "ledgermq.cli.commands.check",
        "top": "ledgermq.cli.commands.top",
    },
    "Queues and topics": {
        "manager": "ledgermq.cli.commands.managers",
        "queue": "ledgermq.cli.commands.queues",
        "topic": "ledgermq.cli.commands.topics",
        "subscription": "ledgermq.cli.commands.subscriptions",
        "binding": "ledgermq.cli.commands.bindings",
        "group": "ledgermq.cli.commands.groups",
    },
    "Messages": {
        "put": "ledgermq.cli.commands.put",
        "get": "ledgermq.cli.commands.reading",
        "browse": "ledgermq.cli.commands.reading",
        "msg": "ledgermq.cli.commands.messages",
        "dlq": "ledgermq.cli.commands.dead_letters",
    },
    "What is open, and the room it takes": {
        "session": "ledgermq.cli.commands.sessions",
        "txn": "ledgermq.cli.commands.transactions",
        "storage": "ledgermq.cli.commands.storage",
    },
    "Carry elsewhere, put again": {
        "bridge": "ledgermq.cli.commands.bridge",
        "relay": "ledgermq.cli.commands.relays",
        "journal": "ledgermq.cli.commands.journal",
        "replay": "ledgermq.cli.commands.replay",
    },
    "What happened": {
        "trace": "ledgermq.cli.commands.trace",
        "rebuild": "ledgermq.cli.commands.rebuild",
        "diff": "ledgermq.cli.commands.history",
        "sql": "ledgermq.cli.commands.history",
        "tables": "ledgermq.cli.commands.history",
        "archive": "ledgermq.cli.commands.archive",
        "audit": "ledgermq.cli.commands.audit",
        "chain": "ledgermq.cli.commands.chain",
    },
    "Log and checkpoints": {
        "log": "ledgermq.cli.commands.log",
        "checkpoint": "ledgermq.cli.commands.checkpoint",
        "restore": "ledgermq.cli.commands.restore",
    },
    "Kafka and its tools": {
        "schema": "ledgermq.cli.commands.schemas",
        "acl": "ledgermq.cli.commands.acl",
    },
    "In a checkout": {
        "bench": "ledgermq_benchmarks.command",
        "demo": "ledgermq_demo.command",
    },
}
_COMMANDS: Final = {name: place for those in _SECTIONS.values() for name, place in those.items()}
_PACKAGES: Final = {
    "processor": "faust aiokafka prometheus_client pythonjsonlogger",
    "spark": "pyspark pyarrow pandas duckdb sqlglot ledgermq_spark",
    "cli": "rich jinja2",
}
_EXTRAS: Final = {one: extra for extra, those in _PACKAGES.items() for one in those.split()}
# Commands whose code stays in the checkout: a wheel does not contain these packages.
_CHECKOUT: Final = {
    "ledgermq_benchmarks": ("bench", "benchmarks"),
    "ledgermq_demo": ("demo", "examples/demo"),
}
# Commands whose exit code is what they found: unread, it is not known to be good.
_VERDICTS: Final = ("archive", "audit", "check", "doctor")
_LOOK_FIRST: Final = "Look whether it was, as by `ledgermq trace`, before you call it again"
# One of them, of which 1 says that it found something: unread or failed, it has proven nothing.
_AUDIT: Final = "audit"


class _Commands(OnceGroup):
    """The commands above, in that order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, places in _SECTIONS.items():
            there = [name for name, place in places.items() if find_spec(place.partition(".")[0])]
            if there:
                with formatter.section(title):
                    write_commands(self, ctx, formatter, there)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(_COMMANDS[cmd_name]), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            if not _reader_has_gone():
                raise
            # As `head` does when it has enough: that is no error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if ctx.invoked_subcommand == _AUDIT:
                return UNPROVEN
            return REFUSED if ctx.invoked_subcommand in _VERDICTS else OK


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ledgermq", message="%(prog)s %(version)s")
def cli() -> None:
    """LedgerMQ: message queues whose only truth is a log of operations on Kafka.

    Exit codes: 0 done, 1 refused or an anomaly found, 2 wrong use, 3 broker or worker not
    reachable, 4 a check failed, 5 unproven.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    _replace_closed_streams()
    # What they log is in the error that follows; a worker sets up a log of its own.
    for logger in ("ledgermq", "librdkafka"):
        logging.getLogger(logger).addHandler(logging.NullHandler())
    try:
        answer = cli.main(args=given, prog_name="ledgermq", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt) as stop:
        # Click raises its own of what came.
        _explain("interrupted", _told("stopped by Ctrl-C", stop.__cause__ or stop), given)
        return INTERRUPTED
    except click.ClickException as error:
        return _wrong_use(error, given)
    except ModuleNotFoundError as error:
        return _not_installed(error, given)
    except Exception as error:
        if not _is_explained(error):
            if given[:1] != [_AUDIT]:
                raise
            # Python's own code for it is 1.
            traceback.print_exc()
            return UNPROVEN
        if isinstance(error, OutcomeUnknownError):
            # The command has ended: nobody can go on waiting.
            error.advice = _LOOK_FIRST
        text = told_refusal(error) if isinstance(error, OSError) else str(error)
        # Of these alone: columns and files are called as they are.
        if type(error).__module__.startswith("ledgermq.errors."):
            text = with_options(text, cli, given)
        _explain(getattr(error, "code", "error"), _told(text, error), given)
        code = exit_code_of(error)
        return UNPROVEN if code == REFUSED and given[:1] == [_AUDIT] else code
    return answer if isinstance(answer, int) else OK


class _ClosedOutput(io.TextIOBase):
    """In the place of a standard output that is closed: an answer must not vanish."""

    def write(self, _text: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def _replace_closed_streams() -> None:
    """Puts something in the place of what a daemon or `>&-` has closed: Python has None there.

    There is nothing to read, and remarks are lost. The numbers stay taken, so that nothing that is
    opened later gets them.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            closed = name == "stdout"
            setattr(sys, name, _ClosedOutput() if closed else os.fdopen(number, "r+"))


def _reader_has_gone() -> bool:
    """Whether nobody reads standard output any more; other pipes and sockets break too."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _is_explained(error: Exception) -> bool:
    """Whether an error's text is written for people; any other is a fault of ours."""
    if isinstance(error, (LedgerMQError, OSError)):
        return True
    known = ("TopicError", "RegistryError")
    return any(kind.__name__ in known for kind in type(error).__mro__)


def _told(text: str, error: BaseException) -> str:
    """An error's text, and behind it what a command adds: how far it came."""
    return "; ".join([text, *getattr(error, "__notes__", ())])


def _explain(code: str, text: str, given: list[str]) -> None:
    Output(as_json="--json" in given).error(code, text)


def _wrong_use(error: click.ClickException, given: list[str]) -> int:
    # Whoever names a group and no command of it looks for those there are.
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        click.echo(error.format_message(), err=True)
        return USAGE
    text, hint = error.format_message(), ""
    if isinstance(error, click.NoSuchOption):
        text = wrong_option(error)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = f" (try: {error.ctx.command_path} --help)"
    _explain("usage", _told(text, error) + hint, given)
    return USAGE


def _not_installed(error: ModuleNotFoundError, given: list[str]) -> int:
    missing = (error.name or "").partition(".")[0]
    if missing not in _EXTRAS.keys() | _CHECKOUT.keys() or find_spec(missing) is not None:
        raise error
    if missing in _CHECKOUT:
        name, folder = _CHECKOUT[missing]
        text = (
            f"`ledgermq {name}` is not part of the installed package: it belongs to a checkout of "
            f"the source, in {folder}, where `make {name}` runs it"
        )
    else:
        extra = _EXTRAS[missing]
        text = (
            f"this command needs {error.name}, which is not installed: "
            f"pip install 'ledgermq[{extra}]'"
        )
    _explain("not-installed", text, given)
    return USAGE
