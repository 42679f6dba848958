"""What a rebuild found: the state of a queue manager at one position, out of the rows of a fold."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from ledgermq.errors import LedgerMQError
from ledgermq.wire.framing.codec import decode_record
from ledgermq_spark.log.headers import group_text, origin_text
from ledgermq_spark.log.rows import BYTES, FLAG, LONG, TEXT, arrow_batch, arrow_schema
from ledgermq_spark.log.skipped import Skipped
from ledgermq_spark.log.store import files_of
from ledgermq_spark.rebuild.checkpoints import state_digest


class FoldStoppedError(LedgerMQError):
    """The fold may not go on: the log has a hole, or an entry of an unknown protocol version."""

    code = "fold-stopped"


def why_stopped(queue_manager: str, stopped: dict[str, Any]) -> str:
    """One sentence for people."""
    where = f"{queue_manager}@{stopped['position']}"
    if stopped["why"] == "version":
        return (
            f"the entries from {where} on need protocol version {stopped['version']}, which this "
            "program does not know: upgrade it"
        )
    return f"the log has a hole: {where} is missing: {hole_told(stopped)}"


def hole_told(stopped: dict[str, Any]) -> str:
    """What to do about a hole that stopped the fold."""
    position, found = stopped["position"], stopped["found"]
    through = f" --through {found - 1}" if found is not None and found - 1 > position else ""
    above = "no record stands above it" if found is None else f"the next record is {found}"
    return (
        f"{above}. The end of a Kafka transaction leaves holes, or records were lost. If none was "
        f"there, declare it skipped: `ledgermq log skip {position}{through}`"
    )


# So many groups that lack something are told, the oldest of them.
GROUPS_MAX = 10_000
# What a state says of itself, in JSON.
STATUSES = ("statuses", "topics", "subscriptions", "groups", "stalls")
# Parts of which there is one row, and which fit the driver.
SMALL = ("end", "chain", "root", "stopped", *STATUSES)
# Parts of which there are few, each a list in JSON.
LISTED = ("skipped", "digest")


def or_more(groups: int) -> str:
    """What follows the number of groups that lack something, if there may be others."""
    return " or more" if groups == GROUPS_MAX else ""


class Digests(NamedTuple):
    """What a checkpoint at a position must have: the digest of the state, and the chain."""

    state: str
    chain: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The state of a queue manager at one position, as the fold says it.

    Times are microseconds since 1970 UTC. `files`, or directories of them, keep all that the fold
    told (`frames`); `ends` are those that have the state.
    `stopped` says where and why it could not reach the position asked for, or is None; `skipped`
    what was passed over on the way because it was declared skipped; `digests` those of state and
    chain on the way, at positions that were asked for.
    """

    queue_manager: str
    position: int
    time: int
    digest: str
    chain: bytes
    root_bytes: bytes
    statuses: list[dict[str, Any]]
    topics: list[dict[str, Any]]
    subscriptions: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    stalls: list[dict[str, Any]]
    files: Sequence[str]
    ends: Sequence[str]
    seconds: float
    operations: int
    stopped: dict[str, Any] | None
    skipped: list[Skipped] = field(default_factory=list)
    digests: dict[int, Digests] = field(default_factory=dict)

    @property
    def root(self) -> dict[str, Any]:
        """The state without its numbered messages, as `checkpoint.Root`."""
        return decode_record(self.root_bytes)[1]

    @property
    def bindings(self) -> list[dict[str, Any]]:
        """Which topics handed on what was put to them, and where to."""
        return [{**one} for one in self.root["bindings"]]

    def block_bytes(self) -> list[bytes]:
        """The blocks of messages, encoded, in manifest order."""
        return [chunk["payload"] for chunk in chunks_in(self.ends)[1:]]

    def named_blocks(self) -> list[tuple[str, int, bytes]]:
        """The blocks with their queue and number, as a manifest lists them; several of a number."""
        blocks = chunks_in(self.ends)[1:]
        return [(one["queue"], one["block"], one["payload"]) for one in blocks]

    def blocks(self) -> list[dict[str, Any]]:
        """The numbered messages as `checkpoint.MessageBlock` records, in manifest order.

        Of a block that was too large for one, there are several.
        """
        return [decode_record(block)[1] for block in self.block_bytes()]

    def messages(self) -> pa.Table:
        """The numbered messages: queue, queue_created, sequence and the rest of a StoredMessage."""
        batches = [arrow_batch(STORED_COLUMNS, stored_rows(block)) for block in self.blocks()]
        return pa.Table.from_batches(batches, arrow_schema(STORED_COLUMNS))


STORED_COLUMNS = (
    ("queue", TEXT),
    ("queue_created", LONG),
    ("sequence", LONG),
    ("put_position", LONG),
    ("put_index", LONG),
    ("message_id", BYTES),
    ("priority", LONG),
    ("persistent", FLAG),
    ("size_bytes", LONG),
    ("enqueued_at", LONG),
    ("backout_count", LONG),
    ("uncounted_backout_count", LONG),
    ("group", TEXT),
    ("in_unit_of_work", FLAG),
    ("origin", TEXT),
)


def stored_rows(block: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The messages of a MessageBlock as rows of `STORED_COLUMNS`."""
    names = [name for name, _ in STORED_COLUMNS[2:]]
    head = (block["queue"], block["created_position"])
    rows = []
    for one in block["messages"]:
        header = next(iter(one["header"]), None)
        told = one | {
            "group": None if header is None else group_text(header.get("group")),
            "origin": origin_text(one.get("origin")),
        }
        rows.append((*head, *(told[name] for name in names)))
    return rows


def rebuilt_from(
    queue_manager: str,
    first: int,
    position: int,
    files: Sequence[str],
    started: float,
    ends: Sequence[str] | None = None,
) -> Rebuilt:
    """What the files of a fold say, from its first position to the one asked for.

    `started` is when the fold began, on the monotonic clock; `ends` are the files that have the
    state, where not all of them do.
    """
    ends = ends or files
    state = _parts(ends, (*SMALL, "block"))
    small = {row["part"]: row["payload"] for row in state if row["part"] in SMALL}
    listed = [(row["part"], json.loads(row["payload"])) for row in _parts(files, LISTED)]
    skipped = [Skipped(*one) for part, one in listed if part == "skipped"]
    digests = [one for part, one in listed if part == "digest"]
    stopped = json.loads(small["stopped"]) if "stopped" in small else None
    end = json.loads(small["end"])
    if stopped is None and end["position"] < position:
        stopped = {"why": "hole", "position": end["position"] + 1, "found": None}
    return Rebuilt(
        queue_manager=queue_manager,
        position=end["position"],
        time=end["time"],
        digest=state_digest([chunk["payload"] for chunk in _chunks(state)]),
        chain=small["chain"],
        root_bytes=small["root"],
        **{name: json.loads(small[name]) for name in STATUSES},
        files=files,
        ends=ends,
        seconds=time.monotonic() - started,
        operations=end["position"] + 1 - first,
        stopped=stopped,
        skipped=sorted(skipped, key=lambda one: one.first),
        digests={at: Digests(digest, bytes.fromhex(chain)) for at, digest, chain in digests},
    )


def chunks_in(paths: Sequence[str]) -> list[dict[str, Any]]:
    """The root and the blocks of the state that a fold ended with, in manifest order."""
    return _chunks(_parts(paths, ("root", "block")))


def _chunks(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    order = ("created_position", "block", "number")
    return sorted(
        (row for row in rows if row["part"] in ("root", "block")),
        # Older files have no numbers: no block was large then.
        key=lambda row: (row["part"] != "root", *(row.get(name) or 0 for name in order)),
    )


def _parts(paths: Sequence[str], parts: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of some parts that have a payload, with what the files have of their places."""
    columns = {"part", "queue", "created_position", "block", "number", "payload"}
    chosen = pa.array(parts)
    found: list[dict[str, Any]] = []
    for path in files_of(paths):
        file = ParquetFile(path)
        there = [name for name in file.schema_arrow.names if name in columns]
        # A dataset does the same, and imports pandas, which takes a tenth of a rebuild.
        for batch in file.iter_batches(columns=there):
            found += batch.filter(pc.is_in(batch.column("part"), value_set=chosen)).to_pylist()
    return found
