"""Answers to questions as values of the outcomes topic (PROTOCOL.md §9)."""

from __future__ import annotations

import json

from ledgermq.protocol.answers import Answer
from ledgermq.protocol.outcomes import EMPTY_HEADER
from ledgermq.wire.framing.codec import encode_record, outcome_to_union
from ledgermq.wire.framing.header_lists import split
from ledgermq.wire.framing.schemas import ANSWER


def encode_answer(question: int, position: int, time: int, answer: Answer) -> bytes:
    """The answer to a question by its number, true at a log position and time (µs)."""
    return encode_record(
        ANSWER,
        {
            "question": question,
            "position": position,
            "time": max(time, 0),
            "reason": answer.reason,
            "detail": answer.detail,
            "document": json.dumps(answer.document, separators=(",", ":"), ensure_ascii=False),
            "messages": answer.messages,
            "headers": split(answer.messages, EMPTY_HEADER),
            "outcomes": [outcome_to_union(one) for one in answer.outcomes],
            "next": answer.next,
        },
    )
