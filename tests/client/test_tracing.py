"""Spans of OpenTelemetry: who made them, how they link, and that nobody else is disturbed."""

from __future__ import annotations

import asyncio
import importlib.metadata
import itertools
import logging
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind, StatusCode

import ledgermq
from ledgermq import aio
from ledgermq.client import tracing
from ledgermq.errors import QueueNotFoundError
from ledgermq.testing import MemoryBroker

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def broker():
    """A queue manager in memory of its own."""
    return MemoryBroker(now=datetime.now(UTC))


@pytest.fixture
def spans(monkeypatch):
    """An application that traces; called, it takes what has ended since the last time, by name."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)

    def take():
        found = exporter.get_finished_spans()
        exporter.clear()
        return {one.name: one for one in found}

    return take


def context_of(span):
    """Trace and span of what made it."""
    return (span.context.trace_id, span.context.span_id)


def linked(span):
    """What it links to."""
    return [(one.context.trace_id, one.context.span_id) for one in span.links]


def test_a_message_links_who_receives_it_to_who_sent_it(broker, spans):
    """Send and receive have kinds, names and attributes of the conventions; the context travels."""
    with broker.connect() as connection, connection.session() as session:
        with trace.get_tracer_provider().get_tracer("app").start_as_current_span("request"):
            receipt = session.producer("queue:orders").send("x", properties={"region": "EU"})
        message = session.consumer("queue:orders").receive(timeout=10)
    found = spans()
    sent, received = found["send queue:orders"], found["receive queue:orders"]
    assert sent.parent.span_id == found["request"].context.span_id
    assert sent.kind is SpanKind.PRODUCER
    assert received.kind is SpanKind.CLIENT
    assert linked(received) == [context_of(sent)]
    assert received.parent is None
    common = {
        "messaging.system": "ledgermq",
        "messaging.destination.name": "queue:orders",
        "messaging.message.id": receipt.message_id,
    }
    for span, name in ((sent, "send"), (received, "receive")):
        both = {"messaging.operation.name": name, "messaging.operation.type": name}
        assert dict(span.attributes) == common | both
        assert span.instrumentation_scope.name == "ledgermq"
        assert span.status.status_code is StatusCode.UNSET
    assert message.properties["region"] == "EU"
    assert f"{sent.context.span_id:016x}" in message.properties["traceparent"]


def test_what_is_got_together_is_one_span_with_a_link_for_each(broker, spans):
    """With their number in place of an id."""
    with broker.connect() as connection, connection.session() as session:
        producer = session.producer("queue:orders")
        producer.send("a")
        first = spans()["send queue:orders"]
        producer.send("b")
        second = spans()["send queue:orders"]
        session.consumer("queue:orders").receive_many(2, timeout=10)
    received = spans()["receive queue:orders"]
    assert received.attributes["messaging.batch.message_count"] == 2
    assert "messaging.message.id" not in received.attributes
    assert linked(received) == [context_of(first), context_of(second)]


def test_every_way_of_sending_has_a_span(broker, spans):
    """Batches and segments with their number, groups, and what failed with its error."""
    with broker.connect() as connection, connection.session() as session:
        producer = session.producer("queue:orders")
        producer.send_many(["a", "b", "c"])
        (many,) = spans().values()
        assert many.attributes["messaging.batch.message_count"] == 3
        producer.send_async("d").result(10)
        (alone,) = spans().values()
        assert "messaging.batch.message_count" not in alone.attributes
        producer.send_segmented("0123456789", max_segment=4)
        (segmented,) = spans().values()
        assert segmented.attributes["messaging.batch.message_count"] == 3
        with producer.group() as group:
            group.send("e", last=True)
        (grouped,) = spans().values()
        message = session.consumer("queue:orders").receive(timeout=10)
        assert f"{many.context.span_id:016x}" in message.properties["traceparent"]
        assert grouped.kind is SpanKind.PRODUCER
        spans()
        connection.admin.alter_queue_manager(automatic_creation=False)
        with pytest.raises(QueueNotFoundError):
            session.producer("queue:none").send("x")
    failed = spans()["send queue:none"]
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["error.type"] == "QueueNotFoundError"


def test_a_context_that_is_there_is_kept_and_linked(broker, spans):
    """Who gives a traceparent has it carried as it is; a nonsensical one disturbs nobody."""
    with broker.connect() as connection, connection.session() as session:
        producer, consumer = session.producer("queue:a"), session.consumer("queue:a")
        producer.send("x", properties={"traceparent": GIVEN})
        message = consumer.receive(timeout=10)
        assert message.properties["traceparent"] == GIVEN
        for one in spans().values():
            assert linked(one) == [(int(GIVEN[3:35], 16), int(GIVEN[36:52], 16))]
        # What was received is sent on as it is.
        session.producer("queue:b").send(message)
        passed_on = session.consumer("queue:b").receive(timeout=10)
        assert passed_on.properties["traceparent"] == GIVEN
        spans()
        for nonsense in ("", "nonsense", 5, True, "00-" + "0" * 32 + "-" + "0" * 16 + "-01"):
            producer.send("x", properties={"traceparent": nonsense})
            assert consumer.receive(timeout=10).properties["traceparent"] == nonsense
            assert [linked(one) for one in spans().values()] == [[], []]


def test_listeners_process_within_a_span(broker, spans):
    """The span is current while the listener runs, links to the sender, and has its failure."""
    called, inside = threading.Event(), []

    def listener(_message):
        inside.append(trace.get_current_span())
        if len(inside) == 1:
            raise ValueError("no")
        called.set()

    with broker.connect() as connection:
        with connection.session() as session:
            session.producer("queue:a").send("x")
        sent = spans()["send queue:a"]
        with connection.session() as session:
            session.consumer("queue:a").set_message_listener(listener)
            assert called.wait(30)
    processed = [one for one in inside if one.name == "process queue:a"]
    assert len(processed) == 2
    assert [one.kind for one in processed] == [SpanKind.CONSUMER] * 2
    assert [linked(one) for one in processed] == [[context_of(sent)]] * 2
    assert processed[0].attributes["error.type"] == "ValueError"
    assert processed[1].status.status_code is StatusCode.UNSET


def test_settling_has_spans_with_how_many_it_settles(broker, spans):
    """Commit, rollback, acknowledge and recover; AUTO settles without one."""
    with broker.connect() as connection:
        with connection.session(ack=ledgermq.AckMode.TRANSACTED) as session:
            session.producer("queue:a").send_many(["1", "2"])
            session.commit()
            commit = spans()["commit"]
            assert "messaging.operation.type" not in commit.attributes
            session.consumer("queue:a").receive_many(2, timeout=10)
            session.rollback()
            rollback = spans()["rollback"]
        with connection.session(ack=ledgermq.AckMode.CLIENT) as session:
            consumer = session.consumer("queue:a")
            consumer.receive(timeout=10)
            session.recover()
            recover = spans()["recover"]
            consumer.receive(timeout=10)
            consumer.receive(timeout=10).acknowledge()
            acknowledge = spans()["acknowledge"]
        with connection.session() as session:
            session.producer("queue:b").send("x")
            session.consumer("queue:b").receive(timeout=10).acknowledge()
            session.acknowledge()
        assert set(spans()) == {"send queue:b", "receive queue:b"}
    for span, count in ((rollback, 2), (recover, 1), (acknowledge, 2)):
        assert span.kind is SpanKind.CLIENT
        assert span.attributes["messaging.operation.type"] == "settle"
        assert span.attributes["messaging.batch.message_count"] == count


def test_an_acknowledgement_that_does_nothing_has_no_span(broker, spans):
    """In a transacted session commit settles; AUTO settles once a listener has returned."""
    with broker.connect() as connection:
        with connection.session(transacted=True) as session:
            session.producer("queue:a").send("x")
            session.commit()
            message = session.consumer("queue:a").receive(timeout=10)
            spans()
            message.acknowledge()
            session.acknowledge()
            assert spans() == {}
            session.commit()
        with connection.session() as sender, connection.session() as session:
            called = threading.Event()

            def acknowledge(message):
                message.acknowledge()
                session.acknowledge()
                called.set()

            session.consumer("queue:b").set_message_listener(acknowledge)
            sender.producer("queue:b").send("x")
            assert called.wait(20)
        assert "acknowledge" not in spans()


def test_coroutines_have_the_same_spans(broker, spans):
    """Sends of two coroutines at once carry each its own context; settling is a span."""

    async def course():
        async with (
            aio.Connection(broker.connect()) as connection,
            connection.session(ack=ledgermq.AckMode.CLIENT) as session,
        ):
            producers = [session.producer(f"queue:{name}") for name in "ab"]
            await asyncio.gather(*(one.send("x") for one in producers))
            sent = spans()
            for name in "ab":
                async with session.consumer(f"queue:{name}") as consumer:
                    message = await consumer.receive(timeout=10)
                    found = spans()
                    (link,) = linked(found[f"receive queue:{name}"])
                    assert link == context_of(sent[f"send queue:{name}"])
                    await message.acknowledge()
                    assert spans()["acknowledge"].kind is SpanKind.CLIENT
            await producers[0].send_many(["y", "z"])
            assert spans()["send queue:a"].attributes["messaging.batch.message_count"] == 2

    asyncio.run(course())


def test_temporary_destinations_have_one_name_for_all(broker, spans):
    """Their own names are for attributes; that of the span is the same for all."""
    with broker.connect() as connection, connection.session() as session:
        queue = session.temporary_queue()
        session.producer(queue).send("x")
    (sent,) = spans().values()
    assert sent.name == "send queue:temporary"
    assert sent.attributes["messaging.destination.name"] == queue
    assert sent.attributes["messaging.destination.temporary"] is True
    assert sent.attributes["messaging.destination.template"] == "queue:temporary"


def test_without_a_provider_messages_stay_as_they_are(broker):
    """OpenTelemetry is imported here, but nobody has set a provider."""
    with broker.connect() as connection, connection.session() as session:
        session.producer("queue:a").send("x")
        assert dict(session.consumer("queue:a").receive(timeout=10).properties) == {}


class Raising:
    """Stands for something of OpenTelemetry, one method of which raises."""

    def __init__(self, real, name):
        self._real, self._name = real, name

    def __getattr__(self, name):
        """What the real one has."""
        if name == self._name:
            raise ZeroDivisionError(f"{name} of the application")
        return getattr(self._real, name)


def provider_of(*, sampler=None, processor=None):
    """A provider with a sampler or a processor that raises in one method."""
    provider = TracerProvider(sampler=Raising(ALWAYS_ON, sampler) if sampler else ALWAYS_ON)
    if processor:
        provider.add_span_processor(Raising(SpanProcessor(), processor))
    return provider


def provider_with_spans(name):
    """A provider whose spans raise in one method."""
    provider = TracerProvider()
    tracer = provider.get_tracer("ledgermq")
    made = Raising(tracer, "")
    made.start_span = lambda *given, **more: Raising(tracer.start_span(*given, **more), name)
    found = Raising(provider, "")
    found.get_tracer = lambda *_: made
    return found


@pytest.mark.parametrize(
    "provider",
    [
        provider_of(sampler="should_sample"),
        provider_of(processor="on_start"),
        provider_of(processor="on_end"),
        provider_with_spans("set_attribute"),
        provider_with_spans("end"),
        Raising(TracerProvider(), "get_tracer"),
        None,
    ],
    ids=["sampler", "on_start", "on_end", "attribute", "end", "get", "none"],
)
def test_what_fails_in_tracing_reaches_no_send_and_no_receive(
    broker, monkeypatch, caplog, provider
):
    """It is logged once; the application goes on, and has its own errors as they are."""

    def get_provider():
        if provider is None:
            raise ZeroDivisionError("there is no provider of this name")
        return provider

    monkeypatch.setattr(trace, "get_tracer_provider", get_provider)
    monkeypatch.setattr(tracing, "_FAILURES", itertools.count())
    heard, enough = [], threading.Event()

    def listener(message):
        heard.append((message.body, message.delivery_count))
        if len(heard) == 1:
            raise ValueError("of the application")
        enough.set()

    async def course():
        async with (
            aio.Connection(broker.connect()) as connection,
            connection.session(ack=ledgermq.AckMode.CLIENT) as session,
            session.consumer("queue:b") as consumer,
        ):
            await session.producer("queue:b").send("x")
            await (await consumer.receive(timeout=10)).acknowledge()

    with caplog.at_level(logging.WARNING), broker.connect() as connection:
        with connection.session(transacted=True) as session:
            producer = session.producer("queue:a")
            producer.send_many(["1", "2"])
            producer.send("3", properties={"traceparent": GIVEN})
            session.commit()
            consumer = session.consumer("queue:a")
            assert [one.body for one in consumer.receive_many(3, timeout=10)] == ["1", "2", "3"]
            session.commit()
            producer.send_segmented("0123456789", max_segment=4)
            session.rollback()
        with connection.session() as session:
            session.producer("queue:a").send_async("4").result(10)
            with pytest.raises(ledgermq.UnsupportedValueError):
                session.producer("queue:a").send(object())
        with connection.session() as session:
            session.consumer("queue:a").set_message_listener(listener)
            assert enough.wait(30)
        asyncio.run(course())
        assert heard == [("4", 1), ("4", 2)]
        assert connection.admin.queue_status("b").message_count == 0
    failures = [one for one in caplog.records if "tracing" in one.message]
    assert len(failures) == 1
    assert isinstance(failures[0].exc_info[1], ZeroDivisionError)


def test_spans_end_without_the_lock_of_their_session(broker, monkeypatch):
    """An exporter that waits for a collector would hold up the reader and the heartbeats of all."""
    ended = []

    class Exporting(SpanProcessor):
        def on_end(self, span):
            ended.append((span.name.partition(" ")[0], lock.locked()))

    provider = TracerProvider()
    provider.add_span_processor(Exporting())
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)

    async def course():
        nonlocal lock
        async with aio.Connection(connection) as waited, waited.session(transacted=True) as session:
            lock = session._work.engine.lock
            consumer = await session.consumer("queue:q")
            await consumer.receive(timeout=10)
            await consumer.receive_many(1, timeout=10)
            await session.producer("queue:q").send("x")
            await session.commit()

    with broker.connect() as connection:
        with connection.session(transacted=True) as session:
            lock = session._engine.lock
            producer, consumer = session.producer("queue:q"), session.consumer("queue:q")
            producer.send_many("abcd")
            producer.send("e")
            session.commit()
            consumer.receive(timeout=10)
            consumer.receive_many(1, timeout=10)
            session.rollback()
        connection.admin.alter_queue_manager(automatic_creation=False)
        with connection.session() as session:
            lock = session._engine.lock
            with pytest.raises(QueueNotFoundError):
                session.producer("queue:none").send("x")
        asyncio.run(course())
    assert {name for name, _ in ended} == {"send", "commit", "receive", "rollback"}
    assert [name for name, was_locked in ended if was_locked] == []


def test_run_from_a_zip_the_client_traces_without_a_version(broker, spans, monkeypatch):
    """Nothing knows its version there."""

    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    with broker.connect() as connection, connection.session() as session:
        session.producer("queue:a").send("x")
    (sent,) = spans().values()
    assert (sent.instrumentation_scope.name, sent.instrumentation_scope.version or None) == (
        *("ledgermq", None),
    )


def test_the_client_does_not_import_opentelemetry():
    """Where the application has not, neither sending nor getting does."""
    text = """
import sys
from ledgermq.testing import MemoryBroker
with MemoryBroker().connect() as connection, connection.session() as session:
    session.producer("queue:a").send("x")
    assert session.consumer("queue:a").receive(timeout=10).body == "x"
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120)
