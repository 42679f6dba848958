"""Records as nobody should write them: any values in any schema, cut, flipped, or no record."""

from __future__ import annotations

import random
from typing import Any

from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.framing.confluent import SCHEMA_HEADER
from ledgermq.wire.framing.schemas import by_name, names

LONGS = (0, 1, -1, 2, 7, 255, 1_024, 2**31 - 1, -(2**31), 2**53, 2**63 - 1, -(2**63))
# Of times in ms: 63 years, which is before 1970 if it is an age, and the longest.
LONGS += (2_000_000_000_000, 3_162_240_000_000, 3_162_240_000_001)
INTS = (0, 1, -1, 2, 9, 100, 2**31 - 1, -(2**31))
DOUBLES = (0.0, -0.0, -1.5, 5e-324, 1.7e308, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    *("", "q", "queue:q", "topic:t", "queue:", "temporary/x", "queue:temporary/00/x", "QM1"),
    *(
        "²",
        "\x00",
        "a\nb\r\tc",
        "\x1b[31mred\x1b]0;title\x07",
        "<script>alert(1)</script>&quot;'\"",
        "'; DROP TABLE moves; --",
        "\u202eright to left\u2066\u2028",
        "👩\u200d👩\u200d👧\ufeff\uffff",
        "\ud7ff",
        "𝄞" * 10,
        "a.b/%-",
        "color = 'red'",
        "(" * 300,
        "x" * 5_000,
        "1" * 400,
    ),
)
# What is larger than its topic takes comes to no topic.
BYTES_MAX = 500_000
KINDS_OF_KEYS = ("manifest", "chunk", "root", "")
NUMBERS = ("²", "٣", "-1", "007", "9" * 5_000, "", "x", "0x1", "1e3", " 1", "3", "12")


class BadRecords:
    """Makes records from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.doubles = DOUBLES

    def datum(self, schema: Any, named: dict[str, Any] | None = None) -> Any:
        """Any value of a schema."""
        if isinstance(schema, dict) and "__named_schemas" in schema:
            named = schema["__named_schemas"]
        known, one = named or {}, self.random
        kind = schema
        if isinstance(schema, str) and schema in known:
            schema = known[schema]
        if isinstance(schema, list):
            branch = one.choice(schema)
            value = self.datum(branch, known)
            full = branch if isinstance(branch, str) else branch.get("name")
            record = isinstance(value, dict) and full is not None
            return (full, value) if record else value
        if isinstance(schema, dict):
            kind = schema["type"]
        match kind:
            case "record":
                return {
                    field["name"]: self.datum(field["type"], known) for field in schema["fields"]
                }
            case "array":
                count = one.choice((0, 0, 1, 2, 3, 30))
                return [self.datum(schema["items"], known) for _ in range(count)]
            case "map":
                return {one.choice(TEXTS): self.datum(schema["values"], known) for _ in range(2)}
            case "enum":
                return one.choice(schema["symbols"])
            case "fixed":
                return one.choice((bytes(schema["size"]), one.randbytes(schema["size"])))
        return self._plain(kind)

    def _plain(self, kind: Any) -> Any:
        one = self.random
        match kind:
            case "null":
                return None
            case "boolean":
                return one.random() < 0.5
            case "int":
                return one.choice(INTS)
            case "long":
                return one.choice(LONGS)
            case "float" | "double":
                return one.choice(self.doubles)
            case "bytes":
                return one.choice((b"", b"x", bytes(24), one.randbytes(40), bytes(3_000)))
            case "string":
                return one.choice(TEXTS)
        raise AssertionError(f"no values of {kind} are known")

    def record(self, full_name: str) -> bytes:
        """A framed record of a schema, with any values in it."""
        schema = by_name(full_name).schema
        while True:
            value = encode_record(full_name, self.datum(schema))
            if len(value) <= BYTES_MAX:
                return value

    def broken(self, value: bytes) -> bytes | None:
        """A record that was whole: cut, lengthened, with bits flipped, or nothing at all."""
        one = self.random
        match one.randrange(6):
            case 0:
                return value[: one.randrange(len(value) + 1)]
            case 1:
                return value + one.randbytes(one.randint(1, 9))
            case 2:
                flipped = bytearray(value)
                for _ in range(one.randint(1, 8)):
                    flipped[one.randrange(len(flipped))] ^= 1 << one.randrange(8)
                return bytes(flipped)
            case 3:
                return value[:10] + one.randbytes(one.randint(0, 60))
            case 4:
                return one.randbytes(one.randint(0, 60))
        return one.choice((None, b""))

    def value(self, prefix: str) -> bytes | None:
        """A value for a topic whose records have names with a prefix."""
        one = self.random
        mine = [name for name in names() if name.startswith(prefix)]
        whole = self.record(one.choice(mine if one.random() < 0.8 else names()))
        return whole if one.random() < 0.6 else self.broken(whole)

    def unreadable(self, prefix: str) -> bytes | None:
        """A value that is no record of those with a prefix, so that it can be nobody's."""
        one = self.random
        whole = self.record(one.choice([name for name in names() if name.startswith(prefix)]))
        foreign = self.record(one.choice([n for n in names() if not n.startswith(prefix)]))
        cut = whole[: one.randrange(len(whole))]
        return one.choice((None, b"", cut, foreign, whole + b"spare", one.randbytes(60)))

    def key(self) -> bytes:
        """A key that may look like one of the checkpoints."""
        one = self.random
        if one.random() < 0.2:
            return one.randbytes(one.randint(1, 20))
        name, kind = one.choice(("QM1", "QM1", "QM1", "QM2", "")), one.choice(KINDS_OF_KEYS)
        digest = one.randbytes(32).hex()
        number = digest if one.random() < 0.4 else one.choice(NUMBERS)
        return f"{name}/{kind}/{number}".encode()

    def headers(self) -> list[tuple[str, bytes | None]]:
        """Headers that may look like those of an operation or an outcome."""
        one = self.random
        found: list[tuple[str, bytes | None]] = []
        for name in ("connection", "lane", "session", "sequence"):
            text = one.choice((*NUMBERS, *TEXTS)).encode()
            value = one.choice((None, b"\xff", b"9" * 18, bytes(16).hex().encode(), text))
            if one.random() < 0.7:
                found.append((f"ledgermq-{name}", value))
        return found

    def in_confluent(
        self, value: bytes | None
    ) -> tuple[bytes | None, list[tuple[str, bytes | None]]]:
        """A value as it is, or in Confluent framing with a header that mostly explains it."""
        one = self.random
        if value is None or one.random() < 0.6:
            return value, []
        fingerprint = value[2:10].hex().encode()
        bad = (None, b"", one.randbytes(16), fingerprint.upper(), fingerprint[1:])
        header = fingerprint if one.random() < 0.7 else one.choice(bad)
        return b"\0" + one.randbytes(4) + value[10:], [(SCHEMA_HEADER, header)]
