"""`ledgermq bench --growth` and `--managers`: how many messages a second, as one thing grows.

Each curve has some sizes of one thing, everything else being the same, on a place of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

from ledgermq_benchmarks import life, many
from ledgermq_benchmarks.depth import DEEP, fill
from ledgermq_benchmarks.life import Program
from ledgermq_benchmarks.place import BenchPlace
from ledgermq_benchmarks.rows import spread
from ledgermq_benchmarks.run import (
    new_queue,
    parts_of,
    programs_run,
    run_together,
    selected,
    with_rate,
)

Say = Callable[[str], None]
# Sizes are drawn by their decimal logarithm, in thousandths.
DECADE: Final = 1_000
MANAGER_MESSAGES: Final = 100_000
MANAGERS: Final = (1, 2, 4)


class Curve(NamedTuple):
    """What grows, in which steps, and how it is measured.

    Attributes:
        programs: Producer and consumer for a size; both work on the messages that are counted.
        messages: In one run.
        each: At most so many of them for each of what grows.
    """

    name: str
    text: str
    sizes: Sequence[int]
    programs: Callable[[int], tuple[Program, Program]]
    messages: int = 100_000
    each: int = 100_000


def _plain(_size: int) -> tuple[Program, Program]:
    return life.pipelined_producer, life.pipelined_consumer


def _sessions(count: int) -> tuple[Program, Program]:
    return (
        partial(many.thousand_producer, sessions=count),
        partial(many.thousand_consumer, sessions=count),
    )


def _queues(count: int) -> tuple[Program, Program]:
    return (
        partial(many.in_turn_producer, count=count),
        partial(many.in_turn_consumer, source=many.own_queue, count=count),
    )


def _same(options: Mapping[str, Any], _number: int) -> Mapping[str, Any]:
    return options


def _properties(count: int) -> tuple[Program, Program]:
    options = {"properties": {f"property{number}": number for number in range(count)}}
    producer = partial(life.pipelined_producer, options=partial(_same, options))
    return producer, life.pipelined_consumer


CURVES: Final = (
    Curve("depth", "messages that wait", (1_000, 10_000, 100_000, 1_000_000), _plain),
    Curve("sessions", "sessions a side", (1, 10, 100, 1_000), _sessions, 10_000, 1_000),
    Curve("queues", "queues", (1, 10, 100, 1_000), _queues),
    Curve("consumers", "consumers of a queue", (1, 10, 100, 1_000), selected, 10_000),
    Curve("properties", "properties of a message", (1, 3, 10, 30, 100), _properties, 20_000),
)


def growth(
    bootstrap: str, *, runs: int, curves: Sequence[Curve] = CURVES, say: Say = lambda _: None
) -> list[dict[str, Any]]:
    """The curves, each with its points; BenchError if a program fails."""
    found = []
    with BenchPlace(bootstrap) as place:
        for curve in curves:
            points = []
            for before, size in pairwise((0, *curve.sizes)):
                if curve.name == "depth":
                    fill(place, DEEP, size - before)
                points.append(_point(size, _rates(place, curve, size, runs), curve.text, say))
            found.append({"name": curve.name, "text": curve.text, "points": points})
    return found


def _rates(place: BenchPlace, curve: Curve, size: int, runs: int) -> Iterator[float]:
    messages = min(curve.messages, curve.each * size)
    # Once for nothing: the Java of the broker compiles.
    warm_ups = 1 if size == curve.sizes[0] else 0
    for number in range(-warm_ups, runs):
        queue = DEEP if curve.name == "depth" else new_queue(curve.name)
        found = programs_run(place.address(), queue, messages, *curve.programs(size))
        if number >= 0:
            yield found["messages_per_second"]


def _point(size: int, rates: Iterator[float], text: str, say: Say, **more: Any) -> dict[str, Any]:
    point = {"size": size, **spread(list(rates), 0), **more}
    say(f"{size:,} {text}: {point['median']:,.0f} messages/s")
    return point


def managers(
    bootstrap: str,
    *,
    runs: int,
    sizes: Sequence[int] = MANAGERS,
    messages: int = MANAGER_MESSAGES,
    say: Say = lambda _: None,
) -> list[dict[str, Any]]:
    """All messages of several queue managers together, on one worker and on two.

    Each has a producer and a consumer of its own; `messages` are for each. Points tell how many
    cores the workers kept busy (`worker_cores`). BenchError if a program fails.
    """
    curves = []
    with BenchPlace(bootstrap, queue_managers=max(sizes)) as place:
        for workers, names in ((1, place.queue_managers), (2, None)):
            names = names or place.share_with_another_worker()
            text = "queue managers on " + ("one worker" if workers == 1 else "two workers")
            # For nothing, as above.
            _managers_rate(place, names[:1], messages)
            points = []
            for size in (one for one in sizes if one >= workers):
                used = place.processor_seconds()
                rates = [_managers_rate(place, names[:size], messages) for _ in range(runs)]
                used = place.processor_seconds() - used
                cores = used / sum(size * messages / rate for rate in rates)
                points.append(_point(size, iter(rates), text, say, worker_cores=round(cores, 2)))
            curves.append({"name": f"managers-{workers}", "text": text, "points": points})
    return curves


def _managers_rate(place: BenchPlace, names: Sequence[str], messages: int) -> float:
    parts = [
        part
        for name in names
        for part in parts_of(place.address(name), new_queue("managers"), messages, *_plain(1))
    ]
    return with_rate(run_together(parts), messages * len(names))["messages_per_second"]


def print_curves(curves: Sequence[dict[str, Any]], out: TextIO) -> None:
    """A table for people, messages/s; the last column is the median against the first one."""
    head = f"{'what':>34}{'median':>12}{'lowest':>12}{'highest':>12}{'times':>8}"
    out.write(head + "\n")
    for curve in curves:
        first = curve["points"][0]["median"]
        for point in curve["points"]:
            figures = "".join(f"{point[key]:>12,.0f}" for key in ("median", "lowest", "highest"))
            what = f"{point['size']:,} {curve['text']}"
            cores = f"  workers: {point['worker_cores']} cores" if "worker_cores" in point else ""
            out.write(f"{what:>34}{figures}{point['median'] / first:>8.2f}{cores}\n")


def write_picture(curves: Sequence[dict[str, Any]], path: Path) -> None:
    """All curves in one chart, as SVG, by the logarithm of what grows."""
    from ledgermq_spark.log.durable_files import write_durably
    from ledgermq_spark.pages.pictures import chart_picture

    lines = {
        curve["name"]: [
            (round(DECADE * log10(point["size"])), point["median"]) for point in curve["points"]
        ]
        for curve in curves
    }
    most = max(at for line in lines.values() for at, _ in line)
    marks = [(at, f"{10 ** (at // DECADE):,}") for at in range(0, most + 1, DECADE)]
    picture = chart_picture("messages/s", lines, marks=marks, steps=False)
    write_durably(path, picture)
