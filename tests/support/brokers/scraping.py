"""Scraping a worker as Prometheus does, with the library's own parsers."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable

from prometheus_client.openmetrics.parser import text_string_to_metric_families as of_openmetrics
from prometheus_client.parser import text_string_to_metric_families as of_text

from support.brokers.worker_process import WorkerProcess

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def fetch(worker: WorkerProcess, accept: str = "") -> tuple[str, str]:
    """The text of /metrics of a worker that was started with WEB_PORT=0, and its content type."""
    worker.wait_for_log("metrics on http://")
    (address,) = re.findall(r"metrics on (http://[\d.:]+)", worker.log)
    request = urllib.request.Request(f"{address}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


class Scrape:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        parse = of_openmetrics if text.endswith("# EOF\n") else of_text
        self.families = {one.name: one for one in parse(text)}
        self.samples: Samples = {}
        for family in self.families.values():
            for one in family.samples:
                key = (one.name, frozenset(one.labels.items()))
                assert key not in self.samples, f"{key} is there twice"
                self.samples[key] = one.value

    def __call__(self, name: str, **labels: str) -> float | None:
        """A sample of QM1, without the ledgermq_ of its name; None: it is not there."""
        wanted = frozenset({"queue_manager": "QM1", **labels}.items())
        return self.samples.get((f"ledgermq_{name}", wanted))

    def states(self, destination: str, kind: str = "queue_messages") -> dict[str, float]:
        """What of a destination is in each state, without zeros."""
        found = {}
        for (name, labels), value in self.samples.items():
            here = dict(labels)
            if name == f"ledgermq_{kind}" and here["destination"] == destination and value:
                found[here["state"]] = value
        return found

    def events(self, destination: str) -> dict[str, float]:
        """What happened to the messages of a destination, without zeros."""
        found = {}
        for (name, labels), value in self.samples.items():
            here = dict(labels)
            short = name.removeprefix("ledgermq_messages_").removesuffix("_total")
            if value and "ledgermq_messages_" in name and here["destination"] == destination:
                more = sorted(here.keys() - {"queue_manager", "destination"})
                found[" ".join([short, *(here[one] for one in more)])] = value
        return found


def scrape(worker: WorkerProcess, accept: str = "") -> Scrape:
    """One scrape."""
    return Scrape(fetch(worker, accept)[0])


def scrape_until(
    worker: WorkerProcess, wanted: Callable[[Scrape], object], seconds: float = 60.0
) -> Scrape:
    """Scrapes until something is so; the last scrape."""
    limit = time.monotonic() + seconds
    while True:
        found = scrape(worker)
        if wanted(found):
            return found
        assert time.monotonic() < limit, found.samples
        time.sleep(0.2)
