"""What documents say is so: files, functions, commands, exit codes, errors and settings exist."""

from __future__ import annotations

import ast
import json
import re
import runpy
from dataclasses import fields

import pytest

import ledgermq
from ledgermq import errors
from ledgermq.cli.printing import exits
from ledgermq.client.reasons import REASON_ERRORS
from ledgermq.processor.metrics.families import FAMILIES
from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.testing import MemoryBroker
from ledgermq_spark.log.machine import CORES_VARIABLE, MEMORY_VARIABLE
from support.checkout import ROOT
from support.pages.reports import report_of
from support.scripts.protocol_pages import PAGES

# For those who change the source, and for those who use it.
OF_THE_SOURCE = ("docs/architecture.md", "docs/adding-an-operation.md", "tests/README.md")
ROOTS = (ROOT / "services" / "ledgermq", ROOT / "spark_jobs", ROOT)
# `core/apply.py:apply`, `core/apply.py`, `core/order/`.
NAMED = re.compile(r"`((?:[\w-]+/)+[\w-]*(?:\.py)?)(?::(\w+))?`")
JMS_EXCEPTIONS = {
    *("JMS", "IllegalState", "InvalidClientID", "InvalidDestination", "InvalidSelector"),
    *("JMSSecurity", "MessageEOF", "MessageFormat", "MessageNotReadable", "MessageNotWriteable"),
    *("ResourceAllocation", "TransactionInProgress", "TransactionRolledBack"),
}
# Jakarta Messaging has no unchecked twin of these.
JMS_CHECKED_ONLY = {"MessageEOF", "MessageNotReadable"}


def text_of(name):
    """A document's text."""
    return (ROOT / name).read_text(encoding="utf-8")


def names_in(document):
    """Return each path that a document names, with the function or class behind it, if any."""
    return sorted({(path, name) for path, name in NAMED.findall(text_of(document))})


def defined_in(path):
    """Return the names of functions, methods and classes of a file."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_no_document_has_both_sides_of_a_merge():
    """What two wrote of one place is one text."""
    sides = re.compile(r"^(<{7}|={7}$|>{7})", re.MULTILINE)
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *PAGES]
    found = [one.name for one in documents if sides.search(one.read_text(encoding="utf-8"))]
    assert (len(documents) > 40, found) == (True, [])


@pytest.mark.parametrize("document", OF_THE_SOURCE)
def test_files_and_functions_that_a_document_names_exist(document):
    """Whoever follows one message through the source by its document finds every stop."""
    named = names_in(document)
    assert named, "the document names nothing"
    missing = []
    for path, name in named:
        there = [root / path for root in ROOTS if (root / path).exists()]
        if not there or (name and name not in defined_in(there[0])):
            missing.append(f"{path}:{name}")
    assert missing == []


def test_make_targets_that_documents_show_exist():
    """Every `make TARGET` that a reader may type is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), flags=re.M))
    shown = {
        target
        for name in ("README.md", "CONTRIBUTING.md", "docs/spark.md", "docs/deployment.md")
        for target in re.findall(r"(?:\$ |`)make ([a-z-]+)", text_of(name))
    }
    assert shown
    assert shown - targets == set()


def test_a_job_that_there_is_not_is_named_before_those_there_are(capsys):
    """Only how the program is called was told."""
    main = runpy.run_path(str(ROOT / "infra" / "spark" / "job.py"))["main"]
    assert main(["audits"]) == 2
    told = capsys.readouterr().err
    assert "there is no job 'audits'" in told
    assert "{audit,rebuild,tables}" in told


def test_every_job_that_can_be_submitted_is_told_with_options_it_has():
    """docs/spark.md has a row for each job of the artifact, and names no option that none has."""
    page = text_of("docs/spark.md")
    jobs = runpy.run_path(str(ROOT / "infra" / "spark" / "job.py"))["JOBS"]
    assert re.findall(r"^\| `job\.py (\w+)`", page, flags=re.M) == list(jobs)
    source = "".join(path.read_text() for path in (ROOT / "spark_jobs").glob("*/jobs/*.py"))
    of_spark = {"--master", "--archives", "--jars", "--conf", "--help"}
    shown = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", page)) - of_spark
    assert {one for one in shown if f'"{one}"' not in source} == set()


@pytest.mark.parametrize("part", range(4))
def test_examples_of_the_readme_run(part, monkeypatch, capsys):
    """Those that connect for a while; on a queue manager in memory, that of groups whole."""
    broker = MemoryBroker()
    monkeypatch.setattr(ledgermq, "connect", lambda _, **more: broker.connect(**more))
    examples = re.findall(r"```python\n(.*?)```", text_of("README.md"), flags=re.S)
    shown = [one for one in examples if "aio" not in one][part]
    with broker.connect() as connection, connection.session() as session:
        names = {"ledgermq": ledgermq, "session": session, "address": "", "secret": "s"}
        exec(compile(shown, "README.md", "exec"), names)
    if "receive_group" in shown:
        assert capsys.readouterr().out == "1 header\n2 item\n3 total\n"


def test_what_stands_beside_jms_exists():
    """Every method and exception that docs/jms.md names as ours is there."""
    rows = re.findall(r"^\| .+ \| (.+) \|$", text_of("docs/jms.md"), flags=re.M)
    named = {
        (kind, name)
        for row in rows
        for quoted in re.findall(r"`([^`]+)`", row)
        for kind, name in re.findall(r"\b([A-Z]\w+)\.(\w+)", quoted)
    }
    assert len(named) > 30
    assert {one for one in named if not _has(getattr(ledgermq, one[0]), one[1])} == set()
    raised = {name for row in rows for name in re.findall(r"`(\w+Error)`", row)}
    assert len(raised) >= 10
    assert raised <= set(errors.__all__)


def _has(kind, name):
    """Whether a class has a method, a property, or an attribute that its docstring tells."""
    return hasattr(kind, name) or f"\n        {name}: " in (kind.__doc__ or "")


def test_every_exception_of_jms_has_its_line():
    """The table of exceptions names each class of jakarta.jms once, and ours in `errors`."""
    table = text_of("docs/jms.md").partition("## Exceptions")[2]
    named = re.findall(r"`(\w+Exception)`", table)
    twins = {f"{one}RuntimeException" for one in JMS_EXCEPTIONS - JMS_CHECKED_ONLY}
    assert sorted(named) == sorted({f"{one}Exception" for one in JMS_EXCEPTIONS} | twins)
    mapped = set(re.findall(r"`(\w+Error)`", table))
    assert {"InvalidSelectorError", "SubscriptionInUseError", "ClientIDMissingError"} <= mapped
    assert mapped <= set(errors.__all__)


def test_what_stands_beside_ibm_mq_exists():
    """Each reason code stands in docs/ibm-mq.md once, with exceptions there are, or with none."""
    rows = re.findall(r"^\| ([\d, ]+) \| (.+?) \| (.+) \|$", text_of("docs/ibm-mq.md"), flags=re.M)
    codes = [code for numbers, _, _ in rows for code in numbers.split(", ")]
    assert len(codes) == len(set(codes)) > 40
    for numbers, names, text in rows:
        assert len(re.findall(r"`[A-Z_]+`", names)) == len(numbers.split(", "))
        raised = re.findall(r"`(\w+Error)`", text)
        assert all(hasattr(ledgermq, name) for name in raised), raised
        assert raised or text.startswith("not raised: "), numbers


def test_exit_codes_are_those_of_the_program():
    """The table of exit codes lists exactly those that there are."""
    table = text_of("docs/operations.md").partition("## Exit codes")[2].partition("##")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", table, flags=re.M)}
    assert listed == {value for value in vars(exits).values() if isinstance(value, int)}


def test_every_exception_is_listed_with_its_code():
    """docs/errors.md names each exception of the client, and no other code than its own."""
    text = text_of("docs/errors.md")
    for name in errors.__all__:
        if name != "LedgerMQError":
            (row,) = re.findall(rf"^\| `{name}` \| ([^|]*) \|", text, flags=re.M)
            code = getattr(errors, name).code
            assert f"`{code}`" in row or row == "the reason", name


def test_every_reason_code_is_listed_with_its_exception():
    """The table of reason codes is the client's."""
    behind = text_of("docs/errors.md").partition("## Refusals by reason code")[2]
    table = behind.partition("\n## ")[0]
    listed = {
        reason: kind
        for reasons, kind in re.findall(r"^\| ([^|]+) \| `(\w+)` \|", table, flags=re.M)
        for reason in re.findall(r"`([a-z-]+)`", reasons)
    }
    assert listed == {reason: kind.__name__ for reason, kind in REASON_ERRORS.items()}


def test_every_code_of_an_error_is_listed():
    """Of commands, relays and bridges too; one class has its reasons, others are never told."""
    unseen = {"refused", "embedded", "source-moved"}
    codes = {
        code
        for part in ("services", "spark_jobs")
        for path in (ROOT / part).rglob("*.py")
        for code in re.findall(r'^    code = "([a-z-]+)"', path.read_text("utf-8"), flags=re.M)
    }
    told = re.findall(
        r'_explain\("([a-z-]+)"', (ROOT / "services/ledgermq/cli/main.py").read_text()
    )
    assert "interrupted" in told
    listed = set(re.findall(r"`([a-z-]+)`", text_of("docs/errors.md")))
    assert (codes | set(told)) - unseen - listed == set()


def test_settings_of_the_worker_that_documents_name_exist():
    """LEDGERMQ_ variables of the pages for operators are settings, or what other parts know."""
    known = {f"LEDGERMQ_{field.name.upper()}" for field in fields(WorkerSettings)}
    known |= {"LEDGERMQ_QUEUE_MANAGER", "LEDGERMQ_CACHE_DIR", "LEDGERMQ_IVY_SETTINGS"}
    known |= {"LEDGERMQ_JOURNAL_DIRECTORY", "LEDGERMQ_KAFKA", "LEDGERMQ_KAFKA_CONFIG"}
    known |= {CORES_VARIABLE, MEMORY_VARIABLE, "LEDGERMQ_KAFKA_SOCKET_TIMEOUT_MS"}
    known |= {"LEDGERMQ_COMPLETE"}  # behind an underscore it is Click's
    pages = "".join(text_of(f"docs/{name}.md") for name in ("operations", "queues", "history"))
    shown = set(re.findall(r"LEDGERMQ_[A-Z_]+[A-Z]", pages))
    assert shown
    assert shown - known == set()


def test_defaults_of_settings_are_those_of_a_worker():
    """What the table of docs/operations.md says of numbers and texts; 0 is a port that is free."""
    table = text_of("docs/operations.md").partition("## Settings")[2].partition("\n## ")[0]
    defaults = {f"LEDGERMQ_{one.name.upper()}": one.default for one in fields(WorkerSettings)}
    told = {}
    for names, values in re.findall(r"^\| ([^|]+) \|[^|]*\| ([^|]+) \|$", table, flags=re.M):
        told |= zip(
            re.findall(r"`(\w+)`", names), values.replace("`", "").split(", "), strict=False
        )
    numbers = {name: value for name, value in defaults.items() if isinstance(value, int | float)}
    shown = {
        name: f"{value >> 20} MiB" if name.endswith("_BYTES") else f"{value:g}"
        for name, value in numbers.items()
    } | {"LEDGERMQ_WEB_PORT": "any free port"}
    shown |= {name: value for name, value in defaults.items() if name.endswith(("_HOST", "_LEVEL"))}
    compared = shown.keys() & told.keys()
    assert len(compared) > 10
    assert {name: told[name] for name in compared} == {name: shown[name] for name in compared}


def test_alerts_that_are_told_are_those_of_the_rules():
    """Whoever is woken by one finds in docs/deployment.md what to do."""
    rules = re.findall(r"- alert: (\w+)", text_of("infra/prometheus/alerts.yml"))
    told = re.findall(r"`(LedgerMQ\w+)`", text_of("docs/deployment.md"))
    assert (len(rules) > 10, sorted(told)) == (True, sorted(rules))


def test_names_of_what_a_report_has_are_those_of_its_document():
    """docs/history.md names them in brackets, for programs that read audit.json."""
    page = text_of("docs/history.md").partition("## The audit's report")[2].partition("\n## ")[0]
    named = set(re.findall(r"\(`(\w+)`\)", page)) - {"ended_as"}  # Of subscriptions, here none.
    assert len(named) > 8
    document = json.dumps(report_of().as_dict())
    assert {name for name in named if f'"{name}"' not in document} == set()


def test_metrics_that_the_table_has_are_those_of_a_worker():
    """Names, kinds, labels and meanings, in the same order."""
    found = re.findall(r"^\| `ledgermq_.*$", text_of("docs/monitoring.md"), re.MULTILINE)
    rows = []
    for one in FAMILIES:
        name = f"ledgermq_{one.name}{'_total' if one.kind == 'counter' else ''}"
        labels = ", ".join(f"`{label}`" for label in one.labels) or "–"
        rows.append(f"| `{name}` | {one.kind} | {labels} | {one.meaning} |")
    assert found == rows


def test_every_code_of_worker_and_spark_is_listed():
    """Their errors are read by people who look the code up."""
    listed = text_of("docs/errors.md").partition("## Errors of worker and Spark jobs")[2]
    parts = [ROOT / "services/ledgermq" / one for one in ("processor", "wire")]
    parts.append(ROOT / "spark_jobs")
    files = [path for part in parts for path in part.rglob("*.py")]
    files.append(ROOT / "services/ledgermq/system_refusals.py")
    codes = {
        code
        for path in files
        for code in re.findall(r'^    code = "([a-z-]+)"', path.read_text("utf-8"), flags=re.M)
    }
    assert len(codes) > 15
    first_column = "".join(re.findall(r"^\| ([^|]+) \|", listed, flags=re.M))
    assert codes == set(re.findall(r"`([a-z-]+)`", first_column))
