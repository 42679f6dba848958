"""What `make soak`, `make fuzz` and `make faults` share: a seed, a place, lines with times."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledgermq.embedded import EmbeddedBroker
from support.brokers.worker_process import Place, new_place


def say(text: str) -> None:
    """A line for people, with the time."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def arguments_with_seed(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows --seed, which is another one each time unless it is given."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    return parser


@contextmanager
def place_of_a_run() -> Iterator[Place]:
    """A place on a broker of its own, which goes with its directory."""
    with tempfile.TemporaryDirectory(prefix="ledgermq-run-") as name:
        directory = Path(name)
        with EmbeddedBroker(directory / "broker", brief=True) as broker:
            place = new_place(broker.bootstrap, directory)
            try:
                yield place
            finally:
                place.close()
