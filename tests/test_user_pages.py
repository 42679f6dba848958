"""What a reader copies from a page works: links, command lines, and examples in Python."""

from __future__ import annotations

import ast
import asyncio
import inspect
import queue
import re
import shlex

import click
import pytest
from opentelemetry import trace

import ledgermq
from ledgermq import aio
from ledgermq.cli.main import cli
from ledgermq.testing import MemoryBroker
from support.checkout import ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "schemas/**/*.md", "examples/**/*.md", "tests/**/*.md")
    for path in ROOT.glob(pattern)
)
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", flags=re.M | re.S)
# A command line as readers are shown it: behind a prompt, a pipe, or within a container.
SHOWN = re.compile(r"(?:^\s*[$#] |\| |exec [\w-]+ |&& )ledgermq (.*)", flags=re.M)
# What a shell does not hand to the command.
OF_THE_SHELL = {"|", ">", "&", "&&"}
LIMIT_SECONDS = 30


def name_of(path):
    """A page as tests name it."""
    return str(path.relative_to(ROOT))


def prose(path):
    """A page without its blocks of code."""
    return BLOCK.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """What a link to a page may name behind `#`, as GitHub makes it of headings."""
    found = []
    for heading in re.findall(r"^#+ (.*)$", prose(path), flags=re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        again = found.count(anchor)
        found.append(f"{anchor}-{again}" if again else anchor)
    return found


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_to_a_file_and_a_heading(path):
    """Every relative link of every page."""
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        is_there = target.exists() and (not anchor or anchor in anchors(target))
        if ":" not in name and not is_there:
            wrong.append(link)
    assert wrong == []


def found_command(words):
    """The command that words name, its context, and the words behind its name."""
    command, context = cli, click.Context(cli, info_name="ledgermq")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        below = command.get_command(context, words[0])
        assert below is not None, f"there is no command {words[0]}"
        command, context = below, click.Context(below, info_name=words[0], parent=context)
        words = words[1:]
    return command, context, words


def command_lines(path):
    """The words of each command line of a page's blocks."""
    for language, block in BLOCK.findall(path.read_text(encoding="utf-8")):
        if language in ("", "console", "bash", "sh"):
            for line in SHOWN.findall(re.sub(r"\\\n", " ", block)):
                words = shlex.split(line, comments=True)
                ends = [place for place, word in enumerate(words) if word in OF_THE_SHELL]
                yield words[: min(ends, default=len(words))]


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_command_lines_are_accepted_as_they_stand(path, monkeypatch):
    """Arguments, options and their values; what they do, others show."""
    monkeypatch.setenv("LEDGERMQ_SCHEMA_REGISTRY", "http://localhost:8080")
    for line in command_lines(path):
        command, context, words = found_command(line)
        assert not isinstance(command, click.Group), line
        command.make_context(command.name, words, parent=context.parent)


def test_pages_have_command_lines_to_be_tried():
    """They are found in blocks of each kind."""
    found = [line for path in PAGES for line in command_lines(path)]
    assert len(found) > 60
    assert ["queue", "create", "orders"] in found


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_options_that_a_command_in_the_text_is_given_are_its_own(path):
    """`ledgermq COMMAND --option`; `create|alter` stand for either."""
    for code in re.findall(r"`ledgermq ([^`]+)`", prose(path)):
        for chosen in (0, -1):
            given = [word.split("|")[chosen] for word in code.split()]
            command, context, words = found_command(given)
            known = {
                name
                for one in command.get_params(context)
                for name in (*one.opts, *one.secondary_opts)
            }
            options = {re.match(r"[\w-]*", one)[0] for one in words if one.startswith("--")}
            assert options - known == set(), code


def examples(name):
    """The examples in Python of a page."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [block for language, block in BLOCK.findall(text) if language == "python"]


@pytest.fixture
def memory(monkeypatch):
    """A queue manager in memory, to which examples connect, and a service that only they end."""
    broker = MemoryBroker()
    monkeypatch.setattr(ledgermq, "connect", lambda _, **more: broker.connect(**more))
    monkeypatch.setattr(aio.Service, "run", lambda service: None)
    return broker


def executed(example, **names):
    """The names of an example that was run, which may await as in a console of asyncio."""
    code = compile(example, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)
    return names


async def served(service, until):
    """Serves until a function that runs in a thread has returned; what it returned."""
    serving = asyncio.create_task(service.serve())
    try:
        return await asyncio.wait_for(asyncio.to_thread(until), LIMIT_SECONDS)
    finally:
        service.stop()
        await serving


def test_the_asyncio_example_of_the_readme_sends_and_receives(memory):
    """As it stands."""
    (example,) = [one for one in examples("README.md") if "async with aio" in one]
    assert executed(example)["message"].body == {"id": 2}


def test_the_service_of_the_readme_bills_orders(memory):
    """Its functions are called with what is put."""
    (example,) = [one for one in examples("README.md") if "@service.consumer" in one]
    service = executed(example, aio=aio)["service"]

    def ordered():
        with memory.connect() as connection, connection.session() as session:
            session.producer("queue:orders").send({"id": 7})
            return session.consumer("queue:bills").receive(LIMIT_SECONDS).body

    assert asyncio.run(served(service, ordered)) == {"order": 7}


def test_the_service_of_its_page_bills_orders_and_answers_requests(memory):
    """All examples of docs/services.md, the one for tests first."""
    first, bill, quote, in_tests, _ = examples("docs/services.md")
    names = executed(first) | {"ledgermq": ledgermq, "price_of": lambda name: f"price of {name}"}
    names = executed(quote, **executed(bill, **executed(in_tests, **names)))

    def asked():
        with names["broker"].connect() as connection, connection.session() as session:
            session.producer("queue:orders").send({"id": 7})
            billed = session.consumer("queue:bills").receive(LIMIT_SECONDS)
            with session.requestor("queue:quotes") as requestor:
                return billed.body, requestor.request("tea", timeout=LIMIT_SECONDS).body

    answers = asyncio.run(served(names["service"], asked))
    assert answers == ({"order": 7}, "price of tea")


def test_a_program_with_message_listeners_hears_of_a_session_that_is_lost(memory):
    """The last example of docs/services.md."""
    *_, listening = examples("docs/services.md")
    told = queue.Queue()
    with memory.connect() as connection, memory.connect() as other:
        session = connection.session()
        names = {"connection": connection, "consumer": session.consumer("queue:orders")}
        executed(listening, **names, bill=print, begin_anew=lambda *seen: told.put(seen))
        other.admin.end_session(session.handle, reason="test", actor="test")
        again, error = told.get(timeout=LIMIT_SECONDS)
        assert again is connection
        assert isinstance(error, ledgermq.SessionLostError)
        with pytest.raises(ledgermq.SessionLostError):
            session.producer("queue:orders")


def test_the_examples_of_tracing_set_a_provider_and_go_on_with_the_trace_of_a_message(
    memory, monkeypatch
):
    """Both of docs/monitoring.md, with a provider that other tests do not see."""

    def provide(provider):
        monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)

    monkeypatch.setattr(trace, "set_tracer_provider", provide)
    first, second = examples("docs/monitoring.md")
    names = executed(first)
    with memory.connect() as connection, connection.session() as session:
        session.producer("queue:orders").send("tea")
        names["message"] = session.consumer("queue:orders").receive(LIMIT_SECONDS)
    assert "traceparent" in names["message"].properties
    executed(second, **names)
