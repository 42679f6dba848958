"""Proves an archive: every stretch is folded again from the state before it, all of them at once.

A stretch is accepted only if its records have the digest chain that the next one begins with, are
the operations that the archive has, and their fold ends with the state that the next one begins
with and gives, row by row, what the archive has of it. So stretches that were each proven by
themselves prove the whole.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ledgermq.garbage import seldom_looked_for_cycles
from ledgermq.wire.framing.codec import OPERATION
from ledgermq.wire.framing.schemas import forms_of, names
from ledgermq_spark.archive.folding import plan_of, why_not_on
from ledgermq_spark.archive.stretch import FOLD, OPERATIONS, ArchiveBrokenError, Stretch
from ledgermq_spark.jobs.work import EVERYTHING
from ledgermq_spark.log.headers import header_of
from ledgermq_spark.log.read_log import HOLES, LOG_APPEND_TIME, as_operation, hole_rows
from ledgermq_spark.log.rows import (
    OPERATION_COLUMNS,
    arrow_arrays,
    arrow_batch,
    arrow_schema,
    arrow_type,
    columns_of,
    operation_row,
    spark_schema,
)
from ledgermq_spark.log.session import Spark, is_spared, session_of
from ledgermq_spark.log.skipped import SKIPPED, Skipped, entries_in
from ledgermq_spark.rebuild.checkpoints import state_digest
from ledgermq_spark.rebuild.fold import TOLD, Fold
from ledgermq_spark.rebuild.rebuilt import STATUSES

# Of large blocks of messages so many at a time.
PAYLOADS_AT_ONCE: Final = 1_000
PAYLOAD_COLUMNS: Final = ("part", "queue", "created_position", "block", "number", "payload")


class KeptRows:
    """Rows, one after the other, of arrays that follow each other."""

    def __init__(self, arrays: Iterator[pa.Array]) -> None:
        self._rows = arrays
        self._left: Any = None

    def next_rows(self, count: int) -> Any:
        """The next rows as one array; None if there are not so many."""
        parts = [] if self._left is None else [self._left]
        have = sum(map(len, parts))
        while have < count:
            part = next(self._rows, None)
            if part is None:
                self._left = pa.concat_arrays(parts) if parts else None
                return None
            parts.append(part)
            have += len(part)
        whole = pa.concat_arrays(parts)
        self._left = whole.slice(count)
        return whole.slice(0, count)


def told_rows(stretch: Stretch, name: str) -> Iterator[pa.Array]:
    """The rows of one of `TOLD`, as structs."""
    kind = arrow_type(spark_schema(TOLD[name]))
    for path in _files(stretch, FOLD):
        for batch in pq.ParquetFile(path).iter_batches(columns=["part", name]):
            chosen = batch.filter(pc.equal(batch.column(0), name))
            if len(chosen):
                yield chosen.column(1).cast(kind)


def payload_rows(stretch: Stretch) -> Iterator[dict[str, Any]]:
    """The other rows of the fold, of which each has a payload."""
    for path in _files(stretch, FOLD):
        file = pq.ParquetFile(path)
        for batch in file.iter_batches(PAYLOADS_AT_ONCE, columns=list(PAYLOAD_COLUMNS)):
            yield from batch.filter(pc.is_valid(batch.column("payload"))).to_pylist()


def operation_rows(stretch: Stretch, *, of_holes: bool = False) -> Iterator[pa.Array]:
    """The operations in the order of the log as structs, or those in place of holes.

    Columns that an older program did not write are null, as they are for whoever reads them.
    """
    files = [path for path in _files(stretch, OPERATIONS) if (path.name == HOLES) is of_holes]
    schema = arrow_schema(OPERATION_COLUMNS)
    for path in sorted(files, key=_first_position):
        for batch in pq.ParquetFile(path).iter_batches():
            there = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns = [
                there[one.name].cast(one.type)
                if one.name in there
                else pa.nulls(len(batch), one.type)
                for one in schema
            ]
            yield pa.StructArray.from_arrays(columns, names=schema.names)


def _first_position(path: Path) -> int:
    """Of a file with operations; each has those that one task decoded, in their order."""
    batch = next(pq.ParquetFile(path).iter_batches(1, columns=["position"]), None)
    first = None if batch is None else batch.column(0)[0].as_py()
    return -1 if first is None else int(first)


def _files(stretch: Stretch, part: str) -> list[Path]:
    return sorted((stretch.path / part).glob("*.parquet"))


LINKS: Final = "links"
# Rows that are not compared one by one: the digest chain, which is cut as records were read, and
# why the fold of what followed stopped when the stretch was made.
APART: Final = (LINKS, "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenStretch:
    """A stretch that was folded again.

    Attributes:
        first: Its first position.
        last: Its last position.
        records: How many records of it were folded.
        rows: How many rows of their fold agree with those in the archive.
        milliseconds: How long that took.
        problem: What is wrong with it, in words; None: nothing.
    """

    first: int
    last: int
    records: int
    rows: int
    milliseconds: int
    problem: str | None


PROVEN_COLUMNS: Final = columns_of(ProvenStretch)


def prove_stretches(spark: Spark, stretches: Sequence[Stretch]) -> list[ProvenStretch]:
    """Fold stretches again, as many at once as Spark has cores; they are all of an archive."""
    tasks = [
        (str(one.path), None if previous is None else str(previous.path))
        for one, previous in zip(stretches, [None, *stretches[:-1]], strict=True)
    ]
    if is_spared(spark, stretches[-1].last):
        batch = pa.RecordBatch.from_pylist(
            [{"path": path, "before": before} for path, before in tasks]
        )
        rows = [row for proven in _prove_all([batch]) for row in proven.to_pylist()]
    else:
        session = session_of(spark)
        each_by_itself = session.sparkContext.parallelize(tasks, len(tasks))
        frame = session.createDataFrame(each_by_itself, "path string, before string")
        told = frame.mapInArrow(_prove_all, spark_schema(PROVEN_COLUMNS)).collect()
        rows = [row.asDict() for row in told]
    found = sorted((ProvenStretch(**row) for row in rows), key=lambda one: one.first)
    followers = [*stretches[1:], None]
    return [_sealed(*each) for each in zip(found, stretches, followers, strict=True)]


def _sealed(proven: ProvenStretch, stretch: Stretch, follower: Stretch | None) -> ProvenStretch:
    """What was proven of a stretch, and that its manifest is the one that was there."""
    if proven.problem is not None or follower is None or follower.is_behind(stretch):
        return proven
    problem = "its manifest has another seal than the stretch behind it knows: it was altered"
    return replace(proven, problem=problem)


def _prove_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            with seldom_looked_for_cycles():
                proven = _prove(row["path"], row["before"])
            yield arrow_batch(PROVEN_COLUMNS, [proven])


def _prove(path: str, before: str | None) -> tuple[Any, ...]:
    started = time.monotonic()
    stretch = Stretch.at(Path(path))
    again = _Again(stretch)
    try:
        problem = stretch.damage() or again.problem(None if before is None else Path(before))
    except ArchiveBrokenError as error:
        problem = str(error)
    except (pa.ArrowException, KeyError) as error:
        problem = f"its files are not readable, or have other columns than they should: {error}"
    except OSError as error:
        problem = f"its files cannot be read: {error}"
    took = round((time.monotonic() - started) * 1000)
    return (stretch.first, stretch.last, again.records, again.rows, took, problem)


class _Again:
    """A stretch that is folded once more, and compared with all that the archive has of it."""

    def __init__(self, stretch: Stretch) -> None:
        self._stretch = stretch
        self._told = {name: KeptRows(told_rows(stretch, name)) for name in TOLD}
        self._operations = KeptRows(operation_rows(stretch))
        self._payloads = (one for one in payload_rows(stretch) if one["part"] not in APART)
        self._links = hashlib.sha256()
        self._state: list[bytes] = []
        self._skipped: list[Skipped] = []
        self._newest_ms = -1
        self.records = self.rows = 0

    def problem(self, before: Path | None) -> str | None:
        """What does not agree, if anything does not."""
        stretch = self._stretch
        previous = None if before is None else Stretch.at(before)
        plan = plan_of(stretch, previous, EVERYTHING)
        if stretch.begins_with != (previous and previous.digest):
            return "it begins with another state than the stretch before it ends with"
        fold = Fold(plan)
        for columns in stretch.records():
            self.records += len(columns[0])
            self._newest_ms = max(self._newest_ms, *columns[1])
            fold.take(*columns)
            problem = self._compare(fold) or self._compare_operations(columns)
            if problem:
                return problem
        fold.end()
        if fold.state.position != stretch.last:
            return f"its records end at position {fold.state.position}"
        return self._compare(fold) or self._more() or self._end(fold)

    def _compare(self, fold: Fold) -> str | None:
        for batch in fold.told():
            name = batch.column(0)[0].as_py()
            if name not in TOLD:
                problem = self._compare_payloads(batch)
                if problem:
                    return problem
                continue
            rows = batch.column(batch.schema.get_field_index(name))
            archived = self._told[name].next_rows(len(rows))
            if archived is None or not rows.equals(archived):
                return f"the fold gives other rows of {name} than the archive, {self._where(rows)}"
            self.rows += len(rows)
        return None

    def _compare_payloads(self, batch: pa.RecordBatch) -> str | None:
        for row in batch.select(PAYLOAD_COLUMNS).to_pylist():
            part, payload = row["part"], row["payload"]
            if part == LINKS:
                self._links.update(payload)
                continue
            if part == "stopped":
                return why_not_on(json.loads(payload))
            if part in ("root", "block"):
                self._state.append(payload)
            elif part == "skipped":
                self._skipped.append(Skipped(*json.loads(payload)))
            kept = next(self._payloads, None)
            if kept is None or not _is_as_told(kept, row):
                return f"the fold gives other {part} than the archive has"
        return None

    def _compare_operations(self, columns: list[list[Any]]) -> str | None:
        passed = entries_in(self._skipped)
        decoded = [
            operation_row(
                SKIPPED if offset in passed else as_operation(value, stamp),
                offset,
                time_ms * 1000,
                stamp == LOG_APPEND_TIME,
            )
            for offset, time_ms, stamp, value in zip(*columns, strict=True)
        ]
        rows = _operations(decoded)
        if _are_kept(rows, self._operations.next_rows(len(rows))):
            return None
        return f"the records are other operations than the archive has, {self._where(rows)}"

    def _more(self) -> str | None:
        """What the archive has, and the fold does not give."""
        names = [name for name, rows in self._told.items() if rows.next_rows(1)]
        names += [one["part"] for one in islice(self._payloads, 1)]
        if names:
            return f"the archive has more rows of {names[0]} than the fold gives"
        if self._operations.next_rows(1):
            return "the archive has more operations than records"
        at_holes = _operations(hole_rows(self._skipped))
        kept_rows = list(operation_rows(self._stretch, of_holes=True))
        if not _are_kept(at_holes, pa.concat_arrays([at_holes.slice(0, 0), *kept_rows])):
            return "the archive has other operations than the fold where there is no record"
        return None

    def _where(self, rows: Any) -> str:
        row = rows[0].as_py()
        return f"from position {row['position']} on" if "position" in row else "at the end"

    def _end(self, fold: Fold) -> str | None:
        stretch = self._stretch
        if fold.chain != stretch.chain:
            return "its records have another digest chain: one was altered, left out or put in"
        if state_digest(self._state) != stretch.digest:
            return "the fold of its records ends with another state"
        if _links_kept(stretch) != self._links.digest():
            return "the archive has another digest chain on the way than its records"
        if stretch.skipped != tuple((one.first, one.last) for one in self._skipped):
            return "its manifest has other positions declared skipped than the fold passed over"
        if self._newest_ms != stretch.newest_ms:
            return "its manifest has another time of the newest record than the records have"
        return None


def _operations(rows: list[tuple[Any, ...]]) -> pa.StructArray:
    columns = arrow_arrays(OPERATION_COLUMNS, rows)
    return pa.StructArray.from_arrays(columns, names=[name for name, _ in OPERATION_COLUMNS])


def _are_kept(told: pa.StructArray, kept: pa.StructArray | None) -> bool:
    """Whether operations are those that the archive has, as it or an older program writes them."""
    if kept is None or len(told) != len(kept):
        return False
    kinds = told.field("kind").to_pylist()
    return all(
        now == then or _is_as_older(kind, name, now, then)
        for name, _ in OPERATION_COLUMNS
        if not told.field(name).equals(kept.field(name))
        for kind, now, then in zip(
            kinds, told.field(name).to_pylist(), kept.field(name).to_pylist(), strict=True
        )
    )


def _is_as_older(kind: str, name: str, told: Any, kept: Any) -> bool:
    """Whether an older program wrote so what an operation says.

    It wrote numbers that JSON does not know into headers as they are, and nothing of what an
    operation could not say yet, and leaves as it is.
    """
    if name == "headers":
        return bool(_as_older(told) == kept)
    full_name = OPERATION + kind
    later = forms_of(full_name)[0].left_out if full_name in names() else {}
    if name != "settings":
        return kept is None and name in later and bool(later[name] == told)
    try:
        now, then = json.loads(told or ""), json.loads("{}" if kept is None else kept)
        known = {one: value for one, value in now.items() if one in then or later.get(one) != value}
        return _in_order(known) == _in_order(then)
    except (AttributeError, TypeError, ValueError, RecursionError):
        return False


def _in_order(settings: Any) -> str:
    return json.dumps(settings, sort_keys=True)


def _as_older(headers: list[str | None] | None) -> list[str | None] | None:
    """Headers of an operation as programs wrote them that knew no better of such numbers."""
    if headers is None:
        return None
    return [one and json.dumps(header_of(one), separators=(",", ":")) for one in headers]


def _is_as_told(kept: dict[str, Any], told: dict[str, Any]) -> bool:
    """Whether a row with a payload says what the fold does.

    Older programs may have told less of statuses.
    """
    if kept == told:
        return True
    if told["part"] not in STATUSES or kept | {"payload": None} != told | {"payload": None}:
        return False
    try:
        return _is_part_of(json.loads(kept["payload"]), json.loads(told["payload"]))
    except (ValueError, RecursionError):
        return False


def _is_part_of(kept: Any, told: Any) -> bool:
    if isinstance(kept, dict) and isinstance(told, dict):
        return all(name in told and _is_part_of(one, told[name]) for name, one in kept.items())
    if isinstance(kept, list) and isinstance(told, list):
        return len(kept) == len(told) and all(map(_is_part_of, kept, told))
    return type(kept) is type(told) and bool(kept == told)


def _links_kept(stretch: Stretch) -> bytes | None:
    """The digest of the digest chain as the archive has it; None if any of it is missing."""
    links, following = hashlib.sha256(), stretch.first
    for row in payload_rows(stretch):
        if row["part"] != LINKS:
            continue
        if row["block"] != following:
            return None
        links.update(row["payload"])
        following += len(row["payload"]) // links.digest_size
    return links.digest()
