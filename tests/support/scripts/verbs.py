"""The verbs of the script language: each makes the entry of one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.core.versions import SKIPPED
from ledgermq.protocol import operations
from ledgermq.protocol.operations import (
    DeliveryRange,
    GetOptions,
    Group,
    Header,
    Operation,
    PropertyValue,
    PutMessage,
    Source,
    Unreadable,
)
from support.scripts.administration_verbs import ADMINISTRATION_VERBS
from support.scripts.handling_verbs import HANDLING_VERBS
from support.scripts.script import Line, ScriptError, time_us
from support.scripts.verb_parts import (
    Entry,
    Verb,
    common,
    destination_of,
    identifier,
    selector_text,
)

if TYPE_CHECKING:
    from support.scripts.play import Player

__all__ = ["VERBS", "get_options", "group_id", "identifier", "message_of", "selector_text"]


def group_id(name: str) -> bytes:
    """Twenty-four bytes that show a name; `0`: none but zeros; `short`: too few."""
    if name == "short":
        return b"short"
    return b"".ljust(24, b"\0") if name == "0" else name.encode().ljust(24, b"\0")


def get_options(line: Line) -> GetOptions | None:
    """`plain`, or any of `logical all segments complete`, and `group=Y seq=2 offset=0 msg=NAME
    correlation=c number=5`; none: None.
    """
    given, words = line.options, line.words[1:]
    named = ("group", "seq", "offset", "msg", "correlation", "number")
    if not words and not any(one in given for one in named):
        return None
    return {
        "logical_order": "logical" in words,
        "all_messages_available": "all" in words,
        "all_segments_available": "segments" in words,
        "complete_message": "complete" in words,
        "message_id": identifier(given["msg"]) if "msg" in given else b"",
        "correlation_id": given.get("correlation"),
        "group_id": group_id(given["group"]) if "group" in given else b"",
        "group_sequence": int(given.get("seq", 0)),
        "offset": int(given.get("offset", -1)),
        "sequence": int(given.get("number", -1)),
    }


def _ranges(words: list[str]) -> list[DeliveryRange]:
    found: list[DeliveryRange] = []
    for word in words:
        first, dots, last = word.partition("..")
        found.append({"first": int(first), "last": int(last if dots else first)})
    return found


def message_of(word: str) -> PutMessage:
    """`NAME`, `NAME/PRIORITY`, `NAME:BYTES`, `NAME{region=EU,n=3}`; `NAME!` is not persistent."""
    word, brace, given = word.partition("{")
    word, colon, size = word.partition(":")
    name, slash, priority = word.partition("/")
    content = b"x" * int(size) if colon else name.encode()
    message: PutMessage = {
        "message_id": identifier(name.removesuffix("!")),
        "priority": int(priority) if slash else 4,
        "persistent": not name.endswith("!"),
        "content": content,
    }
    if brace:
        message["header"] = _header(given.removesuffix("}"))
    return message


def _header(text: str) -> Header:
    """`region=EU,type=t,correlation=c,ttl=5s,delay=1s,age=2s,limit=3`, or `*100`: one that long."""
    if text.startswith("*"):
        text = "correlation=" + "c" * int(text[1:])
    given = dict(one.split("=") for one in text.split(",") if one)
    group = _group(given.pop("g", None), ordered=given.pop("ordered", "no"))
    times = [time_us(given.pop(name, "0s")) // 1_000 for name in ("ttl", "delay", "age")]
    limit = int(given.pop("limit", -1))
    return {
        "group": group,
        "correlation_id": given.pop("correlation", None),
        "type": given.pop("type", None),
        "properties": {name: _value(value) for name, value in given.items()},
        "time_to_live_ms": times[0],
        "delivery_delay_ms": times[1],
        "age_ms": times[2],
        "redelivery_limit": limit,
    }


def _group(text: str | None, *, ordered: str) -> Group | None:
    """`Y.2` message 2 of group Y, `Y.2!` the last; `Y.2@10+5` its segment at 10 of length 5,
    `Y.2@10+5!` the last segment, `Y.2!@10+5!` of the last message; `-Y.1@0+5` in no group.
    """
    if text is None:
        return None
    place, at, segment = text.partition("@")
    name, _, number = place.removesuffix("!").removeprefix("-").partition(".")
    offset, _, length = segment.removesuffix("!").partition("+")
    return {
        "group_id": group_id(name),
        "group_sequence": int(number),
        "offset": int(offset or 0),
        "length": int(length or 0),
        "in_group": not text.startswith("-"),
        "last_in_group": place.endswith("!"),
        "segment": bool(at),
        "last_segment": segment.endswith("!"),
        "logical_order": ordered == "yes",
    }


def _value(text: str) -> PropertyValue:
    """Digits are a number, yes and no truth values."""
    if text in ("yes", "no"):
        return text == "yes"
    return int(text) if text.isdigit() else text


def _messages(words: list[str]) -> list[PutMessage]:
    """`A1 A2`, or `A*1000` for A0 to A999."""
    found: list[PutMessage] = []
    for word in words:
        name, star, count = ("", "", "") if "{" in word else word.partition("*")
        number, colon, size = count.partition(":")
        repeated = [f"{name}{one}{colon}{size}" for one in range(int(number))] if star else [word]
        found += map(message_of, repeated)
    return found


def _open(player: Player, line: Line) -> Operation:
    connection = line.options.get("on", line.session)
    return operations.Open(
        connection=identifier(connection),
        lane=int(line.options.get("lane", 0)),
        session_key=identifier(line.options.get("key", line.session)),
        acknowledge_mode=line.words[0] if line.words else "AUTO",
        suspect_timeout_ms=int(line.options.get("timeout", 10_000)),
        client="script",
        client_id=line.options.get("client", ""),
        takeover=identifier(line.options["token"]) if "token" in line.options else b"",
        redelivery_delay_ms=time_us(line.options.get("redelivery", "0s")) // 1_000,
        unit_of_work_time_limit_ms=time_us(line.options.get("unit", "0s")) // 1_000,
        unit_of_work_idle_limit_ms=time_us(line.options.get("idle", "0s")) // 1_000,
    )


def _consumer(player: Player, line: Line) -> Operation:
    """`consumer NUMBER DESTINATION [durable=NAME | shared=NAME | durable-shared=NAME]`."""
    number, destination = line.words[:2]
    options = line.options
    name = options.get("durable") or options.get("shared") or options.get("both")
    return operations.OpenConsumer(
        **common(player, line),
        consumer=int(number),
        destination=destination_of(destination),
        selector=selector_text(options.get("selector")),
        no_local="nolocal" in line.words,
        subscription=name or options.get("named", ""),
        durable="durable" in options or "both" in options,
        shared="shared" in options or "both" in options,
        redelivery_delay_ms=time_us(options.get("redelivery", "-1ms")) // 1_000,
        consumer_priority=int(options.get("priority", 0)),
    )


def _temporary(player: Player, line: Line) -> Operation:
    return operations.CreateTemporary(
        **common(player, line), destination=destination_of(line.words[0])
    )


def _unsubscribe(player: Player, line: Line) -> Operation:
    return operations.Unsubscribe(**common(player, line), subscription=line.words[0])


def _close_consumer(player: Player, line: Line) -> Operation:
    return operations.CloseConsumer(
        **common(player, line), consumer=int(line.words[0]), unseen=_ranges(line.words[1:])
    )


def _give_back(player: Player, line: Line) -> Operation:
    return operations.GiveBack(
        **common(player, line), consumer=int(line.words[0]), unseen=_ranges(line.words[1:])
    )


def _reject(player: Player, line: Line) -> Operation:
    """`reject CONSUMER DELIVERY... [requeue] [delay=5s] [reason=TEXT]`; `x*1024` is a text that
    long.
    """
    words = [word for word in line.words[1:] if word != "requeue"]
    letter, _, count = line.options.get("reason", "").partition("*")
    return operations.Reject(
        **common(player, line),
        consumer=int(line.words[0]),
        deliveries=_ranges(words),
        requeue="requeue" in line.words,
        reason=letter * int(count) if count else letter,
        redelivery_delay_ms=time_us(line.options.get("delay", "-1ms")) // 1_000,
    )


def _put(player: Player, line: Line) -> Operation:
    return operations.Put(
        **common(player, line),
        destination=destination_of(line.words[0]),
        messages=_messages(line.words[1:]),
        blocking_ms=time_us(line.options.get("block", "0s")) // 1_000,
        source=source_of(line.options.get("source")),
        deduplication_id=_deduplication_id(line.options.get("id")),
    )


def _deduplication_id(word: str | None) -> str | None:
    """`NAME`; `x*128` is an id of so many characters."""
    if word is None:
        return None
    letter, star, count = word.partition("*")
    return letter * int(count) if star else word


def source_of(word: str | None) -> Source | None:
    """`NAME/PARTITION:FIRST..LAST`; `NAME*512` is a name of so many characters."""
    if word is None:
        return None
    place, _, positions = word.rpartition(":")
    name, _, partition = place.rpartition("/")
    letter, star, count = name.partition("*")
    first, _, last = positions.partition("..")
    return {
        "name": letter * int(count) if star else name,
        "partition": int(partition),
        "first": int(first),
        "last": int(last),
    }


def _get(player: Player, line: Line) -> Operation:
    number = int(line.options.get("consumer", 1))
    return operations.Get(
        **common(player, line),
        consumer=number,
        credit=int(line.words[0]),
        options=get_options(line),
    )


def _ack(player: Player, line: Line) -> Operation:
    return operations.Acknowledge(**common(player, line), deliveries=_ranges(line.words))


def _commit(player: Player, line: Line) -> Operation:
    session = player.session(line.session)
    held = 0 if session is None else sum(map(len, session.open_puts.values()))
    puts = int(line.options.get("puts", held))
    return operations.Commit(**common(player, line), deliveries=_ranges(line.words), puts=puts)


def _seen(kind: type[Operation]) -> Verb:
    def make(player: Player, line: Line) -> Operation:
        return kind(**common(player, line), seen=_ranges(line.words))

    return make


def _ended(kind: type[Operation]) -> Verb:
    """`VERB SESSION [actor=NAME] [reason=WORD]`; `*200` for that many characters."""

    def make(player: Player, line: Line) -> Operation:
        return kind(
            **common(player, line),
            target_session=player.handles.get(line.words[0], 999),
            actor=_repeated(line.options.get("actor", "operator")),
            reason=_repeated(line.options.get("reason", "stuck")),
        )

    return make


def _repeated(text: str) -> str:
    return "x" * int(text[1:]) if text.startswith("*") else text


def _alive(player: Player, line: Line) -> Operation:
    return operations.Alive(**common(player, line), handing=int(line.options.get("handing", 0)))


def _tick(player: Player, line: Line) -> Operation:
    return operations.Tick(worker="w1")


def _agree(player: Player, line: Line) -> Operation:
    """`off=-3s` is how far the writer's clock is from the log's."""
    off_us = time_us(line.options.get("off", "0s"))
    return operations.TimeAgreed(worker="w1", writer_time=player.clock_us + off_us)


def _suspect(player: Player, line: Line) -> Operation:
    handles = [player.handles.get(name, 999) for name in line.words]
    return operations.Suspect(worker="w1", sessions=handles)


def _again(player: Player, line: Line) -> Operation:
    """The session's operation number `n` (or its last) once more, byte by byte."""
    sent = player.sent[line.session]
    if "n" not in line.options:
        return sent[-1]
    number = int(line.options["n"])
    return next(one for one in sent if getattr(one, "session_sequence", 0) == number)


def _record(player: Player, line: Line) -> Entry:
    """`record empty|HEX`, `record untrusted` if stamped by its writer, `record skipped`."""
    word = line.words[0]
    if word == "skipped":
        return SKIPPED
    if word == "empty":
        return None
    if word == "untrusted":
        return Unreadable(reason="timestamp-untrusted", detail="stamped by its writer")
    try:
        return bytes.fromhex(word)
    except ValueError:
        raise ScriptError(f"{word!r} is not hexadecimal") from None


VERBS: dict[str, Verb] = {
    **ADMINISTRATION_VERBS,
    **HANDLING_VERBS,
    "ack": _ack,
    "again": _again,
    "agree": _agree,
    "alive": _alive,
    "close": _seen(operations.Close),
    "close-consumer": _close_consumer,
    "give-back": _give_back,
    "commit": _commit,
    "consumer": _consumer,
    "end-session": _ended(operations.EndSession),
    "get": _get,
    "open": _open,
    "put": _put,
    "record": _record,
    "recover": _seen(operations.Recover),
    "reject": _reject,
    "rollback": _seen(operations.Rollback),
    "rollback-transaction": _ended(operations.RollbackTransaction),
    "suspect": _suspect,
    "temporary": _temporary,
    "tick": _tick,
    "unsubscribe": _unsubscribe,
}
