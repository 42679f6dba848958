"""Answers to questions as values of the outcomes topic (PROTOCOL.md §9)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ledgermq.protocol.outcomes import EMPTY_HEADER, DeliveredMessage, Outcome
from ledgermq.wire.framing.codec import encode_record, outcome_to_union
from ledgermq.wire.framing.header_lists import split
from ledgermq.wire.framing.schemas import ANSWER


def encode_answer(
    question: int,
    position: int,
    time: int,
    *,
    document: Any = None,
    messages: Sequence[DeliveredMessage] = (),
    outcomes: Sequence[Outcome] = (),
    reason: str = "",
    detail: str = "",
    behind: str = "",
) -> bytes:
    """The answer to a question by its number, true at a log position and time (µs).

    `behind` is from where to ask on, if it is not all.
    """
    return encode_record(
        ANSWER,
        {
            "question": question,
            "position": position,
            "time": max(time, 0),
            "reason": reason,
            "detail": detail,
            "document": json.dumps(document, separators=(",", ":"), ensure_ascii=False),
            "messages": list(messages),
            "headers": split(messages, EMPTY_HEADER),
            "outcomes": [outcome_to_union(one) for one in outcomes],
            "next": behind,
        },
    )
