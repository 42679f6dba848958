"""Spans of OpenTelemetry for what an application sends, gets and settles, if it traces.

An application that traces has imported OpenTelemetry and set a provider; for all others nothing is
imported and nothing done. Names, kinds and attributes are those of OpenTelemetry's semantic
conventions for messaging. A message carries the context that it was sent in as its properties
`traceparent` and `tracestate`; one that has a `traceparent` already keeps it, and the span of its
sending links to it.

Tracing ends no send and no receive: what a sampler or a span processor raises is logged once, and
goes no further.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ledgermq.client.engine.steps import Outside, Steps
from ledgermq.protocol.limits import TEMPORARY

if TYPE_CHECKING:
    from opentelemetry.trace import Link, Span, Tracer, TracerProvider

LOGGER = logging.getLogger("ledgermq.client")
T = TypeVar("T")
Properties = Mapping[str, Any]

PARENT: Final = "traceparent"
FIELDS: Final = (PARENT, "tracestate")

# The span of the sending that makes messages now, in this thread or coroutine.
_SENDING: ContextVar[Span | None] = ContextVar("ledgermq_sending", default=None)
_FAILURES = itertools.count()


class _Guard:
    """Ends its block where a call of OpenTelemetry fails; the first of the process is logged."""

    def __enter__(self) -> None:
        """Nothing is there to be made."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        if next(_FAILURES) == 0:
            text = "tracing failed, messages go on without it; this is logged once"
            LOGGER.error(text, exc_info=error)
        return True


GUARDED: Final = _Guard()


def _tracer() -> Tracer | None:
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    with GUARDED:
        provider = trace.get_tracer_provider()
        return None if isinstance(provider, trace.ProxyTracerProvider) else _tracer_of(provider)
    return None


@lru_cache(maxsize=1)
def _tracer_of(provider: TracerProvider) -> Tracer:
    from importlib import metadata

    version = None
    # Run from a zip, a package is not installed.
    with contextlib.suppress(metadata.PackageNotFoundError):
        version = metadata.version("ledgermq")
    return provider.get_tracer("ledgermq", version)


def _started(
    tracer: Tracer,
    name: str,
    kind: str,
    *,
    type_: str,
    destination: str | None = None,
    linked: Iterable[Properties] = (),
    start_time_ns: int | None = None,
    **more: str | int | None,
) -> Span:
    """A span, linked to the contexts in properties; where there can be none, one that says nothing.

    `kind` is the name of a SpanKind. `more` are attributes below `messaging.`, with `__` for dots,
    where not None.
    """
    from opentelemetry.trace import NonRecordingSpan, SpanKind, get_current_span

    attributes: dict[str, str | int | bool] = {"messaging.system": "ledgermq"}
    attributes["messaging.operation.name"] = name
    if type_:
        attributes["messaging.operation.type"] = type_
    shown = destination
    if destination is not None:
        attributes["messaging.destination.name"] = destination
        kind_of, _, rest = destination.partition(":")
        if rest.startswith(TEMPORARY):
            shown = attributes["messaging.destination.template"] = f"{kind_of}:temporary"
            attributes["messaging.destination.temporary"] = True
    for key, value in more.items():
        if value is not None:
            attributes["messaging." + key.replace("__", ".")] = value
    with GUARDED:
        return tracer.start_span(
            f"{name} {shown}" if shown else name,
            kind=SpanKind[kind],
            attributes=attributes,
            links=_links(linked),
            start_time=start_time_ns,
        )
    # Messages carry the context around it.
    return NonRecordingSpan(get_current_span().get_span_context())


@contextlib.contextmanager
def _ending(span: Span) -> Iterator[None]:
    """Ends a span with the block, noting an exception."""
    try:
        yield
    except BaseException as error:
        _end(span, error)
        raise
    _end(span)


def _end(span: Span, error: BaseException | None = None) -> None:
    from opentelemetry.trace import Status, StatusCode

    with GUARDED:
        if error is not None:
            cancelled = isinstance(error, GeneratorExit)
            span.set_attribute("error.type", "cancelled" if cancelled else type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, "" if cancelled else str(error)))
    with GUARDED:
        span.end()


def _within(span: Span, steps: Steps[T]) -> Steps[T]:
    """Takes steps, then ends their span; without the lock, as whoever exports it may take long.

    With it, the reader would wait, and the heartbeats of all sessions, until those are lost.
    """
    try:
        found = yield from steps
    except GeneratorExit as error:
        _end(span, error)  # nothing else can be done any more
        raise
    except BaseException as error:
        yield Outside(_end, span, error)
        raise
    yield Outside(_end, span)
    return found


@contextlib.contextmanager
def _made_within(span: Span) -> Iterator[None]:
    """Lets what is made meanwhile, in this thread or coroutine, carry the context of a span."""
    before = _SENDING.get()
    _SENDING.set(span)
    try:
        yield
    finally:
        _SENDING.set(before)


def sent(
    destination: str | None, begin: Callable[[], Steps[T]], count: Callable[[T], int] | None = None
) -> Steps[T]:
    """The steps of sending, as a span; `count` says how many messages were sent, None: one."""
    tracer = _tracer()
    if tracer is None or _SENDING.get() is not None:
        return begin()
    span = _started(tracer, "send", "PRODUCER", type_="send", destination=destination)
    try:
        with _made_within(span):
            # What is plain is made here, before the session is waited for.
            steps = begin()
    except BaseException:
        with _ending(span):
            raise
    return _within(span, _sending(span, steps, count))


def _sending(span: Span, steps: Steps[T], count: Callable[[T], int] | None) -> Steps[T]:
    with _made_within(span):
        found = yield from steps
        with GUARDED:
            if count is not None:
                span.set_attribute("messaging.batch.message_count", count(found))
            elif hasattr(found, "message_id"):
                span.set_attribute("messaging.message.id", found.message_id)
        return found


@contextlib.contextmanager
def sending_batch(destination: str | None, batch: Sized) -> Iterator[None]:
    """A span around the sending of what is in a batch at its end; all carry its context."""
    tracer = _tracer()
    if tracer is None:
        yield
        return
    span = _started(tracer, "send", "PRODUCER", type_="send", destination=destination)
    with _ending(span), _made_within(span):
        try:
            yield
        finally:
            with GUARDED:
                span.set_attribute("messaging.batch.message_count", len(batch))


def with_context(properties: Properties | None) -> Properties | None:
    """The properties of a message that is made now, with the context that it is sent in."""
    span = _SENDING.get()
    if span is None:
        return properties
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    with GUARDED:
        if properties and PARENT in properties:
            for link in _links([properties]):
                span.add_link(link.context)
        else:
            TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
    return {**properties, **carrier} if properties else carrier


def begun() -> int:
    """When a call begins that may get messages, in ns; 0: nobody traces."""
    return 0 if _tracer() is None else time.time_ns()


def got(begun_ns: int, destination: str, subscription: str | None, raw: list[Any]) -> None:
    """A span for a call that got messages, as they were delivered, linked to their senders."""
    tracer = _tracer()
    if tracer is None:
        return
    one = raw[0] if len(raw) == 1 else None
    span = _started(
        tracer,
        "receive",
        "CLIENT",
        type_="receive",
        destination=destination,
        linked=(_properties_of(message) for message in raw),
        start_time_ns=begun_ns,
        destination__subscription__name=subscription,
        message__id=None if one is None else one["message_id"].hex(),
        batch__message_count=len(raw) if one is None else None,
    )
    with GUARDED:
        span.end()


@contextlib.contextmanager
def processing(
    destination: str, raw: Mapping[str, Any], subscription: str | None
) -> Iterator[None]:
    """A span around a listener that has a message, linked to its sender."""
    tracer = _tracer()
    if tracer is None:
        yield
        return
    from opentelemetry.context import attach, detach
    from opentelemetry.trace import set_span_in_context

    span = _started(
        tracer,
        "process",
        "CONSUMER",
        type_="process",
        destination=destination,
        linked=[_properties_of(raw)],
        destination__subscription__name=subscription,
        message__id=raw["message_id"].hex(),
    )
    with _ending(span):
        token = attach(set_span_in_context(span))
        try:
            yield
        finally:
            detach(token)


def settled(name: str, count: int, steps: Steps[T]) -> Steps[T]:
    """The steps that settle so many messages, as a span; of none it is no settling."""
    tracer = _tracer()
    if tracer is None:
        return steps
    type_ = "settle" if count else ""
    span = _started(tracer, name, "CLIENT", type_=type_, batch__message_count=count or None)
    return _within(span, steps)


def _properties_of(raw: Mapping[str, Any]) -> Properties:
    header = raw.get("header")
    return {} if header is None else header["properties"]


def _links(found: Iterable[Properties]) -> list[Link]:
    """Links to the contexts in properties of messages; what is none is passed over."""
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    links = []
    for properties in found:
        carrier = {key: str(properties[key]) for key in FIELDS if key in properties}
        if not carrier:
            continue
        context = TraceContextTextMapPropagator().extract(carrier, context=Context())
        sender = get_current_span(context).get_span_context()
        if sender.is_valid:
            links.append(Link(sender))
    return links
