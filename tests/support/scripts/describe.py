"""Outcomes in the words of the script language, and their comparison with what was expected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ledgermq.protocol.outcomes import (
    Accepted,
    Administered,
    Committed,
    Delivered,
    DeliveredMessage,
    Enqueued,
    Opened,
    Outcome,
    Refused,
    Returned,
    SessionEnded,
    Suspected,
)

# A word of an outcome, and whether an expectation may leave it out.
Word = tuple[str, bool]
# The field that is out of range, or differs, as the reason for people names it.
WRONG_FIELD = re.compile(r"(\w+) is -?\d+, must be |.* has another (\w+);")
RUN = re.compile(r"([A-Za-z]+)(\d+)\.\.(\d+)@(\d+)")


def describe(outcome: Outcome, names: Mapping[int, str], asked: str, start_us: int) -> list[Word]:
    """An outcome as words; `names` are the sessions' names, `asked` the session of the line."""
    session = names.get(getattr(outcome, "session", -1), "?")
    who: list[Word] = (
        [(f"{session}:", True)] if session in (asked, "?") else [(f"{session}:", False)]
    )
    return who + _words(outcome, start_us)


def _words(outcome: Outcome, start_us: int) -> list[Word]:
    match outcome:
        case Opened():
            return _must("opened")
        case Accepted():
            return _must("accepted", *_warning(outcome))
        case Enqueued():
            run = _run(outcome.first_sequence, outcome.count)
            return _must("enqueued", run, *_warning(outcome))
        case Administered():
            words = _must("administered", str(outcome.affected))
            more = [("more", False)] if outcome.more else []
            ends: list[Word] = [(f"last={outcome.last_sequence}", True)]
            ends += [(f"next={outcome.next_sequence}", True)]
            return words + _unless_zero(skipped=outcome.skipped) + more + ends
        case Committed():
            words = ["committed"]
            for run in outcome.enqueued:
                queue = run["destination"].removeprefix("queue:")
                words += [queue, _run(run["first_sequence"], run["count"])]
            return _must(*words) + _unless_zero(consumed=outcome.consumed)
        case Returned():
            return _must("returned", str(outcome.returned)) + _unless_zero(
                discarded=outcome.discarded
            )
        case Refused():
            named = WRONG_FIELD.match(outcome.detail)
            return [
                *_must("refused", outcome.reason),
                *_unless_zero(expected=outcome.expected_sequence),
                *([(f"of={named[1] or named[2]}", True)] if named else []),
            ]
        case SessionEnded():
            return _must("ended", outcome.reason) + _unless_zero(
                returned=outcome.returned, discarded=outcome.discarded
            )
        case Delivered():
            return _delivered(outcome)
        case Suspected():
            until = f"until={_time(outcome.deadline - start_us)}"
            return [("suspected", False), (until, True)]
    raise AssertionError(f"no words for {outcome}")


def _warning(outcome: Accepted | Enqueued) -> list[str]:
    return [f"warning={outcome.warning}"] if outcome.warning else []


def _delivered(outcome: Delivered) -> list[Word]:
    words: list[Word] = [("delivered", False)]
    words.append((f"consumer={outcome.consumer}", outcome.consumer == 1))
    words.append((f"on={outcome.destination.removeprefix('queue:')}", True))
    words.append((f"#{outcome.first_delivery}", True))
    words += _must("in-doubt") if outcome.in_doubt else []
    return words + [(_message(one), False) for one in outcome.messages]


def _message(one: DeliveredMessage) -> str:
    name = one["message_id"].rstrip(b"\0").decode()
    backouts = one["backout_count"]
    return f"{name}@{one['sequence']}" + (f"+{backouts}" if backouts else "")


def _run(first: int, count: int) -> str:
    return f"{first}..{first + count - 1}"


def _time(time_us: int) -> str:
    return f"{time_us / 1_000_000:g}s"


def _must(*words: str) -> list[Word]:
    return [(word, False) for word in words]


def _unless_zero(**numbers: int) -> list[Word]:
    return [(f"{name}={number}", not number) for name, number in numbers.items()]


def _spread(word: str) -> list[str]:
    """The words that a run such as `M3..5@7` stands for: `M3@7 M4@8 M5@9`."""
    run = RUN.fullmatch(word)
    if run is None:
        return [word]
    first, last, sequence = int(run[2]), int(run[3]), int(run[4])
    names = enumerate(range(first, last + 1))
    return [f"{run[1]}{number}@{sequence + place}" for place, number in names]


def matches(expected: list[str], words: list[Word]) -> bool:
    """Whether the expected words are the outcome's, but for some that may be left out."""
    left = [one for word in expected for one in _spread(word)]
    for word, may_miss in words:
        if left and left[0] == word:
            left.pop(0)
        elif not may_miss:
            return False
    return not left


def spoken(words: list[Word]) -> str:
    """An outcome as a text for people: all that must be written, and the session."""
    return " ".join(word for word, may_miss in words if not may_miss)


def segment_word(told: dict[str, Any]) -> str:
    """A segment as a script writes it."""
    mark = {"active": "+", "free": "-", "pinned": ""}[told["state"]]
    word = f"{mark}{told['number']}"
    if told["bytes"]:
        word += f":{told['bytes']}/{told['live_bytes']}*{told['live_messages']}"
    oldest = told["oldest"]
    if oldest is None:
        return word
    return f"{word}={oldest['destination'].removeprefix('queue:')}@{oldest['sequence']}"
