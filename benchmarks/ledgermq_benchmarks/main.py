"""`ledgermq bench`: measures every row, prints the table, writes the figures for programs."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from ledgermq_benchmarks.depth import CHECKPOINT_ROW, DEPTH_ROWS, checkpoint_overhead, depth_course
from ledgermq_benchmarks.environment import environment
from ledgermq_benchmarks.fold import fold_rate
from ledgermq_benchmarks.groups import bytes_per_message, drain_seconds
from ledgermq_benchmarks.growth import CURVES, growth, managers, print_curves, write_picture
from ledgermq_benchmarks.rabbitmq import PEER_ROWS, RabbitMq
from ledgermq_benchmarks.rows import ROWS, Row, RowResult
from ledgermq_benchmarks.run import BODIES_BYTES, MESSAGES, kafka_run, life_run
from ledgermq_spark.log.durable_files import write_durably

FOLD_MESSAGES = 200_000
DEPTH_MESSAGES = 1_000_000
MEMORY_MESSAGES = 100_000
GROUP_MESSAGES = 100
WITHOUT_BROKER = ("fold", "groups", "group-memory")
# Long enough to need no run for nothing before them.
WITHOUT_WARM_UP = (*WITHOUT_BROKER, *DEPTH_ROWS, CHECKPOINT_ROW)
RUNS_DEFAULT = 5
# After as long nothing of the broker is compiled any more, on two cores.
WARM_UP_SECONDS = 60.0


def _measure_once(row: Row, bootstrap: str, queue_manager: str) -> tuple[float, dict[str, float]]:
    if row.name == "fold":
        return fold_rate(FOLD_MESSAGES), {}
    if row.name == "groups":
        return _groups_once()
    if row.name == "group-memory":
        single = bytes_per_message(MEMORY_MESSAGES, 0)
        grouped = bytes_per_message(MEMORY_MESSAGES, MEMORY_MESSAGES // GROUP_MESSAGES)
        return grouped / single, {"bytes": round(grouped)}
    if row.name == CHECKPOINT_ROW:
        return checkpoint_overhead(bootstrap)
    messages = MESSAGES[row.name]
    if row.name == "kafka":
        found = kafka_run(bootstrap, messages)
    else:
        found = life_run({"address": f"kafka://{bootstrap}/{queue_manager}"}, row.name, messages)
    return _figure(row, found)


def _peer_once(row: Row, peer: RabbitMq) -> tuple[float, dict[str, float]]:
    return _figure(row, peer.run(row.name, MESSAGES[row.name]))


def _figure(row: Row, found: dict[str, float]) -> tuple[float, dict[str, float]]:
    if row.unit == "ms":
        names = ("p99_ms", "rate_of", "rate_beside")
        return found["p50_ms"], {name: round(found[name], 2) for name in names if name in found}
    rate = found["messages_per_second"]
    size = BODIES_BYTES.get(row.name)
    return rate, {"mib_per_second": round(rate * size / 2**20, 1)} if size else {}


def _groups_once() -> tuple[float, dict[str, float]]:
    """Both orders in turn, so that a machine whose speed changes does so for both."""
    groups = DEPTH_MESSAGES // GROUP_MESSAGES
    physical = drain_seconds(DEPTH_MESSAGES, groups, logical=False)
    logical = drain_seconds(DEPTH_MESSAGES, groups, logical=True)
    return logical / physical, {"logical_messages_per_second": round(DEPTH_MESSAGES / logical)}


def measure(
    bootstrap: str,
    *,
    queue_manager: str = "QM1",
    runs: int = RUNS_DEFAULT,
    names: Sequence[str] = (),
    peer: RabbitMq | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measures the rows (or those named) in `runs` runs each; the whole document.

    Beside a peer only the rows that it has too, each run followed by one of the peer's.

    Before the first, every row runs for nothing, and all of them until a minute is over: for as
    long the Java of the broker compiles what it will then run for days, and with that a message
    takes it three times the processor time.

    Raises BenchError if a program fails.
    """
    document: dict[str, Any] = {"environment": environment(), "runs": runs}
    rows = [row for row in ROWS if not names or row.name in names]
    if peer is not None:
        rows = [row for row in rows if row.name in PEER_ROWS]
    warmed = [row for row in rows if row.name not in WITHOUT_WARM_UP]
    warm_at = time.monotonic() + WARM_UP_SECONDS
    while warmed:
        for row in warmed:
            say(f"{row.text}: warm-up")
            _measure_once(row, bootstrap, queue_manager)
        if time.monotonic() >= warm_at:
            break
    results = {row.name: RowResult(row=row) for row in rows}
    deep = [row.name for row in rows if row.name in DEPTH_ROWS]
    for row in rows:
        for number in range(1, runs + 1):
            if row.name not in DEPTH_ROWS:
                found = {row.name: _measure_once(row, bootstrap, queue_manager)}
            elif row.name == deep[0]:
                # One queue is filled for all of these.
                found = depth_course(bootstrap, deep, say=say)
            else:
                break
            for name, (value, details) in found.items():
                result = results[name]
                result.values.append(value)
                result.details.append(details)
                what, unit = result.row.text, result.row.unit
                say(f"{what}: run {number} of {runs}: {value:,.2f} {unit}")
                if peer is not None:
                    value, details = _peer_once(row, peer)
                    result.peer_values.append(value)
                    result.peer_details.append(details)
                    say(f"{what}: the same by RabbitMQ: {value:,.2f} {unit}")
    document["rows"] = [result.document() for result in results.values()]
    document["meets_minimum"] = all(result.meets_minimum for result in results.values())
    if peer is not None:
        document["against"] = {"name": "RabbitMQ", "version": peer.version, "queue": "quorum"}
    return document


def measure_curves(
    bootstrap: str,
    *,
    runs: int,
    kinds: Sequence[Callable[..., list[dict[str, Any]]]],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """`growth` or `managers`, or one after the other; the whole document, which has no minimum."""
    document: dict[str, Any] = {"environment": environment(), "runs": runs}
    curves = [curve for kind in kinds for curve in kind(bootstrap, runs=runs, say=say)]
    return document | {"curves": curves, "meets_minimum": True}


def print_table(document: dict[str, Any], out: TextIO) -> None:
    surroundings = document["environment"]
    out.write(
        f"{surroundings['processor']}, {surroundings['cores']} cores, "
        f"{surroundings['memory_gib']} GiB, {surroundings['system']}, "
        f"Python {surroundings['python']} built {surroundings['python_build']}; "
        f"median of {document['runs']} runs\n\n"
    )
    if "curves" in document:
        print_curves(document["curves"], out)
        return
    _print_head("what", out)
    for row in document["rows"]:
        _print_row(f"{row['text']}, {row['unit']}", row, row["unit"], out)
    if "against" not in document:
        return
    against = document["against"]
    beside = f"{against['name']} {against['version']}, {against['queue']} queue"
    out.write("\n")
    _print_head(beside, out)
    for row in document["rows"]:
        _print_row(f"{row['text']}, {row['unit']}", row["peer"], row["unit"], out)
    out.write("\n")
    _print_head(f"LedgerMQ's figure divided by {against['name']}'s, run by run", out)
    for row in document["rows"]:
        less = "" if row["unit"] == "messages/s" else " (less is better)"
        _print_row(f"{row['text']}{less}", row["ratio"], "times", out)


def _print_head(what: str, out: TextIO) -> None:
    out.write(f"{what:64}{'median':>12}{'lowest':>12}{'highest':>12}{'must':>10}{'aim':>10}\n")


def _print_row(text: str, row: dict[str, Any], unit: str, out: TextIO) -> None:
    mark = "" if row.get("meets_minimum", True) else "  BELOW"
    digits = 0 if unit == "messages/s" else 2
    figures = "".join(f"{row[key]:>12,.{digits}f}" for key in ("median", "lowest", "highest"))
    wanted = (
        f"{row['minimum']:>10,.{1 if digits else 0}f}{row['aim']:>10,.{1 if digits else 0}f}"
        if row.get("aim")
        else f"{'-':>10}{'-':>10}"
    )
    out.write(f"{text:64}{figures}{wanted}{mark}\n")


def run(
    *,
    bootstrap: str | None = None,
    queue_manager: str = "QM1",
    runs: int = RUNS_DEFAULT,
    names: Sequence[str] = (),
    against: str | None = None,
    with_growth: bool = False,
    with_managers: bool = False,
    as_json: bool = False,
    output: Path | None = None,
) -> int:
    """Measures on a running installation, or on one started for the purpose; 0 if all minima hold.

    `against` is "rabbitmq" or nothing. With `with_growth` or `with_managers` curves are measured in
    place of rows; those of growth are drawn beside `output`. The exit code is 4 if a row is below
    what it must reach.

    Raises BenchError if a program fails, or the peer cannot be run here.
    """

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with contextlib.ExitStack() as opened:
        # First of all, for it says at once what is not installed.
        peer = opened.enter_context(RabbitMq()) if against else None
        if bootstrap is None:
            from ledgermq.processor.worker.supervisor import running_installation

            directory = opened.enter_context(tempfile.TemporaryDirectory(prefix="ledgermq-bench-"))
            bootstrap = opened.enter_context(running_installation(Path(directory)))
        kinds = [growth] * with_growth + [managers] * with_managers
        if kinds:
            document = measure_curves(bootstrap, runs=runs, kinds=kinds, say=say)
        else:
            document = measure(
                bootstrap, queue_manager=queue_manager, runs=runs, names=names, peer=peer, say=say
            )
    text = json.dumps(document, indent=2)
    if as_json:
        print(text)
    else:
        print_table(document, sys.stdout)
    if output is not None:
        # Only now: where the disk is full, what took hours is printed all the same.
        write_durably(output, text + "\n")
        if with_growth:
            drawn = document["curves"][: len(CURVES)]
            write_picture(drawn, output.with_suffix(".svg"))
    return 0 if document["meets_minimum"] else 4
