"""`ledgermq check`: probes of a queue, a worker and the cluster, for whatever watches them."""

from __future__ import annotations

import json
import os
import re
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPException, InvalidURL
from itertools import islice
from typing import Any, Final

import click
from click.core import ParameterSource

from ledgermq.cli.options.destinations import queue_from
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, json_option, target_options
from ledgermq.cli.options.together import Command, Count, Long, Number
from ledgermq.cli.printing.exits import CHECK_FAILED, UNREACHABLE, exit_code_of
from ledgermq.cli.printing.findings import BAD, GOOD, WARNING, Finding, print_findings
from ledgermq.cli.printing.output import Output, count_of
from ledgermq.client.connection import Connection
from ledgermq.errors import InvalidDestinationError, LedgerMQError, QueueManagerNotFoundError
from ledgermq.wire.bounded_http import ask
from ledgermq.wire.framing.checkpoint_keys import parse_key
from ledgermq.wire.topics.reading import PartitionReader, latest_values
from ledgermq.wire.topics.registry import Claim, list_queue_managers

WHY_NO_TOPIC: Final = "a topic holds no messages that could be looked at: check a queue"
# Test messages carry a name of their own in this, and are gone when nobody took them for so long.
PROPERTY: Final = "ledgermq_check"
TEST_SECONDS_MAX: Final = 60.0
HTTP_SECONDS_MAX: Final = 5.0
CHECKPOINT_RECORDS: Final = 200

LAG_MAX_DEFAULT: Final = 10_000
CHECKPOINT_AGE_MAX_DEFAULT: Final = 300.0
WORK_AGE_MAX_DEFAULT: Final = 3_600.0
# In the order of `_manager_findings`.
CHECKS_OF_MANAGER: Final = ("worker", "checkpoint", "units of work")


@click.group(cls=OnceGroup)
def check() -> None:
    """Probe a queue, a worker or all of an installation, for whatever watches it.

    Exit codes: 0 all is well, 3 broker or worker not reachable, 4 a check failed.
    """


def _probing_count(flag: str, text: str) -> Callable[[Command], Command]:
    return click.option(flag, type=Count(min=0), metavar="N", help=text)


@check.command()
@click.argument("name")
@click.option(
    "--up",
    is_flag=True,
    expose_value=False,
    help="Check that it exists and that puts and gets are enabled; done in any case.",
)
@_probing_count(
    "--browse", "Check that so many messages can be browsed; 0: that it can be browsed."
)
@_probing_count("--put", "Check that so many test messages can be put.")
@_probing_count(
    "--get", "Check that so many of those test messages can be got; at most as many as --put."
)
@target_options
def queue(
    target: Target,
    output: Output,
    name: str,
    browse: int | None,
    put: int | None,
    get: int | None,
) -> int:
    """Check that queue NAME can be used.

    With --get only its own test messages are got. Other consumers of the queue may get them as
    well, so use a queue that serves only this purpose. Test messages expire after a minute.
    """
    if (get or 0) > (put or 0):
        raise click.UsageError("--get takes test messages only: give --put of at least as many")
    name = queue_from(name, why=WHY_NO_TOPIC)
    with target.connect() as connection:
        findings = list(_queue_findings(connection, name, browse, put, get, target))
    return print_findings(output, findings, queue_manager=target.queue_manager, queue=name)


def _queue_findings(
    connection: Connection,
    name: str,
    browse: int | None,
    put: int | None,
    get: int | None,
    target: Target,
) -> Iterator[Finding]:
    try:
        status = connection.admin.queue_status(name)
    except InvalidDestinationError as error:
        yield Finding(BAD, "up", str(error))
        return
    flags = {"puts": status.settings.get("puts_disabled"), "gets": status.gets_disabled}
    disabled = [what for what, flag in flags.items() if flag]
    if disabled:
        yield Finding(BAD, "up", f"{' and '.join(disabled)} are disabled")
        return
    waiting = f"{count_of(status.current, 'message')} to be got"
    yield Finding(GOOD, "up", f"it takes and gives messages, at {target.named(status.position)}")
    if browse is not None:
        seen = sum(1 for _ in islice(connection.browser(f"queue:{name}"), max(browse, 1)))
        verdict = GOOD if seen >= browse else BAD
        yield Finding(verdict, "browse", f"{seen} of {browse} seen; {waiting}")
    if put:
        mark = uuid.uuid4().hex
        with connection.session() as session:
            producer = session.producer(f"queue:{name}")
            for number in range(put):
                producer.send(
                    f"test message {number + 1} of {put} of ledgermq check",
                    properties={PROPERTY: mark},
                    time_to_live=TEST_SECONDS_MAX,
                )
        yield Finding(GOOD, "put", f"{count_of(put, 'test message')} put")
        if get:
            yield _got(connection, name, mark, get, target.timeout_seconds)


def _got(
    connection: Connection, name: str, mark: str, wanted: int, timeout_seconds: float
) -> Finding:
    got = 0
    with connection.session() as session:
        consumer = session.consumer(f"queue:{name}", selector=f"{PROPERTY} = '{mark}'")
        while got < wanted and consumer.receive(timeout=timeout_seconds) is not None:
            got += 1
    if got < wanted:
        found = f"{got} of {wanted} came within {timeout_seconds:g} s: is somebody else consuming?"
        return Finding(BAD, "get", found)
    return Finding(GOOD, "get", f"{count_of(got, 'test message')} got")


@check.command()
@click.option(
    "--url",
    metavar="URL",
    help="Address of its web server, http://HOST:PORT.  [default: port LEDGERMQ_WEB_PORT of this "
    "machine]",
)
@click.option(
    "--ready",
    is_flag=True,
    help="Also check that it has joined its group and loaded all queue managers that it owns.",
)
@json_option
def worker(url: str | None, ready: bool, as_json: bool) -> int:
    """Check one worker by its web server: that it runs, and with --ready that it does its work.

    A worker that owns no queue manager and stands by is ready.
    """
    port = os.environ.get("LEDGERMQ_WEB_PORT", "")
    if url is None and not re.fullmatch(r"0*[1-9]\d{0,4}", port, re.ASCII):
        raise click.UsageError(
            "give --url, or LEDGERMQ_WEB_PORT: a worker takes any free port, which its log names "
            "(metrics on http://...)"
        )
    address = (url or f"http://127.0.0.1:{port}").rstrip("/") + "/health"
    if not address.startswith(("http://", "https://")):
        raise click.UsageError(f"--url must begin with http:// or https://: {url}")
    try:
        found = _health(address)
    except (InvalidURL, OverflowError) as error:
        raise click.UsageError(f"--url is no address of a web server: {error}") from error
    except (OSError, ValueError, HTTPException) as error:
        findings = [Finding(BAD, "alive", f"{address} does not answer: {error}")]
        print_findings(Output(as_json=as_json), findings, url=address)
        return UNREACHABLE
    findings = [Finding(GOOD, "alive", f"{found['worker']} answers at {address}")]
    owned = found["queue_managers"]
    stopped = [name for name, position in owned.items() if position == "stopped"]
    for name in stopped:
        del owned[name]
        text = "is stopped, and clients wait: the worker's log says why"
        findings.append(Finding(WARNING, "queue manager", f"{name} {text}"))
    if ready:
        loading = [name for name, position in owned.items() if position == "loading"]
        names = ", ".join(loading or owned) or "nothing: it stands by"
        verb = "it is loading" if loading else "it works on"
        idle = "all that it owns is stopped" if stopped else "it has not joined its group"
        text = f"{verb} {names}" if found["ready"] or loading else idle
        findings.append(Finding(GOOD if found["ready"] else BAD, "ready", text))
    return print_findings(Output(as_json=as_json), findings, url=address)


def _health(address: str) -> dict[str, Any]:
    """What a worker says of itself; OSError, ValueError, HTTPException if not, or somebody else."""
    # A proxy that leads out of here knows nothing of this machine's workers.
    answer = ask(urllib.request.Request(address), HTTP_SECONDS_MAX, proxied=False)
    try:
        told = json.loads(answer.page)
    except (ValueError, RecursionError):
        told = None
    found: dict[str, Any] = told if isinstance(told, dict) else {}
    if not answer.is_good and (waits := found.get("reason")):
        raise ValueError(f"the worker waits: {waits}")
    answer.check()
    if not {"worker", "ready"} <= found.keys() or not isinstance(found.get("queue_managers"), dict):
        raise ValueError("what answers there is no worker; give the port of its --web-port")
    return found


def _at_most(flag: str, default: float, text: str) -> Callable[[Command], Command]:
    kind: Any = Long(min=0) if isinstance(default, int) else Number(min=0)
    metavar = "N" if isinstance(default, int) else "SECONDS"
    return click.option(
        flag, type=kind, default=default, show_default=True, metavar=metavar, help=text
    )


@check.command()
@_at_most("--lag-max", LAG_MAX_DEFAULT, "How many operations on the log may wait to be folded.")
@_at_most(
    "--checkpoint-age-max",
    CHECKPOINT_AGE_MAX_DEFAULT,
    "How old the first operation may be that no checkpoint covers, in seconds.",
)
@_at_most(
    "--work-age-max", WORK_AGE_MAX_DEFAULT, "How long a unit of work may be open, in seconds."
)
@target_options
def cluster(
    target: Target, output: Output, lag_max: int, checkpoint_age_max: float, work_age_max: float
) -> int:
    """Check that a worker serves every queue manager and keeps up; or only that of --queue-manager.

    Checked are operations that wait to be folded, the age of checkpoints, and units of work that
    have been open for long.
    """
    findings: list[Finding] = []
    unreachable = False
    for claim in _claims(target):
        one = replace(target, queue_manager=claim.queue_manager)
        found: list[Finding] = []
        try:
            with one.connect() as connection:
                found += _manager_findings(
                    connection, one, claim, lag_max, checkpoint_age_max, work_age_max
                )
        except LedgerMQError as error:
            unreachable = unreachable or exit_code_of(error) == UNREACHABLE
            # Those before it were answered.
            failed = CHECKS_OF_MANAGER[min(len(found), len(CHECKS_OF_MANAGER) - 1)]
            found.append(Finding(BAD, f"{claim.queue_manager} {failed}", str(error)))
        findings += found
    code = print_findings(output, findings, bootstrap=target.bootstrap)
    return UNREACHABLE if unreachable and code == CHECK_FAILED else code


def _claims(target: Target) -> list[Claim]:
    """All queue managers, or the one that was named; QueueManagerNotFoundError if there is none."""
    source = click.get_current_context().get_parameter_source("queue_manager")
    if source is not ParameterSource.DEFAULT:
        return [target.claim()]
    target.check_broker()
    claims = list_queue_managers(
        target.bootstrap, target.topics, timeout_seconds=target.timeout_seconds
    )
    if not claims:
        raise QueueManagerNotFoundError(
            f"there is no queue manager at {target.bootstrap} yet: start a worker"
        )
    return claims


def _manager_findings(
    connection: Connection,
    target: Target,
    claim: Claim,
    lag_max: int,
    checkpoint_age_max: float,
    work_age_max: float,
) -> Iterator[Finding]:
    name = claim.queue_manager
    with target.reader() as reader:
        # Before the worker is asked: what comes in the meantime is no lag.
        _, end = reader.ends(target.topics.operations, claim.partition)
        status = connection.admin.queue_manager_status()
        lag = max(0, end - 1 - status.position)
        found = f"{status.worker} answers at {target.named(status.position)}, {lag:,} behind"
        yield Finding(GOOD if lag <= lag_max else BAD, f"{name} worker", found)
        yield _checkpoint_finding(reader, target, claim, status.position, checkpoint_age_max)
    began = [one.began_at for one in connection.admin.transactions()]
    # Log time is ahead for days where a clock leapt and was set back, or ours is behind.
    now = max(datetime.now(UTC), status.time or datetime.now(UTC))
    age = now - min(began) if began else timedelta()
    found = f"{count_of(len(began), 'unit', 'units')} of work open"
    found += f", the oldest for {_seconds(age)}" if began else ""
    late = age.total_seconds() > work_age_max
    yield Finding(BAD if late else GOOD, f"{name} units of work", found)


def _newest_checkpoint(reader: PartitionReader, target: Target, claim: Claim) -> int:
    """The position of the newest checkpoint's manifest, -1 if there is none.

    Its last records tell it, unless a large checkpoint is being written just now.
    """
    topic = target.topics.checkpoints
    first, end = reader.ends(topic, claim.partition)
    for start in sorted({max(first, end - CHECKPOINT_RECORDS), first}, reverse=True):
        values = latest_values(reader.records(topic, claim.partition, start, end))
        keys = (parse_key(claim.queue_manager, key) for key in values)
        positions = [one for one in keys if isinstance(one, int)]
        if positions:
            return max(positions)
    return -1


def _checkpoint_finding(
    reader: PartitionReader, target: Target, claim: Claim, position: int, age_max_seconds: float
) -> Finding:
    """How long the oldest operation that no checkpoint covers has been on the log."""
    check = f"{claim.queue_manager} checkpoint"
    newest = _newest_checkpoint(reader, target, claim)
    where = f"the newest is at {target.named(newest)}" if newest >= 0 else "there is none yet"
    first, _ = reader.ends(target.topics.operations, claim.partition)
    uncovered = max(newest + 1, first)
    if uncovered > position:
        return Finding(GOOD, check, f"{where}; nothing came since")
    topic = target.topics.operations
    # There may be no record at a position that an operator declared skipped.
    record = next(reader.records(topic, claim.partition, uncovered, position + 1), None)
    if record is None:
        return Finding(GOOD, check, f"{where}; nothing came since")
    since_ms = record.timestamp()[1]
    age = datetime.now(UTC) - datetime.fromtimestamp(since_ms / 1000, UTC)
    found = (
        f"{where}; {position + 1 - uncovered:,} operations came since, the first {_seconds(age)}"
    )
    return Finding(GOOD if age.total_seconds() <= age_max_seconds else BAD, check, f"{found} ago")


def _seconds(age: timedelta) -> str:
    return str(timedelta(seconds=max(0, round(age.total_seconds()))))
