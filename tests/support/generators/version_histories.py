"""Histories that another Python could fold otherwise: selectors, refusals, times, topics (H26)."""

from __future__ import annotations

from typing import Any

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script, ScriptSession, ranges
from support.checks.fold_digests import Logs
from support.generators.version_texts import NAMES, NO_SELECTORS, NUMBERS, SELECTORS, TEXTS

TOPIC_SELECTORS = (
    *("v = 1", "v = TRUE", "v = 1.0", "v = 0", "v = -0.0", "v = FALSE", "v = 'red'", "v <> 1"),
    *("v = 9007199254740993", "v = 9007199254740992", "v > 0.3", "v LIKE '%\u00df%'", "v IS NULL"),
)


def log_of(script: Script) -> list[tuple[str | None, int]]:
    """The entries of a script."""
    return [(None if one.value is None else one.value.hex(), one.time_us) for one in script.entries]


def _header(properties: dict[str, Any], number: int, **times: int) -> op.Header:
    return {
        "properties": properties,
        "correlation_id": None if number % 3 else TEXTS[number % len(TEXTS)],
        "type": "e\u0301" if number % 2 else None,
        "time_to_live_ms": times.get("life", 0),
        "delivery_delay_ms": times.get("delay", 0),
        "age_ms": times.get("age", 0),
    }


def _messages(script: Script) -> list[op.PutMessage]:
    """A message for every text and number, beside another value of its kind."""
    found = []
    for values in (TEXTS, NUMBERS):
        for number, value in enumerate(values):
            properties = {"v": value, "w": values[number * 7 % len(values)], f"x{value}": True}
            message = script.message("m", number % 10, _header(properties, number))
            found.append(message | {"persistent": number % 4 != 0})
    return found


def _put(session: ScriptSession, destination: str, messages: list[op.PutMessage]) -> None:
    session.send(op.Put, destination=destination, messages=messages)


def _selectors() -> Script:
    """Each selector gets what it matches of one queue, and hands it back."""
    script = Script()
    session = script.session(suspect_timeout_ms=45_000)
    _put(session, "queue:q", [*_messages(script), script.message("plain")])
    for number, selector in enumerate(SELECTORS, start=1):
        at = session.send(
            op.OpenConsumer, consumer=number, destination="queue:q", selector=selector
        )
        assert type(script.outcomes[at][0].outcome).__name__ == "Accepted", selector
        session.get(1_000, number)
        unseen = ranges(*script.in_flight(session))
        session.send(op.CloseConsumer, consumer=number, unseen=unseen)
    return script


def _refusals() -> Script:
    """Texts that are no selectors or no names; the answers quote them and stay in the session."""
    script = Script()
    session = script.session(suspect_timeout_ms=45_000)

    def refused(kind: Any, **fields: Any) -> None:
        at = session.send(kind, **fields)
        told = script.outcomes[at]
        assert any(type(one.outcome).__name__ == "Refused" for one in told), (kind, fields)

    # Each has a number of its own: if one were taken after all, the next is still looked at.
    for number, selector in enumerate(NO_SELECTORS, start=1):
        refused(op.OpenConsumer, consumer=number, destination="queue:q", selector=selector)
    for number, name in enumerate(NAMES, start=len(NO_SELECTORS) + 1):
        fields = {"destination": "topic:t", "subscription": name, "durable": True}
        refused(op.OpenConsumer, consumer=number, **fields)
        refused(op.Unsubscribe, subscription=name)
        for destination in (name, f"queue:{name}", f"topic:{name}"):
            if name != "temporary/x" or destination == name:
                refused(op.Put, destination=destination, messages=[script.message("m")])
        refused(op.CreateTemporary, destination=f"queue:temporary/{name}")
        if name:
            script.session(client_id=name)
        for kind, field in ((op.CreateQueue, "queue"), (op.CreateTopic, "topic")):
            refused(kind, **{field: name, "description": name, "message_bytes_max": 0})
    return script


def _times() -> Script:
    """Times to live, delays, ages and lost sessions, at times that no rounding divides."""
    script = Script(now_us=1_760_000_000_123_000, step_us=7_919)
    keeper = script.session(suspect_timeout_ms=45_000)
    for number in range(40):
        times = {"life": number * 977 % 5_000, "delay": number * 313 % 3_000, "age": number * 7}
        message = script.message("m", number % 10, _header({"v": number / 7}, number, **times))
        _put(keeper, "queue:q", [message])
    script.session(suspect_timeout_ms=1_000).consumer("q", credit=5)
    for number in range(60):
        script.wait(0.1 + number / 30)
        script.add(op.Tick(worker="w"))
        if number % 9 == 0:
            keeper.send(op.Alive)
    script.add(op.TimeAgreed(worker="w", writer_time=script.now_us))
    return script


def _topics() -> Script:
    """Subscriptions whose selectors compare with values that Python holds for equal, or not."""
    script = Script()
    sender = script.session(suspect_timeout_ms=45_000)
    receiver = script.session(suspect_timeout_ms=45_000, client_id="c")
    for number, selector in enumerate(TOPIC_SELECTORS, start=1):
        receiver.subscribe(
            "t", number, credit=number, selector=selector, subscription=f"s{number}", durable=True
        )
    messages = _messages(script)
    for start in range(0, len(messages), 16):
        _put(sender, "topic:t", messages[start : start + 16])
    receiver.recover()
    receiver.close()
    again = script.session(suspect_timeout_ms=45_000, client_id="c", connection=script.identifier())
    again.subscribe("t", 1, credit=100, selector="v <> 'x'", subscription="s7", durable=True)
    return script


def version_histories() -> Logs:
    """The histories by name."""
    made = {"selectors": _selectors, "refusals": _refusals, "times": _times, "topics": _topics}
    return {name: log_of(make()) for name, make in made.items()}
